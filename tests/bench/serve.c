/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one trainer that is fed files by the real primus-executor, without a cluster, and exits as it does:
 *
 *     BENCH_EXECUTOR=… bench-serve MODE FORMAT KEYS TASK-SIZE FILE... -- TRAINER...
 *
 * FORMAT is a format's key in a job (fixedInput), KEYS what stands in it ("recordSize":3073). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/feed-host.h"

int main(int argc, char *argv[]) {
        const char *directory = getenv("BENCH_DIRECTORY"); /* where it works */
        struct feed_host *h;
        int trainer = 5, status;

        while (trainer < argc && strcmp(argv[trainer], "--") != 0)
                trainer++;
        if (trainer < 6 || trainer + 1 >= argc) {
                fprintf(stderr, "usage: bench-serve MODE FORMAT KEYS TASK-SIZE FILE... -- TRAINER...\n");
                return 2;
        }
        h = feed_host_new(directory ? directory : "/var/tmp");
        feed_host_files(h, argv + 5, (size_t)(trainer - 5), strtoull(argv[4], NULL, 10));
        feed_host_input(h, argv[1], argv[2], argv[3], NULL);
        status = feed_host_run(h, argv + trainer + 1, 1u << 20);
        feed_host_free(h);
        return status;
}
