/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange of states, and what killed restores leave. */
#include "tools/state/place.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"

#define NOW (UINT64_C(1767225600) * USEC_PER_SEC) /* 2026-01-01T00:00:00Z */

static char directory[64], state_path[96];

static int setup(void **state) {
        strcpy(directory, "/tmp/test-place.XXXXXX");
        assert_non_null(mkdtemp(directory));
        snprintf(state_path, sizeof(state_path), "%s/primus", directory);
        assert_int_equal(mkdir(state_path, 0700), 0);
        return 0;
}

static int teardown(void **state) {
        return remove_tree(directory);
}

static void put(const char *relative, const char *text) {
        char path[256];
        char *slash;

        snprintf(path, sizeof(path), "%s/%s", directory, relative);
        slash = strrchr(path, '/');
        *slash = 0;
        assert_int_equal(make_directories(path, 0700), 0);
        *slash = '/';
        assert_int_equal(write_file_atomic(path, text, strlen(text), 0644, false), 0);
}

static void expect(const char *relative, const char *text) {
        _cleanup_free_ char *found = NULL;
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", directory, relative);
        if (!text) {
                assert_int_equal(access(path, F_OK), -1);
                return;
        }
        if (read_file(path, 1000, &found, NULL) < 0)
                fail_msg("%s is not there", relative);
        assert_string_equal(found, text);
}

static void begin(struct place *p) {
        assert_int_equal(place_begin(state_path, NOW, p), 0);
}

static void test_swap(void **state) {
        struct place p;

        put("primus/primus.db", "old");
        put("primus/bundles/1000/a", "bundle");
        put("primus/logs/7/x", "log");
        begin(&p);
        put("primus/.restore/primus.db", "new");
        put("primus/.restore/bundles/1000/a", "the same");
        put("primus/.restore/bundles/1000/b", "another");
        put("primus/.restore/bundles/1001/c", "third");
        put("primus/.restore/settings/masterd.conf", "x");
        assert_int_equal(place_finish(&p, geteuid(), getegid()), 0);
        assert_int_equal(place_swap(&p), 0);
        assert_string_equal(strrchr(p.before, '/'), "/before-restore-20260101T000000Z");
        expect("primus/.restore/settings/masterd.conf", "x"); /* for who goes on */
        place_done(&p);
        expect("primus/primus.db", "new");
        expect("primus/bundles/1000/a", "bundle");
        expect("primus/bundles/1000/b", "another");
        expect("primus/bundles/1001/c", "third");
        expect("primus/logs/7/x", "log");
        expect("primus/.restore", NULL);
        expect("primus/before-restore-20260101T000000Z/primus.db", "old");
}

/* The log of a database that could not be opened goes with it. */
static void test_damaged_before(void **state) {
        struct place p;

        put("primus/primus.db", "damaged");
        put("primus/primus.db-wal", "its log");
        begin(&p);
        put("primus/.restore/primus.db", "new");
        assert_int_equal(place_swap(&p), 0);
        place_done(&p);
        expect("primus/primus.db", "new");
        expect("primus/primus.db-wal", NULL);
        expect("primus/before-restore-20260101T000000Z/primus.db-wal", "its log");
}

static void test_fresh_host(void **state) {
        struct place p;

        put("primus/primus.db", ""); /* the lock's */
        begin(&p);
        put("primus/.restore/primus.db", "new");
        put("primus/.restore/bundles/1000/a", "bundle");
        assert_int_equal(place_finish(&p, geteuid(), getegid()), 0);
        assert_int_equal(place_swap(&p), 0);
        assert_null(p.before);
        place_done(&p);
        expect("primus/primus.db", "new");
        expect("primus/bundles/1000/a", "bundle");
        expect("primus/.restore", NULL);
}

/* Refused half-way: the state stays, the staging directory goes. */
static void test_given_up(void **state) {
        struct place p;

        put("primus/primus.db", "old");
        begin(&p);
        put("primus/.restore/primus.db", "new");
        place_done(&p);
        expect("primus/primus.db", "old");
        expect("primus/.restore", NULL);
}

/* A restore of the same second is there: nothing is replaced that could not be kept. */
static void test_cannot_keep(void **state) {
        struct place p;

        put("primus/primus.db", "old");
        put("primus/before-restore-20260101T000000Z/primus.db", "older");
        begin(&p);
        put("primus/.restore/primus.db", "new");
        assert_int_equal(place_swap(&p), -EEXIST);
        place_done(&p);
        expect("primus/primus.db", "old");
}

/* Killed: what is there was never the state. */
static void test_killed(void **state) {
        struct place p;

        put("primus/primus.db", "old");
        put("primus/.restore/primus.db", "half");
        begin(&p);
        expect("primus/.restore/primus.db", NULL);
        place_done(&p);
        expect("primus/primus.db", "old");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_swap, setup, teardown),
                cmocka_unit_test_setup_teardown(test_damaged_before, setup, teardown),
                cmocka_unit_test_setup_teardown(test_fresh_host, setup, teardown),
                cmocka_unit_test_setup_teardown(test_given_up, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cannot_keep, setup, teardown),
                cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
