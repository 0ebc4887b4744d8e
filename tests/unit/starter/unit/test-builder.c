/* SPDX-License-Identifier: Apache-2.0 */
/* Builds units into messages and reads them back. */
#include "starter/unit/builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/unit/identity.h"
#include "starter/unit/get-unit.h"
#include "starter/unit/property.h"
#include "starter/unit/session-unit.h"
#include "tests/kit/message-kit.h"

#define LAUNCH PRIMUS_LIBEXECDIR "/primus-launch"

static const char *empty[] = { NULL };
static char nothing[] = "";

static struct start_order an_order(const char *const *argv, const char *const *env) {
        struct start_order o = { .id = { .job = 418, .role = "worker", .index = 3, .attempt = 2 },
                                 .uid = 1000,
                                 .argv = (char **)argv,
                                 .env = (char **)env,
                                 .identity = (char **)empty,
                                 .gpus = (char **)empty,
                                 .visible_gpus = (char **)empty,
                                 .cwd = nothing,
                                 .output = nothing,
                                 .grace_usec = 7000000,
                                 .on_partition = ON_PARTITION_STOP };
        o.id.job_uid.bytes[0] = 0xab;
        return o;
}

static const struct unit_context here = { .node = "n2", .term = 7, .directory = "/data", .work = "/work" };

/* Goes to the variant of a property; the message is rewound first. */

static void assert_text(sd_bus_message *m, const char *name, const char *expected) {
        const char *s;

        assert_true(message_find_property(m, "ss", name, "s"));
        assert_true(sd_bus_message_read(m, "s", &s) > 0);
        assert_string_equal(s, expected);
}

static void assert_command(sd_bus_message *m, const char *name, const char *path, const char *const *argv) {
        char **strings = NULL;
        const char *p;
        int ignore;

        assert_true(message_find_property(m, "ss", name, "a(sasb)"));
        assert_true(sd_bus_message_enter_container(m, 'a', "(sasb)") > 0);
        assert_true(sd_bus_message_enter_container(m, 'r', "sasb") > 0);
        assert_true(sd_bus_message_read(m, "s", &p) > 0);
        assert_string_equal(p, path);
        assert_true(sd_bus_message_read_strv(m, &strings) > 0);
        for (size_t i = 0; argv[i] || strings[i]; i++) {
                assert_non_null(argv[i]);
                assert_non_null(strings[i]);
                assert_string_equal(strings[i], argv[i]);
        }
        assert_true(sd_bus_message_read(m, "b", &ignore) > 0);
        assert_false(ignore);
        strings_free(strings);
}

static sd_bus_message *build(const struct start_order *o, const struct unit_context *c) {
        sd_bus_message *m = message_new();
        char *why = NULL;

        assert_true(unit_build(m, o, c, &why) >= 0);
        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
        return m;
}

static void test_properties(void **state) {
        const char *const argv[] = { "/bin/echo", "$HOME", "100%", NULL }, *const env[] = { NULL };
        struct start_order o = an_order(argv, env);
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const char *unit, *mode;

        o.cpu_usec_per_sec = 1500000;
        o.memory_max = 1 << 30;
        o.runtime_max_usec = 60000000;
        m = build(&o, &here);
        assert_true(sd_bus_message_rewind(m, true) >= 0);
        assert_true(sd_bus_message_read(m, "ss", &unit, &mode) > 0);
        assert_string_equal(unit, "primus-418-worker-3.2.service");
        assert_string_equal(mode, "fail");
        assert_text(m, "Slice", "primus-418.slice");
        assert_text(m, "Type", "exec");
        assert_text(m, "User", "1000");
        assert_text(m, "KillMode", "control-group");
        assert_text(m, "OOMPolicy", "kill");
        assert_text(m, "CollectMode", "inactive-or-failed");
        assert_text(m, "WorkingDirectory", "/");
        assert_text(m, "StandardOutput", "journal");
        message_assert_number(m, "ss", "CPUQuotaPerSecUSec", 1500000);
        message_assert_number(m, "ss", "MemoryMax", 1 << 30);
        message_assert_number(m, "ss", "MemorySwapMax", 0);
        message_assert_number(m, "ss", "RuntimeMaxUSec", 60000000);
        message_assert_number(m, "ss", "TimeoutStopUSec", 7000000);
        message_assert_number(m, "ss", "LogRateLimitIntervalUSec", 1);
        assert_false(message_find_property(m, "ss", "TasksMax", "t"));
        assert_text(m, "DevicePolicy", "closed"); /* on hosts without GPUs too */
        assert_command(m, "ExecStart", LAUNCH,
                       (const char *const[]){ LAUNCH, "--", "/bin/echo", "$$HOME", "100%", NULL });
}

