/* SPDX-License-Identifier: Apache-2.0 */
/* A user database that answers, fails, and hangs. */
#include "masterd/caller/people.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FAILS 5u
#define HANGS 6u
#define UNKNOWN 7u
#define ODD 8u

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: HANGS does */
static unsigned n_lookups;                               /* the thread's; read when it has answered */
static unsigned n_done, n_destroyed;
static sd_event *event;
static struct people *people;

static int lookup(struct person *ret) {
        n_lookups++;
        if (ret->uid == HANGS) {
                pthread_mutex_lock(&gate);
                pthread_mutex_unlock(&gate);
        }
        if (ret->uid == UNKNOWN)
                return 0;
        ret->groups = calloc(3, sizeof(*ret->groups));
        assert_non_null(ret->groups);
        memcpy(ret->groups, (uint32_t[]){ 30, ret->uid, 20 }, 3 * sizeof(uint32_t));
        ret->n_groups = 3;
        if (ret->uid == FAILS)
                return -EIO;
        ret->found = true;
        ret->gid = ret->uid;
        snprintf(ret->name, sizeof(ret->name), ret->uid == ODD ? "a\nb" : "u%u", ret->uid);
        return 0;
}

static void done(void *userdata) {
        n_done++;
}

static void destroy(void *userdata) {
        n_destroyed++;
}

static int ask(uint32_t a, uint32_t b) {
        return people_ask(people, 1000, (uint32_t[]){ a, b }, 2, done, destroy, NULL);
}

static void wait_done(unsigned n) {
        while (n_done < n)
                assert_true(sd_event_run(event, 5 * USEC_PER_SEC) > 0);
}

static int set_up(void **state) {
        n_lookups = n_done = n_destroyed = 0;
        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(people_new(event, lookup, &people), 0);
        return 0;
}

static int tear_down(void **state) {
        people = people_free(people);
        event = sd_event_unref(event);
        return 0;
}

static void test_answers(void **state) {
        const struct person *p;

        assert_null(people_find(people, 1));
        assert_int_equal(ask(1, 2), 1);
        assert_int_equal(n_done, 0);
        wait_done(1);
        p = people_find(people, 1);
        assert_true(p && p->found && p->gid == 1 && person_in(p, 1) && person_in(p, 20) && person_in(p, 30));
        assert_false(person_in(p, 2) || person_in(NULL, 1));
        assert_string_equal(p->name, "u1");
        assert_int_equal(ask(1, 2), 0); /* at once */
        assert_int_equal(n_done, 2);
        assert_int_equal(n_lookups, 2);
        assert_int_equal(ask(1, 3), 1); /* the one that is missing */
        wait_done(3);
        assert_int_equal(n_lookups, 3);
}

static void test_what_is_not_known(void **state) {
        (void)ask(FAILS, UNKNOWN);
        wait_done(1);
        assert_null(people_find(people, FAILS));
        assert_true(people_find(people, UNKNOWN) && !people_find(people, UNKNOWN)->found);
        (void)ask(FAILS, ODD); /* it is asked about again */
        wait_done(2);
        assert_int_equal(n_lookups, 4);
        assert_string_equal(people_find(people, ODD)->name, ""); /* nothing to print */
}

static void test_many(void **state) {
        for (uint32_t i = 0; i < PEOPLE_MAX; i++) {
                (void)ask(1000 + 2 * i, 1001 + 2 * i);
                wait_done(i + 1);
        }
        assert_null(people_find(people, 1000));
        assert_non_null(people_find(people, 1000 + 2 * PEOPLE_MAX - 1));
}

static void test_hangs(void **state) {
        pthread_mutex_lock(&gate);
        assert_int_equal(ask(HANGS, 1), 1);
        assert_int_equal(ask(2, 3), 1); /* behind it */
        wait_done(2);                   /* after the wait */
        assert_null(people_find(people, 1));
        assert_null(people_find(people, 2));
        assert_int_equal(ask(4, 9), 0); /* nobody waits any more for one that is away */
        assert_int_equal(n_done, 3);
        pthread_mutex_unlock(&gate);
        while (!people_find(people, 2))
                assert_true(sd_event_run(event, 5 * USEC_PER_SEC) > 0);
        assert_true(people_find(people, HANGS) && n_done == 3);
        assert_int_equal(ask(4, 9), 1); /* it is back */
        wait_done(4);
}

