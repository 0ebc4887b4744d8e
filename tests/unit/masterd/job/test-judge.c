/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/judge.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/utf8.h"
#include "tests/kit/json.h"

#define MIB (UINT64_C(1) << 20)

static struct job *job_of(const char *job_keys, const char *role_keys) {
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        struct job_spec *spec;
        struct job *j = NULL;
        char text[1024];

        snprintf(text, sizeof(text), "{%s 'role': [{'roleName': 'w', 'memoryMb': 100, 'command': 'x'%s}]}",
                 job_keys, role_keys);
        if (spec_parse(json_text(text), strlen(text), &spec, &d) < 0)
                fail_msg("%s: %s", text, d.items[0].message);
        assert_int_equal(job_new(1, (sd_id128_t){ .qwords = { 1 } }, 1000, spec, &j), 0);
        return j;
}

enum end {
        END_STATUS,
        END_SIGNAL,
        END_OOM,
        END_TIMEOUT,
        END_PROTOCOL,
        END_WATCHDOG
};

static uint64_t ran;
static struct judging known;

/* The event that comes out; the fate is the executor's. */
static enum executor_event judged(struct executor *e, enum end end, int status, char *text) {
        struct exit_report x = { .status = status,
                                 .stop_requested = e->orders.stopped,
                                 .started_real = 1000,
                                 .ended_real = 1000 + ran };
        static const char *const results[] = { "exit-code", "signal",   "oom-kill",
                                               "timeout",   "protocol", "watchdog" };
        enum executor_event event;

        snprintf(x.result, sizeof(x.result), "%s",
                 end == END_STATUS && status == 0 ? "success" : results[end]);
        snprintf(x.code, sizeof(x.code), "%s",
                 end == END_STATUS || end == END_PROTOCOL ? "exited" : "killed");
        event = outcome_of(&x, executor_memory(e), 0, text);
        judge_exit(e, &x, &known, &event, text);
        return event;
}

static void test_rules(void **state) {
        static const char *const job_rules =
                "'exitCodes': [{'codes': '10-13', 'action': 'fail'}, {'codes': 'oom', "
                "'action': 'ignore'}, {'codes': 'SIGABRT', 'action': 'fail'}, "
                "{'codes': 'watchdog', 'action': 'restart'}],";
        static const char *const role_rules =
                ", 'exitCodes': [{'codes': '10', 'action': 'success'}, {'codes': '11,SIGBUS', "
                "'action': 'blame'}, {'codes': '20', 'action': 'restart'}, {'codes': '21', "
                "'action': 'requeue'}]";
        static const struct {
                enum end end;
                int status;
                bool stopped;
                enum executor_event event;
                enum fate fate;
        } table[] = {
                { END_STATUS, 0, false, EXECUTOR_EVENT_SUCCEEDED, FATE_NONE },
                { END_STATUS, 1, false, EXECUTOR_EVENT_FAILED, FATE_NONE },
                { END_STATUS, 10, false, EXECUTOR_EVENT_SUCCEEDED,
                  FATE_SUCCESS }, /* the role's before the job's */
                { END_STATUS, 12, false, EXECUTOR_EVENT_FAILED, FATE_FAIL },
                { END_STATUS, 11, false, EXECUTOR_EVENT_FAILED, FATE_BLAME },
                { END_SIGNAL, SIGBUS, false, EXECUTOR_EVENT_FAILED, FATE_BLAME },
                { END_STATUS, 128 + SIGBUS, false, EXECUTOR_EVENT_FAILED, FATE_BLAME },
                { END_STATUS, 20, false, EXECUTOR_EVENT_FAILED, FATE_RESTART },
                { END_STATUS, 21, false, EXECUTOR_EVENT_KILLED, FATE_REQUEUE },
                { END_STATUS, 75, false, EXECUTOR_EVENT_KILLED, FATE_REQUEUE }, /* without a rule */
                { END_SIGNAL, 75, false, EXECUTOR_EVENT_FAILED, FATE_NONE },
                { END_OOM, SIGKILL, false, EXECUTOR_EVENT_KILLED, FATE_IGNORE },
                { END_TIMEOUT, SIGTERM, false, EXECUTOR_EVENT_FAILED, FATE_NONE },
                { END_WATCHDOG, SIGABRT, false, EXECUTOR_EVENT_FAILED, FATE_RESTART },
                { END_SIGNAL, SIGABRT, false, EXECUTOR_EVENT_FAILED, FATE_FAIL },
                { END_WATCHDOG, SIGABRT, true, EXECUTOR_EVENT_KILLED, FATE_NONE },
                /* A stop is a stop. */
                { END_STATUS, 12, true, EXECUTOR_EVENT_KILLED, FATE_NONE },
                { END_STATUS, 75, true, EXECUTOR_EVENT_KILLED, FATE_NONE },
        };
        char text[OUTCOME_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct job *j = job_of(job_rules, role_rules);
                struct executor *e = j->executors[0];
                e->state = EXECUTOR_RUNNING;
                e->orders.stopped = table[i].stopped;
                if (judged(e, table[i].end, table[i].status, text) != table[i].event ||
                    e->end.fate != table[i].fate)
                        fail_msg("%zu: %s, fate %d", i, text, e->end.fate);
                job_free(j);
        }
}