static void test_delegate(void **state) {
        static const char *const argv[] = { "true", NULL }, *const env[] = { NULL };
        struct start_order o = an_order(argv, env);
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *whole = NULL;
        _cleanup_(strings_free_p) char **controllers = NULL;

        o.extra.delegate = 1;
        m = build(&o, &here);
        assert_text(m, "OOMPolicy", "continue"); /* one part of it ends at that part's limit */
        assert_true(message_find_property(m, "ss", "DelegateControllers", "as"));
        assert_true(sd_bus_message_read_strv(m, &controllers) > 0);
        assert_string_equal(controllers[0], "cpu");
        assert_string_equal(controllers[1], "memory");
        assert_string_equal(controllers[2], "pids");
        assert_null(controllers[3]);
        o.extra.delegate = 0;
        whole = build(&o, &here);
        assert_false(message_find_property(whole, "ss", "DelegateControllers", "as"));
}

static void test_short_grace(void **state) {
        const char *const argv[] = { "/bin/true", NULL };
        struct start_order o = an_order(argv, empty);
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        o.grace_usec = 0; /* primus-exit has to run all the same */
        m = build(&o, &here);
        message_assert_number(m, "ss", "TimeoutStopUSec", UNIT_STOP_USEC_MIN);
}

/* It is fed by any process, and with READY=1 to come it begins behind that. */
static void test_watchdog(void **state) {
        const char *const argv[] = { "/bin/true", NULL };
        struct start_order o = an_order(argv, empty);
        sd_bus_message *m = build(&o, &here);

        assert_false(message_find_property(m, "ss", "WatchdogUSec", "t"));
        assert_false(message_find_property(m, "ss", "NotifyAccess", "s"));
        sd_bus_message_unref(m);
        o.extra.watchdog_usec = 30000000;
        m = build(&o, &here);
        assert_text(m, "Type", "exec");
        assert_text(m, "NotifyAccess", "all");
        message_assert_number(m, "ss", "WatchdogUSec", 30000000);
        sd_bus_message_unref(m);
        strcpy(o.extra.ready, "notify");
        m = build(&o, &here);
        assert_text(m, "Type", "notify");
        assert_text(m, "NotifyAccess", "all");
        message_assert_number(m, "ss", "WatchdogUSec", 30000000);
        sd_bus_message_unref(m);
}

static void test_commands(void **state) {
        const char *const argv[] = { "train", "--x", "a\nb\\", NULL };
        struct unit_context with_bundle = here;
        char output[] = "logs/%j-%r-%i-%a-%n%%";
        struct start_order o = an_order(argv, empty);
        sd_bus_message *m;

        m = build(&o, &here); /* which looks for it along the user's PATH */
        assert_command(m, "ExecStart", LAUNCH,
                       (const char *const[]){ LAUNCH, "--", "train", "--x", "a\nb\\", NULL });
        sd_bus_message_unref(m);

        o.argv = (char **)argv;
        o.kind = ORDER_FEED;
        o.output = output;
        with_bundle.bundle = "/b/1000/ff";
        m = build(&o, &with_bundle);
        assert_command(m, "ExecStart", LAUNCH,
                       (const char *const[]){ LAUNCH, "--output", "logs/418-worker-3-2-n2%", "--",
                                              PRIMUS_LIBEXECDIR "/primus-executor", "--feed", "--", "train",
                                              "--x", "a\nb\\", NULL });
        assert_command(m, "ExecStartPre", PRIMUS_LIBEXECDIR "/primus-executor",
                       (const char *const[]){ PRIMUS_LIBEXECDIR "/primus-executor", "--stage", "/b/1000/ff",
                                              "/work", NULL });
        sd_bus_message_unref(m);
}

