/* SPDX-License-Identifier: Apache-2.0 */
/* Data through the real primus-executor --feed, against the trainer's own pread of the same pages in the same
 * process. Called without arguments it is the host (agentd's feed server, and a manager of a few lines that
 * grants a file of blocks in tasks of 64 MiB); as a trainer (bench-feed consume) it reads the file itself,
 * then what the feed brings, and touches every cache line of both.
 *
 *     BENCH_EXECUTOR=… bench-feed [MEBIBYTES [ROUNDS [DIRECTORY]]]
 *
 * $BENCH_INPUT holds further keys of "input", such as "slots": 4, to try them. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agentd/feed/packet.h"
#include "agentd/feed/server.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/primus/primus.h"
#include "tests/bench/report.h"

#define UNIT "primus-1-worker-0.1.service"
#define BLOCK (1u << 20)
#define TASK (UINT64_C(64) << 20)
#define LINE 64u
#define TEXT_LINE 100u
#define ROUNDS_MAX 99u

/* ---- the trainer ---- */

static uint64_t touch(const void *data, size_t size) {
        const uint64_t *p = data;
        uint64_t sum = 0;

        for (size_t i = 0; i < size / sizeof(*p); i += LINE / sizeof(*p))
                sum += p[i];
        return sum;
}

static void die(const char *what) {
        fprintf(stderr, "bench-feed: %s: %s\n", what, strerror(errno));
        exit(1);
}

static double read_directly(const char *path, uint8_t *buf, uint64_t *ret_sum) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        double begin = bench_now();
        uint64_t sum = 0, at = 0;
        ssize_t l;

        while ((l = pread(fd, buf, BLOCK, (off_t)at)) > 0) {
                sum += touch(buf, (size_t)l);
                at += (uint64_t)l;
        }
        if (l < 0)
                die(path);
        *ret_sum = sum;
        return bench_now() - begin;
}

/* As any program does that knows nothing of Primus. */
static double read_stdin(uint8_t *buf, uint64_t *ret_sum) {
        double begin = 0;
        uint64_t sum = 0;
        size_t filled = 0;
        ssize_t l;

        while ((l = read(STDIN_FILENO, buf + filled, BLOCK - filled)) > 0) {
                if (begin == 0)
                        begin = bench_now();
                filled += (size_t)l;
                if (filled == BLOCK) {
                        sum += touch(buf, BLOCK);
                        filled = 0;
                }
        }
        if (l < 0)
                die("standard input");
        sum += touch(buf, filled);
        *ret_sum = sum;
        return bench_now() - begin;
}

static double read_feed(uint64_t *ret_sum) {
        struct primus_block block;
        struct primus *p;
        double begin = 0;
        uint64_t sum = 0;
        int r;

        if (primus_open(NULL, &p) < 0) {
                fprintf(stderr, "bench-feed: %s\n", primus_error(NULL));
                exit(1);
        }
        while ((r = primus_next_block(p, 0, &block)) > 0) {
                if (begin == 0)
                        begin = bench_now();
                sum += touch(block.data, block.size);
        }
        if (r < 0) {
                fprintf(stderr, "bench-feed: %s\n", primus_error(p));
                exit(1);
        }
        *ret_sum = sum;
        r = 0;
        begin = bench_now() - begin;
        primus_close(p);
        return begin;
}

static int consume(const char *path, const char *result, bool by_hand) {
        /* Of huge pages and small ones alike, what is read into is the same in all of them. */
        uint8_t *buf = aligned_alloc(4096, BLOCK);
        uint64_t direct_sum, sum;
        double direct[3], fed;
        char text[64];
        int n;

        if (!buf)
                return 1;
        memset(buf, 1, BLOCK);
        for (unsigned i = 0; i < 3; i++)
                direct[i] = read_directly(path, buf, &direct_sum);
        fed = by_hand ? read_stdin(buf, &sum) : read_feed(&sum);
        if (sum != direct_sum) {
                fprintf(stderr, "bench-feed: what came is not what is in the file\n");
                return 1;
        }
        n = snprintf(text, sizeof(text), "%.9f %.9f\n", bench_percentile(direct, 3, 50), fed);
        free(buf);
        return write_file_atomic(result, text, (size_t)n, 0600, false) < 0;
}

/* ---- the host ---- */

struct host {
        sd_event *event;
        struct feed_server *server;
        struct feed_unit unit;
        char directory[96], path[160], result[160], input[160], socket[160];
        struct stat file;
        uint64_t size, granted;
        bool exited;
        int status;
};

static int find_unit(void *userdata, const char *unit, struct feed_unit *ret) {
        *ret = ((struct host *)userdata)->unit;
        return 0;
}

