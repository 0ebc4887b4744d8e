/* SPDX-License-Identifier: Apache-2.0 */
/* Who has to end with the link: a name for as long as there is a private directory, and a visit for as long
 * as systemd has the unit. */
#include "starter/files/alone.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/unit/files.h"
#include "starter/files/private.h"
#include "tests/kit/root-kit.h"

#define UNIT "primus-7-worker-0.1.service"
#define OTHER "primus-7-worker-1.1.service"
#define TRANSIENT "/run/systemd/transient/"

static char visited[512];

static int visit(const char *unit, void *userdata) {
        int *stop_at = userdata;

        snprintf(visited + strlen(visited), sizeof(visited) - strlen(visited), "%s ", unit);
        return stop_at && --*stop_at == 0 ? -ECANCELED : 0;
}

static int visit_all(void) {
        *visited = 0;
        return alone_visit(root_kit, visit, NULL);
}

static bool is_there(const char *path) {
        char full[512];
        struct stat st;

        snprintf(full, sizeof(full), "%s%s", root_kit, path);
        return lstat(full, &st) >= 0;
}

static void remove_there(const char *path) {
        char full[512];

        snprintf(full, sizeof(full), "%s%s", root_kit, path);
        assert_int_equal(unlink(full), 0);
}

static void remove_there_directory(const char *path) {
        char full[512];

        snprintf(full, sizeof(full), "%s%s", root_kit, path);
        assert_int_equal(rmdir(full), 0);
}

static void test_marks(void **state) {
        assert_int_equal(visit_all(), 0); /* no directory at all */
        assert_int_equal(alone_mark(root_kit, UNIT), -ENOENT);
        assert_false(is_there(ALONE_DIR "/" UNIT));

        assert_int_equal(private_create(root_kit, UNIT, 0, "", 0, NULL, 0), 0);
        assert_int_equal(alone_mark(root_kit, UNIT), 0);
        assert_int_equal(alone_mark(root_kit, UNIT), 0);
        assert_int_equal(visit_all(), 1); /* systemd has not got it yet */
        assert_string_equal(visited, "");
        root_put(TRANSIENT UNIT, "");
        assert_int_equal(visit_all(), 1);
        assert_string_equal(visited, UNIT " ");

        /* Whoever put it there: nobody is killed by it, and systemd does not start us for it again and again.
         */
        root_put(ALONE_DIR "/primus-agentd.service", "");
        root_put(ALONE_DIR "/x", "");
        root_put(ALONE_DIR "/directory/x", "");
        assert_int_equal(visit_all(), 2);
        assert_string_equal(visited, UNIT " ");
        assert_false(is_there(ALONE_DIR "/primus-agentd.service") || is_there(ALONE_DIR "/x"));

        remove_there(TRANSIENT UNIT); /* it has ended; nobody has seen it yet */
        assert_int_equal(visit_all(), 2);
        assert_string_equal(visited, "");
        remove_there(ALONE_DIR "/directory/x");
        remove_there_directory(ALONE_DIR "/directory");
        alone_clear(root_kit, UNIT);
        assert_int_equal(private_remove(root_kit, UNIT), 0);
        assert_int_equal(visit_all(), 0);
}

/* A starter that was killed between the two. */
static void test_left_behind(void **state) {
        assert_int_equal(private_create(root_kit, UNIT, 0, "", 0, NULL, 0), 0);
        assert_int_equal(alone_mark(root_kit, UNIT), 0);
        assert_int_equal(private_remove(root_kit, UNIT), 0);
        assert_int_equal(visit_all(), 0);
        assert_false(is_there(ALONE_DIR "/" UNIT));
        alone_clear(root_kit, UNIT); /* and again */
}

static void test_broken_off(void **state) {
        int n = 1;

        assert_int_equal(private_create(root_kit, UNIT, 0, "", 0, NULL, 0), 0);
        assert_int_equal(private_create(root_kit, OTHER, 0, "", 0, NULL, 0), 0);
        assert_int_equal(alone_mark(root_kit, UNIT), 0);
        assert_int_equal(alone_mark(root_kit, OTHER), 0);
        root_put(TRANSIENT UNIT, "");
        root_put(TRANSIENT OTHER, "");
        assert_int_equal(visit_all(), 2);
        assert_int_equal(alone_visit(root_kit, visit, &n), -ECANCELED);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_marks),
                cmocka_unit_test(test_left_behind),
                cmocka_unit_test(test_broken_off),
        };
        return cmocka_run_group_tests(tests, root_setup, root_teardown);
}
