/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the user database, which is that of the machine the test runs on: of it, root alone is relied upon.
 */
#include "agentd/host/serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NAMES(...) ((char **)(const char *[]){ __VA_ARGS__, NULL })
#define SOMEBODY 1234567u

struct state {
        sd_event *event;
        struct serving *serving;
        unsigned changed, answers, served;
        char why[SERVE_WHY_MAX];
};

static void on_changed(void *userdata) {
        ((struct state *)userdata)->changed++;
}

static void on_answer(const char *why, void *userdata) {
        struct state *s = userdata;

        s->answers++;
        s->served += !why;
        snprintf(s->why, sizeof(s->why), "%s", why ? why : "");
}

static void begin(struct state *s, const struct serve_policy *p) {
        *s = (struct state){};
        assert_true(sd_event_new(&s->event) >= 0);
        assert_int_equal(serving_new(s->event, p, "n1", on_changed, s, &s->serving), 0);
}

static void run_until(struct state *s, const unsigned *count, unsigned n) {
        while (*count < n)
                assert_true(sd_event_run(s->event, UINT64_C(20000000)) > 0);
}

static void end(struct state *s) {
        serving_free(s->serving);
        sd_event_unref(s->event);
}

/* Numbers: at once, and nothing is asked. */
static void test_numbers(void **state) {
        const struct serve_policy p = { .min_uid = 1000,
                                        .allow_users = NAMES("1005", "1006"),
                                        .deny_users = NAMES("1006") };
        struct serves_info info = {};
        struct state s;

        begin(&s, &p);
        assert_true(serving_settled(s.serving));
        serving_ask(s.serving, 1005, on_answer, &s);
        assert_true(s.answers == 1 && s.served == 1);
        serving_ask(s.serving, 1006, on_answer, &s);
        serving_ask(s.serving, 1000, on_answer, &s);
        serving_ask(s.serving, 33, on_answer, &s);
        assert_true(s.answers == 4 && s.served == 1 && s.changed == 0);
        assert_int_equal(serving_describe(s.serving, &info), 0);
        assert_true(info.known && info.listed && !info.groups && info.min_uid == 1000);
        assert_true(info.n_allow == 2 && info.allow[0] == 1005 && info.n_deny == 1 && info.deny[0] == 1006);
        free(info.allow);
        free(info.deny);
        end(&s);
}

static void test_names(void **state) {
        const struct serve_policy p = { .min_uid = 1000,
                                        .allow_users = NAMES("root", "1234568"),
                                        .deny_users = NAMES("root") };
        struct serves_info info = {};
        char buf[SERVE_WHY_MAX];
        struct state s;

        begin(&s, &p);
        assert_false(serving_settled(s.serving));
        assert_null(serving_known(s.serving, SOMEBODY, buf)); /* nobody has asked */
        serving_ask(s.serving, SOMEBODY, on_answer, &s);
        serving_ask(s.serving, SOMEBODY, on_answer, &s); /* the same question */
        assert_int_equal(s.answers, 0);
        run_until(&s, &s.answers, 2);
        assert_true(s.served == 0 && strstr(s.why, "do not have that user"));
        assert_non_null(serving_known(s.serving, SOMEBODY, buf));
        serving_ask(s.serving, SOMEBODY, on_answer, &s); /* remembered */
        assert_int_equal(s.answers, 3);
        serving_ask(s.serving, SOMEBODY + 1, on_answer, &s);
        run_until(&s, &s.answers, 4);
        assert_int_equal(s.served, 1);
        run_until(&s, &s.changed, 1);
        assert_true(serving_settled(s.serving));
        assert_int_equal(serving_describe(s.serving, &info), 0);
        assert_true(info.n_allow == 2 && info.allow[0] == 0 && info.n_deny == 1 && info.deny[0] == 0);
        free(info.allow);
        free(info.deny);
        serving_ask(s.serving, 33, on_answer, &s); /* no list changes that */
        assert_int_equal(s.answers, 5);
        end(&s);
}

/* Who waits is answered, and more than are remembered are, too. */
static void test_many(void **state) {
        const struct serve_policy p = { .min_uid = 1000, .deny_users = NAMES("root") };
        struct state s;

        begin(&s, &p);
        for (uint32_t i = 0; i < 1500; i++) {
                serving_ask(s.serving, SOMEBODY + i, on_answer, &s);
                if (i % 100 == 99)
                        run_until(&s, &s.answers, i + 1);
        }
        assert_true(s.answers == 1500 && s.served == 1500);
        s.answers = s.served = 0;
        for (uint32_t i = 0; i < 400; i++) /* more than are asked at a time */
                serving_ask(s.serving, SOMEBODY + 10000 + i, on_answer, &s);
        assert_int_equal(s.answers, 400 - 256);
        assert_true(s.served == 0 && strstr(s.why, "too many"));
        serving_free(s.serving);
        assert_int_equal(s.answers, 400);
        assert_int_equal(s.served, 0);
        sd_event_unref(s.event);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_numbers), cmocka_unit_test(test_names),
                                            cmocka_unit_test(test_many) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
