/* SPDX-License-Identifier: Apache-2.0 */
/* The order against the plainest way to make it: all tasks in a list, and one look over all sources for each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/data/order.h"
#include "masterd/data/permute.h"

#define SOURCES 4u
#define FILES 60u

struct made {
        uint32_t source, epoch;
        uint64_t number;
};

static uint64_t random_state;

static uint64_t dice(uint64_t n) {
        random_state = permute_hash(random_state, 3);
        return random_state % n;
}

struct plan { /* what is to be listed */
        struct data_file files[SOURCES][FILES];
        size_t n[SOURCES];
};

static void make_plan(struct plan *p, uint64_t seed) {
        *p = (struct plan){};
        random_state = seed;
        for (uint32_t s = 0; s < SOURCES; s++) {
                uint64_t batch = 2026010100 + dice(3);
                p->n[s] = dice(FILES + 1);
                for (size_t i = 0; i < p->n[s]; i++) {
                        batch += dice(6) == 0;
                        p->files[s][i] = (struct data_file){ .path = "/x",
                                                             .size = dice(1000),
                                                             .last = p->files[s][i].size,
                                                             .batch = batch,
                                                             .split = 100 };
                        p->files[s][i].last = p->files[s][i].size;
                }
        }
}

static uint64_t batch_of(const struct plan *p, const struct listing *l, uint32_t source, uint64_t number) {
        struct listing one;
        uint64_t n = 0, batch = 0;

        /* Counted by a listing of its own, file by file. */
        assert_int_equal(listing_init(&one, SOURCES, l->seed, l->sample_ppm), 0);
        for (size_t i = 0; i < p->n[source] && n <= number; i++) {
                assert_int_equal(listing_add(&one, source, &p->files[source][i]), 0);
                n = one.sources[source].n_tasks;
                batch = p->files[source][i].batch;
        }
        listing_done(&one);
        return batch;
}

/* All of it, with the listing complete. */
static size_t naive(const struct plan *p, const struct listing *l, const uint32_t *weights,
                    enum input_order kind, uint64_t seed, uint32_t epochs, struct made *ret) {
        size_t n = 0;

        for (uint32_t epoch = 0; epoch < epochs; epoch++) {
                uint64_t at[SOURCES] = {};
                for (;;) {
                        int best = -1;
                        double best_key = 0;
                        for (uint32_t s = 0; s < SOURCES; s++) {
                                double key;
                                if (at[s] >= l->sources[s].n_tasks)
                                        continue;
                                if (weights)
                                        key = (double)(at[s] + 1) / (weights[s] ? weights[s] : 1);
                                else if (kind == ORDER_SHUFFLE)
                                        key = (double)(at[s] + 1) / (double)l->sources[s].n_tasks;
                                else
                                        key = (double)batch_of(p, l, s, at[s]);
                                if (best < 0 || key < best_key - 1e-12)
                                        best = (int)s, best_key = key;
                        }
                        if (best < 0)
                                break;
                        ret[n++] = (struct made){ (uint32_t)best, epoch, at[best]++ };
                        if (kind == ORDER_SHUFFLE)
                                ret[n - 1].number =
                                        permute(permute_hash(permute_hash(seed, (uint64_t)best), epoch),
                                                l->sources[best].n_tasks, ret[n - 1].number);
                }
        }
        return n;
}

/* The order made while the listing goes on, in bits of any size. */
static size_t ours(const struct plan *p, struct order *o, struct listing *l, struct made *ret,
                   uint64_t seed) {
        size_t listed[SOURCES] = {}, n = 0;

        random_state = seed;
        for (;;) {
                enum order_result r = ORDER_WAITS;
                uint32_t s = (uint32_t)dice(SOURCES);
                uint64_t passed;
                while (dice(3) > 0 &&
                       (r = order_next(o, &ret[n].source, &ret[n].number, &ret[n].epoch)) == ORDER_TASK)
                        n++;
                if (l->n_scanned == SOURCES && r == ORDER_OVER)
                        return n;
                if (dice(2) == 0 && l->sources[s].scanned)
                        continue;
                if (listed[s] == p->n[s]) {
                        listing_scanned(l, s);
                } else {
                        passed = p->files[s][listed[s]].batch;
                        if (dice(2) == 0)
                                listing_passed(l, s, passed);
                        else
                                assert_int_equal(listing_add(l, s, &p->files[s][listed[s]++]), 0);
                }
                order_listed(o, s);
        }
}