static uintptr_t order;

static void done_in_order(void *userdata) {
        assert_true((uintptr_t)userdata == order++);
        assert_true(people_find(people, 1) && people_find(people, 2));
        n_done++;
}

/* Many questions about the same people are one, whoever is asked about between them. */
static void test_same(void **state) {
        static const uint32_t pairs[][2] = { { 1, 2 }, { 2, 1 }, { 1, 2 } };

        order = 0;
        pthread_mutex_lock(&gate);
        (void)ask(HANGS, 9);
        for (uintptr_t i = 0; i < 1000; i++) {
                assert_int_equal(people_ask(people, 1001, pairs[i % 3], 2, done_in_order, destroy, (void *)i),
                                 1);
                if (i % 100 == 0)
                        (void)people_ask(people, 1002, (uint32_t[]){ 1, 100 + (uint32_t)i }, 2, done, destroy,
                                         NULL);
        }
        assert_int_equal(n_done, 0);
        pthread_mutex_unlock(&gate);
        wait_done(1011);
        assert_int_equal(order, 1000);
        assert_int_equal(n_lookups, 2 + 2 + 10);
        assert_int_equal(ask(1, 2), 0);
}

/* Two who are known by different questions: who asks about both is told at the later one, and nobody who asks
 * the same is told before him. */
static void test_joins(void **state) {
        order = 0;
        pthread_mutex_lock(&gate);
        (void)people_ask(people, 1001, (uint32_t[]){ HANGS, 1 }, 2, done, destroy, NULL);
        (void)people_ask(people, 1001, (uint32_t[]){ 2, 9 }, 2, done, destroy, NULL);
        for (uintptr_t i = 0; i < 2; i++)
                assert_int_equal(
                        people_ask(people, 1001, (uint32_t[]){ 1, 2 }, 2, done_in_order, destroy, (void *)i),
                        1);
        pthread_mutex_unlock(&gate);
        wait_done(4);
        assert_int_equal(n_lookups, 4);
}

static void test_bound(void **state) {
        uint32_t uids[PEOPLE_ASKED_MAX], next = 10000;
        unsigned n = 1;

        pthread_mutex_lock(&gate);
        (void)ask(HANGS, 1);
        for (; n < PEOPLE_WAITING_PER_USER; n++)
                assert_int_equal(ask(1, 2), 1);
        assert_int_equal(n_done, 0);
        assert_int_equal(ask(1, 2), 0); /* enough of this one */
        assert_int_equal(n_done, 1);
        for (; n < PEOPLE_WAITING_PER_USER + PEOPLE_ASKING_MAX - 2; n++) {
                for (size_t i = 0; i < ELEMENTSOF(uids); i++)
                        uids[i] = next++;
                assert_int_equal(people_ask(people, 1001, uids, ELEMENTSOF(uids), done, destroy, NULL), 1);
        }
        assert_int_equal(people_ask(people, 1002, uids, ELEMENTSOF(uids), done, destroy, NULL), 1);
        uids[0] = 9;
        assert_int_equal(people_ask(people, 1002, uids, 1, done, destroy, NULL), 0);
        assert_int_equal(n_done, 2);
        /* ... and freed while all of them wait */
        people = people_free(people);
        assert_int_equal(n_destroyed, n + 1);
        pthread_mutex_unlock(&gate);
        usleep(200000); /* the thread frees what it had */
        assert_int_equal(n_done, 2);
}

/* The host's own database: root, and nobody of that number. */
static void test_host(void **state) {
        struct person root = { .uid = 0 }, nobody = { .uid = 3999999999u };

        assert_int_equal(people_lookup_host(&root), 0);
        assert_true(root.found && root.gid == 0 && root.n_groups >= 1);
        assert_string_equal(root.name, "root");
        assert_int_equal(people_lookup_host(&nobody), 0);
        assert_false(nobody.found);
        free(root.groups);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_answers, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_what_is_not_known, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_hangs, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_same, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_joins, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_bound, set_up, tear_down),
                cmocka_unit_test(test_host),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