static void test_refusals(void **state) {
        static const struct {
                const char *argument, *output, *directory;
        } table[] = { { "\xff\xfe", "", "/data" },
                      { "a", "/x/%z", "/data" },
                      { "a", "/x/%", "/data" },
                      { "a", "", "/\xff" },
                      { "a", "", "/data\nExecStopPost=+/tmp/x" },
                      { "a", "", "/data\\" },
                      { "a", "", "/data " } };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                const char *const argv[] = { "/bin/echo", table[i].argument, NULL };
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
                _cleanup_free_ char *why = NULL;
                struct start_order o = an_order(argv, empty);
                struct unit_context c = here;

                c.directory = table[i].directory;
                o.output = (char *)table[i].output;
                assert_int_equal(unit_build(m, &o, &c, &why), -EINVAL);
                assert_non_null(why);
        }
}

/* What "+" means at the beginning of a command line, systemd would read in this name at its next
 * daemon-reload. */
static void test_prefixes(void **state) {
        static const char *const names[] = { "+sh", "-x", "@x", ":x", "!x", "|x", "+/bin/sh" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const char *const argv[] = { names[i], "-c", "id", NULL };
                struct start_order o = an_order(argv, empty);
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = build(&o, &here);

                assert_command(m, "ExecStart", LAUNCH,
                               (const char *const[]){ LAUNCH, "--", names[i], "-c", "id", NULL });
        }
}

/* Whoever hands it over: no text of a property has what systemd would write as a line of its own. */
static void test_guard(void **state) {
        static const char *const
                bad[] = { "a\nExecStopPost=+/x",
                          "a\r",
                          "a\x01",
                          "a\x7f",
                          "a\\",
                          "a\\\\",
                          " a",
                          "a ",
                          "a\t",
                          "\xff",
                          "a\xc2\x85",
                          "a\xe2\x80\xa8",
                          "a\xe2\x80\xa9" },
                *const good[] = { "", "a", "a b", "a\\b", "$A%h\"'`;#", "\xc3\xa9\xc2\xa0", "\xe2\x80\xa6" };
        const char *const program[] = { "/bin/echo", NULL }, *const relative[] = { "echo", NULL };

        for (size_t i = 0; i < ELEMENTSOF(bad) + ELEMENTSOF(good); i++) {
                bool fine = i >= ELEMENTSOF(bad);
                const char *text = fine ? good[i - ELEMENTSOF(bad)] : bad[i];
                char *list[] = { (char *)"A=1", (char *)text, NULL };
                const char *const head[] = { text, NULL };

                for (unsigned k = 0; k < 6; k++) {
                        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
                        int r = 0;

                        if (k == 3 || k == 5) /* within a property */
                                assert_true(property_open(m, "X", k == 3 ? "(ss)" : "s") >= 0);
                        switch (k) {
                        case 0:
                                r = property_string(m, "Description", text);
                                break;
                        case 1:
                                r = property_strings(m, "Environment", list);
                                break;
                        case 2:
                                r = property_environment_file(m, text);
                                break;
                        case 3:
                                r = property_pair(m, "rw", text);
                                break;
                        case 4: /* the program, of which also a name is none */
                                assert_true(property_exec(m, "ExecStart", head, NULL) < 0);
                                continue;
                        case 5:
                                r = property_text(m, text);
                                break;
                        }
                        assert_int_equal(r < 0 ? r : 0, fine ? 0 : -EBADMSG);
                }
        }
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new(), *n = message_new();
        char *arguments[] = { (char *)"a\nb\x01\\", NULL }, *bytes[] = { (char *)"\xff", NULL };
        assert_true(property_exec(m, "ExecStart", program, arguments) >= 0);
        assert_int_equal(property_exec(n, "ExecStart", program, bytes), -EBADMSG);
        assert_int_equal(property_exec(n, "ExecStart", relative, NULL), -EINVAL);
}

static bool has(char *const *strings, const char *s) {
        for (; *strings; strings++)
                if (strcmp(*strings, s) == 0)
                        return true;
        return false;
}

