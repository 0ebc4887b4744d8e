/* SPDX-License-Identifier: Apache-2.0 */
/* Data through the real primus-executor --feed, against the trainer's own pread of the same pages in the same
 * process. Called without arguments it is the host (feed-host.h, which grants a file of blocks in tasks of
 * 64 MiB); as a trainer (bench-feed consume) it reads the file itself,
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

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/primus/primus.h"
#include "tests/bench/feed-host.h"
#include "tests/bench/report.h"

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
        struct feed_host *feed;
        char path[160], result[160];
        uint64_t size;
};

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
        if (fsync(fd) < 0)
                die(h->path);
        h->size = size;
        feed_host_files(h->feed, (char *[]){ h->path }, 1, TASK);
}

/* Runs one trainer; what it wrote to the result is in text. */
static void run_one(struct host *h, char *const trainer[], uint32_t pipe_size, char text[static 256]) {
        _cleanup_free_ char *all = NULL;
        int status;

        (void)unlink(h->result);
        status = feed_host_run(h->feed, trainer, pipe_size);
        if (status != 0 || read_file(h->result, 250, &all, NULL) < 0) {
                fprintf(stderr, "bench-feed: the trainer failed (%d)\n", status);
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
                        feed_host_input(h->feed, ways[w].mode, "rawInput", "\"blockSize\":1048576", NULL);
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

                feed_host_input(h->feed, modes[m], "textInput", "", NULL);
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
        struct host h = {};
        uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 2048;
        unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
        char self[PATH_MAX];
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
        h.feed = feed_host_new(argc > 3 ? argv[3] : "/var/tmp");
        snprintf(h.path, sizeof(h.path), "%s/data", feed_host_directory(h.feed));
        snprintf(h.result, sizeof(h.result), "%s/result", feed_host_directory(h.feed));
        make_file(&h, mib << 20);
        measure_blocks(&h, self, rounds);
        if (getenv("PYTHONPATH")) {
                (void)unlink(h.path);
                make_file(&h, (MIN(mib, UINT64_C(256)) << 20) / TEXT_LINE * TEXT_LINE);
                measure_python(&h, MIN(rounds, 3u));
        }
        feed_host_free(h.feed);
        return 0;
}
