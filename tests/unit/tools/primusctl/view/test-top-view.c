/* SPDX-License-Identifier: Apache-2.0 */
/* What top draws, without a terminal. */
#include "tools/primusctl/view/top-view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "tools/primusctl/cli/text.h"

static void clear(double numbers[static _TOP_NUMBER_MAX]) {
        for (size_t k = 0; k < _TOP_NUMBER_MAX; k++)
                numbers[k] = NAN;
}

static void test_parts(void **state) {
        const float points[] = { 0, 0.25, 0.5, NAN, 1, 2 };
        char text[256];

        assert_string_equal(top_bar(0.5, 12, false, text, sizeof(text)), "[#####-----]");
        assert_string_equal(top_bar(NAN, 4, false, text, sizeof(text)), "[--]");
        assert_string_equal(top_bar(7, 4, false, text, sizeof(text)), "[##]");
        assert_string_equal(top_bar(0.5625, 4, true, text, sizeof(text)), "██▎░");
        assert_string_equal(top_bar(1, 2, true, text, sizeof(text)), "██");
        assert_string_equal(top_bar(0.5, 4, true, text, 4), "█"); /* a small buffer holds what fits */

        assert_string_equal(top_sparkline(points, 6, 6, 1, true, text, sizeof(text)), "▁▃▅ ██");
        assert_string_equal(top_sparkline(points, 6, 20, 0, false, text, sizeof(text)), "_.: =#");
        assert_string_equal(top_sparkline(points, 6, 3, 0, false, text, sizeof(text)),
                            "_:#"); /* means of two */
        assert_string_equal(top_sparkline(points, 6, 0, 0, false, text, sizeof(text)), "");
        assert_string_equal(top_sparkline(points, 0, 5, 0, false, text, sizeof(text)), "");

        assert_string_equal(top_number_text(TOP_CPU, 4.125, text, sizeof(text)), "412%");
        assert_string_equal(top_number_text(TOP_MEMORY, 3 << 20, text, sizeof(text)), "3M");
        assert_string_equal(top_number_text(TOP_STEPS, 2.5, text, sizeof(text)), "2.50");
        assert_string_equal(top_number_text(TOP_GPU, NAN, text, sizeof(text)), "-");
        assert_int_equal(top_sort_of_key('m'), TOP_BY_MEMORY);
        assert_int_equal(top_sort_of_key('x'), _TOP_SORT_MAX);
}

/* n roles with 4 executors each, of which one does something. */
static struct top_model make(size_t n) {
        struct top_model t = { .job = { .number = 418,
                                        .name = strdup("evil\033[2J"),
                                        .state = strdup("RUNNING"),
                                        .since = USEC_PER_SEC } };

        t.roles = calloc(n, sizeof(*t.roles));
        t.executors = calloc(n * 4, sizeof(*t.executors));
        for (size_t i = 0; i < n; i++) {
                struct top_role *r = t.roles + t.n_roles++;
                assert_true(asprintf(&r->name, "role%zu", i) > 0);
                r->executors = 4;
                r->total = (struct top_total){ .running = 4, .measured = 4, .cpu = 8, .memory = 4 << 20 };
                clear(r->total.sum);
                clear(r->total.mean);
                clear(r->total.max);
                r->total.sum[TOP_CPU] = 2;
                r->total.mean[TOP_CPU] = 0.5;
                r->total.max[TOP_CPU_SHARE] = 0.9;
                r->total.sum[TOP_MEMORY] = 3 << 20;
                r->total.mean[TOP_MEMORY] = 3 << 18;
                r->total.mean[TOP_STEPS] = 1.5;
                r->n_points = 3;
                r->points[TOP_CPU_SHARE] = calloc(3, sizeof(float));
                for (uint32_t k = 0; k < 4; k++) {
                        struct top_executor *e = t.executors + t.n_executors++;
                        *e = (struct top_executor){ .order = (uint32_t)t.n_executors,
                                                    .role = strdup(r->name),
                                                    .state = strdup(k == 3 ? "STOPPING" : "RUNNING"),
                                                    .node = strdup("a-host-with-a-long-name-indeed"),
                                                    .index = k,
                                                    .element = UINT32_MAX,
                                                    .age = k == 2 ? 90 * USEC_PER_SEC : USEC_PER_SEC };
                        clear(e->rates);
                        e->rates[TOP_CPU] = k == 1 ? NAN : 0.25 * k;
                }
        }
        return t;
}

static void done(struct top_model *t) {
        for (size_t i = 0; i < t->n_roles; i++) {
                free(t->roles[i].name);
                free(t->roles[i].points[TOP_CPU_SHARE]);
        }
        for (size_t i = 0; i < t->n_executors; i++) {
                free(t->executors[i].role);
                free(t->executors[i].state);
                free(t->executors[i].node);
        }
        free(t->roles);
        free(t->executors);
        free(t->job.name);
        free(t->job.state);
}

