/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/conf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "tests/kit/root-kit.h"

struct settings {
        char *address;
        bool root_jobs;
        uint64_t timeout, memory;
        uint32_t limit;
        uint16_t port;
};

static const struct conf_key keys[] = {
        { "Link", "Address", conf_parse_string, offsetof(struct settings, address) },
        { "Link", "Port", conf_parse_port, offsetof(struct settings, port) },
        { "Link", "TimeoutSec", conf_parse_duration, offsetof(struct settings, timeout) },
        { "Jobs", "AllowRoot", conf_parse_bool, offsetof(struct settings, root_jobs), .security = true },
        { "Jobs", "MemoryMax", conf_parse_size, offsetof(struct settings, memory) },
        { "Jobs", "Limit", conf_parse_u32, offsetof(struct settings, limit) },
        {},
};

static void test_missing(void **state) {
        struct settings s = { .limit = 7 };

        assert_int_equal(conf_load(root_kit, "x.conf", keys, &s), 0);
        assert_int_equal(s.limit, 7);
}

static void test_all_types(void **state) {
        struct settings s = {};

        root_put("/etc/primus/x.conf", "# comment\n[Link]\nAddress = 192.0.2.1\n  Port=99\nTimeoutSec=2min\n"
                                       "[Jobs]\nAllowRoot=yes\nMemoryMax=1G\nLimit=5");
        assert_int_equal(conf_load(root_kit, "x.conf", keys, &s), 0);
        assert_string_equal(s.address, "192.0.2.1");
        assert_int_equal(s.port, 99);
        assert_true(s.timeout == 120 * USEC_PER_SEC);
        assert_true(s.root_jobs);
        assert_true(s.memory == UINT64_C(1) << 30);
        assert_int_equal(s.limit, 5);
        free(s.address);
}

static void test_dropins(void **state) {
        struct settings s = {};

        root_put("/etc/primus/x.conf", "[Jobs]\nLimit=1\n[Link]\nAddress=main\nPort=1\n");
        root_put("/usr/lib/primus/x.conf.d/10-a.conf", "[Link]\nAddress=masked\nPort=2\n");
        root_put("/run/primus/x.conf.d/10-a.conf", "[Link]\nAddress=run\n");
        root_put("/usr/lib/primus/x.conf.d/20-b.conf", "[Jobs]\nLimit=3\n");
        root_put("/etc/primus/x.conf.d/15-c.conf", "[Jobs]\nLimit=4\n");
        root_put("/etc/primus/x.conf.d/99.txt", "[Jobs]\nLimit=5\n");
        assert_int_equal(conf_load(root_kit, "x.conf", keys, &s), 0);
        assert_string_equal(s.address, "run"); /* /run masks /usr/lib */
        assert_int_equal(s.port, 1);           /* and nothing of the masked file counts */
        assert_int_equal(s.limit, 3);          /* 20-b comes behind 15-c, whatever the directory */
        free(s.address);
}

static void test_bad_values(void **state) {
        struct settings s = { .limit = 7, .port = 8 };
        static char long_line[70000];

        root_put("/etc/primus/x.conf",
                 "nonsense\n[Jobs]\nLimit=-1\nLimits=4\n[Nowhere]\nX=1\n[Link]\nPort=70000\nTimeoutSec=5s\n");
        assert_int_equal(conf_load(root_kit, "x.conf", keys, &s), 0);
        assert_int_equal(s.limit, 7);
        assert_int_equal(s.port, 8);
        assert_true(s.timeout == 5 * USEC_PER_SEC);

        memset(long_line, 'x', sizeof(long_line));
        memcpy(long_line, "[Link]\nAddress=", 15);
        strcpy(long_line + sizeof(long_line) - 20, "\nPort=5\n");
        root_put("/etc/primus/x.conf", long_line);
        assert_int_equal(conf_load(root_kit, "x.conf", keys, &s), 0);
        assert_null(s.address);
        assert_int_equal(s.port, 5);
}

static void test_security_key(void **state) {
        struct settings s = {};

        root_put("/etc/primus/x.conf", "[Jobs]\nAllowRoot=perhaps\nLimit=9\n");
        assert_int_equal(conf_load(root_kit, "x.conf", keys, &s), -EINVAL);
        assert_false(s.root_jobs);
        assert_int_equal(s.limit, 9);
}

