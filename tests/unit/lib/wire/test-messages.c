/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of every struct over a sealed sd-bus message, and what readers refuse. */
#include "lib/wire/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/message-kit.h"

#define _cleanup_message_ _cleanup_(sd_bus_message_unrefp)

static const struct executor_id sample_id = {
        .job_uid = SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10),
        .job = 418,
        .role = "worker",
        .index = 3,
        .attempt = 2,
};

static void test_id(void **state) {
        _cleanup_message_ sd_bus_message *m = message_new();
        assert_int_equal(executor_id_append(m, &sample_id), 0);
        assert_true(link_append_extra_empty(m) >= 0);
        message_seal(m);
        assert_string_equal(sd_bus_message_get_signature(m, true), LINK_ID_SIGNATURE "a{sv}");
        struct executor_id id;
        assert_int_equal(executor_id_read(m, &id), 1);
        assert_true(executor_id_equal(&id, &sample_id));
        assert_int_equal(link_skip_extra(m), 1);

        struct executor_id other = sample_id;
        other.attempt++;
        assert_false(executor_id_equal(&other, &sample_id));
        _cleanup_message_ sd_bus_message *bad = message_new();
        other.role[0] = '\0';
        assert_int_equal(executor_id_append(bad, &other), -EINVAL);
}

static void test_id_refused(void **state) {
        static const uint8_t uid[17] = { 1, 2, 3 };
        static const struct {
                size_t n;
                const char *role;
                uint32_t attempt;
        } table[] = {
                { 15, "worker", 1 },
                { 17, "worker", 1 },
                { 0, "worker", 1 },
                { 16, "", 1 },
                { 16, "../x", 1 },
                { 16, "worker", 0 },
                { 16, "a123456789012345678901234567890123456789", 1 },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_message_ sd_bus_message *m = message_new();
                assert_true(sd_bus_message_open_container(m, 'r', "ayusuu") >= 0);
                assert_true(sd_bus_message_append_array(m, 'y', uid, table[i].n) >= 0);
                assert_true(sd_bus_message_append(m, "usuu", 1, table[i].role, 0, table[i].attempt) >= 0);
                assert_true(sd_bus_message_close_container(m) >= 0);
                message_seal(m);
                struct executor_id id = { .job = 99 };
                assert_int_equal(executor_id_read(m, &id), -EBADMSG);
                assert_int_equal(id.job, 99);
        }
        /* Another type, and nothing at all. */
        _cleanup_message_ sd_bus_message *m = message_new(), *empty = message_new();
        assert_true(sd_bus_message_append(m, "s", "worker") >= 0);
        message_seal(m);
        message_seal(empty);
        struct executor_id id;
        assert_int_equal(executor_id_read(m, &id), -EBADMSG);
        assert_int_equal(executor_id_read(empty, &id), -EBADMSG);
}

static void test_extra(void **state) {
        _cleanup_message_ sd_bus_message *m = message_new(), *more = message_new(), *none = message_new();
        assert_true(sd_bus_message_append(m, "a{sv}", 2, "later", "s", "x", "nested", "a(si)", 1, "y", 3) >=
                    0);
        message_seal(m);
        assert_int_equal(link_skip_extra(m), 1);
        assert_true(sd_bus_message_append(more, "a{sv}u", 0, 7) >= 0);
        message_seal(more);
        assert_int_equal(link_skip_extra(more), -EBADMSG);
        message_seal(none);
        assert_int_equal(link_skip_extra(none), -EBADMSG);
}

static void test_text(void **state) {
        char longer[3000];
        memset(longer, 'x', sizeof longer - 1);
        longer[sizeof longer - 1] = '\0';
        _cleanup_message_ sd_bus_message *m = message_new();
        assert_true(link_append_text(m, "a\x1b[31m\tb\xff\n\xc2\x9b!", LINK_TEXT_MAX) >= 0);
        assert_true(link_append_text(m, longer, 5000) >= 0);
        assert_true(link_append_text(m, "h\xc3\xa9h\xc3\xa9", 5) >= 0);
        assert_true(link_append_text(m, NULL, 5) >= 0);
        assert_true(sd_bus_message_append(m, "ss", "two\nlines", "toolong") >= 0);
        message_seal(m);
        _cleanup_free_ char *a = NULL, *b = NULL, *c = NULL, *d = NULL;
        assert_int_equal(link_read_text(m, LINK_TEXT_MAX, &a), 1);
        assert_string_equal(a, "a?[31m?b?\?\?\?!");
        assert_int_equal(link_read_text(m, LINK_TEXT_MAX, &b), 1);
        assert_int_equal(strlen(b), LINK_TEXT_MAX);
        assert_int_equal(link_read_text(m, LINK_TEXT_MAX, &c), 1);
        assert_string_equal(c, "h\xc3\xa9h");
        assert_int_equal(link_read_text(m, LINK_TEXT_MAX, &d), 1);
        assert_string_equal(d, "");
        char *none = NULL;
        assert_int_equal(link_read_text(m, LINK_TEXT_MAX, &none), -EBADMSG);
        assert_int_equal(link_read_text(m, 6, &none), -EBADMSG);
        assert_null(none);
}

