/* SPDX-License-Identifier: Apache-2.0 */
/* See feed-host.h. Invariant: every byte of the files is granted once in a run, in order. */
#include "tests/bench/feed-host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agentd/feed/packet.h"
#include "agentd/feed/server.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"

#define UNIT "primus-1-worker-0.1.service"
#define TRAINER_WORDS_MAX 4096u

struct granted {
        const char *path;
        struct stat stat;
};

struct feed_host {
        sd_event *event;
        struct feed_server *server;
        struct feed_unit unit;
        char directory[96], input[160], socket[160];
        struct granted *files;
        size_t n_files;
        uint64_t task_size;
        size_t file; /* the next task's: which file, from where on, and its number */
        uint64_t at, task;
        bool exited;
        int status;
};

static _Noreturn void die(const char *what) {
        fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
        exit(1);
}

static int find_unit(void *userdata, const char *unit, struct feed_unit *ret) {
        *ret = ((struct feed_host *)userdata)->unit;
        return 0;
}

static void grant(struct feed_host *h, uint32_t credits) {
        uint8_t buf[16384];
        struct grant_batch batch = { .grants = buf };

        for (; credits > 0 && h->file < h->n_files; credits--) {
                const struct granted *f = &h->files[h->file];
                uint64_t size = (uint64_t)f->stat.st_size;
                const struct task_grant g = {
                        .task = h->task + 1,
                        .start = h->at,
                        .end = MIN(h->at + h->task_size, size),
                        .offset = h->at,
                        .size = size,
                        .mtime_nsec = (uint64_t)f->stat.st_mtim.tv_sec * UINT64_C(1000000000) +
                                      (uint64_t)f->stat.st_mtim.tv_nsec,
                        .inode = f->stat.st_ino,
                        .path = f->path,
                };

                if (task_grant_write(&g, buf, sizeof(buf), &batch.size) < 0)
                        break;
                h->task++;
                h->at = g.end;
                if (h->at < size)
                        continue;
                h->file++;
                h->at = 0;
        }
        batch.last = h->file == h->n_files;
        if (batch.size > 0 && feed_grant(h->server, &h->unit.id, &batch) < 0)
                die("granting");
}

static void on_open(void *userdata, const struct executor_id *id, const struct feed_opened *opened) {
        grant(userdata, opened->credits);
}

static void on_progress(void *userdata, const struct executor_id *id, const struct feed_report *report) {
        grant(userdata, report->credits);
}

static int on_final(void *userdata, const char *unit, const void *body, size_t size, bool first) {
        return 0;
}

static int on_entries(void *userdata, const struct executor_id *id, const struct scan_batch *batch) {
        return 0;
}

static int on_bye(void *userdata, const struct executor_id *id, bool failed, const char *text) {
        return 0;
}

static const struct feed_ops ops = { find_unit, on_open, on_progress, on_final, on_entries, on_bye };

static int identify(const struct identity *i, char ret[static IDENTITY_UNIT_MAX]) {
        strcpy(ret, UNIT);
        return 0;
}

static int on_child(sd_event_source *source, const siginfo_t *info, void *userdata) {
        struct feed_host *h = userdata;

        h->status = info->si_code == CLD_EXITED ? info->si_status : 128 + info->si_status;
        h->exited = true;
        return 0;
}

struct feed_host *feed_host_new(const char *parent) {
        struct feed_host *h = calloc(1, sizeof(*h));
        sigset_t mask;

        if (!h || !getenv("BENCH_EXECUTOR")) {
                fprintf(stderr, "bench: BENCH_EXECUTOR is to name a primus-executor\n");
                exit(2);
        }
        h->unit = (struct feed_unit){ .id = { .job = 1, .role = "worker", .attempt = 1 },
                                      .uid = getuid(),
                                      .kind = ORDER_FEED,
                                      .ack = ACK_LAG };
        /* a socket lies in it, whose path has 107 bytes at most */
        if (snprintf(h->directory, sizeof(h->directory), "%s/primus-bench-XXXXXX", parent) >=
            (int)sizeof(h->directory)) {
                errno = ENAMETOOLONG;
                die(parent);
        }
        if (!mkdtemp(h->directory))
                die(h->directory);
        snprintf(h->input, sizeof(h->input), "%s/input.json", h->directory);
        snprintf(h->socket, sizeof(h->socket), "%s/sock", h->directory);
        sigemptyset(&mask);
        sigaddset(&mask, SIGCHLD);
        (void)sigprocmask(SIG_BLOCK, &mask, NULL);
        if (sd_event_new(&h->event) < 0 ||
            feed_server_new(h->event, h->socket, NULL, identify, &ops, h, &h->server) < 0)
                die("the feed's socket");
        return h;
}

