/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/view/live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

static void test_rate_and_rest(void **state) {
        struct live l = { .rate = -1 };
        struct data_status d = { .present = true, .scanned = true, .tasks = 10, .bytes = 100 << 20 };
        char text[200];

        live_sample(&l, &d, USEC_PER_SEC);
        assert_string_equal(live_data_text(&l, &d, text, sizeof(text)),
                            "data [------------------------] 0/10 tasks  0 of 100M");
        d.acked = 10 << 20;
        d.done = 1;
        live_sample(&l, &d, 2 * USEC_PER_SEC);
        assert_string_equal(live_data_text(&l, &d, text, sizeof(text)),
                            "data [##----------------------] 1/10 tasks  10M of 100M  10M/s  ETA 9s");
        /* Too soon for a new reading. */
        d.acked = 11 << 20;
        live_sample(&l, &d, 2 * USEC_PER_SEC + 1000);
        assert_true(l.rate > (10 << 20) - 1 && l.rate < (10 << 20) + 1);
        d.acked = d.bytes;
        d.done = 9;
        d.failed = 1;
        assert_string_equal(live_data_text(&l, &d, text, sizeof(text)),
                            "data [########################] 9/10 tasks, 1 failed  100M of 100M");
}

static void test_without_sizes(void **state) {
        struct live l = { .rate = -1 };
        struct data_status d = { .present = true, .tasks = 4, .done = 2 };
        char text[200];

        live_sample(&l, &d, USEC_PER_SEC);
        d.done = 3;
        live_sample(&l, &d, 2 * USEC_PER_SEC);
        assert_string_equal(live_data_text(&l, &d, text, sizeof(text)),
                            "data [##################------] 3/4+ tasks  1.0 tasks/s");
}

static void test_drawing(void **state) {
        _cleanup_free_ char *out = NULL;
        size_t n;
        struct live l = { .rate = -1, .out = open_memstream(&out, &n) };
        struct job_properties p = {
                .number = 7, .name = (char *)"evil\033[2J", .state = (char *)"RUNNING", .started = 1000000
        };
        struct role_status roles[20];
        struct job_status s = { .roles = roles, .n_roles = ELEMENTSOF(roles) };
        struct executor e = { .role = (char *)"w", .state = (char *)"RUNNING" };

        for (size_t i = 0; i < ELEMENTSOF(roles); i++)
                roles[i] = (struct role_status){
                        .name = (char *)"worker", .wanted = 2, .running = 1, .failed = 1
                };
        live_draw(&l, &p, &s, &e, 1, 62 * USEC_PER_SEC, USEC_PER_SEC);
        assert_int_equal(l.lines, 10); /* the job, eight roles, "and 12 more" */
        fflush(l.out);
        assert_non_null(strstr(out, "Job 7 (evil?[2J)  RUNNING"));
        assert_non_null(strstr(out, "1min 1s"));
        assert_non_null(strstr(out, "1 of 1 executors running"));
        assert_non_null(strstr(out, "worker       1 running 1 failed"));
        assert_non_null(strstr(out, "and 12 more roles"));
        /* Not at once again, then over the old one, then gone. */
        n = strlen(out);
        live_draw(&l, &p, &s, &e, 1, 62 * USEC_PER_SEC, USEC_PER_SEC + 1000);
        fflush(l.out);
        assert_int_equal(strlen(out), n);
        live_draw(&l, &p, &s, &e, 1, 63 * USEC_PER_SEC, 2 * USEC_PER_SEC);
        fflush(l.out);
        assert_non_null(strstr(out, "\033[10A\r"));
        live_wipe(&l);
        assert_int_equal(l.lines, 0);
        live_wipe(&l);
        fclose(l.out);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rate_and_rest),
                cmocka_unit_test(test_without_sizes),
                cmocka_unit_test(test_drawing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