static void grant(struct host *h, uint32_t credits) {
        uint8_t buf[16384];
        struct grant_batch batch = { .grants = buf };

        for (; credits > 0 && h->granted < h->size; credits--) {
                const struct task_grant g = {
                        .task = h->granted / TASK + 1,
                        .start = h->granted,
                        .end = MIN(h->granted + TASK, h->size),
                        .offset = h->granted,
                        .size = h->size,
                        .mtime_nsec = (uint64_t)h->file.st_mtim.tv_sec * UINT64_C(1000000000) +
                                      (uint64_t)h->file.st_mtim.tv_nsec,
                        .inode = h->file.st_ino,
                        .path = h->path,
                };

                if (task_grant_write(&g, buf, sizeof(buf), &batch.size) < 0)
                        break;
                h->granted = g.end;
        }
        batch.last = h->granted == h->size;
        if (batch.size > 0 && feed_grant(h->server, &h->unit.id, &batch) < 0)
                die("granting");
}

static void on_open(void *userdata, const struct executor_id *id, uint32_t credits) {
        grant(userdata, credits);
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
        struct host *h = userdata;

        h->status = info->si_code == CLD_EXITED ? info->si_status : -1;
        h->exited = true;
        return 0;
}

/* Whole lines of TEXT_LINE bytes, for Python; for the others blocks of anything. */
static void make_file(struct host *h, uint64_t size) {
        _cleanup_close_ int fd = open(h->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        _cleanup_free_ char *block = malloc(TEXT_LINE * 10000);

        if (fd < 0 || !block)
                die(h->path);
        for (unsigned i = 0; i < 10000; i++)
                for (unsigned k = 0; k < TEXT_LINE; k++)
                        block[i * TEXT_LINE + k] =
                                k + 1 == TEXT_LINE ? '\n' : (char)('a' + (i * 7 + k * 3) % 26);
        for (uint64_t at = 0; at < size;) {
                ssize_t l = write(fd, block, (size_t)MIN(size - at, (uint64_t)TEXT_LINE * 10000));

                if (l <= 0)
                        die(h->path);
                at += (uint64_t)l;
        }
        if (fsync(fd) < 0 || fstat(fd, &h->file) < 0)
                die(h->path);
        h->size = size;
}

static void describe(struct host *h, const char *mode, const char *format, const char *spec) {
        const char *more = getenv("BENCH_INPUT");
        char text[768];
        int n = snprintf(text, sizeof(text),
                         "{\"inputManager\":{\"fileConfig\":{\"inputs\":[{\"name\":\"i\",\"spec\":{"
                         "\"pathPattern\":\"/d\","
                         "\"%s\":{%s}}}]}},\"input\":{\"mode\":\"%s\",\"ack\":\"%s\"%s%s}}",
                         format, spec, mode, strcmp(mode, "stdin") == 0 ? "lag" : "release", more ? "," : "",
                         more ? more : "");

        if (n < 0 || (size_t)n >= sizeof(text))
                die("BENCH_INPUT");
        if (write_file_atomic(h->input, text, (size_t)n, 0600, false) < 0)
                die(h->input);
}

/* Runs one trainer; what it wrote to the result is in text. */
static void run_one(struct host *h, char *const trainer[], uint32_t pipe_size, char text[static 256]) {
        _cleanup_free_ char *all = NULL;
        const char *executor = getenv("BENCH_EXECUTOR");
        char *argv[16] = { (char *)"primus-executor", (char *)"--feed", (char *)"--" };
        sd_event_source *source;
        pid_t pid;

        for (unsigned i = 0; trainer[i] && i + 4 < ELEMENTSOF(argv); i++)
                argv[i + 3] = trainer[i];
        h->granted = 0;
        h->exited = false;
        h->unit.pipe_size = pipe_size;
        (void)unlink(h->result);
        pid = fork();
        if (pid == 0) {
                sigset_t none;

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
                if (sd_event_run(h->event, 120 * USEC_PER_SEC) <= 0)
                        die("waiting");
        sd_event_source_unref(source);
        if (h->status != 0 || read_file(h->result, 250, &all, NULL) < 0) {
                fprintf(stderr, "bench-feed: the trainer failed (%d)\n", h->status);
                exit(1);
        }
        snprintf(text, 256, "%s", all);
}

static const struct way {
        const char *name, *mode;
        uint32_t pipe_size;
        double goal;
} ways[] = {
        { "descriptor", "descriptor", 0, 0.97 },
        { "ring", "ring", 0, 0.95 },
        { "stdin-1MiB-pipe", "stdin", 1u << 20, 0.65 },
        { "stdin-64KiB-pipe", "stdin", 64u << 10, 0 },
};

static void measure_blocks(struct host *h, const char *self, unsigned rounds) {
        const char *only = getenv("BENCH_WAY"); /* for looking where its time goes */
        double ratios[ELEMENTSOF(ways)][ROUNDS_MAX], direct[ELEMENTSOF(ways)][ROUNDS_MAX];

        for (unsigned round = 0; round < rounds; round++)
                for (size_t w = 0; w < ELEMENTSOF(ways); w++) {
                        bool by_hand = strcmp(ways[w].mode, "stdin") == 0;
                        char *trainer[] = { (char *)self,
                                            (char *)"consume",
                                            h->path,
                                            h->result,
                                            (char *)(by_hand ? "stdin" : "feed"),
                                            NULL };
                        double fed;
                        char text[256];

                        if (only && strcmp(only, ways[w].name) != 0)
                                continue;
                        describe(h, ways[w].mode, "rawInput", "\"blockSize\":1048576");
                        run_one(h, trainer, ways[w].pipe_size, text);
                        if (sscanf(text, "%lf %lf", &direct[w][round], &fed) != 2)
                                die("the trainer's result");
                        ratios[w][round] = direct[w][round] / fed;
                }
        for (size_t w = 0; w < ELEMENTSOF(ways); w++) {
                if (only && strcmp(only, ways[w].name) != 0)
                        continue;
                double mib = (double)h->size / (1 << 20);
                double base = mib / bench_percentile(direct[w], rounds, 50);

                bench_report("data", ways[w].name, base * bench_percentile(ratios[w], rounds, 50), "MiB/s",
                             base, ways[w].goal > 0 ? BENCH_RATIO_MIN : BENCH_NO_GOAL, ways[w].goal);
        }
}

/* A trainer in Python, over lines of 100 bytes. */
static void measure_python(struct host *h, unsigned rounds) {
        static const char script[] = "import sys, time\n"
                                     "def count(lines):\n"
                                     "    n = 0\n"
                                     "    for line in lines:\n"
                                     "        n += len(line)\n"
                                     "    return n\n"
                                     "begin = time.monotonic()\n"
                                     "with open(sys.argv[1], 'rb') as f:\n"
                                     "    count(f)\n"
                                     "plain = time.monotonic() - begin\n"
                                     "import primus\n"
                                     "begin = time.monotonic()\n"
                                     "count(primus.records())\n"
                                     "with open(sys.argv[2], 'w') as f:\n"
                                     "    f.write(f'{plain:.9f} {time.monotonic() - begin:.9f}\\n')\n";
        static const char *const modes[] = { "ring", "descriptor", "stdin" };
        double ratios[ROUNDS_MAX], plain[ROUNDS_MAX], fed;
        char text[256], name[64];

        for (size_t m = 0; m < ELEMENTSOF(modes); m++) {
                char *trainer[] = {
                        (char *)"python3", (char *)"-c", (char *)script, h->path, h->result, NULL
                };

                describe(h, modes[m], "textInput", "");
                for (unsigned round = 0; round < rounds; round++) {
                        run_one(h, trainer, strcmp(modes[m], "stdin") == 0 ? 1u << 20 : 0, text);
                        if (sscanf(text, "%lf %lf", &plain[round], &fed) != 2)
                                die("the trainer's result");
                        ratios[round] = plain[round] / fed;
                }
                double lines = (double)h->size / TEXT_LINE / bench_percentile(plain, rounds, 50);
                snprintf(name, sizeof(name), "python-lines-%s", modes[m]);
                bench_report("data", name, lines * bench_percentile(ratios, rounds, 50), "lines/s", lines,
                             BENCH_NO_GOAL, 0);
        }
}

int main(int argc, char *argv[]) {
        struct host h = { .unit = { .id = { .job = 1, .role = "worker", .attempt = 1 },
                                    .uid = getuid(),
                                    .kind = ORDER_FEED,
                                    .ack = ACK_LAG } };
        uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 2048;
        unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
        char self[PATH_MAX];
        sigset_t mask;
        ssize_t l;

        if (argc == 5 && strcmp(argv[1], "consume") == 0)
                return consume(argv[2], argv[3], strcmp(argv[4], "stdin") == 0);
        if (!getenv("BENCH_EXECUTOR") || mib == 0 || rounds == 0 || rounds > ROUNDS_MAX) {
                fprintf(stderr,
                        "usage: BENCH_EXECUTOR=PROGRAM bench-feed [MEBIBYTES [ROUNDS [DIRECTORY]]]\n");
                return 2;
        }
        l = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (l < 0)
                die("/proc/self/exe");
        self[l] = 0;
        snprintf(h.directory, sizeof(h.directory), "%.60s/primus-bench-XXXXXX",
                 argc > 3 ? argv[3] : "/var/tmp");
        if (!mkdtemp(h.directory))
                die(h.directory);
        snprintf(h.path, sizeof(h.path), "%s/data", h.directory);
        snprintf(h.result, sizeof(h.result), "%s/result", h.directory);
        snprintf(h.input, sizeof(h.input), "%s/input.json", h.directory);
        snprintf(h.socket, sizeof(h.socket), "%s/sock", h.directory);
        sigemptyset(&mask);
        sigaddset(&mask, SIGCHLD);
        (void)sigprocmask(SIG_BLOCK, &mask, NULL);
        make_file(&h, mib << 20);
        if (sd_event_new(&h.event) < 0 ||
            feed_server_new(h.event, h.socket, NULL, identify, &ops, &h, &h.server) < 0)
                die("the feed's socket");
        measure_blocks(&h, self, rounds);
        if (getenv("PYTHONPATH")) {
                (void)unlink(h.path);
                make_file(&h, (MIN(mib, UINT64_C(256)) << 20) / TEXT_LINE * TEXT_LINE);
                measure_python(&h, MIN(rounds, 3u));
        }
        feed_server_free(h.server);
        sd_event_unref(h.event);
        return remove_tree(h.directory) < 0;
}
