/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/metrics/sampler.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "tests/kit/root-kit.h"

#define TOP "/sys/fs/cgroup/"

static sd_event *event;
static unsigned looks, fills, forgets, opened, sent;
static size_t ids_seen;

static int setup(void **state) {
        return root_setup(state) == 0 && sd_event_new(&event) >= 0 ? 0 : -1;
}

static int teardown(void **state) {
        sd_event_unref(event);
        return root_teardown(state);
}

static int look(const uint64_t *ids, size_t n, void *userdata) {
        looks++;
        ids_seen = n;
        return 0;
}

static void fill_first(const struct sampled *u, uint64_t values[static _TELEMETRY_MAX], void *userdata) {
        fills++;
        values[TELEMETRY_TASKS] = 1;
        values[TELEMETRY_GPUS] = 1;
}

static void fill_second(const struct sampled *u, uint64_t values[static _TELEMETRY_MAX], void *userdata) {
        values[TELEMETRY_TASKS] = 2;
        if (u->cgroup)
                cgroup_fill(u->cgroup, values);
}

static void forget(const struct sampled *u, void *userdata) {
        forgets++;
}

static void on_opened(const struct sampled *u, void *userdata) {
        opened++;
        assert_true(u->cgroup_id > 0);
}

static void on_telemetry(uint64_t now_boot, void *userdata) {
        sent++;
}

static struct executor_id id_of(uint32_t index) {
        struct executor_id id = { .job = 3, .role = "w", .index = index, .attempt = 1 };

        id.job_uid.bytes[0] = 1;
        return id;
}

static struct sampler *sampler; /* for what is called back */

/* As the starter opens it. */
static void on_progress(const char *unit, void *userdata) {
        _cleanup_free_ char *path = NULL;
        int fd;

        assert_true(asprintf(&path, "%s/run/primus/x/%s/progress", root_kit, unit) > 0);
        fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
                sampler_set_progress(sampler, unit, fd);
}

static struct sampler *make(uint64_t telemetry_usec) {
        static const struct sampler_ops ops = { .telemetry = on_telemetry,
                                                .opened = on_opened,
                                                .progress = on_progress };
        const struct sampler_provider providers[] = {
                { "first", look, fill_first, forget, NULL },
                { "second", NULL, fill_second, NULL, NULL },
        };
        struct sampler *s;

        looks = fills = forgets = opened = sent = 0;
        assert_int_equal(
                sampler_new(event, &(struct sampler_options){ root_kit, telemetry_usec }, &ops, NULL, &s), 0);
        for (size_t i = 0; i < ELEMENTSOF(providers); i++)
                assert_int_equal(sampler_add_provider(s, &providers[i]), 0);
        sampler = s;
        return s;
}

static void test_a_life(void **state) {
        _cleanup_(sampler_free_p) struct sampler *s = NULL;
        const struct executor_id id = id_of(0);
        const struct telemetry_sample *x;

        root_put_bytes(TOP "cgroup.controllers", "", 0);
        s = make(0);
        assert_int_equal(sampler_add(s, &id), 0);
        assert_int_equal(sampler_add(s, &id), 0);
        assert_int_equal(sampler_count(s), 1);
        assert_null(sampler_find(s, "primus-3-w-0.1.service")); /* not looked at */

        sampler_round(s);
        assert_true(looks == 1 && fills == 1 && opened == 0 && ids_seen == 0);
        x = sampler_find(s, "primus-3-w-0.1.service");
        assert_non_null(x);
        assert_true(executor_id_equal(&x->id, &id));
        assert_true(x->values[TELEMETRY_TASKS] == 2 && x->values[TELEMETRY_GPUS] == 1);
        assert_true(x->values[TELEMETRY_CPU_USEC] == TELEMETRY_UNKNOWN);

        /* systemd has started it */
        root_put_bytes(TOP "primus.slice/primus-3.slice/primus-3-w-0.1.service/cpu.stat", "usage_usec 9\n",
                       13);
        sampler_round(s);
        assert_true(opened == 1 && ids_seen == 1 && x->values[TELEMETRY_CPU_USEC] == 9);
        sampler_remove(s, &id);
        assert_true(forgets == 1 && sampler_count(s) == 0);
        sampler_remove(s, &id);
        sampler_round(s);
        assert_true(forgets == 1 && ids_seen == 0);
}

static void test_data(void **state) {
        _cleanup_(sampler_free_p) struct sampler *s = make(0);
        const struct executor_id id = id_of(1), other = id_of(2);
        struct feed_counters c = {
                .consumer_wait_usec = 1, .producer_wait_usec = 2, .bytes = 3, .records = 4
        };
        const struct telemetry_sample *x;
        uint64_t age;

        assert_int_equal(sampler_add(s, &id), 0);
        sampler_note_data(s, &other, &c);
        sampler_round(s);
        x = sampler_find(s, "primus-3-w-1.1.service");
        assert_true(x->values[TELEMETRY_DATA_RECORDS] == TELEMETRY_UNKNOWN);
        sampler_note_data(s, &id, &c);
        (void)usleep(3000);
        c.consumer_wait_usec = 10; /* no news of records: the age goes on */
        sampler_note_data(s, &id, &c);
        sampler_round(s);
        assert_true(x->values[TELEMETRY_DATA_RECORDS] == 4 && x->values[TELEMETRY_DATA_BYTES] == 3);
        assert_true(x->values[TELEMETRY_DATA_WAIT_USEC] == 10 &&
                    x->values[TELEMETRY_DATA_PRODUCER_USEC] == 2);
        age = x->values[TELEMETRY_DATA_AGE_USEC];
        assert_true(age >= 3000 && age < 60 * USEC_PER_SEC);
        c.records++;
        c.bytes++;
        sampler_note_data(s, &id, &c);
        sampler_round(s);
        assert_true(x->values[TELEMETRY_DATA_AGE_USEC] < age);
}

