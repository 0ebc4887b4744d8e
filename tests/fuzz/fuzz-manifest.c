/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the manifest of a savepoint: refused with one line, or a job's data that goes on from there to
 * its end, with sums that are right. The first byte chooses the job that it is restored into.
 *
 *   CC=clang meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
 *   ninja -C build-fuzz tests/fuzz/fuzz-manifest
 *   mkdir found; build-fuzz/tests/fuzz/fuzz-manifest -max_len=8192 found tests/fuzz/corpus/manifest
 *
 * Last run: 10 minutes on a part of a core, 289,000 executions, 3,249 edges: no fault.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "masterd/data/data.h"
#include "tests/fuzz/fuzz.h"

#define FILES 40u

static const uint32_t weights[] = { 2, 0, 1 };

static const struct data_config configs[] = {
        { .n_sources = 1, .order = ORDER_LISTED, .epochs = 1, .sample_ppm = 1000000, .max_attempts = 2 },
        { .n_sources = 2,
          .order = ORDER_SHUFFLE,
          .epochs = 3,
          .sample_ppm = 1000000,
          .max_attempts = 2,
          .seed = 5 },
        { .n_sources = 3,
          .order = ORDER_LISTED,
          .epochs = 2,
          .sample_ppm = 500000,
          .max_attempts = 2,
          .weights = weights },
};

static struct data_file file_of(uint64_t i) {
        return (struct data_file){ .path = "/data/file",
                                   .size = i * 13,
                                   .last = i % 5 == 0 ? TASK_TO_END : i * 13,
                                   .batch = i / 10,
                                   .split = i % 5 == 0 ? 0 : 30 };
}

static void ignore_block(void *userdata, uint64_t block, const void *state, size_t state_size,
                         const void *over, size_t over_size) {
}

static void ignore_number(void *userdata, uint64_t number) {
}

static void ignore_task(void *userdata, const struct task *t) {
}

static void ignore_state(void *userdata, const void *state, size_t size) {
}

static void fill(struct data *d) {
        struct data_file rows[FILES_ROWS_MAX];
        uint32_t source, n;
        uint64_t first;

        while (data_missing(d, &source, &first, &n)) {
                for (uint32_t i = 0; i < n; i++)
                        rows[i] = file_of(first + i);
                MUST(data_filled(d, source, first, rows, n) == 0);
        }
}

static void check_sums(struct data *d) {
        struct data_totals t;
        uint64_t leased = 0, failed = 0;

        for (const struct task *each = data_next_task(d, 0); each; each = data_next_task(d, each->id)) {
                MUST(each->start <= each->acked && each->acked <= each->end);
                leased += each->place == TASK_LEASED;
                failed += each->place == TASK_GAVE_UP;
        }
        data_totals(d, &t);
        MUST(t.leased == leased && t.failed == failed);
        MUST(t.pending <= t.tasks && t.done <= t.tasks && t.skipped <= t.tasks);
        MUST(!data_over(d) || t.pending == 0);
}

static void go_on(struct data *d) {
        static const struct data_sink sink = { ignore_block, ignore_number, ignore_task, ignore_number,
                                               ignore_state };
        struct task *leases = NULL, *t;
        enum data_event event;
        int r;

        while ((r = data_restored(d)) == DATA_MISSING)
                fill(d);
        if (r == -EUCLEAN) /* it says what only the files' rows can tell to be wrong */
                return;
        MUST(r == DATA_READY);
        check_sums(d);
        for (unsigned i = 0; i < 20000 && !data_over(d); i++) {
                while ((r = data_prepare(d, 1000)) == DATA_MISSING)
                        fill(d);
                if (r == -EUCLEAN)
                        break;
                MUST(r >= 0);
                data_durable(d, data_flush(d, &sink, NULL));
                while ((t = data_lease(d, d, &leases, i))) {
                        struct task_progress p = { .task = t->id,
                                                   .acked = t->end == TASK_TO_END ? t->acked + 1 : t->end,
                                                   .read = t->end == TASK_TO_END ? t->acked + 1 : t->end,
                                                   .end = TASK_TO_END,
                                                   .state = TASK_DONE,
                                                   .error = "" };
                        MUST(data_report(d, t, &leases, &p, i, &event) == 1);
                }
        }
        check_sums(d);
        MUST(r == -EUCLEAN || data_over(d));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(data_free_p) struct data *d = NULL;
        _cleanup_free_ char *error = NULL, *saved = NULL;
        const struct data_config *c;
        int r;

        if (size == 0)
                return 0;
        c = configs + data[0] % ELEMENTSOF(configs);
        MUST(data_new(c, &d) == 0);
        for (uint32_t s = 0; s < c->n_sources; s++) {
                for (uint64_t i = 0; i < FILES; i++) {
                        const struct data_file f = file_of(i);
                        MUST(data_add(d, s, &f) == 0);
                }
                data_scanned(d, s);
        }
        r = data_load(d, (const char *)data + 1, size - 1, &error);
        MUST(r == 0 ? !error : r == -EBADMSG && error && *error && !strchr(error, '\n'));
        if (r < 0)
                return 0;
        go_on(d);
        r = data_save(d, &saved);
        MUST(r == 0 || r == -EBUSY);
        return 0;
}
