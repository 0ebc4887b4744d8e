/* SPDX-License-Identifier: Apache-2.0 */
/* Results of trials, and questions of searchers: from the library's thread to the server, which is told to
 * drop them in the middle. */
#include "tests/kit/feed-host.h"

#include <pthread.h>

#include "lib/primus/primus.h"
#include "tests/kit/json.h"

#define WAIT_USEC (20 * USEC_PER_SEC)

static struct primus_trial *open_trial(struct state *s) {
        struct primus_trial *t;

        setenv("PRIMUS_TRIAL", "3", 1);
        setenv("PRIMUS_SOCKET", s->socket, 1);
        assert_int_equal(primus_trial_open(&t), 0);
        return t;
}

static void until(struct state *s, size_t n) {
        for (uint64_t end = now_boot() + WAIT_USEC; s->n_results < n && now_boot() < end;)
                assert_true(sd_event_run(s->event, 100 * USEC_PER_MSEC) >= 0);
        assert_true(s->n_results >= n);
}

/* Lets the other side speak until all has arrived. */
static int flush_trial(struct state *s, struct primus_trial *t) {
        int r = -ETIMEDOUT;

        for (uint64_t end = now_boot() + WAIT_USEC; r == -ETIMEDOUT && now_boot() < end;) {
                assert_true(sd_event_run(s->event, 20 * USEC_PER_MSEC) >= 0);
                r = primus_trial_flush(t, 1000);
        }
        return r;
}

/* 32 are under way; the others follow as these are taken, in their order. */
static void test_window(void **state) {
        struct state *s = *state;
        struct primus_trial *t = open_trial(s);

        for (uint64_t i = 1; i <= 100; i++)
                assert_int_equal(primus_trial_report(t, i, 1.0 / (double)i), 0);
        until(s, FEED_RESULTS_MAX);
        for (int i = 0; i < 5; i++)
                assert_true(sd_event_run(s->event, 20 * USEC_PER_MSEC) >= 0);
        assert_int_equal(s->n_results, FEED_RESULTS_MAX);
        for (size_t i = 0; i < 100; i++) {
                until(s, i + 1);
                assert_int_equal(s->results[i].step, i + 1);
                assert_true(s->results[i].metric == 1.0 / (double)(i + 1));
                feed_taken(s->server, s->peer, s->results[i].number, NULL);
        }
        assert_int_equal(flush_trial(s, t), 0);
        assert_int_equal(s->n_results, 100);
        primus_trial_close(t);
}

/* What was not taken is said again on the next connection, and only that. */
static void test_again(void **state) {
        struct state *s = *state;
        struct primus_trial *t = open_trial(s);

        for (uint64_t i = 1; i <= 4; i++)
                assert_int_equal(primus_trial_report(t, i, 0), 0);
        until(s, 4);
        feed_taken(s->server, s->peer, s->results[0].number, NULL);
        feed_taken(s->server, s->peer, s->results[1].number, NULL);
        for (int i = 0; i < 10; i++)
                assert_true(sd_event_run(s->event, 10 * USEC_PER_MSEC) >= 0);
        feed_drop_all(s->server);
        until(s, 6);
        assert_int_equal(s->results[4].step, 3);
        assert_int_equal(s->results[5].step, 4);
        feed_taken(s->server, s->peer - 1, s->results[4].number, NULL); /* for the one that has gone */
        /* The server goes, and comes back. */
        feed_server_free(s->server);
        server_start(s);
        until(s, 8);
        for (size_t i = 6; i < 8; i++)
                feed_taken(s->server, s->peer, s->results[i].number, NULL);
        assert_int_equal(flush_trial(s, t), 0);
        primus_trial_close(t);
}

static void test_refused(void **state) {
        struct state *s = *state;
        struct primus_trial *t = open_trial(s);

        assert_int_equal(primus_trial_invalid(t), 0);
        until(s, 1);
        assert_true(s->results[0].invalid);
        assert_int_equal(primus_trial_flush(t, 1000), -ETIMEDOUT);
        assert_string_equal(primus_trial_error(t), "masterd has not answered yet");
        feed_taken(s->server, s->peer, s->results[0].number, "job 7 is no trial of a search");
        assert_int_equal(flush_trial(s, t), -EREMOTEIO);
        assert_string_equal(primus_trial_error(t), "job 7 is no trial of a search");
        primus_trial_close(t);
}

