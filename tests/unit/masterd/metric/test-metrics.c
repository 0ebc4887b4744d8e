/* SPDX-License-Identifier: Apache-2.0 */
/* The series of a job: what is kept of what was said, and within how many bytes. */
#include "tests/unit/masterd/metric/said.h"

static struct metric_budget budget;

static int setup(void **state) {
        struct metrics *m;

        budget = (struct metric_budget){ .max = UINT64_C(1) << 30 };
        assert_int_equal(metrics_new(&budget, NULL, &m), 0);
        *state = m;
        return 0;
}

static int teardown(void **state) {
        metrics_free(*state);
        assert_int_equal(budget.bytes, 0);
        return 0;
}

static void test_every_point_while_there_is_room(void **state) {
        struct metric_source *s = source(*state, 0);
        struct metric_point p[METRIC_CAP_MAX];

        for (uint64_t i = 0; i < METRIC_CAP_MAX; i++)
                assert_int_equal(say(*state, s, 1, i, 1000 + i, (double)i), 1);
        assert_int_equal(all(*state, s, p), METRIC_CAP_MAX);
        for (uint64_t i = 0; i < METRIC_CAP_MAX; i++) {
                assert_int_equal(p[i].step, i);
                assert_int_equal(p[i].count, 1);
                assert_true(p[i].last == (double)i);
        }
}

/* min, max, last and count of 10^6 are those of what was said, and each point stands for as many. */
static void test_a_million_points(void **state) {
        struct metric_source *s = source(*state, 0);
        struct metric_point p[METRIC_CAP_MAX];
        uint64_t count = 0;
        double sum = 0;
        size_t n;

        for (uint64_t i = 0; i < 1000000; i++)
                assert_int_equal(say(*state, s, 1, i, 1000 + i, i == 654321 ? -7 : (double)(i % 100)), 1);
        n = all(*state, s, p);
        assert_in_range(n, METRIC_CAP_MAX / 2, METRIC_CAP_MAX);
        for (size_t i = 0; i < n; i++) {
                count += p[i].count;
                sum += p[i].mean * p[i].count;
                if (i + 1 < n)
                        assert_int_equal(p[i].count, p[0].count);
                assert_int_equal(p[i].min == -7, 654321 <= p[i].step && p[i].step < 654321 + p[0].count);
        }
        assert_int_equal(count, 1000000);
        assert_int_equal(p[n - 1].step, 999999);
        assert_true(p[n - 1].last == 99);
        assert_true(fabs(sum - (49500000 - 7 - 21)) < 1e-3);
        n = metric_series_read(metric_series_of(*state, s, "loss"), 10, p);
        assert_in_range(n, 5, 10);
        assert_int_equal(p[n - 1].step, 999999);
        assert_true(budget.bytes < 2 * METRIC_CAP_MAX * sizeof(struct metric_point));
}

static void test_said_again_changes_nothing(void **state) {
        struct metric_source *s = source(*state, 0);
        struct metric_point p[METRIC_CAP_MAX];

        for (unsigned round = 0; round < 2; round++)
                for (uint64_t i = 0; i < 10; i++)
                        assert_int_equal(say(*state, s, 1, i, 1000 + i, 1), round == 0);
        assert_int_equal(all(*state, s, p), 10);
}

/* A trainer that begins again from a checkpoint, in the same attempt or another one; and what was said by the
 * attempt before and comes late. */
static void test_going_back(void **state) {
        struct metric_source *s = source(*state, 0);
        struct metric_point p[METRIC_CAP_MAX];

        for (uint64_t i = 0; i < 10; i++)
                assert_int_equal(say(*state, s, 1, i, 1000 + i, 1), 1);
        assert_int_equal(say(*state, s, 1, 5, 2000, 2), 1);
        assert_int_equal(all(*state, s, p), 6);
        assert_true(p[5].last == 2 && p[4].last == 1);
        assert_int_equal(say(*state, s, 2, 5, 1500, 3), 1); /* the clock of another host */
        assert_int_equal(all(*state, s, p), 6);
        assert_true(p[5].last == 3);
        assert_int_equal(say(*state, s, 1, 6, 9000, 4), 0);
        assert_int_equal(say(*state, s, 2, 0, 1600, 5), 1);
        assert_int_equal(all(*state, s, p), 1);
}