static void compare(const uint32_t *weights, enum input_order kind, uint32_t epochs, uint32_t ppm) {
        static struct made expected[SOURCES * FILES * 11 * 3], got[SOURCES * FILES * 11 * 3];

        for (uint64_t seed = 1; seed <= 5; seed++) {
                static struct plan p;
                struct listing l;
                struct order o;
                size_t n, m = 0;
                make_plan(&p, seed);
                for (uint64_t way = 0; way < 4; way++) {
                        assert_int_equal(listing_init(&l, SOURCES, seed, ppm), 0);
                        assert_int_equal(order_init(&o, &l, weights, kind, seed, epochs), 0);
                        n = ours(&p, &o, &l, got, 100 * seed + way);
                        if (way == 0)
                                m = naive(&p, &l, weights, kind, seed, epochs, expected);
                        assert_int_equal(n, m);
                        for (size_t i = 0; i < n; i++) {
                                assert_int_equal(got[i].source, expected[i].source);
                                assert_int_equal(got[i].epoch, expected[i].epoch);
                                assert_int_equal(got[i].number, expected[i].number);
                        }
                        order_done(&o);
                        listing_done(&l);
                }
        }
}

static const uint32_t weights[SOURCES] = { 3, 0, 5, 1 };

static void test_listed(void **state) {
        compare(NULL, ORDER_LISTED, 1, 1000000);
        compare(NULL, ORDER_LISTED, 3, 500000);
}

static void test_weights(void **state) {
        compare(weights, ORDER_LISTED, 2, 1000000);
        compare(weights, ORDER_SHUFFLE, 2, 700000);
}

static void test_shuffle(void **state) {
        compare(NULL, ORDER_SHUFFLE, 3, 1000000);
}

static void add(struct listing *l, struct order *o, uint32_t source, uint64_t batch) {
        const struct data_file f = { .path = "/x", .size = 1, .last = 1, .batch = batch };

        assert_int_equal(listing_add(l, source, &f), 0);
        order_listed(o, source);
}

/* An hour is given out when no source can bring more of an earlier one. */
static void test_waits_for_the_hour(void **state) {
        struct listing l;
        struct order o;
        uint32_t source, epoch;
        uint64_t number;

        assert_int_equal(listing_init(&l, 2, 0, 1000000), 0);
        assert_int_equal(order_init(&o, &l, NULL, ORDER_LISTED, 0, 1), 0);
        add(&l, &o, 1, 2026010109);
        add(&l, &o, 1, 2026010110);
        assert_int_equal(order_next(&o, &source, &number, &epoch), ORDER_WAITS);
        listing_passed(&l, 0, 2026010109); /* may still bring some of 9, ahead of the other source's */
        order_listed(&o, 0);
        assert_int_equal(order_next(&o, &source, &number, &epoch), ORDER_WAITS);
        add(&l, &o, 0, 2026010109);
        assert_int_equal(order_next(&o, &source, &number, &epoch), ORDER_TASK);
        assert_int_equal(source, 0);
        assert_int_equal(order_next(&o, &source, &number, &epoch), ORDER_WAITS);
        listing_passed(&l, 0, 2026010110);
        order_listed(&o, 0);
        assert_int_equal(order_next(&o, &source, &number, &epoch), ORDER_TASK);
        assert_int_equal(source, 1);
        assert_int_equal(number, 0);
        assert_int_equal(order_next(&o, &source, &number, &epoch), ORDER_WAITS);
        listing_scanned(&l, 0);
        order_listed(&o, 0);
        assert_int_equal(order_next(&o, &source, &number, &epoch), ORDER_TASK);
        assert_int_equal(source, 1);
        assert_int_equal(number, 1);
        assert_int_equal(order_next(&o, &source, &number, &epoch), ORDER_WAITS);
        listing_scanned(&l, 1);
        order_listed(&o, 1);
        assert_int_equal(order_next(&o, &source, &number, &epoch), ORDER_OVER);
        order_done(&o);
        listing_done(&l);
}

static uint32_t next_source(struct order *o, enum order_result expected) {
        uint32_t source = UINT32_MAX, epoch;
        uint64_t number;

        assert_int_equal(order_next(o, &source, &number, &epoch), expected);
        return source;
}