static void test_nowhere(void **state) {
        struct state *s = *state;
        struct primus_trial *t;

        unsetenv("PRIMUS_TRIAL");
        assert_int_equal(primus_trial_open(&t), -ENOENT);
        outside = true;
        t = open_trial(s);
        assert_int_equal(primus_trial_report(t, 1, 1), 0); /* at once, whoever is there */
        for (int i = 0; i < 20; i++)
                assert_true(sd_event_run(s->event, 20 * USEC_PER_MSEC) >= 0);
        assert_int_equal(primus_trial_flush(t, 1000), -ETIMEDOUT);
        assert_string_equal(primus_trial_error(t), "is in no unit of an executor");
        outside = false;
        until(s, 1);
        primus_trial_close(t);
}

/* ---- a searcher's questions ---- */

struct asking {
        struct state *s;
        const char *question;
        char answer[256];
        int result;
        bool done;
};

static void *run_asking(void *data) {
        struct primus_searcher *searcher;
        struct asking *a = data;
        const char *answer = "";

        assert_int_equal(primus_searcher_open(&searcher), 0);
        a->result = primus_searcher_ask(searcher, a->question, &answer);
        snprintf(a->answer, sizeof(a->answer), "%s",
                 a->result < 0 ? primus_searcher_error(searcher) : answer);
        primus_searcher_close(searcher);
        a->done = true;
        return NULL;
}

static void until_asked(struct state *s, unsigned n) {
        for (uint64_t end = now_boot() + WAIT_USEC; s->asked < n && now_boot() < end;)
                assert_true(sd_event_run(s->event, 20 * USEC_PER_MSEC) >= 0);
        assert_int_equal(s->asked, n);
}

/* Asked again on a new connection, until there is an answer. */
static void test_asked(void **state) {
        struct state *s = *state;
        struct asking a = { .s = s, .question = json_text("{'op':'hello'}") };
        pthread_t thread;

        setenv("PRIMUS_SEARCHER", "1", 1);
        setenv("PRIMUS_SOCKET", s->socket, 1);
        assert_int_equal(pthread_create(&thread, NULL, run_asking, &a), 0);
        until_asked(s, 1);
        assert_string_equal(s->question, a.question);
        feed_drop_all(s->server);
        until_asked(s, 2);
        feed_server_free(s->server);
        server_start(s);
        until_asked(s, 3);
        feed_told(s->server, s->peer, s->ask_number - 1, false, "an answer to another");
        feed_told(s->server, s->peer + 1, s->ask_number, false, "for somebody else");
        assert_false(a.done);
        feed_told(s->server, s->peer, s->ask_number, false, "{}"); /* it waits for one answer alone */
        feed_drop_all(s->server);
        until_asked(s, 4);
        feed_told(s->server, s->peer, s->ask_number, false, json_text("{'seed':1}"));
        pthread_join(thread, NULL);
        assert_int_equal(a.result, 0);
        assert_string_equal(a.answer, json_text("{'seed':1}"));
}

static void test_ask_refused(void **state) {
        struct state *s = *state;
        struct asking a = { .s = s, .question = "what?" };
        struct primus_searcher *none;
        pthread_t thread;

        setenv("PRIMUS_SEARCHER", "1", 1);
        setenv("PRIMUS_SOCKET", s->socket, 1);
        assert_int_equal(pthread_create(&thread, NULL, run_asking, &a), 0);
        until_asked(s, 1);
        feed_told(s->server, s->peer, s->ask_number, true, "a question is a JSON object");
        pthread_join(thread, NULL);
        assert_int_equal(a.result, -EREMOTEIO);
        assert_string_equal(a.answer, "a question is a JSON object");
        unsetenv("PRIMUS_SEARCHER");
        assert_int_equal(primus_searcher_open(&none), -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_window, setup, teardown),
                cmocka_unit_test_setup_teardown(test_again, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nowhere, setup, teardown),
                cmocka_unit_test_setup_teardown(test_asked, setup, teardown),
                cmocka_unit_test_setup_teardown(test_ask_refused, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