void feed_host_free(struct feed_host *h) {
        feed_server_free(h->server);
        sd_event_unref(h->event);
        if (remove_tree(h->directory) < 0)
                fprintf(stderr, "bench: %s stays\n", h->directory);
        free(h->files);
        free(h);
}

const char *feed_host_directory(const struct feed_host *h) {
        return h->directory;
}

void feed_host_files(struct feed_host *h, char *const paths[], size_t n, uint64_t task_size) {
        if (n == 0 || n > FEED_HOST_FILES_MAX || task_size == 0) {
                errno = EINVAL;
                die("the files to grant");
        }
        free(h->files);
        h->files = calloc(n, sizeof(*h->files));
        if (!h->files)
                die("the files to grant");
        for (size_t i = 0; i < n; i++) {
                h->files[i].path = paths[i];
                if (stat(paths[i], &h->files[i].stat) < 0)
                        die(paths[i]);
        }
        h->n_files = n;
        h->task_size = task_size;
}

void feed_host_input(struct feed_host *h, const char *mode, const char *format, const char *spec,
                     const char *more) {
        char text[1024];
        int n;

        if (!more)
                more = getenv("BENCH_INPUT");
        n = snprintf(text, sizeof(text),
                     "{\"inputManager\":{\"fileConfig\":{\"inputs\":[{\"name\":\"i\",\"spec\":{"
                     "\"pathPattern\":\"/d\","
                     "\"%s\":{%s}}}]}},\"input\":{\"mode\":\"%s\",\"ack\":\"%s\"%s%s}}",
                     format, spec, mode, strcmp(mode, "stdin") == 0 ? "lag" : "release", more ? "," : "",
                     more ? more : "");
        if (n < 0 || (size_t)n >= sizeof(text)) {
                errno = E2BIG;
                die("the job's input");
        }
        if (write_file_atomic(h->input, text, (size_t)n, 0600, false) < 0)
                die(h->input);
}

int feed_host_run(struct feed_host *h, char *const trainer[], uint32_t pipe_size) {
        _cleanup_free_ char **argv = NULL;
        const char *executor = getenv("BENCH_EXECUTOR");
        sd_event_source *source;
        size_t n = 0;
        pid_t pid;

        while (trainer[n])
                n++;
        argv = n <= TRAINER_WORDS_MAX ? calloc(n + 4, sizeof(*argv)) : NULL;
        if (!argv)
                die("the trainer's arguments");
        argv[0] = (char *)"primus-executor";
        argv[1] = (char *)"--feed";
        argv[2] = (char *)"--";
        memcpy(argv + 3, trainer, n * sizeof(*argv));
        h->file = 0;
        h->at = h->task = 0;
        h->exited = false;
        h->unit.pipe_size = pipe_size;
        pid = fork();
        if (pid == 0) {
                sigset_t none;

                /* Without its host it would wait for another one, and the trainer for it. */
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                sigemptyset(&none);
                (void)sigprocmask(SIG_SETMASK, &none, NULL);
                (void)setenv("PRIMUS_SOCKET", h->socket, 1);
                (void)setenv("PRIMUS_INPUT", h->input, 1);
                (void)execv(executor, argv);
                _exit(99);
        }
        if (pid < 0 || sd_event_add_child(h->event, &source, pid, WEXITED, on_child, h) < 0)
                die("starting primus-executor ($BENCH_EXECUTOR)");
        while (!h->exited)
                if (sd_event_run(h->event, 300 * USEC_PER_SEC) <= 0)
                        die("waiting");
        sd_event_source_unref(source);
        return h->status;
}