/* 78 is of a trial alone, and a rule goes before it. */
static void test_invalid_trial(void **state) {
        const struct {
                const char *rules;
                enum end end;
                bool trial, stopped;
                enum executor_event event;
                enum fate fate;
        } table[] = {
                { "", END_STATUS, true, false, EXECUTOR_EVENT_KILLED, FATE_INVALID },
                { "", END_STATUS, false, false, EXECUTOR_EVENT_FAILED, FATE_NONE },
                { "", END_SIGNAL, true, false, EXECUTOR_EVENT_FAILED, FATE_NONE },
                { "", END_STATUS, true, true, EXECUTOR_EVENT_KILLED, FATE_NONE },
                { "'exitCodes': [{'codes': '78', 'action': 'fail'}],", END_STATUS, true, false,
                  EXECUTOR_EVENT_FAILED, FATE_FAIL },
        };
        char text[OUTCOME_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct job *j = job_of(table[i].rules, "");
                struct executor *e = j->executors[0];

                known = (struct judging){ .trial = table[i].trial };
                e->state = EXECUTOR_RUNNING;
                e->orders.stopped = table[i].stopped;
                if (judged(e, table[i].end, 78, text) != table[i].event || e->end.fate != table[i].fate)
                        fail_msg("%zu: %s, fate %d", i, text, e->end.fate);
                job_free(j);
        }
        known = (struct judging){};
}

/* What is looked for in the log of an end with that status. */
static size_t asked(struct executor *e, enum end end, int status, const char **ret) {
        struct exit_report x = { .status = status };
        enum executor_event event;
        char text[OUTCOME_TEXT_MAX];

        strcpy(x.result, end == END_OOM ? "oom-kill" : status ? "exit-code" : "success");
        strcpy(x.code, "exited");
        event = outcome_of(&x, 0, 0, text);
        return judge_questions(e, &x, event, &known, ret);
}