/* No line is too wide, and there are exactly as many as the screen has rows. */
static char *drawn(const struct top_view *v, const struct top_model *t) {
        char *text = NULL;
        size_t size, lines = 1, column = 0;
        FILE *f = open_memstream(&text, &size);

        top_draw(v, t, f);
        assert_int_equal(fclose(f), 0);
        for (const char *p = text; *p; p++) {
                if (*p == '\n') {
                        lines++;
                        column = 0;
                } else if (*p == '\033')
                        while (*p != 'm' && *p != 'K')
                                p++;
                else if (((unsigned char)*p & 0xc0) != 0x80 && ++column > v->columns)
                        fail_msg("%u columns: %s", v->columns, text);
        }
        if (lines > v->rows)
                fail_msg("%zu lines of %u:\n%s", lines, v->rows, text);
        return text;
}

static void test_job(void **state) {
        struct top_view v = { .columns = 100, .rows = 24, .now_real = 62 * USEC_PER_SEC };
        struct top_model t = make(1);
        char *text = drawn(&v, &t);

        assert_non_null(strstr(text, "Job 418 (evil?[2J)  RUNNING  1min 1s  4 executors"));
        assert_non_null(strstr(text, "CPU         25% [####--------------]  2.0 of 8 cores, most 90%"));
        assert_non_null(strstr(text, "memory      75% [#############-----]  3M of 4M"));
        assert_non_null(strstr(text, "steps       1.50/s each"));
        assert_null(strstr(text, "GPU   ")); /* nothing is known of any */
        assert_non_null(strstr(text, "role0/2  a-host-with-a-long-n    50%       -  silent for 1min 30s"));
        assert_non_null(strstr(text, "role0/3  a-host-with-a-long-n    75%       -  STOPPING"));
        assert_null(strchr(text, '\033'));
        free(text);
        done(&t);
}

static void test_sizes(void **state) {
        struct top_model t = make(6);
        struct top_view v = { .now_real = 1 };

        for (v.rows = 1; v.rows < 60; v.rows += 3)
                for (v.columns = 1; v.columns < 300; v.columns += 7)
                        for (unsigned k = 0; k < 4; k++) {
                                v.color = k & 1;
                                v.unicode = k & 2;
                                v.terminal = k & 1;
                                v.offset = k * 3;
                                free(drawn(&v, &t));
                        }
        done(&t);
}

/* Roles that would leave no room for the list are one line each. */
static void test_many_roles(void **state) {
        struct top_view v = { .columns = 100, .rows = 24 };
        struct top_model t = make(6);
        char *text = drawn(&v, &t);

        assert_non_null(
                strstr(text, "role5            4/4      CPU 25% [#-----]  mem 75% [####--]  steps/s 1.50"));
        assert_int_equal(top_list_room(&v, &t), 24 - 3 - 7);
        assert_non_null(strstr(text, "1-14 of 24"));
        free(text);
        v.message = "masterd does not answer";
        text = drawn(&v, &t);
        assert_non_null(strstr(text, "masterd does not answer"));
        free(text);
        done(&t);
}

static void test_sort(void **state) {
        struct top_model t = make(1);
        const uint32_t by_cpu[] = { 3, 2, 0, 1 };

        top_model_sort(&t, TOP_BY_CPU);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(t.executors[i].index, by_cpu[i]); /* what is not known is last */
        top_model_sort(&t, TOP_BY_GPU);                            /* nothing is known: as they came */
        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(t.executors[i].index, i);
        done(&t);
}

static void test_jobs(void **state) {
        struct top_view v = { .columns = 100, .rows = 10 };
        struct top_job jobs[20] = {};
        struct top_model t = { .jobs = jobs, .n_jobs = ELEMENTSOF(jobs) };
        char *text;

        for (uint32_t i = 0; i < ELEMENTSOF(jobs); i++) {
                jobs[i] = (struct top_job){ .number = 100 + i,
                                            .name = (char *)"digits",
                                            .state = (char *)"RUNNING",
                                            .executors = 4,
                                            .total = { .running = 2 } };
                clear(jobs[i].total.sum);
                clear(jobs[i].total.mean);
                jobs[i].total.sum[TOP_CPU] = i;
        }
        top_model_sort(&t, TOP_BY_CPU);
        text = drawn(&v, &t);
        assert_non_null(strstr(text, "20 jobs  40 executors"));
        assert_non_null(strstr(text, "     119 digits"));
        assert_non_null(strstr(text, "1900%"));
        assert_non_null(strstr(text, "1-7 of 20"));
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parts),      cmocka_unit_test(test_job),  cmocka_unit_test(test_sizes),
                cmocka_unit_test(test_many_roles), cmocka_unit_test(test_sort), cmocka_unit_test(test_jobs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