static void test_environments(void **state) {
        const char *const argv[] = { "/bin/true", NULL };
        const char *const env[] = {
                "A=1",         "PRIMUS_JOB=77",     "SERVICE_RESULT=lie",    "EXIT_STATUS=0",
                "PRIMUS_X=no", "PRIMUS_INPUT=/lie", "PRIMUS_DIRECTORY=/lie", NULL
        };
        const char *const identity[] = { "PRIMUS_X=yes", "PRIMUS_JOB=99", "OTHER=no", NULL };
        struct secret input = { (char *)"input.json", (char *)"{}", 2 };
        struct start_order o = an_order(argv, env);
        struct unit_identity i;
        char **strings;

        o.identity = (char **)identity;
        o.secrets = &input;
        o.n_secrets = 1;
        o.kind = ORDER_FEED;
        o.ack = ACK_EXIT;
        o.pipe_size = 4096;
        assert_int_equal(unit_environment(&o, &here, &strings), 0);
        assert_true(has(strings, "A=1"));
        assert_true(has(strings, "TMPDIR=/work/tmp"));
        assert_true(has(strings, "PRIMUS_WORK=/work"));
        assert_true(has(strings, "PYTHONUNBUFFERED=1"));
        /* Nobody asks it where it is, so no Python is told to answer. */
        assert_null(environment_find(strings, "PYTHONPATH"));
        assert_true(has(strings, "PRIMUS_DIRECTORY=/data")); /* and not the user's word */
        assert_false(has(strings, "PRIMUS_DIRECTORY=/lie"));
        assert_true(has(strings, "PRIMUS_SECRETS_DIR=/run/primus/x/primus-418-worker-3.2.service/secrets"));
        assert_true(
                has(strings, "PRIMUS_INPUT=/run/primus/x/primus-418-worker-3.2.service/secrets/input.json"));
        /* What systemd and agentd own, a user cannot say: primus-exit would believe it. */
        assert_false(has(strings, "PRIMUS_JOB=77") || has(strings, "SERVICE_RESULT=lie") ||
                     has(strings, "EXIT_STATUS=0") || has(strings, "PRIMUS_X=no") ||
                     has(strings, "PRIMUS_INPUT=/lie"));
        strings_free(strings);

        o.extra.stack_signal = 42;
        assert_int_equal(unit_environment(&o, &here, &strings), 0);
        assert_true(has(strings, "PRIMUS_STACK_SIGNAL=42"));
        assert_true(has(strings, "PYTHONPATH=" PRIMUS_LIBEXECDIR "/python"));
        strings_free(strings);
        o.env = (char **)(const char *const[]){ "PYTHONPATH=/mine:/yours", NULL };
        assert_int_equal(unit_environment(&o, &here, &strings), 0);
        assert_true(has(strings, "PYTHONPATH=" PRIMUS_LIBEXECDIR "/python:/mine:/yours"));
        assert_false(has(strings, "PYTHONPATH=/mine:/yours"));
        strings_free(strings);
        o.env = (char **)(const char *const[]){ "PYTHONPATH=/mine", "PRIMUS_STACK_SIGNAL=", NULL };
        assert_int_equal(unit_environment(&o, &here, &strings), 0);
        assert_string_equal(environment_find(strings, "PYTHONPATH"), "/mine"); /* it wants to be left alone */
        strings_free(strings);
        o.env = (char **)env;
        o.extra.stack_signal = 0;

        assert_int_equal(unit_identity(&o, here.node, here.term, &strings), 0);
        assert_true(has(strings, "PRIMUS_X=yes"));
        assert_true(has(strings, "PRIMUS_JOB=418"));
        assert_false(has(strings, "PRIMUS_JOB=99") || has(strings, "OTHER=no") || has(strings, "A=1"));
        assert_int_equal(unit_identity_parse(strings, &i), 0);
        assert_true(executor_id_equal(&i.id, &o.id));
        assert_int_equal(i.uid, 1000);
        assert_int_equal(i.kind, ORDER_FEED);
        assert_int_equal(i.on_partition, ON_PARTITION_STOP);
        assert_int_equal(i.ack, ACK_EXIT);
        assert_int_equal(i.pipe_size, 4096);
        assert_true(i.term == 7 && i.grace_usec == 7000000);
        free(strings[0]); /* PRIMUS_JOB= */
        strings[0] = strdup("PRIMUS_JOB=-1");
        assert_int_equal(unit_identity_parse(strings, &i), -EBADMSG);
        strings_free(strings);
}