static void test_no_numbers(void **state) {
        struct metric_source *s = source(*state, 0);
        struct metric_point p[METRIC_CAP_MAX];
        static const double values[] = { NAN, 2, INFINITY, 4, NAN };

        for (size_t i = 0; i < ELEMENTSOF(values); i++)
                assert_int_equal(say(*state, s, 1, i, 1000 + i, values[i]), 1);
        assert_int_equal(metric_series_read(metric_series_of(*state, s, "loss"), 1, p), 1);
        assert_int_equal(p[0].count, 5);
        assert_true(isnan(p[0].last) && p[0].min == 2 && p[0].max == 4);
        assert_true(p[0].mean >= 2 && p[0].mean <= 4);
}

/* The more series, the fewer points each; all within the job's bytes. Too many are left out, and counted. */
static void test_many_series(void **state) {
        struct metrics *m = *state;
        struct metric_point points[METRIC_CAP_MAX];
        uint32_t left_out = 0;

        for (uint32_t rank = 0; rank < 1000; rank++) {
                struct metric_source *s = source(m, rank);
                for (uint32_t k = 0; k < 50; k++) {
                        struct metric_point p = metric_single(1, 1, 1);
                        char name[16];

                        snprintf(name, sizeof(name), "m%u", k);
                        for (uint64_t step = 0; step < 40; step++) {
                                int r = 0;
                                p.step = step;
                                p.usec = step + 1;
                                r = metrics_add(m, s, 1, name, &p);
                                assert_true(r == 1 || r == -ENOBUFS);
                                left_out += r < 0;
                        }
                }
        }
        assert_true(left_out > 0);
        assert_true(budget.bytes <= METRIC_JOB_BYTES + METRIC_JOB_BYTES / 4);
        assert_in_range(metric_series_read(metric_series_of(m, source(m, 0), "m0"), METRIC_CAP_MAX, points),
                        20, METRIC_CAP_MIN);
}

/* A user who has used up what he may have does not take from the others. */
static void test_budgets(void **state) {
        struct metric_budget all_of_them = { .max = 1 << 20 },
                             users[] = { { &all_of_them, 0, 1 << 19 }, { &all_of_them, 0, 1 << 19 } };
        struct metric_point p = metric_single(1, 1, 1);
        struct metrics *jobs[4];
        struct metric_source *s;
        uint32_t names = 0;
        char name[16];

        for (size_t i = 0; i < ELEMENTSOF(jobs); i++)
                assert_int_equal(metrics_new(users + i / 3, NULL, jobs + i), 0);
        for (size_t i = 0; i < 3; i++)
                for (uint32_t rank = 0; rank < 1000; rank++)
                        if (metrics_source(jobs[i], "worker", rank, 0, &s) >= 0)
                                for (uint32_t k = 0; k < 4; k++) {
                                        snprintf(name, sizeof(name), "m%u", k);
                                        (void)metrics_add(jobs[i], s, 1, name, &p);
                                }
        assert_true(users[0].bytes <= users[0].max && users[0].bytes > users[0].max / 2);
        assert_int_equal(metrics_source(jobs[3], "worker", 0, 0, &s), 0);
        for (uint32_t k = 0; k < 100; k++) {
                snprintf(name, sizeof(name), "m%u", k);
                names += metrics_add(jobs[3], s, 1, name, &p) == 1;
        }
        assert_int_equal(names, 100);
        for (size_t i = 0; i < ELEMENTSOF(jobs); i++)
                metrics_free(jobs[i]);
        assert_int_equal(all_of_them.bytes, 0);
}