static void test_output(void **state) {
        static const char *const job_rules =
                "'exitCodes': [{'output': 'NCCL.*closed', 'codes': '1-99', 'action': 'blame'}, "
                "{'output': 'step', 'action': 'note'}, {'codes': '7', 'action': 'fail'}, "
                "{'output': 'behind', 'action': 'restart'}],";
        static const char *const role_rules = ", 'exitCodes': [{'output': 'bad input', 'action': 'fail'}]";
        const struct exit_rule_spec site[] = { { .output = (char *)"ECC", .action = EXIT_ACTION_BLAME } };
        const char *patterns[FIND_PATTERNS_MAX];
        struct found_line lines[FIND_PATTERNS_MAX] = {};
        struct job *j = job_of(job_rules, role_rules);
        struct executor *e = j->executors[0];
        char text[OUTCOME_TEXT_MAX];

        ran = 0;
        e->state = EXECUTOR_RUNNING;
        known = (struct judging){ .site = site, .n_site = 1 };
        /* The role's, the job's, the site's, as far as their codes fit. */
        assert_int_equal(asked(e, END_STATUS, 100, patterns), 4);
        assert_string_equal(patterns[0], "bad input");
        assert_string_equal(patterns[1], "step");
        assert_string_equal(patterns[2], "behind");
        assert_string_equal(patterns[3], "ECC");
        assert_int_equal(asked(e, END_OOM, 0, patterns), 4);
        /* What is behind a rule that fits in any case does not count. */
        assert_int_equal(asked(e, END_STATUS, 7, patterns), 3);
        assert_string_equal(patterns[1], "NCCL.*closed");
        assert_int_equal(asked(e, END_STATUS, 0, patterns), 0);
        e->orders.stopped = true;
        assert_int_equal(asked(e, END_STATUS, 1, patterns), 0);
        e->orders.stopped = false;

        known.n = asked(e, END_STATUS, 1, patterns);
        assert_int_equal(known.n, 5);
        known.patterns = patterns;
        /* Its log could not be read: as without those rules, and that is said. */
        assert_int_equal(judged(e, END_STATUS, 1, text), EXECUTOR_EVENT_FAILED);
        assert_int_equal(e->end.fate, FATE_NONE);
        assert_string_equal(text, "exit status 1; its log could not be searched");
        known.lines = lines;
        assert_int_equal(judged(e, END_STATUS, 1, text), EXECUTOR_EVENT_FAILED);
        assert_int_equal(e->end.fate, FATE_NONE);
        assert_string_equal(text, "exit status 1");
        /* A note is no decision. */
        lines[2] = (struct found_line){ .found = true, .text = "step 5" };
        assert_int_equal(judged(e, END_STATUS, 1, text), EXECUTOR_EVENT_FAILED);
        assert_int_equal(e->end.fate, FATE_NONE);
        assert_string_equal(text, "exit status 1; printed 'step 5'");
        lines[4] = (struct found_line){ .found = true, .text = "ECC error" };
        assert_int_equal(judged(e, END_STATUS, 1, text), EXECUTOR_EVENT_FAILED);
        assert_int_equal(e->end.fate, FATE_BLAME);
        assert_string_equal(text, "exit status 1; printed 'step 5'; printed 'ECC error'; counts against the "
                                  "host (masterd.conf: blame)");
        /* Both have to fit. */
        lines[1] = (struct found_line){ .found = true, .text = "NCCL closed" };
        e->end.fate = FATE_NONE;
        assert_int_equal(judged(e, END_STATUS, 1, text), EXECUTOR_EVENT_FAILED);
        assert_int_equal(e->end.fate, FATE_BLAME);
        assert_non_null(strstr(text, "printed 'NCCL closed'; counts against the host (exitCodes: blame)"));
        lines[0] = (struct found_line){ .found = true, .text = "bad input" };
        assert_int_equal(judged(e, END_STATUS, 100, text), EXECUTOR_EVENT_FAILED);
        assert_int_equal(e->end.fate, FATE_FAIL);
        job_free(j);
        known = (struct judging){};
}

/* Lines as long as they may be: what is said is cut between characters. */
static void test_long_lines(void **state) {
        static const char *const rules =
                "'exitCodes': [{'output': 'a', 'action': 'note'}, {'output': 'b', 'action': 'note'}, "
                "{'output': 'c', 'action': 'restart'}],";
        const char *patterns[FIND_PATTERNS_MAX];
        struct found_line lines[3] = {};
        struct job *j = job_of(rules, "");
        struct executor *e = j->executors[0];
        char text[OUTCOME_TEXT_MAX];

        e->state = EXECUTOR_RUNNING;
        known.n = asked(e, END_STATUS, 1, patterns);
        assert_int_equal(known.n, 3);
        known.patterns = patterns;
        known.lines = lines;
        for (size_t i = 0; i < 3; i++) {
                lines[i].found = true;
                lines[i].text[0] = (char)('a' + i);
                for (size_t k = 1; k + 1 < FIND_LINE_MAX; k += 2)
                        memcpy(lines[i].text + k, "\xc3\xa4", 2);
        }
        assert_int_equal(judged(e, END_STATUS, 1, text), EXECUTOR_EVENT_FAILED);
        assert_int_equal(e->end.fate, FATE_RESTART);
        assert_true(utf8_valid(text, strlen(text)));
        assert_in_range(strlen(text), OUTCOME_TEXT_MAX - 3, OUTCOME_TEXT_MAX - 1);
        job_free(j);
        known = (struct judging){};
}