static void test_progress(void **state) {
        _cleanup_(sampler_free_p) struct sampler *s = make(0);
        const struct executor_id id = id_of(3), link = id_of(4);
        uint64_t page[2] = { 41, 0 };
        const struct telemetry_sample *x;

        root_put_bytes("/run/primus/x/primus-3-w-3.1.service/progress", page, sizeof(page));
        assert_int_equal(sampler_add(s, &id), 0);
        sampler_round(s);
        x = sampler_find(s, "primus-3-w-3.1.service");
        assert_true(x->values[TELEMETRY_PROGRESS_STEP] == TELEMETRY_UNKNOWN); /* nothing was said */
        sampler_remove(s, &id);
        page[1] = now_boot();
        root_put_bytes("/run/primus/x/primus-3-w-3.1.service/progress", page, sizeof(page));
        assert_int_equal(sampler_add(s, &id), 0);
        sampler_round(s);
        x = sampler_find(s, "primus-3-w-3.1.service");
        assert_true(x->values[TELEMETRY_PROGRESS_STEP] == 41);
        assert_true(x->values[TELEMETRY_PROGRESS_AGE_USEC] < 60 * USEC_PER_SEC);
        sampler_remove(s, &id);
        page[1] = UINT64_MAX; /* it lies about the time */
        root_put_bytes("/run/primus/x/primus-3-w-3.1.service/progress", page, sizeof(page));
        assert_int_equal(sampler_add(s, &id), 0);
        sampler_round(s);
        assert_true(sampler_find(s, "primus-3-w-3.1.service")->values[TELEMETRY_PROGRESS_AGE_USEC] == 0);

        /* It is in /run, and does not stay longer than it was; nor does what it says get lost. */
        {
                _cleanup_free_ char *path = NULL;
                struct stat st;

                assert_true(asprintf(&path, "%s/run/primus/x/primus-3-w-3.1.service/progress", root_kit) > 0);
                assert_int_equal(truncate(path, INT64_C(1) << 30), 0);
                sampler_round(s);
                assert_int_equal(stat(path, &st), 0);
                assert_int_equal(st.st_size, sizeof(page));
                assert_true(sampler_find(s, "primus-3-w-3.1.service")->values[TELEMETRY_PROGRESS_STEP] == 41);
        }

        /* A link is no page, nor is a truncated one. */
        root_put_bytes("/run/primus/x/primus-3-w-4.1.service/x", "", 0);
        {
                _cleanup_free_ char *path = NULL;
                assert_true(asprintf(&path, "%s/run/primus/x/primus-3-w-4.1.service/progress", root_kit) > 0);
                assert_int_equal(symlink("../primus-3-w-3.1.service/progress", path), 0);
        }
        root_put_bytes("/run/primus/x/primus-3-w-3.1.service/progress", page, 15);
        sampler_remove(s, &id);
        assert_int_equal(sampler_add(s, &id), 0);
        assert_int_equal(sampler_add(s, &link), 0);
        sampler_round(s);
        assert_true(sampler_find(s, "primus-3-w-3.1.service")->values[TELEMETRY_PROGRESS_STEP] ==
                    TELEMETRY_UNKNOWN);
        assert_true(sampler_find(s, "primus-3-w-4.1.service")->values[TELEMETRY_PROGRESS_STEP] ==
                    TELEMETRY_UNKNOWN);
}

static int count(const struct sampled *u, const struct telemetry_sample *x, void *userdata) {
        ++*(unsigned *)userdata;
        return *(unsigned *)userdata == 50 ? -ECANCELED : 0;
}

static void test_many(void **state) {
        _cleanup_(sampler_free_p) struct sampler *s = make(1);
        unsigned n = 0;

        for (uint32_t i = 0; i < 100; i++) {
                const struct executor_id id = id_of(i);
                assert_int_equal(sampler_add(s, &id), 0);
        }
        sampler_round(s);
        sampler_round(s);
        assert_true(fills == 200 && sent == 2);
        assert_int_equal(sampler_visit(s, count, &n), -ECANCELED);
        assert_int_equal(n, 50);
}

static void test_timer(void **state) {
        _cleanup_(sampler_free_p) struct sampler *s = make(0);
        const struct executor_id id = id_of(0);
        uint64_t spent;

        assert_int_equal(sd_event_run(event, 0), 0); /* no unit, no timer */
        assert_int_equal(sampler_add(s, &id), 0);
        assert_true(sd_event_run(event, 3 * USEC_PER_SEC) > 0);
        assert_int_equal(sampler_rounds(s, &spent), 1);
        sampler_remove(s, &id);
        assert_true(sd_event_run(event, 3 * USEC_PER_SEC) > 0); /* finds none, and ends */
        assert_int_equal(sd_event_run(event, 1500 * USEC_PER_MSEC), 0);
        assert_int_equal(sampler_add(s, &id), 0);
        assert_true(sd_event_run(event, 3 * USEC_PER_SEC) > 0);
        assert_int_equal(sent, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_life), cmocka_unit_test(test_data),  cmocka_unit_test(test_progress),
                cmocka_unit_test(test_many),   cmocka_unit_test(test_timer),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