static void test_names_of_one_process(void **state) {
        struct metric_source *s = source(*state, 0);
        struct metric_point p = metric_single(1, 1, 1);
        char name[16];

        for (uint32_t k = 0; k < 200; k++) {
                snprintf(name, sizeof(name), "m%u", k);
                assert_int_equal(metrics_add(*state, s, 1, name, &p), k < METRIC_NAMES_MAX ? 1 : -ENOBUFS);
        }
}

static void test_order(void **state) {
        struct metric_source *const *list, *s;
        size_t n;

        assert_int_equal(metrics_source(*state, "worker", 10, 0, &s), 0);
        assert_int_equal(metrics_source(*state, "worker", 2, 1, &s), 0);
        assert_int_equal(metrics_source(*state, "worker", 2, 0, &s), 0);
        assert_int_equal(metrics_source(*state, "chief", 3, 0, &s), 0);
        assert_int_equal(metrics_sorted(*state, &list, &n), 0);
        assert_int_equal(n, 4);
        assert_string_equal(list[0]->role, "chief");
        assert_int_equal(list[1]->key.index, 2);
        assert_int_equal(list[1]->key.local, 0);
        assert_int_equal(list[2]->key.local, 1);
        assert_int_equal(list[3]->key.index, 10);
}

/* What comes from a host: none of it is believed. */
static void test_packets(void **state) {
        const struct metric_point p = { 7, 8, 9, 1, 2, 3, 4 };
        struct metric_point got;
        uint8_t packet[2 * METRIC_POINT_BYTES_MAX], *end = metric_put(packet, "train/loss", &p);
        char name[METRIC_NAME_MAX + 1];
        const uint8_t *at = packet;

        end = metric_put(end, "b", &p);
        assert_int_equal(metric_get(&at, end, name, &got), 1);
        assert_string_equal(name, "train/loss");
        assert_true(got.step == 7 && got.usec == 8 && got.count == 9 && got.last == 1 && got.min == 2 &&
                    got.max == 3 && got.mean == 4);
        assert_int_equal(metric_get(&at, end, name, &got), 1);
        assert_int_equal(metric_get(&at, end, name, &got), 0);
        for (size_t cut = 1; cut < (size_t)(end - packet); cut++) {
                uint8_t *part = copy_of(packet, cut);
                const uint8_t *from = part;
                int r;
                while ((r = metric_get(&from, part + cut, name, &got)) > 0)
                        ;
                assert_int_equal(r, cut == (size_t)(end - packet) - 54 ? 0 : -EBADMSG);
                free(part);
        }
}

static void test_names(void **state) {
        static const char *const good[] = { "loss", "train/loss", "a:b-c_d.e" }, *const bad[] = {
                "", " ", "a b", "/x", ".x", "-x", "a\n", "\xc3\xa4", "a'", "<b>", "=1+1"
        };
        char name[METRIC_NAME_MAX + 2];

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                assert_true(metric_name_is_valid(good[i]));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_false(metric_name_is_valid(bad[i]));
        memset(name, 'a', sizeof(name));
        name[METRIC_NAME_MAX] = 0;
        assert_true(metric_name_is_valid(name));
        name[METRIC_NAME_MAX] = 'a';
        name[METRIC_NAME_MAX + 1] = 0;
        assert_false(metric_name_is_valid(name));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_every_point_while_there_is_room, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_million_points, setup, teardown),
                cmocka_unit_test_setup_teardown(test_said_again_changes_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_going_back, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_numbers, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_series, setup, teardown),
                cmocka_unit_test(test_budgets),
                cmocka_unit_test_setup_teardown(test_names_of_one_process, setup, teardown),
                cmocka_unit_test_setup_teardown(test_order, setup, teardown),
                cmocka_unit_test(test_packets),
                cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
