/* SPDX-License-Identifier: Apache-2.0 */
/* What a trainer reports of its training: from the library's thread to the server, which goes and comes back.
 * One test, since the library has one table for its process. */
#include "tests/kit/feed-host.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/primus/primus.h"

#define WAIT_USEC (20 * USEC_PER_SEC)

static int report(uint64_t step, double loss) {
        const char *const names[] = { "loss", "train/rate" };
        const double values[] = { loss, 7 };

        return primus_report(step, names, values, ELEMENTSOF(names));
}

static void until(struct state *s, uint32_t count) {
        for (uint64_t end = now_boot() + WAIT_USEC; s->metric.count < count && now_boot() < end;)
                assert_true(sd_event_run(s->event, 100 * USEC_PER_MSEC) >= 0);
        assert_int_equal(s->metric.count, count);
}

/* Lets the other side listen until all has gone out. */
static int flush(struct state *s) {
        int r = -ETIMEDOUT;

        for (uint64_t end = now_boot() + WAIT_USEC; r == -ETIMEDOUT && now_boot() < end;) {
                assert_true(sd_event_run(s->event, 20 * USEC_PER_MSEC) >= 0);
                r = primus_report_flush(1000);
        }
        return r;
}

/* A result that may be the trial's end comes behind what was reported before it. */
static void expect_curve_first(struct state *s, uint32_t count) {
        struct primus_trial *t;

        setenv("PRIMUS_TRIAL", "3", 1);
        assert_int_equal(primus_trial_open(&t), 0);
        assert_int_equal(report(count, 0.5), 0);
        assert_int_equal(primus_trial_report(t, 1, 0.5), 0);
        while (s->n_results == 0)
                assert_true(sd_event_run(s->event, WAIT_USEC) > 0);
        while (sd_event_run(s->event, 0) > 0)
                ; /* it is there, whichever is read first */
        assert_int_equal(s->metric.count, count);
        feed_taken(s->server, s->peer, s->results[0].number, NULL);
        primus_trial_close(t);
}

static void test_all_of_it(void **state) {
        struct state *s = *state;
        const char *const bad[] = { "a b", "loss" };
        const double two[] = { 1, 0.5 };
        unsigned packets;
        int status;
        pid_t pid;

        setenv("PRIMUS_SOCKET", s->socket, 1);
        setenv("LOCAL_RANK", "3", 1); /* without torchrun it is somebody else's */
        /* A few are points of their own; the first of them goes out at once. */
        for (uint64_t i = 1; i <= 10; i++)
                assert_int_equal(report(i, 1.0 / (double)i), 0);
        assert_int_equal(flush(s), 0);
        until(s, 10);
        assert_int_equal(s->metric_points, 10);
        assert_int_equal(s->metric.step, 10);
        assert_true(s->metric.last == 0.1 && s->metric.min == 0.1 && s->metric.max == 1);
        assert_true(s->metric_packets <= 2);

        /* Many are joined, and none of them is lost. */
        packets = s->metric_packets;
        for (uint64_t i = 11; i <= 100000; i++)
                assert_int_equal(report(i, 0.05), 0);
        assert_int_equal(flush(s), 0);
        until(s, 100000);
        assert_int_equal(s->metric.step, 100000);
        assert_true(s->metric.max == 1 && s->metric.last == 0.05);
        assert_true(s->metric_points <= 10 + 16 * (s->metric_packets - packets));

        /* Hung up on, it connects again, and says again what it had said last. */
        feed_drop_all(s->server);
        assert_int_equal(report(100001, 0.05), 0);
        assert_int_equal(flush(s), 0);
        until(s, 100001);
        assert_true(s->metrics_again > 0);

        /* Nobody is there; what is said meanwhile is there afterwards. */
        feed_server_free(s->server);
        for (uint64_t i = 100002; i <= 101000; i++)
                assert_int_equal(report(i, NAN), 0);
        assert_int_equal(primus_report_flush(1000), -ETIMEDOUT);
        server_start(s);
        assert_int_equal(flush(s), 0);
        until(s, 101000);
        assert_true(isnan(s->metric.last) && s->metric.max == 1);

        /* A bad name costs the others nothing. */
        assert_int_equal(primus_report(101001, bad, two, 2), -EINVAL);
        assert_int_equal(flush(s), 0);
        until(s, 101001);
        for (unsigned i = 0; i < METRIC_NAMES_MAX; i++) {
                char name[16];
                const char *const one = name;

                snprintf(name, sizeof(name), "m%u", i);
                assert_int_equal(primus_report(1, &one, two, 1), i < METRIC_NAMES_MAX - 2 ? 0 : -ENOSPC);
        }
        assert_int_equal(flush(s), 0);

        expect_curve_first(s, 101002);

        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                _exit(report(1, 1) == -ECHILD && primus_report_flush(0) == 0 ? 0 : 1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_all_of_it, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