static void test_memory(void **state) {
        struct elastic_spec spec = { .ratio_milli = 1500, .size = 10 * MIB, .max = 400 * MIB };
        char text[OUTCOME_TEXT_MAX];
        struct job *j = job_of("", ", 'scheduleStrategy': {'elasticResource': {'extendMemRatio': 1.5, "
                                   "'maxMemSize': 160}}");
        struct executor *e = j->executors[0];

        assert_int_equal(judge_more_memory(&spec, 100 * MIB), 100 * MIB / 1000 * 1500);
        assert_int_equal(judge_more_memory(&spec, 16 * MIB), 26 * MIB); /* the size is more */
        assert_int_equal(judge_more_memory(&spec, 300 * MIB), 400 * MIB);
        assert_int_equal(judge_more_memory(&spec, 400 * MIB), 0);
        spec.min = 200 * MIB;
        assert_int_equal(judge_more_memory(&spec, 16 * MIB), 200 * MIB);
        assert_int_equal(judge_more_memory(&(struct elastic_spec){}, 100 * MIB), 0);

        e->state = EXECUTOR_RUNNING;
        assert_int_equal(judged(e, END_OOM, SIGKILL, text), EXECUTOR_EVENT_FAILED);
        assert_int_equal(e->end.fate, FATE_GROWN);
        assert_non_null(strstr(text, "comes back with 150M"));
        e->memory = 160 * MIB;
        e->end.fate = FATE_NONE;
        assert_int_equal(judged(e, END_OOM, SIGKILL, text), EXECUTOR_EVENT_FAILED);
        assert_int_equal(e->end.fate, FATE_NONE); /* now it is a failure */
        /* By SIGKILL alone it was not the memory. */
        e->memory = 0;
        assert_int_equal(judged(e, END_SIGNAL, SIGKILL, text), EXECUTOR_EVENT_FAILED);
        assert_int_equal(e->end.fate, FATE_NONE);
        job_free(j);
}

static void test_watchdog(void **state) {
        struct job *j = job_of("", ", 'watchdog': '1min 30s'");
        struct executor *e = j->executors[0];
        char text[OUTCOME_TEXT_MAX];

        e->state = EXECUTOR_RUNNING;
        assert_int_equal(judged(e, END_WATCHDOG, SIGABRT, text), EXECUTOR_EVENT_FAILED);
        assert_int_equal(e->end.fate, FATE_NONE); /* it counts */
        assert_string_equal(text, "its watchdog was not fed for 1min 30s (watchdog)");
        job_free(j);
}

static void test_ready(void **state) {
        struct job *j = job_of("", ", 'timeLimit': 60, 'ready': {'notify': true, 'timeout': '30s'}");
        struct executor *e = j->executors[0];
        char text[OUTCOME_TEXT_MAX];

        e->state = EXECUTOR_RUNNING;
        ran = 30 * USEC_PER_SEC;
        assert_int_equal(judged(e, END_TIMEOUT, SIGTERM, text), EXECUTOR_EVENT_FAILED);
        assert_string_equal(text, "not ready within 30s: no READY=1 (ready: notify)");
        assert_int_equal(judged(e, END_PROTOCOL, 0, text), EXECUTOR_EVENT_FAILED);
        assert_string_equal(text, "exited before it said READY=1 (ready: notify)");
        ran = 65 * USEC_PER_SEC; /* its time limit */
        assert_int_equal(judged(e, END_TIMEOUT, SIGTERM, text), EXECUTOR_EVENT_FAILED);
        assert_null(strstr(text, "ready"));

        /* One that was stopped because its agent said so. */
        e->orders.stopped = true;
        e->end.fate = FATE_NOT_READY;
        (void)text_set(&e->reason, "nobody listens on port 30001");
        assert_int_equal(judged(e, END_SIGNAL, SIGTERM, text), EXECUTOR_EVENT_FAILED);
        assert_string_equal(text, "nobody listens on port 30001");
        e->end.fate = FATE_SCOPE;
        assert_int_equal(judged(e, END_STATUS, 1, text), EXECUTOR_EVENT_KILLED);
        assert_int_equal(judged(e, END_STATUS, 0, text), EXECUTOR_EVENT_KILLED);
        assert_int_equal(e->end.fate, FATE_SCOPE);
        job_free(j);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rules),      cmocka_unit_test(test_output),
                cmocka_unit_test(test_long_lines), cmocka_unit_test(test_memory),
                cmocka_unit_test(test_watchdog),   cmocka_unit_test(test_invalid_trial),
                cmocka_unit_test(test_ready)
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
