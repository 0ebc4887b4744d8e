/* SPDX-License-Identifier: Apache-2.0 */
/* What a searcher says and hears, and what of it becomes events. */
#include "masterd/job/trial-talk.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/job/array.h"
#include "tests/kit/json.h"

static struct trials *searched(uint32_t max) {
        struct search_spec s = { .method = SEARCH_EXTERNAL,
                                 .metric = (char *)(uintptr_t) "loss",
                                 .smaller = true,
                                 .max_trials = max,
                                 .searcher = true };
        struct trials *t;

        assert_int_equal(trials_new(&s, &t), 0);
        return t;
}

static int follow(struct trials *t, struct trial_event e) {
        struct search_reason why;

        return trials_follow(t, &e, &why);
}

static void test_read(void **state) {
        static const struct {
                const char *text, *says;
        } refused[] = {
                { "", "a question is a JSON object" },
                { "[]", "a question is a JSON object" },
                { "{'op':'hello','op':'hello'}", "a question is a JSON object" },
                { "{}", "op must be hello, events, create or stop" },
                { "{'op':7}", "op must be" },
                { "{'op':'hello','after':1}", "hello has no " },
                { "{'op':'events'}", "after must be an integer of 0 to" },
                { "{'op':'events','after':-1}", "after must be" },
                { "{'op':'events','after':1.5}", "after must be" },
                { "{'op':'stop','trial':300001}", "trial must be an integer of 0 to 300000" },
                { "{'op':'create','trial':1}", "params: must be an object with at least one parameter" },
                { "{'op':'create','trial':1,'params':{'a=b':1}}", "params: " },
        };
        char why[TALK_WHY_MAX];
        struct talk t;

        for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
                assert_int_equal(talk_read(json_text(refused[i].text), &t, why), -EINVAL);
                if (!strstr(why, refused[i].says))
                        fail_msg("%s: %s", refused[i].text, why);
        }
        assert_int_equal(talk_read(json_text("{'op':'hello'}"), &t, why), 0);
        assert_int_equal(t.op, TALK_HELLO);
        assert_int_equal(talk_read(json_text("{'op':'events','after':17}"), &t, why), 0);
        assert_true(t.op == TALK_EVENTS && t.after == 17);
        assert_int_equal(talk_read(json_text("{'op':'stop','trial':3}"), &t, why), 0);
        assert_true(t.op == TALK_STOP && t.trial == 3);
        /* The same parameters are the same text. */
        assert_int_equal(
                talk_read(json_text("{'op':'create','trial':0,'params':{'b': 1, 'a': {'c':[2]}}}"), &t, why),
                0);
        assert_string_equal(t.given, json_text("{'a':{'c':[2]},'b':1}"));
        talk_done(&t);
}

static void test_created(void **state) {
        _cleanup_(trials_free_p) struct trials *t = searched(2);
        _cleanup_free_ char *one = NULL, *two = NULL, *given = NULL;

        assert_false(search_wants(t->search));
        assert_true(search_to_come(t->search));
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_CREATED }), -EINVAL);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_CREATED, .given = "{}" }), 0);
        assert_int_equal(
                follow(t, (struct trial_event){ .kind = TRIAL_CREATED, .given = json_text("{'x':1}") }), 0);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_CREATED, .given = "{}" }), -EAGAIN);
        assert_int_equal(t->n_given, 2);
        assert_int_equal(trials_given(t, 1, &given), 0);
        assert_string_equal(given, json_text("{'x':1}"));
        /* An invalid one makes room for another. */
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_EXITED, .exit = SEARCH_INVALID }), 0);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_CREATED, .given = "{}" }), 0);
        assert_int_equal(talk_created(2, NULL, &one), 0);
        assert_string_equal(one, json_text("{'trial':2}"));
        assert_int_equal(talk_created(3, "enough", &two), 0);
        assert_string_equal(two, json_text("{'full':'enough'}"));
}

/* What is too much for one trial, and for all of them. */
static void test_too_much(void **state) {
        _cleanup_(trials_free_p) struct trials *t = searched(100000);
        _cleanup_free_ char *text = malloc(TRIAL_GIVEN_MAX + 2);
        size_t before = trials_bytes(t), n = 0;
        int r;

        memset(text, 'x', TRIAL_GIVEN_MAX + 1);
        text[TRIAL_GIVEN_MAX + 1] = 0;
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_CREATED, .given = text }), -E2BIG);
        text[TRIAL_GIVEN_MAX] = 0;
        while ((r = follow(t, (struct trial_event){ .kind = TRIAL_CREATED, .given = text })) == 0)
                n++;
        assert_int_equal(r, -E2BIG);
        assert_in_range(n, TRIALS_GIVEN_MAX / TRIAL_GIVEN_MAX - 1, TRIALS_GIVEN_MAX / TRIAL_GIVEN_MAX);
        assert_true(trials_bytes(t) - before > n * TRIAL_GIVEN_MAX);
        assert_int_equal(search_n_trials(t->search), n);
}

