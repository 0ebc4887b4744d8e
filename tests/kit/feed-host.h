/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of primus-executor --feed share: agentd's feed server in this process, whose manager is a
 * few lines that grant files, and the program itself with real pipes, files and trainers. */
#pragma once

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "agentd/feed/packet.h"
#include "agentd/feed/server.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/wire/feed.h"
#include "lib/wire/metrics.h"

#define UNIT "primus-1-worker-0.1.service"
#define TASKS 64

struct state {
        sd_event *event;
        struct feed_server *server;
        char directory[64], socket[96];
        struct feed_unit unit;
        struct task_grant grants[TASKS];
        size_t n, granted;
        struct task_progress seen[TASKS];
        unsigned done[TASKS]; /* how often DONE was said */
        char error[256];
        char failure[256]; /* of a task */
        struct feed_counters counters;
        uint64_t sync;
        uint64_t hungry, unserved; /* as said last */
        bool quiet;                /* grant nothing, as a manager without a link */
        bool bye, bye_failed, last_sent;
        unsigned opens, entries;
        uint64_t sources; /* that the executor said it knows */
        char *paths[TASKS], *files[TASKS];
        unsigned wait_entries;           /* how many batches are put off first */
        struct feed_result results[256]; /* of trials */
        size_t n_results;
        char question[256]; /* the latest of a searcher */
        uint64_t ask_number;
        unsigned asked;
        uint64_t peer;              /* that said the last one */
        struct metric_point metric; /* all that was said of "loss", joined */
        unsigned metric_packets, metric_points, metrics_again, other_points;
        pid_t pid;
        int status;
        bool exited;
};

_unused_ static int find_unit(void *userdata, const char *unit, struct feed_unit *ret) {
        struct state *s = userdata;

        if (strcmp(unit, UNIT) != 0)
                return -ENOENT;
        *ret = s->unit;
        return 0;
}

_unused_ static void grant(struct state *s, uint32_t credits) {
        size_t n = MIN(s->n - s->granted, (size_t)credits);
        uint8_t buf[16384];
        struct grant_batch batch = { .grants = buf };

        if (s->quiet || (n == 0 && (s->last_sent || s->granted < s->n)))
                return;
        s->last_sent = s->granted + n == s->n;
        for (size_t i = 0; i < n; i++)
                assert_int_equal(task_grant_write(&s->grants[s->granted + i], buf, sizeof(buf), &batch.size),
                                 0);
        batch.last = s->last_sent;
        if (feed_grant(s->server, &s->unit.id, &batch) >= 0)
                s->granted += n;
}

_unused_ static void on_open(void *userdata, const struct executor_id *id, const struct feed_opened *opened) {
        struct state *s = userdata;

        s->opens++;
        s->sources = opened->sources;
        grant(s, opened->credits);
}

_unused_ static void on_progress(void *userdata, const struct executor_id *id,
                                 const struct feed_report *report) {
        const uint8_t *list = report->progress;
        size_t size = report->size;
        struct task_progress p;
        struct state *s = userdata;
        int r;

        while ((r = task_progress_next(&list, &size, &p)) > 0) {
                size_t i = (size_t)p.task - 1;

                assert_in_range(i, 0, TASKS - 1);
                assert_true(p.read >= s->seen[i].read);
                s->seen[i] = p;
                s->seen[i].error = NULL;
                s->done[i] += p.state == TASK_DONE;
                if (p.state == TASK_FAILED)
                        snprintf(s->failure, sizeof(s->failure), "%s", p.error);
        }
        assert_int_equal(r, 0);
        s->counters = report->counters;
        s->hungry = report->hungry;
        s->unserved = report->unserved;
        if (report->has_sync)
                s->sync = report->sync;
        grant(s, report->credits);
}

_unused_ static int on_entries(void *userdata, const struct executor_id *id, const struct scan_batch *batch) {
        const uint8_t *list = batch->entries;
        size_t size = batch->size;
        struct scan_entry e;
        struct state *s = userdata;

        if (s->wait_entries > 0) {
                s->wait_entries--;
                return -EAGAIN;
        }
        while (s->entries < TASKS && scan_entry_next(&list, &size, &e) > 0)
                s->paths[s->entries++] = strdup(e.path);
        return 0;
}

_unused_ static int on_bye(void *userdata, const struct executor_id *id, bool failed, const char *text) {
        struct state *s = userdata;

        s->bye = true;
        s->bye_failed = failed;
        snprintf(s->error, sizeof(s->error), "%s", text);
        return 0;
}

/* The last report repeats what was said before. */
_unused_ static int on_final(void *userdata, const char *unit, const void *body, size_t size, bool first) {
        struct feed_report report;
        struct task_progress p;
        struct state *s = userdata;
        const uint8_t *list;
        size_t left;

        assert_string_equal(unit, UNIT);
        assert_int_equal(packet_read_progress(body, size, &report), 0);
        for (list = report.progress, left = report.size; task_progress_next(&list, &left, &p) > 0;)
                if (p.state == TASK_DONE && s->done[p.task - 1] > 0)
                        s->done[p.task - 1]--;
        report.credits = 0;
        on_progress(userdata, &s->unit.id, &report);
        return 0;
}

/* Results that came, in their order, and from whom the last one is. */
/* Of one series, "loss": what was said that was not said before (points have their times). */
_unused_ static void on_metrics(void *userdata, const struct executor_id *id, uint32_t local,
                                const void *points, size_t size) {
        const uint8_t *at = points, *end = at + size;
        struct state *s = userdata;
        char name[METRIC_NAME_MAX + 1];
        struct metric_point p;
        int r;

        s->metric_packets++;
        while ((r = metric_get(&at, end, name, &p)) > 0) {
                if (strcmp(name, "loss") != 0) {
                        s->other_points++;
                        continue;
                }
                if (p.usec <= s->metric.usec) {
                        s->metrics_again++;
                        continue;
                }
                s->metric = s->metric.count > 0 ? metric_join(&s->metric, &p) : p;
                s->metric_points++;
        }
        assert_int_equal(r, 0);
}

