/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of submissions: the same again is the same job, over a kill too; and what of them is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/wire/errors.h"
#include "masterd/admit/keys.h"
#include "masterd/core/manager.h"
#include "tests/kit/json.h"
#include "tests/kit/masterd-kit.h"

#define CONFIG JSON({ "role" : [ { "roleName" : "w", "vcores" : 1, "memoryMb" : 16, "command" : "x" } ] })
#define OTHER JSON({ "role" : [ { "roleName" : "w", "vcores" : 2, "memoryMb" : 16, "command" : "x" } ] })

static struct submission submission(const char *key, const char *config) {
        return (struct submission){
                .owner = 1000, .config = config, .config_size = strlen(config), .key = strdup(key)
        };
}

/* What is said of it: 0 it is new (*ret is its key), 1 it is job *ret_job, or an error of that name. */
static int begin(struct manager *m, uint32_t uid, const char *key, const char *config, const char *name,
                 struct submit_key **ret, uint32_t *ret_job) {
        struct submission s = submission(key, config);
        sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        s.owner = uid;
        r = keys_begin(m, &s, ret, ret_job, &error);
        if (r < 0)
                assert_true(name && sd_bus_error_has_name(&error, name));
        sd_bus_error_free(&error);
        submission_done(&s);
        return r;
}

static struct job *submit_keyed(struct manager *m, const char *key) {
        struct submit_key *k;
        uint32_t job;
        struct job *j;

        assert_int_equal(begin(m, 1000, key, CONFIG, NULL, &k, &job), 0);
        j = kit_submit(m, CONFIG, NULL);
        keys_end(m, k, j);
        return j;
}

static void test_once(void **state) {
        struct kit *k = *state;
        struct job *j = submit_keyed(k->m, "a");
        uint32_t number = j->number, job = 0;
        struct submit_key *key;

        for (unsigned round = 0; round < 2; round++) {
                assert_int_equal(begin(k->m, 1000, "a", CONFIG, NULL, &key, &job), 1);
                assert_int_equal(job, number);
                assert_true(begin(k->m, 1000, "a", OTHER, ERROR_CONFLICT, &key, &job) < 0);
                /* Another user's key of that name is another one. */
                assert_int_equal(begin(k->m, 1001, "a", OTHER, NULL, &key, &job), 0);
                keys_end(k->m, key, NULL);
                if (round == 0) {
                        kit_until_durable(k->m);
                        kit_restart(k);
                }
        }
}

/* What nothing came of may be tried again; what is not on disk is not known after a kill, nor is its job. */
static void test_of_nothing(void **state) {
        struct kit *k = *state;
        struct submit_key *key, *other;
        uint32_t job = 0;

        assert_int_equal(begin(k->m, 1000, "b", CONFIG, NULL, &key, &job), 0);
        assert_true(begin(k->m, 1000, "b", CONFIG, ERROR_BUSY, &other, &job) < 0);
        keys_end(k->m, key, NULL);
        assert_int_equal(begin(k->m, 1000, "b", CONFIG, NULL, &key, &job), 0);
        kit_restart(k);
        assert_int_equal(begin(k->m, 1000, "b", CONFIG, NULL, &key, &job), 0);
        keys_end(k->m, key, NULL);
}

/* Of a user so many, the latest. */
static void test_many(void **state) {
        struct job j = { .number = 7, .submitted_real = now_real() };
        struct kit *k = *state;
        struct submit_key *key;
        uint32_t job = 0;
        char name[16];

        for (unsigned i = 0; i < KEYS_PER_USER + 5; i++) {
                snprintf(name, sizeof(name), "k%u", i);
                assert_int_equal(begin(k->m, 1000, name, CONFIG, NULL, &key, &job), 0);
                j.submitted_real++;
                keys_end(k->m, key, &j);
        }
        assert_int_equal(begin(k->m, 1000, "k5", CONFIG, NULL, &key, &job), 1);
        assert_int_equal(begin(k->m, 1000, "k4", CONFIG, NULL, &key, &job), 0);
        keys_end(k->m, key, NULL);
        kit_until_durable(k->m);
        kit_restart(k);
        assert_int_equal(begin(k->m, 1000, "k5", CONFIG, NULL, &key, &job), 1);
        assert_int_equal(begin(k->m, 1000, "k4", CONFIG, NULL, &key, &job), 0);
        keys_end(k->m, key, NULL);
}

/* A day is enough. */
static void test_old(void **state) {
        struct job j = { .number = 7, .submitted_real = now_real() - STORE_KEY_USEC };
        struct kit *k = *state;
        struct submit_key *key;
        uint32_t job = 0;

        assert_int_equal(begin(k->m, 1000, "c", CONFIG, NULL, &key, &job), 0);
        keys_end(k->m, key, &j);
        for (unsigned round = 0; round < 2; round++) {
                assert_int_equal(begin(k->m, 1000, "c", CONFIG, NULL, &key, &job), 0);
                keys_end(k->m, key, NULL);
                kit_until_durable(k->m);
                kit_restart(k);
        }
}

static void test_text(void **state) {
        char longest[KEY_MAX + 2];

        memset(longest, 'x', sizeof(longest));
        longest[KEY_MAX + 1] = 0;
        assert_false(key_valid(longest));
        longest[KEY_MAX] = 0;
        assert_true(key_valid(longest));
        assert_true(key_valid("nightly-2026-11-28/a@b:c+d=e_f.g"));
        assert_false(key_valid(""));
        assert_false(key_valid("a b"));
        assert_false(key_valid("a\n"));
        assert_false(key_valid("ä"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
        const struct CMUnitTest tests[] = {
                T(test_once), T(test_of_nothing), T(test_many), T(test_old), cmocka_unit_test(test_text),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