static void test_events(void **state) {
        _cleanup_(trials_free_p) struct trials *t = searched(10);
        _cleanup_free_ char *all = NULL, *rest = NULL, *none = NULL;

        assert_int_equal(
                follow(t, (struct trial_event){ .kind = TRIAL_CREATED, .given = json_text("{'x':1}") }), 0);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_VALIDATED, .time = 1, .metric = 0.5 }),
                         0);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_VALIDATED, .time = 1, .metric = 0.4 }),
                         SEARCH_PAST); /* no event */
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_VALIDATED, .time = 2, .metric = NAN }),
                         0);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_STOPPED, .trial = 4 }), -ENOENT);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_STOPPED }), 0);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_STOPPED }), -EALREADY);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_EXITED, .exit = SEARCH_FAILED }), 0);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_CLOSED, .exit = SEARCH_FAILED }), 0);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_CLOSED }), -EALREADY);
        assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_CREATED, .given = "{}" }), -EAGAIN);
        assert_true(t->failed && search_over(t->search));
        assert_int_equal(talk_events(t, 0, &all), 0);
        assert_string_equal(all, json_text("{'events':["
                                           "{'seq':1,'event':'created','trial':0,'params':{'x':1}},"
                                           "{'seq':2,'event':'result','trial':0,'step':1,'metric':0.5,"
                                           "'stops':false},"
                                           "{'seq':3,'event':'result','trial':0,'step':2,'metric':null,"
                                           "'stops':false},"
                                           "{'seq':4,'event':'stopped','trial':0},"
                                           "{'seq':5,'event':'exited','trial':0,'state':'succeeded'},"
                                           "{'seq':6,'event':'closed','trial':0,'state':'failed'}]}"));
        assert_int_equal(talk_events(t, 5, &rest), 0);
        assert_string_equal(rest,
                            json_text("{'events':[{'seq':6,'event':'closed','trial':0,'state':'failed'}]}"));
        assert_int_equal(talk_events(t, UINT64_MAX, &none), 0);
        assert_string_equal(none, json_text("{'events':[]}"));
}

/* However much there is, an answer fits into a packet; what is left comes with the next. */
static void test_bounded(void **state) {
        _cleanup_(trials_free_p) struct trials *t = searched(2000);
        _cleanup_free_ char *text = malloc(TRIAL_GIVEN_MAX + 1);
        uint64_t after = 0, n;

        for (uint32_t i = 0; i < 40; i++) {
                snprintf(text, TRIAL_GIVEN_MAX, "[%0*u]", i % 2 ? 16000 : 10, i + 1000000000u);
                assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_CREATED, .given = text }), 0);
        }
        for (uint64_t i = 1; i <= 1000; i++)
                assert_int_equal(follow(t, (struct trial_event){ .kind = TRIAL_VALIDATED,
                                                                 .trial = 39,
                                                                 .time = (UINT64_C(1) << 52) + i,
                                                                 .metric = -1.2345678901234567e-300 }),
                                 0);
        for (; after < t->n_events; after += n) {
                _cleanup_free_ char *answer = NULL;
                const char *at;

                assert_int_equal(talk_events(t, after, &answer), 0);
                assert_in_range(strlen(answer), 20, TALK_TEXT_MAX);
                for (n = 0, at = answer; (at = strstr(at, "seq")); at++)
                        n++;
                assert_in_range(n, 1, 200);
        }
        assert_int_equal(after, 1040);
}

static void test_hello(void **state) {
        struct search_spec s = { .method = SEARCH_EXTERNAL,
                                 .metric = (char *)(uintptr_t) "loss",
                                 .space = (char *)(uintptr_t)json_text("{'x':{'type':'const','val':1}}"),
                                 .max_trials = 5,
                                 .max_concurrent = 2,
                                 .seed = 9,
                                 .searcher = true };
        _cleanup_(trials_free_p) struct trials *t = NULL;
        _cleanup_free_ char *answer = NULL;

        assert_int_equal(trials_new(&s, &t), 0);
        assert_int_equal(talk_hello(t, &s, &answer), 0);
        assert_string_equal(answer, json_text("{'metric':'loss','smaller':false,'maxTrials':5,'maxTime':0,"
                                              "'maxConcurrent':2,'seed':9,'events':0,"
                                              "'space':{'x':{'type':'const','val':1}}}"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_read),     cmocka_unit_test(test_created),
                cmocka_unit_test(test_too_much), cmocka_unit_test(test_events),
                cmocka_unit_test(test_bounded),  cmocka_unit_test(test_hello),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
