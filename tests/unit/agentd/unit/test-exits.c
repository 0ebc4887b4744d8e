/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/unit/exits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/file.h"

#define IDENTITY "JOB_UID=000102030405060708090a0b0c0d0e0f\nJOB=418\nROLE=worker\nINDEX=3\nATTEMPT=2\n"
#define UNIT "primus-418-worker-3.2.service"

static char root[] = "/tmp/primus-exits-XXXXXX";

static int setup(void **state) {
        return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state) {
        return remove_tree(root);
}

static int parse(const char *text, struct exit_report *ret) {
        _cleanup_free_ char *copy = strdup(text);

        return exit_record_parse(copy, ret);
}

static void test_parse(void **state) {
        struct exit_report e;

        assert_int_equal(parse(IDENTITY "RESULT=oom-kill\nCODE=killed\nSTATUS=KILL\nSTARTED=5\nENDED="
                                        "9\nMEMORY_PEAK=4096\nOOM_KILLS=1\n"
                                        "STOP=order\nFUTURE=x\n",
                               &e),
                         0);
        assert_int_equal(e.id.job, 418);
        assert_string_equal(e.id.role, "worker");
        assert_int_equal(e.id.index, 3);
        assert_int_equal(e.id.attempt, 2);
        assert_int_equal(e.id.job_uid.bytes[15], 0x0f);
        assert_string_equal(e.result, "oom-kill");
        assert_int_equal(e.status, 9);
        assert_true(e.stop_requested && !e.stop_local);
        assert_true(e.started_real == 5 && e.ended_real == 9 && e.memory_peak == 4096 && e.oom_kills == 1);
        assert_true(e.cpu_usec == UINT64_MAX);
        exit_report_done(&e);
        assert_int_equal(parse(IDENTITY "CODE=exited\nSTATUS=3\nSTOP=local\n", &e), 0);
        assert_int_equal(e.status, 3);
        assert_true(e.stop_local && !e.stop_requested);
        assert_string_equal(e.result, "no-record"); /* what masterd can be told */
        exit_report_done(&e);
        assert_int_equal(parse(IDENTITY "CODE=killed\nSTATUS=RTMIN+3\n", &e), 0);
        exit_report_done(&e);
}

static void test_refuse(void **state) {
        static const char *const table[] = {
                "",
                "no lines",
                IDENTITY "garbage\n",
                IDENTITY "STATUS=NOSUCHSIGNAL\n",
                IDENTITY "STATUS=-1\n",
                IDENTITY "STATUS=256\n",
                IDENTITY "ENDED=1e9\n",
                IDENTITY "ROLE=a-b\n",
                IDENTITY "ROLE=\n",
                IDENTITY "ATTEMPT=0\n",
                IDENTITY "INDEX=-1\n",
                IDENTITY "JOB_UID=xyz\n",
                IDENTITY "JOB_UID=00000000000000000000000000000000\n",
                IDENTITY "JOB=0\n",
                IDENTITY "RESULT=0123456789012345678901234567890123456789\n",
                "JOB=418\nROLE=worker\nINDEX=3\nATTEMPT=2\n",
        };
        struct exit_report e;

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                assert_int_equal(parse(table[i], &e), -EBADMSG);
}

static unsigned seen;

static void on_exit_record(const char *unit, struct exit_report *report, void *userdata) {
        assert_string_equal(unit, UNIT);
        assert_int_equal(report->id.job, 418);
        seen++;
}

static void write_record(const char *name, const char *text) {
        _cleanup_free_ char *path = NULL, *temporary = NULL;

        assert_true(asprintf(&path, "%s" EXITS_DIR "/%s", root, name) >= 0);
        assert_true(asprintf(&temporary, "%s" EXITS_DIR "/.%s.tmp", root, name) >= 0);
        assert_int_equal(write_file_atomic(temporary, text, strlen(text), 0600, false), 0);
        assert_int_equal(rename(temporary, path), 0);
}

static void test_watch(void **state) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(exits_free_p) struct exits *e = NULL;
        _cleanup_free_ char *directory = NULL, *path = NULL;
        struct exit_report report;

        assert_true(sd_event_new(&event) >= 0);
        assert_true(asprintf(&directory, "%s" EXITS_DIR, root) >= 0);
        assert_int_equal(make_directories(directory, 0755), 0);
        assert_true(asprintf(&path, "%s/" UNIT, directory) >= 0);
        assert_int_equal(exits_new(event, root, on_exit_record, NULL, &e), 0);
        assert_false(exits_present(e, UNIT));
        write_record("primus-1-other-0.1.service", IDENTITY); /* not its name */
        write_record("primus-2-other-0.1.service", "nonsense");
        write_record(UNIT, IDENTITY "RESULT=success\n");
        while (seen == 0)
                assert_true(sd_event_run(event, 5000000) > 0);
        assert_true(exits_present(e, UNIT));
        assert_int_equal(exits_scan(e), 0);
        assert_int_equal(seen, 2);
        assert_int_equal(exits_read(e, UNIT, &report), 0);
        exit_report_done(&report);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(exits_read(e, UNIT, &report), -ENOENT);
        assert_int_equal(exits_read(e, "primus-1-other-0.1.service", &report), -EBADMSG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_refuse),
                cmocka_unit_test(test_watch),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
