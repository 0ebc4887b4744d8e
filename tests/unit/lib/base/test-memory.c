/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/memory.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define BLOCKS 20000u

static long resident_pages(void) {
        long size = 0, resident = 0;
        _cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");

        assert_non_null(f);
        assert_int_equal(fscanf(f, "%ld %ld", &size, &resident), 2);
        return resident;
}

static void test_gives_back(void **state) {
        static void *blocks[BLOCKS];
        void *volatile last; /* which the compiler would leave out otherwise */
        long before, after;

        for (size_t i = 0; i < BLOCKS; i++) {
                blocks[i] = malloc(1000);
                assert_non_null(blocks[i]);
                memset(blocks[i], 1, 1000);
        }
        last = malloc(5000); /* at the end of the heap */
        for (size_t i = 0; i < BLOCKS; i++)
                free(blocks[i]);
        before = resident_pages();
        if (mallinfo2().uordblks == 0) { /* a sanitizer's allocator, which keeps what is freed */
                free(last);
                skip();
        }
        assert_true(memory_trim());
        after = resident_pages();
        assert_true(after < before - 3000);
        assert_false(memory_trim()); /* nothing has happened since */
        free(last);
}

static void test_watch(void **state) {
        sd_event *event;

        assert_int_equal(sd_event_new(&event), 0);
        assert_true(memory_watch(event) >= 0);
        assert_int_equal(sd_event_run(event, 0), 0);
        sd_event_unref(event); /* and the timer with it */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_gives_back),
                cmocka_unit_test(test_watch),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