_unused_ static void on_result(void *userdata, uint64_t peer, const struct executor_id *id,
                               const struct feed_result *result) {
        struct state *s = userdata;

        s->peer = peer;
        if (s->n_results < ELEMENTSOF(s->results))
                s->results[s->n_results] = *result;
        s->n_results++;
}

/* The latest question, and from whom it is. */
_unused_ static void on_ask(void *userdata, uint64_t peer, const struct executor_id *id, uint64_t number,
                            const char *text) {
        struct state *s = userdata;

        s->peer = peer;
        s->asked++;
        s->ask_number = number;
        snprintf(s->question, sizeof(s->question), "%s", text);
}

static const struct feed_ops ops = { find_unit, on_open,   on_progress, on_final,  on_entries,
                                     on_bye,    on_result, on_ask,      on_metrics };

_unused_ static bool outside; /* whoever connects is in no unit */

_unused_ static int identify(const struct identity *i, char ret[static IDENTITY_UNIT_MAX]) {
        if (outside)
                return -ENOENT;
        strcpy(ret, UNIT);
        return 0;
}

_unused_ static int on_child(sd_event_source *source, const siginfo_t *info, void *userdata) {
        struct state *s = userdata;

        s->status = info->si_code == CLD_EXITED ? info->si_status : -info->si_status;
        s->exited = true;
        return 0;
}

_unused_ static void server_start(struct state *s) {
        assert_int_equal(feed_server_new(s->event, s->socket, NULL, identify, &ops, s, &s->server), 0);
}

_unused_ static int setup(void **ret) {
        struct state *s = calloc(1, sizeof(*s));
        sigset_t mask;

        sigemptyset(&mask);
        sigaddset(&mask, SIGCHLD);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        strcpy(s->directory, "/tmp/primus-feed-XXXXXX");
        assert_non_null(mkdtemp(s->directory));
        snprintf(s->socket, sizeof(s->socket), "%s/sock", s->directory);
        s->unit = (struct feed_unit){
                .id = { .job = 1, .role = "worker", .attempt = 1 },
                .uid = getuid(),
                .kind = ORDER_FEED,
                .ack = ACK_LAG,
                .pipe_size = 1u << 20,
        };
        assert_true(sd_event_new(&s->event) >= 0);
        server_start(s);
        *ret = s;
        return 0;
}

_unused_ static int teardown(void **state) {
        struct state *s = *state;

        /* A test that failed leaves them waiting for ever, with this one's standard output open. */
        if (s->pid > 0 && !s->exited)
                (void)kill(-s->pid, SIGKILL);
        s->pid = 0;

        feed_server_free(s->server);
        sd_event_unref(s->event);
        for (size_t i = 0; i < s->n; i++)
                free(s->files[i]);
        for (size_t i = 0; i < s->entries; i++)
                free(s->paths[i]);
        remove_tree(s->directory);
        free(s);
        return 0;
}

_unused_ static void add_file(struct state *s, const char *content, size_t size, uint64_t offset) {
        struct task_grant *g = &s->grants[s->n];
        struct stat st;

        assert_true(asprintf(&s->files[s->n], "%s/part-%02zu", s->directory, s->n) > 0);
        g->path = s->files[s->n];
        assert_int_equal(write_file_atomic(g->path, content, size, 0644, false), 0);
        assert_int_equal(stat(g->path, &st), 0);
        g->task = ++s->n;
        g->end = (uint64_t)st.st_size;
        g->offset = offset;
        g->size = (uint64_t)st.st_size;
        g->inode = st.st_ino;
        g->mtime_nsec = (uint64_t)st.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st.st_mtim.tv_nsec;
}

_unused_ static void spawn(struct state *s, char *const argv[]) {
        sd_event_source *source;

        s->pid = fork();
        if (s->pid == 0) {
                sigset_t none;

                (void)setpgid(0, 0);
                sigemptyset(&none);
                sigprocmask(SIG_SETMASK, &none, NULL);
                setenv("PRIMUS_SOCKET", s->socket, 1);
                setenv("DIR", s->directory, 1);
                execv(getenv("PRIMUS_EXECUTOR"), argv);
                _exit(99);
        }
        assert_true(sd_event_add_child(s->event, &source, s->pid, WEXITED, on_child, s) >= 0);
        sd_event_source_set_floating(source, 1);
        sd_event_source_unref(source);
}

_unused_ static void start(struct state *s, const char *script) {
        char *argv[] = { (char *)"primus-executor",
                         (char *)"--feed",
                         (char *)"--",
                         (char *)"sh",
                         (char *)"-c",
                         (char *)script,
                         NULL };

        spawn(s, argv);
}

_unused_ static void turn(struct state *s) {
        assert_true(sd_event_run(s->event, 30 * USEC_PER_SEC) > 0); /* 0: nothing for half a minute */
}

_unused_ static void finish(struct state *s) {
        while (!s->exited)
                turn(s);
        /* What it said last may still lie in the socket. */
        while (sd_event_run(s->event, 0) > 0)
                ;
}

_unused_ static char *output(struct state *s, size_t *ret_size) {
        _cleanup_free_ char *path = NULL;
        char *text;

        assert_true(asprintf(&path, "%s/out", s->directory) > 0);
        assert_int_equal(read_file(path, 64u << 20, &text, ret_size), 0);
        return text;
}