/* Who misspells what closes something does not find it open. */
static void test_meant_security(void **state) {
        static const struct {
                const char *text;
                int expected;
                unsigned warnings, errors;
        } cases[] = {
                { "[Jobs]\nAllowroot=no\n", -EINVAL, 0, 1 },
                { "[Jobs]\nAllowRoot no\n", -EINVAL, 0, 1 },
                { "[Link]\nAllowRoot=no\n", -EINVAL, 0, 1 },
                { "[Jbos]\nAllowRoot=no\n", -EINVAL, 1, 1 },
                { "[Jobs]\nAllowRot=no\nLimit=many\n", -EINVAL, 1, 1 },
                { "[Jobs]\nLimitt=5\n[Link]\nLimit=5\n", 0, 2, 0 },
                { "[Nowhere]\nX=1\nAllowNothingAtAll=1\n", 0, 3, 0 },
                { "[Jobs]\nLimit=1\n", 0, 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct conf_report report = {};
                struct settings s = {};
                root_put("/etc/primus/x.conf", cases[i].text);
                assert_int_equal(conf_load_groups(root_kit, "x.conf", keys, NULL, &s, &report),
                                 cases[i].expected);
                assert_int_equal(report.warnings, cases[i].warnings);
                assert_int_equal(report.errors, cases[i].errors);
                assert_false(s.root_jobs);
                conf_report_done(&report);
                free(s.address);
        }
}

static void test_bad_files(void **state) {
        struct settings s = {};
        char path[512], junk[4096];

        root_put("/etc/primus/x.conf.d/50-directory.conf/x", "");
        root_put("/etc/primus/x.conf.d/60-fine.conf", "[Jobs]\nLimit=6\n");
        assert_int_equal(conf_load(root_kit, "x.conf", keys, &s), -EINVAL);
        assert_int_equal(s.limit, 6); /* the others are read all the same, so that all is named at once */

        snprintf(path, sizeof(path), "%s/etc/primus/x.conf.d/50-directory.conf", root_kit);
        assert_int_equal(remove_tree(path), 0);
        snprintf(path, sizeof(path), "%s/etc/primus/x.conf.d", root_kit);
        assert_int_equal(chmod(path, 0777), 0);
        assert_int_equal(conf_load(root_kit, "x.conf", keys, &s), -EINVAL);
        assert_int_equal(chmod(path, 0755), 0);
        assert_int_equal(conf_load(root_kit, "x.conf", keys, &s), 0);

        for (size_t i = 0; i < sizeof(junk); i++)
                junk[i] = (char)(i * 37 % 251);
        root_put_bytes("/etc/primus/x.conf", junk, sizeof(junk));
        s.limit = 0;
        assert_int_equal(conf_load(root_kit, "x.conf", keys, &s), 0);
        assert_int_equal(s.limit, 6);
}

static void test_show(void **state) {
        static const struct conf_key shown[] = {
                { "Link", "Port", conf_parse_port, offsetof(struct settings, port), .initial = "7" },
                { "Link", "Address", conf_parse_string, offsetof(struct settings, address), .initial = "" },
                { "Jobs", "Limit", conf_parse_u32, offsetof(struct settings, limit), .initial = "3" },
                {},
        };
        _cleanup_(conf_report_done) struct conf_report report = {};
        _cleanup_free_ char *text = NULL;
        char expected[1024];
        struct settings s = {};
        size_t size;
        FILE *f;

        root_put("/etc/primus/x.conf", "[Link]\nPort=1\n");
        root_put("/etc/primus/x.conf.d/a.conf", "\n[Link]\nPort=2\nPort=nonsense\n");
        assert_int_equal(conf_load_groups(root_kit, "x.conf", shown, NULL, &s, &report), 0);
        f = open_memstream(&text, &size);
        assert_non_null(f);
        conf_show(f, shown, NULL, &report);
        assert_int_equal(fclose(f), 0);
        snprintf(expected, sizeof(expected),
                 "[Link]\n# %s/etc/primus/x.conf.d/a.conf:3\nPort=2\n#Address=\n\n[Jobs]\n#Limit=3\n\n",
                 root_kit);
        assert_string_equal(text, expected);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_missing, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_all_types, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_dropins, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_bad_values, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_security_key, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_meant_security, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_bad_files, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_show, root_setup, root_teardown),
        };
        log_set_level(
                LOG_CRIT); /* the warnings are the point of the bad values, but not of the test's output */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
