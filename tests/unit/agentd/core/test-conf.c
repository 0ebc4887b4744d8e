/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/core/settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

static char root[] = "/tmp/primus-settings-XXXXXX";

static int setup(void **state) {
        log_set_level(LOG_CRIT); /* bad values are meant */
        return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state) {
        return remove_tree(root);
}

static int load(const char *text, struct settings *ret) {
        char directory[256], path[300];

        snprintf(directory, sizeof(directory), "%s" PRIMUS_SYSCONFDIR, root);
        assert_int_equal(make_directories(directory, 0755), 0);
        snprintf(path, sizeof(path), "%s/agentd.conf", directory);
        assert_int_equal(write_file_atomic(path, text, strlen(text), 0644, false), 0);
        return settings_load(root, ret);
}

static void test_defaults(void **state) {
        struct settings s;

        assert_int_equal(load("", &s), 0);
        assert_null(s.master);
        assert_null(s.node_name);
        assert_int_equal(s.address.family, AF_UNSPEC);
        assert_false(s.serve.allow_root);
        assert_int_equal(s.ports.first, 23000);
        assert_int_equal(s.ports.last, 27999);
        assert_int_equal(s.memory_reserve + s.memory + s.cpus, 0);
        assert_int_equal(s.log_level, -1);
        settings_done(&s);
}

static void test_all(void **state) {
        struct settings s;

        assert_int_equal(load("[Agent]\nMaster=head:7000\nNodeName=n1.lab\nAddress=fe80::1\nAllowRoot=yes\n"
                              "Ports=1024-65535\nMemoryReserve=1G\nMemory=64G\nCPUs=12\nLogLevel=debug\n",
                              &s),
                         0);
        assert_string_equal(s.master, "head:7000");
        assert_string_equal(s.node_name, "n1.lab");
        assert_int_equal(s.address.family, AF_INET6);
        assert_true(s.serve.allow_root);
        assert_int_equal(s.ports.first, 1024);
        assert_int_equal(s.ports.last, 65535);
        assert_int_equal(s.memory_reserve, UINT64_C(1) << 30);
        assert_int_equal(s.memory, UINT64_C(64) << 30);
        assert_int_equal(s.cpus, 12);
        assert_int_equal(s.log_level, LOG_DEBUG);
        settings_done(&s);
}

/* Each leaves the default. */
static void test_bad(void **state) {
        static const char *const lines[] = { "Ports=1-2",         "Ports=27999-23000", "Ports=23000",
                                             "Ports=23000-70000", "Ports=-",           "NodeName=UPPER",
                                             "Memory=lots",       "CPUs=-1",           "LogLevel=loud",
                                             "Unknown=1",         "MemoryReserve=-1",  "NodeName=a..b/c",
                                             "OpenFiles=many" };

        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                char text[128];
                struct settings s;

                snprintf(text, sizeof(text), "[Agent]\n%s\n", lines[i]);
                assert_int_equal(load(text, &s), 0);
                assert_int_equal(s.ports.first, 23000);
                assert_int_equal(s.ports.last, 27999);
                assert_null(s.node_name);
                assert_int_equal(s.address.family, AF_UNSPEC);
                assert_int_equal(s.memory_reserve + s.memory + s.cpus, 0);
                assert_int_equal(s.open_files, 65536);
                assert_int_equal(s.log_level, -1);
                settings_done(&s);
        }
}

/* Who may run here, who may look and over which network is not guessed. */
static void test_security(void **state) {
        static const char *const lines[] = { "AllowRoot=perhaps",  "Address=head",   "MetricsListen=here",
                                             "MetricsJobs=some",   "AllowRot=no",    "MetricsListen no",
                                             "MinUid=0",           "MinUid=-1",      "MinUid=many",
                                             "HideManagers=maybe", "AllowUsers=a,b", "DenyUser=eve",
                                             "AllowGroups=-x" };

        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                char text[128];
                struct settings s;

                snprintf(text, sizeof(text), "[Agent]\n%s\n", lines[i]);
                assert_int_equal(load(text, &s), -EINVAL);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_all),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_security),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