/* A session's unit is like its executor's, and says nothing of what is run in it. */
static void test_session(void **state) {
        const struct executor_id id = { .job = 418, .role = "worker", .index = 3, .attempt = 2 };
        char *environment[] = { (char *)"PRIMUS_JOB=418", NULL };
        const struct session_unit unit = { .id = &id,
                                           .session = 7,
                                           .uid = 1000,
                                           .environment = environment,
                                           .no_new_privileges = true,
                                           .memlock = 65536,
                                           .open_files = { 4096, 8192 },
                                           .control = message_other_end };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        const char *name, *mode, *text;

        assert_true(session_unit_build(m, &unit) >= 0);
        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
        assert_true(sd_bus_message_read(m, "ss", &name, &mode) > 0);
        assert_string_equal(name, "primus-session-418-worker-3.2.7.service");
        assert_true(message_find_property(m, "ss", "User", "s"));
        assert_true(sd_bus_message_read(m, "s", &text) > 0);
        assert_string_equal(text, "1000");
        assert_true(message_find_property(m, "ss", "Slice", "s"));
        assert_true(sd_bus_message_read(m, "s", &text) > 0);
        assert_string_equal(text, "primus-418.slice");
        assert_true(message_find_property(m, "ss", "EnvironmentFiles", "a(sb)"));
        assert_true(sd_bus_message_enter_container(m, 'a', "(sb)") > 0);
        assert_true(sd_bus_message_enter_container(m, 'r', "sb") > 0);
        assert_true(sd_bus_message_read(m, "s", &text) > 0);
        assert_string_equal(text, "/run/primus/x/primus-418-worker-3.2.service/env");
        assert_true(message_find_property(m, "ss", "StandardInputFileDescriptor", "h"));
        assert_true(message_find_property(m, "ss", "NoNewPrivileges", "b"));
        assert_true(message_find_property(m, "ss", "LimitMEMLOCK", "t"));
        message_assert_number(m, "ss", "LimitNOFILE", 8192);
        message_assert_number(m, "ss", "LimitNOFILESoft", 4096);
        assert_text(m, "WorkingDirectory", "/");
        assert_false(message_find_property(m, "ss", "InaccessiblePaths", "as"));
}

/* The ways to who would start something outside of the unit, for executors and for sessions in them. */
static void test_hidden(void **state) {
        const char *const argv[] = { "/bin/true", NULL };
        const struct start_order o = an_order(argv, empty);
        const struct executor_id id = { .job = 418, .role = "worker", .index = 3, .attempt = 2 };
        struct session_unit unit = {
                .id = &id, .uid = 1000, .hide_managers = true, .control = message_other_end
        };
        struct unit_context c = here;

        for (unsigned i = 0; i < 3; i++) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
                _cleanup_(strings_free_p) char **paths = NULL;

                c.hide_managers = i == 1;
                if (i < 2)
                        m = build(&o, &c);
                else {
                        m = message_new();
                        assert_true(session_unit_build(m, &unit) >= 0);
                        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
                }
                assert_int_equal(message_find_property(m, "ss", "InaccessiblePaths", "as"), i > 0);
                if (i == 0)
                        continue;
                assert_true(sd_bus_message_read_strv(m, &paths) > 0);
                assert_string_equal(paths[0], "-/run/user");
                assert_string_equal(paths[1], "-/run/dbus");
        }
}

/* A process of the user's in no job's slice: all that bounds it is here. */
static void test_reader_of_artifacts(void **state) {
        const struct get_unit unit = {
                .job = 418, .uid = 1000, .session = 7, .directory = "/a", .control = message_other_end
        };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();

        assert_true(get_unit_build(m, &unit) >= 0);
        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
        assert_text(m, "User", "1000");
        message_assert_number(m, "ss", "CPUWeight", 10);
        message_assert_number(m, "ss", "CPUQuotaPerSecUSec", 1000000);
        message_assert_number(m, "ss", "MemoryMax", 256 << 20);
        message_assert_number(m, "ss", "TasksMax", 4);
        message_assert_number(m, "ss", "RuntimeMaxUSec", UINT64_C(12) * 3600 * 1000000);
        message_assert_number(m, "ss", "TimeoutStopUSec", 5000000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_properties),   cmocka_unit_test(test_delegate),
                cmocka_unit_test(test_short_grace),  cmocka_unit_test(test_watchdog),
                cmocka_unit_test(test_commands),     cmocka_unit_test(test_prefixes),
                cmocka_unit_test(test_guard),        cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_environments), cmocka_unit_test(test_session),
                cmocka_unit_test(test_hidden),       cmocka_unit_test(test_reader_of_artifacts),
        };
        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
