/* SPDX-License-Identifier: Apache-2.0 */
/* What an agentd that was root has left belongs to the right ones afterwards, whatever a user has put in its
 * way. */
#include "starter/files/prepare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/unit/files.h"
#include "tests/kit/root-kit.h"

#define AGENT 64123u /* nobody's on this machine */
#define METRICS 64124u

static struct stat look(const char *path) {
        char full[512];
        struct stat st;

        snprintf(full, sizeof(full), "%s%s", root_kit, path);
        assert_int_equal(lstat(full, &st), 0);
        return st;
}

static void assert_owned(const char *path, uid_t uid, gid_t gid, mode_t mode) {
        const struct stat st = look(path);

        assert_int_equal(st.st_uid, uid);
        assert_int_equal(st.st_gid, gid);
        assert_int_equal(st.st_mode & 07777, mode);
}

static void test_fresh(void **state) {
        if (geteuid() != 0)
                skip();
        for (int i = 0; i < 2; i++) {
                assert_int_equal(prepare(root_kit, AGENT, AGENT, METRICS), 0);
                assert_owned(RUN_DIR, 0, AGENT, 0755);
                assert_owned(AGENT_DIR, AGENT, METRICS, 02755);
                assert_owned(PRIVATE_DIR, 0, AGENT, 02711);
                assert_owned(ALONE_DIR, 0, AGENT, 0755);
                assert_owned(EXITS_DIR, 0, AGENT, 02750);
                assert_owned(STATE_DIR, 0, AGENT, 0711);
                assert_owned(WORK_DIR, 0, AGENT, 0751);
                assert_owned(BUNDLES_DIR, AGENT, AGENT, 0711);
                assert_owned(BOOT_FILE, 0, 0, 0644);
                assert_int_equal(look(BOOT_FILE).st_size, 32);
        }
}

static void test_upgrade(void **state) {
        char from[512], to[512];

        if (geteuid() != 0)
                skip();
        root_put("/run/primus/link", "x");
        root_put("/run/primus/feed.sock", "");
        root_put("/run/primus/x/primus-1-worker-0.1.service/progress", "0123456789abcdef");
        root_put("/run/primus/x/primus-1-worker-0.1.service/env", "A=1");
        root_put("/run/primus/exits/primus-1-worker-0.1.service", "x");
        root_put("/var/lib/primus-agent/bundles/1000/abc", "x");
        root_put("/var/lib/primus-agent/progress/primus-1-worker-0.1.service", "x");
        root_put("/etc/shadow", "secret");
        /* A user's: another name of a file of root's, and a link to it, where progress is looked for. */
        root_put("/run/primus/x/primus-2-worker-0.1.service/env", "A=1");
        snprintf(from, sizeof(from), "%s/etc/shadow", root_kit);
        snprintf(to, sizeof(to), "%s/run/primus/x/primus-2-worker-0.1.service/progress", root_kit);
        assert_int_equal(link(from, to), 0);
        snprintf(to, sizeof(to), "%s/run/primus/x/primus-2-worker-0.1.service/stop", root_kit);
        assert_int_equal(symlink(from, to), 0);
        assert_int_equal(prepare(root_kit, AGENT, AGENT, METRICS), 0);
        assert_owned("/run/primus/agent/link", AGENT, AGENT, look("/run/primus/agent/link").st_mode & 07777);
        assert_true(S_ISLNK(look("/run/primus/feed.sock").st_mode));
        assert_owned("/run/primus/x/primus-1-worker-0.1.service/progress", 0, AGENT, 0660);
        assert_int_equal(look("/run/primus/x/primus-1-worker-0.1.service/env").st_gid, 0);
        assert_owned("/run/primus/exits/primus-1-worker-0.1.service", 0, AGENT, 0640);
        assert_int_equal(look("/var/lib/primus-agent/bundles/1000").st_uid, AGENT);
        assert_int_equal(look("/var/lib/primus-agent/bundles/1000/abc").st_uid, 0);
        assert_int_equal(look("/var/lib/primus-agent/progress/primus-1-worker-0.1.service").st_uid, AGENT);
        assert_int_equal(look("/etc/shadow").st_gid, 0);
        assert_int_equal(look("/etc/shadow").st_uid, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_fresh, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_upgrade, root_setup, root_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