static void test_welcome(void **state) {
        const struct welcome w = { .major = 1,
                                   .minor = 2,
                                   .build = (char *)"primus 0.1",
                                   .cluster = sample_id.job_uid,
                                   .term = 7,
                                   .epoch = 9,
                                   .heartbeat_usec = 1000000,
                                   .lost_usec = 60000000,
                                   .spread_usec = 5 };
        _cleanup_message_ sd_bus_message *m = message_new(), *bad = message_new();
        assert_true(welcome_append(m, &w) >= 0);
        message_seal(m);
        assert_string_equal(sd_bus_message_get_signature(m, true), LINK_WELCOME_SIGNATURE);
        _cleanup_(welcome_done) struct welcome o = {};
        assert_int_equal(welcome_read(m, &o), 1);
        assert_int_equal(o.minor, 2);
        assert_string_equal(o.build, w.build);
        assert_true(sd_id128_equal(o.cluster, w.cluster));
        assert_true(o.term == 7 && o.epoch == 9 && o.heartbeat_usec == 1000000 && o.lost_usec == 60000000);
        assert_true(o.spread_usec == 5);

        assert_true(sd_bus_message_append(bad, "(qqsayttttt)", 1, 0, "b", 3, 1, 2, 3, (uint64_t)1,
                                          (uint64_t)1, (uint64_t)1, (uint64_t)1, (uint64_t)1) >= 0);
        message_seal(bad);
        struct welcome untouched = {};
        assert_int_equal(welcome_read(bad, &untouched), -EBADMSG);
        assert_null(untouched.build);
}

static struct inventory sample_inventory(struct gpu_info *gpus, size_t n) {
        return (struct inventory){ .hostname = (char *)"n1",
                                   .kernel = (char *)"6.1.0",
                                   .os = (char *)"Debian GNU/Linux 12 (bookworm)",
                                   .cpus = 64,
                                   .memory = UINT64_C(1) << 40,
                                   .gpus = gpus,
                                   .n_gpus = n,
                                   .port_first = 30000,
                                   .port_last = 30999,
                                   .allow_root = true,
                                   .controllers = true,
                                   .address = {
                                           .family = AF_INET6, .bytes = { 0x20, 1, 0xd, 0xb8 }, .port = 0 } };
}

static void test_inventory(void **state) {
        struct gpu_info gpus[2] = {
                { .uuid = (char *)"GPU-1",
                  .model = (char *)"H200",
                  .memory = 141,
                  .nodes = (char *)"/dev/nvidia0" },
                { .uuid = (char *)"GPU-2" },
        };
        struct inventory i = sample_inventory(gpus, 2);
        _cleanup_message_ sd_bus_message *m = message_new();
        assert_true(inventory_append(m, &i) >= 0);
        message_seal(m);
        assert_string_equal(sd_bus_message_get_signature(m, true), LINK_INVENTORY_SIGNATURE);
        _cleanup_(inventory_done) struct inventory o = {};
        assert_int_equal(inventory_read(m, &o), 1);
        assert_string_equal(o.os, i.os);
        assert_int_equal(o.cpus, 64);
        assert_int_equal(o.n_gpus, 2);
        assert_string_equal(o.gpus[0].nodes, "/dev/nvidia0");
        assert_string_equal(o.gpus[1].model, "");
        assert_true(o.allow_root && o.controllers && o.port_first == 30000 && o.port_last == 30999);
        assert_true(addr_equal(&o.address, &i.address));

        struct gpu_info many[LINK_GPUS_MAX + 1];
        for (size_t n = 0; n < ELEMENTSOF(many); n++)
                many[n] = gpus[0];
        struct inventory big = sample_inventory(many, ELEMENTSOF(many));
        _cleanup_message_ sd_bus_message *refused = message_new();
        assert_int_equal(inventory_append(refused, &big), -E2BIG);
        struct inventory reversed = sample_inventory(NULL, 0);
        reversed.port_last = 1;
        assert_int_equal(inventory_append(refused, &reversed), -EINVAL);
}