/* Topics never end: two of them beside files, with and without weights; then one gets another partition. */
static void test_topics(void **state) {
        static const uint32_t same[3] = { 1, 1, 1 };

        for (unsigned weighted = 0; weighted < 2; weighted++) {
                struct listing l;
                struct order o;
                unsigned made[3] = {};
                assert_int_equal(listing_init(&l, 3, 0, 1000000), 0);
                assert_int_equal(order_init(&o, &l, weighted ? same : NULL, ORDER_LISTED, 0, 1), 0);
                for (uint32_t s = 0; s < 3; s += 2) {
                        add(&l, &o, s, 0);
                        listing_passed(&l, s, UINT64_MAX);
                        order_listed(&o, s);
                }
                for (unsigned i = 0; i < 20; i++)
                        add(&l, &o, 1, 0);
                for (unsigned i = 0; i < (weighted ? 22 : 21); i++)
                        made[next_source(&o, ORDER_TASK)]++;
                assert_int_equal(made[1], 20);
                (void)next_source(&o, ORDER_WAITS);
                add(&l, &o, 2, UINT64_MAX); /* behind what the files still may bring */
                if (weighted)
                        (void)next_source(&o, ORDER_WAITS);
                listing_scanned(&l, 1);
                order_listed(&o, 1);
                assert_int_equal(next_source(&o, ORDER_TASK), 2);
                if (!weighted)
                        assert_int_equal(next_source(&o, ORDER_TASK), 2);
                (void)next_source(&o, ORDER_WAITS);
                order_done(&o);
                listing_done(&l);
        }
}

/* At any point, sources have had their turns as their weights say, within one. */
static void test_proportions(void **state) {
        uint64_t made[2] = {}, number;
        uint32_t w[2] = { 7, 3 }, source, epoch;
        struct listing l;
        struct order o;

        assert_int_equal(listing_init(&l, 2, 0, 1000000), 0);
        assert_int_equal(order_init(&o, &l, w, ORDER_LISTED, 0, 1), 0);
        for (unsigned i = 0; i < 1000; i++)
                for (uint32_t s = 0; s < 2; s++)
                        add(&l, &o, s, 0);
        for (unsigned i = 1; i <= 1000; i++) {
                assert_int_equal(order_next(&o, &source, &number, &epoch), ORDER_TASK);
                made[source]++;
                assert_in_range(made[0] * 10 + 10, i * 7, i * 7 + 20);
        }
        order_done(&o);
        listing_done(&l);
}

static void test_places(void **state) {
        static struct plan p;
        struct made a[50], b[50];
        struct listing l;
        struct order o;
        uint8_t place[8 + 8 * SOURCES], bad[sizeof(place)];
        uint32_t source, epoch;
        uint64_t number, n = 0;

        make_plan(&p, 3);
        assert_int_equal(listing_init(&l, SOURCES, 1, 1000000), 0);
        assert_int_equal(order_init(&o, &l, NULL, ORDER_LISTED, 1, 2), 0);
        for (uint32_t s = 0; s < SOURCES; s++) {
                for (size_t i = 0; i < p.n[s]; i++)
                        assert_int_equal(listing_add(&l, s, &p.files[s][i]), 0);
                listing_scanned(&l, s);
                order_listed(&o, s);
        }
        for (n = 0; n < l.n_tasks + 20; n++)
                assert_int_equal(order_next(&o, &source, &number, &epoch), ORDER_TASK);
        assert_int_equal(order_place_size(&o), sizeof(place));
        order_place_write(&o, place);
        assert_int_equal(order_made_all(&o), n);
        for (size_t i = 0; i < ELEMENTSOF(a); i++)
                assert_int_equal(order_next(&o, &a[i].source, &a[i].number, &a[i].epoch), ORDER_TASK);
        assert_int_equal(order_place_read(&o, place, sizeof(place), n), 0);
        for (size_t i = 0; i < ELEMENTSOF(b); i++) {
                assert_int_equal(order_next(&o, &b[i].source, &b[i].number, &b[i].epoch), ORDER_TASK);
                assert_int_equal(a[i].source, b[i].source);
                assert_int_equal(a[i].number, b[i].number);
                assert_int_equal(a[i].epoch, b[i].epoch);
        }
        assert_int_equal(order_place_read(&o, place, sizeof(place), n + 1), -EUCLEAN);
        assert_int_equal(order_place_read(&o, place, sizeof(place) - 1, n), -EUCLEAN);
        for (size_t i = 0; i < sizeof(place); i++) {
                memcpy(bad, place, sizeof(bad));
                bad[i] ^= 0x40;
                assert_int_equal(order_place_read(&o, bad, sizeof(bad), n), -EUCLEAN);
        }
        order_done(&o);
        listing_done(&l);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_listed),  cmocka_unit_test(test_weights),
                cmocka_unit_test(test_shuffle), cmocka_unit_test(test_waits_for_the_hour),
                cmocka_unit_test(test_topics),  cmocka_unit_test(test_proportions),
                cmocka_unit_test(test_places),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