/* A message of the right signature that an honest sender would not make. */
/* What the a{sv} of a registration says of GPUs: parts, what they are of, and what is joined. */
static void test_inventory_gpus(void **state) {
        struct gpu_info gpus[3] = {
                { .uuid = (char *)"GPU-1", .links = 4 },
                { .uuid = (char *)"MIG-1", .mig = (char *)"1g.10gb", .parent = (char *)"GPU-9" },
                { .uuid = (char *)"GPU-2", .links = 1, .numa = 1 }
        };
        struct inventory i = sample_inventory(gpus, 3);
        _cleanup_(inventory_done) struct inventory o = {};
        _cleanup_message_ sd_bus_message *m = message_new();
        uint32_t allow[] = { 1000, 1005 }, deny[] = { 1001 };
        const char *key;

        i.serves = (struct serves_info){ .known = true,
                                         .min_uid = 500,
                                         .listed = true,
                                         .groups = true,
                                         .allow = allow,
                                         .n_allow = 2,
                                         .deny = deny,
                                         .n_deny = 1 };

        assert_true(inventory_append(m, &i) >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        assert_true(inventory_append_extra(m, &i) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        message_seal(m);
        assert_int_equal(inventory_read(m, &o), 1);
        assert_true(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                assert_true(sd_bus_message_read(m, "s", &key) > 0);
                assert_int_equal(inventory_read_extra(m, key, &o), 1);
                assert_true(sd_bus_message_exit_container(m) >= 0);
        }
        assert_true(sd_bus_message_exit_container(m) >= 0);
        assert_null(o.gpus[0].mig);
        assert_string_equal(o.gpus[1].mig, "1g.10gb");
        assert_string_equal(o.gpus[1].parent, "GPU-9");
        assert_true(o.gpus[0].links == 4 && o.gpus[1].links == 0 && o.gpus[2].links == 1);
        assert_int_equal(o.gpus[2].numa, 1);
        assert_true(o.serves.known && o.serves.listed && o.serves.groups && o.serves.min_uid == 500);
        assert_int_equal(o.serves.n_allow, 2);
        assert_memory_equal(o.serves.allow, allow, sizeof(allow));
        assert_true(o.serves.n_deny == 1 && o.serves.deny[0] == 1001);
}

/* More than a host has to say, and twice. */
static void test_serves_refused(void **state) {
        static const uint32_t many[LINK_SERVES_MAX + 1] = {};

        for (size_t n = LINK_SERVES_MAX; n <= LINK_SERVES_MAX + 1; n++) {
                _cleanup_(inventory_done) struct inventory o = {};
                _cleanup_message_ sd_bus_message *m = message_new();

                for (unsigned k = 0; k < 2; k++)
                        assert_true(sd_bus_message_open_container(m, 'v', "(ubbauau)") >= 0 &&
                                    sd_bus_message_open_container(m, 'r', "ubbauau") >= 0 &&
                                    sd_bus_message_append(m, "ubb", 1000, 0, 0) >= 0 &&
                                    sd_bus_message_append_array(m, 'u', many, 0) >= 0 &&
                                    sd_bus_message_append_array(m, 'u', many, n * sizeof(*many)) >= 0 &&
                                    sd_bus_message_close_container(m) >= 0 &&
                                    sd_bus_message_close_container(m) >= 0);
                message_seal(m);
                assert_int_equal(inventory_read_extra(m, "serves", &o), n > LINK_SERVES_MAX ? -EBADMSG : 1);
                if (n <= LINK_SERVES_MAX)
                        assert_int_equal(inventory_read_extra(m, "serves", &o), -EBADMSG);
        }
}

static int hostile_inventory(size_t n_gpus, uint32_t cpus, uint16_t first, uint16_t last, uint8_t family,
                             size_t n_address) {
        static const uint8_t address[20] = {};
        _cleanup_message_ sd_bus_message *m = message_new();
        assert_true(sd_bus_message_open_container(m, 'r', "sssuta(ssts)qqbb(yayq)") >= 0);
        assert_true(sd_bus_message_append(m, "sssut", "h", "k", "o", cpus, (uint64_t)1) >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "(ssts)") >= 0);
        for (size_t i = 0; i < n_gpus; i++)
                assert_true(sd_bus_message_append(m, "(ssts)", "GPU", "m", (uint64_t)0, "") >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_append(m, "qqbb", first, last, 0, 0) >= 0);
        assert_true(sd_bus_message_open_container(m, 'r', "yayq") >= 0);
        assert_true(sd_bus_message_append(m, "y", family) >= 0);
        assert_true(sd_bus_message_append_array(m, 'y', address, n_address) >= 0);
        assert_true(sd_bus_message_append(m, "q", 0) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        message_seal(m);
        _cleanup_(inventory_done) struct inventory o = {};
        return inventory_read(m, &o);
}

static void test_inventory_refused(void **state) {
        assert_int_equal(hostile_inventory(LINK_GPUS_MAX, 1, 0, 0, 4, 4), 1);
        assert_int_equal(hostile_inventory(LINK_GPUS_MAX + 1, 1, 0, 0, 4, 4), -EBADMSG);
        assert_int_equal(hostile_inventory(0, 0, 0, 0, 4, 4), -EBADMSG);
        assert_int_equal(hostile_inventory(0, 1000000, 0, 0, 4, 4), -EBADMSG);
        assert_int_equal(hostile_inventory(0, 1, 10, 5, 4, 4), -EBADMSG);
        assert_int_equal(hostile_inventory(0, 1, 0, 5, 4, 4), -EBADMSG);
        assert_int_equal(hostile_inventory(0, 1, 0, 0, 4, 16), -EBADMSG);
        assert_int_equal(hostile_inventory(0, 1, 0, 0, 6, 20), -EBADMSG);
        assert_int_equal(hostile_inventory(0, 1, 0, 0, 5, 4), -EBADMSG);
        assert_int_equal(hostile_inventory(0, 1, 0, 0, 0, 0), 1);
}

static void test_units(void **state) {
        struct unit_report u = { .id = sample_id,
                                 .state = UNIT_RUNNING,
                                 .invocation = sample_id.job_uid,
                                 .started_real = 12,
                                 .stop_requested = true };
        _cleanup_message_ sd_bus_message *m = message_new(), *bad = message_new();
        assert_true(sd_bus_message_open_container(m, 'a', LINK_UNIT_SIGNATURE) >= 0);
        for (uint32_t i = 0; i < 3; i++) {
                u.id.index = i;
                u.state = (enum unit_state)i;
                assert_true(unit_report_append(m, &u) >= 0);
        }
        assert_true(sd_bus_message_close_container(m) >= 0);
        message_seal(m);
        assert_true(sd_bus_message_enter_container(m, 'a', LINK_UNIT_SIGNATURE) > 0);
        struct unit_report o;
        uint32_t n = 0;
        int r;
        while ((r = unit_report_read(m, &o)) > 0) {
                assert_int_equal(o.id.index, n);
                assert_int_equal(o.state, n);
                assert_true(o.stop_requested && o.started_real == 12);
                n++;
        }
        assert_int_equal(r, 0);
        assert_int_equal(n, 3);
        assert_true(sd_bus_message_exit_container(m) >= 0);

        assert_true(sd_bus_message_open_container(bad, 'r', LINK_ID_SIGNATURE "saytb") >= 0);
        assert_true(executor_id_append(bad, &sample_id) >= 0);
        assert_true(sd_bus_message_append(bad, "s", "dancing") >= 0);
        assert_true(link_append_id128(bad, sample_id.job_uid) >= 0);
        assert_true(sd_bus_message_append(bad, "tb", (uint64_t)1, 0) >= 0);
        assert_true(sd_bus_message_close_container(bad) >= 0);
        message_seal(bad);
        assert_int_equal(unit_report_read(bad, &o), -EBADMSG);
}

static void test_exit(void **state) {
        const struct exit_report e = { .id = sample_id,
                                       .invocation = sample_id.job_uid,
                                       .result = "oom-kill",
                                       .code = "killed",
                                       .status = 9,
                                       .stop_local = true,
                                       .started_real = 1,
                                       .ended_real = 2,
                                       .memory_peak = UINT64_MAX,
                                       .cpu_usec = 4,
                                       .io_read = 5,
                                       .io_write = 6,
                                       .oom_kills = 7,
                                       .detail = (char *)"line one\nline two" };
        _cleanup_message_ sd_bus_message *m = message_new(), *bad = message_new();
        assert_true(exit_report_append(m, &e) >= 0);
        message_seal(m);
        assert_string_equal(sd_bus_message_get_signature(m, true), LINK_EXIT_SIGNATURE);
        _cleanup_(exit_report_done) struct exit_report o = {};
        assert_int_equal(exit_report_read(m, &o), 1);
        assert_string_equal(o.result, "oom-kill");
        assert_string_equal(o.code, "killed");
        assert_true(o.status == 9 && !o.stop_requested && o.stop_local && o.memory_peak == UINT64_MAX);
        assert_true(o.cpu_usec == 4 && o.io_read == 5 && o.io_write == 6 && o.oom_kills == 7 &&
                    o.ended_real == 2);
        assert_string_equal(o.detail, "line one?line two");

        struct exit_report none = e;
        none.result[0] = '\0';
        assert_int_equal(exit_report_append(bad, &none), -EINVAL);
}

static void test_exit_refused(void **state) {
        static const char *const results[] = { "", "a-result-that-is-longer-than-the-struct-holds",
                                               "esc\x1b[0m" };
        for (size_t i = 0; i < ELEMENTSOF(results); i++) {
                _cleanup_message_ sd_bus_message *m = message_new();
                assert_true(sd_bus_message_open_container(m, 'r', LINK_ID_SIGNATURE "ayssibbttttttts") >= 0);
                assert_true(executor_id_append(m, &sample_id) >= 0);
                assert_true(link_append_id128(m, sample_id.job_uid) >= 0);
                assert_true(sd_bus_message_append(m, "ssibbttttttts", results[i], "", 0, 0, 0, (uint64_t)0,
                                                  (uint64_t)0, (uint64_t)0, (uint64_t)0, (uint64_t)0,
                                                  (uint64_t)0, (uint64_t)0, "detail") >= 0);
                assert_true(sd_bus_message_close_container(m) >= 0);
                message_seal(m);
                struct exit_report o = {};
                assert_int_equal(exit_report_read(m, &o), -EBADMSG);
                assert_null(o.detail);
        }
}

static void test_feed_report(void **state) {
        static const uint8_t bytes[3] = { 1, 2, 3 };
        const struct feed_report f = { .progress = bytes,
                                       .size = 3,
                                       .credits = 4,
                                       .counters = { 5, 6, 7, 8 },
                                       .has_sync = true,
                                       .sync = 9,
                                       .hungry = 3,
                                       .unserved = 5 };

        for (unsigned i = 0; i < 4; i++) {
                _cleanup_message_ sd_bus_message *m = message_new();
                struct feed_report in = f, out = {};
                bool with_sync = i % 2;

                in.has_sync = with_sync;
                in.has_hungry = i / 2;
                assert_true(feed_report_append(m, &in) >= 0);
                message_seal(m);
                assert_string_equal(sd_bus_message_get_signature(m, true),
                                    "ayu" LINK_COUNTERS_SIGNATURE "a{sv}");
                assert_int_equal(feed_report_read(m, &out), 1);
                assert_int_equal(out.size, 3);
                assert_memory_equal(out.progress, bytes, 3);
                assert_memory_equal(&out.counters, &f.counters, sizeof(f.counters));
                assert_true(out.credits == 4 && out.has_sync == in.has_sync &&
                            out.sync == (with_sync ? 9u : 0u));
                assert_true(out.has_hungry == in.has_hungry && out.hungry == (in.has_hungry ? 3u : 0u) &&
                            out.unserved == out.hungry); /* no more than wait at all */
        }
}

/* Keys of another version are passed over; a known one of another type is not. */
static void test_feed_extra(void **state) {
        for (unsigned wrong = 0; wrong < 2; wrong++) {
                _cleanup_message_ sd_bus_message *m = message_new();
                struct feed_report out = {};

                assert_true(sd_bus_message_append_array(m, 'y', "", 0) >= 0);
                assert_true(sd_bus_message_append(m, "u(tttt)", 1u, (uint64_t)1, (uint64_t)1, (uint64_t)1,
                                                  (uint64_t)1) >= 0);
                if (wrong)
                        assert_true(sd_bus_message_append(m, "a{sv}", 1, "sync", "s", "9") >= 0);
                else
                        assert_true(sd_bus_message_append(m, "a{sv}", 3, "later", "(st)", "x", (uint64_t)1,
                                                          "sync", "t", (uint64_t)7, "more", "as", 1,
                                                          "y") >= 0);
                message_seal(m);
                assert_int_equal(feed_report_read(m, &out), wrong ? -EBADMSG : 1);
                assert_int_equal(out.sync, wrong ? 0 : 7);
        }
}

static void test_scan_batch(void **state) {
        static const uint8_t bytes[2] = { 1, 2 };
        struct scan_batch b = { .entries = bytes,
                                .size = 2,
                                .last = true,
                                .error = "two\nlines",
                                .waiting_for = "/d/2023010203/_SUCCESS",
                                .passed = 2023010202 },
                          out = {};
        _cleanup_message_ sd_bus_message *m = message_new(), *plain = message_new();

        assert_true(scan_batch_append(m, &b) >= 0);
        message_seal(m);
        assert_string_equal(sd_bus_message_get_signature(m, true), "aybsa{sv}");
        assert_int_equal(scan_batch_read(m, &out), 1);
        assert_true(out.size == 2 && out.last && out.passed == b.passed);
        assert_string_equal(out.error, "two?lines");
        assert_string_equal(out.waiting_for, b.waiting_for);
        b = (struct scan_batch){};
        assert_true(scan_batch_append(plain, &b) >= 0);
        message_seal(plain);
        assert_int_equal(scan_batch_read(plain, &out), 1);
        assert_true(out.size == 0 && !out.last && out.passed == 0 && !out.waiting_for[0] && !out.error[0]);
}

static void test_sources(void **state) {
        static char text[INPUT_SOURCE_BYTES_MAX + 2];
        struct feed_source_order o = { 7, text }, o_out = {};
        struct feed_opened out = {};
        _cleanup_message_ sd_bus_message *said = message_new(), *older = message_new(), *told = message_new(),
                                         *large = message_new();

        assert_true(feed_opened_append(said, &(struct feed_opened){ 64, 3 }) >= 0);
        message_seal(said);
        assert_int_equal(feed_opened_read(said, &out), 1);
        assert_true(out.credits == 64 && out.sources == 3);
        assert_true(sd_bus_message_append(older, "ua{sv}", 64, 0) >= 0);
        message_seal(older);
        assert_int_equal(feed_opened_read(older, &out), 1);
        assert_true(out.credits == 64 && out.sources == 0);
        memset(text, 'x', INPUT_SOURCE_BYTES_MAX);
        assert_true(feed_source_append(told, &o) >= 0);
        message_seal(told);
        assert_int_equal(feed_source_read(told, &o_out), 1);
        assert_true(o_out.source == 7 && strlen(o_out.text) == INPUT_SOURCE_BYTES_MAX);
        text[INPUT_SOURCE_BYTES_MAX] = 'x';
        assert_int_equal(feed_source_append(large, &o), -E2BIG);
        assert_true(sd_bus_message_append(large, "usa{sv}", 7, text, 0) >= 0);
        message_seal(large);
        assert_int_equal(feed_source_read(large, &o_out), -EBADMSG);
}

static void test_grants_and_control(void **state) {
        static uint8_t bytes[TASKS_WIRE_MAX + 1];
        struct grant_batch g = { .grants = bytes, .size = TASKS_WIRE_MAX, .last = true }, g_out = {};
        struct feed_order o = { FEED_CONTROL_TRIM, 5, 6 }, o_out = {};
        _cleanup_message_ sd_bus_message *m = message_new(), *c = message_new(), *large = message_new(),
                                         *odd = message_new();

        assert_true(grant_batch_append(m, &g) >= 0);
        message_seal(m);
        assert_int_equal(grant_batch_read(m, &g_out), 1);
        assert_true(g_out.size == TASKS_WIRE_MAX && g_out.last);
        assert_true(feed_order_append(c, &o) >= 0);
        message_seal(c);
        assert_int_equal(feed_order_read(c, &o_out), 1);
        assert_true(o_out.op == FEED_CONTROL_TRIM && o_out.task == 5 && o_out.value == 6);
        g.size++;
        assert_int_equal(grant_batch_append(large, &g), -E2BIG);
        assert_true(sd_bus_message_append_array(large, 'y', bytes, sizeof(bytes)) >= 0);
        assert_true(sd_bus_message_append(large, "ba{sv}", 0, 0) >= 0);
        message_seal(large);
        assert_int_equal(grant_batch_read(large, &g_out), -EBADMSG);
        o.op = _FEED_CONTROL_MAX;
        assert_int_equal(feed_order_append(odd, &o), -EINVAL);
        assert_true(sd_bus_message_append(odd, "utta{sv}", (uint32_t)_FEED_CONTROL_MAX, (uint64_t)1,
                                          (uint64_t)1, 0) >= 0);
        message_seal(odd);
        assert_int_equal(feed_order_read(odd, &o_out), -EBADMSG);
}

static void test_changes(void **state) {
        static char *env[] = { (char *)"RANK=1", (char *)"TF_CONFIG={}", NULL };
        static char *bad_env[] = { (char *)"=1", NULL };
        struct unit_limits l = { .check = true,
                                 .cpu_usec_per_sec = 250000,
                                 .memory_max = 1 << 20,
                                 .job = { 2 << 20, 500000, 99, 42 },
                                 .has_more = true,
                                 .memory_high = 1 << 19,
                                 .cpu_weight = 300,
                                 .tasks_max = 77 },
                           l_out = {};
        struct rendezvous_order o = { 7, 10, env }, o_out = {};
        struct io_limit io[] = { { (char *)"/dev/vda", 1, 2, 3, 4, 5 }, { (char *)"", .weight = 6 } };
        struct start_extra x = { .epoch = 3,
                                 .n_rendezvous = 2,
                                 .watchdog_usec = 30000000,
                                 .memory_high = 7,
                                 .job_shm = 8,
                                 .numa = "prefer",
                                 .io = io,
                                 .n_io = 2 },
                           x_out = {};
        _cleanup_message_ sd_bus_message *a = message_new(), *b = message_new(), *c = message_new(),
                                         *bad = message_new(), *none = message_new();

        assert_true(unit_limits_append(a, &l) >= 0);
        message_seal(a);
        assert_int_equal(unit_limits_read(a, &l_out), 1);
        assert_true(l.check == l_out.check && l.has_more == l_out.has_more);
        assert_true(l.cpu_usec_per_sec == l_out.cpu_usec_per_sec && l.memory_max == l_out.memory_max);
        assert_true(l.job.memory_max == l_out.job.memory_max &&
                    l.job.cpu_usec_per_sec == l_out.job.cpu_usec_per_sec &&
                    l.job.tasks_max == l_out.job.tasks_max && l.job.cpu_weight == l_out.job.cpu_weight);
        assert_true(l.memory_high == l_out.memory_high && l.cpu_weight == l_out.cpu_weight &&
                    l.tasks_max == l_out.tasks_max);
        assert_true(rendezvous_order_append(b, &o) >= 0);
        message_seal(b);
        assert_int_equal(rendezvous_order_read(b, &o_out), 1);
        assert_true(o_out.epoch == 7 && o_out.signal == 10);
        assert_string_equal(o_out.env[1], env[1]);
        assert_null(o_out.env[2]);
        rendezvous_order_done(&o_out);
        assert_true(start_extra_append(c, &x) >= 0);
        message_seal(c);
        assert_int_equal(start_extra_read(c, &x_out), 1);
        assert_true(x_out.epoch == 3 && x_out.n_rendezvous == 2 && x_out.watchdog_usec == 30000000);
        assert_true(x_out.memory_high == 7 && x_out.job_shm == 8);
        assert_string_equal(x_out.numa, "prefer");
        assert_true(x_out.n_io == 2 && x_out.io[0].write_iops == 4 && x_out.io[1].weight == 6);
        assert_string_equal(x_out.io[0].path, "/dev/vda");
        start_extra_done(&x_out);
        o.env = bad_env;
        assert_int_equal(rendezvous_order_append(bad, &o), -EINVAL);
        o.env = env;
        o.epoch = 0;
        assert_int_equal(rendezvous_order_append(bad, &o), -EINVAL);
        assert_true(sd_bus_message_append(none, "tu", (uint64_t)0, 0) >= 0);
        assert_true(sd_bus_message_open_container(none, 'a', "ay") >= 0);
        assert_true(sd_bus_message_close_container(none) >= 0);
        assert_true(sd_bus_message_append(none, "a{sv}", 0) >= 0);
        message_seal(none);
        assert_int_equal(rendezvous_order_read(none, &o_out), -EBADMSG);
}

static struct start_order sample_order(void) {
        static char *argv[] = { (char *)"python3", (char *)"train\xff.py", (char *)"", NULL };
        static char *env[] = { (char *)"A=1", (char *)"B=", NULL };
        static char *identity[] = { (char *)"PRIMUS_JOB=418", NULL };
        static char *gpus[] = { (char *)"GPU-1", (char *)"GPU-2", NULL };
        static struct secret secrets[] = { { .name = (char *)"token", .data = (void *)"a\0b", .size = 3 },
                                           { .name = (char *)"empty" } };
        static uint16_t ports[] = { 30000, 30001 };
        return (struct start_order){
                .id = sample_id,
                .kind = ORDER_FEED,
                .uid = 1000,
                .argv = argv,
                .cwd = (char *)"/home/ml",
                .env = env,
                .identity = identity,
                .secrets = secrets,
                .n_secrets = 2,
                .cpu_usec_per_sec = 1500000,
                .memory_max = 1 << 30,
                .job_memory_max = 2,
                .tasks_max = 3,
                .gpus = gpus,
                .visible_gpus = gpus + 1,
                .ports = ports,
                .n_ports = 2,
                .runtime_max_usec = 4,
                .grace_usec = 5,
                .on_partition = ON_PARTITION_WAIT,
                .bundle = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                .ack = ACK_EXIT,
                .pipe_size = 65536,
                .output = (char *)"out/%j.log",
                .new_privileges = true
        };
}

static void test_order(void **state) {
        struct start_order i = sample_order();
        _cleanup_message_ sd_bus_message *m = message_new();
        assert_true(start_order_append(m, &i) >= 0);
        assert_true(link_append_extra_empty(m) >= 0);
        message_seal(m);
        assert_string_equal(sd_bus_message_get_signature(m, true), LINK_ORDER_SIGNATURE "a{sv}");
        _cleanup_(start_order_done) struct start_order o = {};
        assert_int_equal(start_order_read(m, &o), 1);
        assert_int_equal(link_skip_extra(m), 1);
        assert_true(executor_id_equal(&o.id, &i.id));
        assert_true(o.kind == ORDER_FEED && o.uid == 1000 && o.n_secrets == 2 && o.n_ports == 2);
        assert_string_equal(o.argv[1], "train\xff.py");
        assert_string_equal(o.argv[2], "");
        assert_null(o.argv[3]);
        assert_string_equal(o.cwd, "/home/ml");
        assert_string_equal(o.env[1], "B=");
        assert_null(o.env[2]);
        assert_string_equal(o.identity[0], "PRIMUS_JOB=418");
        assert_string_equal(o.secrets[0].name, "token");
        assert_int_equal(o.secrets[0].size, 3);
        assert_memory_equal(o.secrets[0].data, "a\0b", 3);
        assert_int_equal(o.secrets[1].size, 0);
        assert_true(o.cpu_usec_per_sec == 1500000 && o.memory_max == 1 << 30 && o.job_memory_max == 2);
        assert_true(o.tasks_max == 3 && o.runtime_max_usec == 4 && o.grace_usec == 5 && o.pipe_size == 65536);
        assert_string_equal(o.gpus[1], "GPU-2");
        assert_string_equal(o.visible_gpus[0], "GPU-2");
        assert_null(o.visible_gpus[1]);
        assert_true(o.ports[0] == 30000 && o.ports[1] == 30001);
        assert_true(o.on_partition == ON_PARTITION_WAIT && o.ack == ACK_EXIT && o.new_privileges);
        assert_string_equal(o.bundle, i.bundle);
        assert_string_equal(o.output, i.output);
}

static void test_order_smallest(void **state) {
        char *argv[] = { (char *)"true", NULL };
        struct start_order i = { .id = sample_id, .argv = argv };
        _cleanup_message_ sd_bus_message *m = message_new();
        assert_true(start_order_append(m, &i) >= 0);
        message_seal(m);
        _cleanup_(start_order_done) struct start_order o = {};
        assert_int_equal(start_order_read(m, &o), 1);
        assert_string_equal(o.cwd, "");
        assert_string_equal(o.output, "");
        assert_non_null(o.env);
        assert_null(o.env[0]);
        assert_null(o.gpus[0]);
        assert_int_equal(o.n_ports, 0);
}

static void test_order_refused(void **state) {
        static char *no_equals[] = { (char *)"NAME", NULL }, *bad_name[] = { (char *)"A B=1", NULL },
                    *not_ours[] = { (char *)"PATH=/bin", NULL }, *none[] = { NULL };
        static struct secret up[] = { { .name = (char *)"../x" } };
        static uint16_t zero[] = { 0 };
        const struct start_order good = sample_order();
        struct start_order t[11];
        for (size_t i = 0; i < ELEMENTSOF(t); i++)
                t[i] = good;
        t[0].env = no_equals;
        t[1].env = bad_name;
        t[2].identity = not_ours;
        t[3].argv = none;
        t[4].secrets = up;
        t[4].n_secrets = 1;
        t[5].ports = zero;
        t[5].n_ports = 1;
        t[6].cwd = (char *)"relative";
        t[7].bundle[3] = 'X';
        t[8].on_partition = _ON_PARTITION_INVALID;
        t[9].kind = _ORDER_KIND_MAX;
        static char long_path[LINK_PATH_MAX + 2];
        memset(long_path, 'x', LINK_PATH_MAX + 1);
        t[10].output = long_path;
        for (size_t i = 0; i < ELEMENTSOF(t); i++) {
                _cleanup_message_ sd_bus_message *m = message_new();
                assert_int_equal(start_order_append(m, &t[i]), -EINVAL);
        }

        size_t n = LINK_BYTES_MAX + 1;
        _cleanup_free_ char *big = malloc(n + 1);
        memset(big, 'x', n);
        big[n] = '\0';
        char *argv[] = { big, NULL };
        struct start_order o = good;
        o.argv = argv;
        _cleanup_message_ sd_bus_message *m = message_new();
        assert_int_equal(start_order_append(m, &o), -E2BIG);
}

static void test_tables(void **state) {
        assert_int_equal(on_partition_from_string("stop"), ON_PARTITION_STOP);
        assert_int_equal((int)on_partition_from_string("never"), _ON_PARTITION_INVALID);
        assert_int_equal((int)ack_mode_from_string(NULL), _ACK_MODE_INVALID);
        assert_string_equal(ack_mode_to_string(ACK_LAG), "lag");
        assert_null(unit_state_to_string(_UNIT_STATE_MAX));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_id),
                cmocka_unit_test(test_id_refused),
                cmocka_unit_test(test_extra),
                cmocka_unit_test(test_text),
                cmocka_unit_test(test_welcome),
                cmocka_unit_test(test_inventory),
                cmocka_unit_test(test_inventory_gpus),
                cmocka_unit_test(test_inventory_refused),
                cmocka_unit_test(test_units),
                cmocka_unit_test(test_exit),
                cmocka_unit_test(test_exit_refused),
                cmocka_unit_test(test_feed_report),
                cmocka_unit_test(test_feed_extra),
                cmocka_unit_test(test_scan_batch),
                cmocka_unit_test(test_sources),
                cmocka_unit_test(test_grants_and_control),
                cmocka_unit_test(test_serves_refused),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_order_smallest),
                cmocka_unit_test(test_order_refused),
                cmocka_unit_test(test_changes),
                cmocka_unit_test(test_tables),
        };
        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
