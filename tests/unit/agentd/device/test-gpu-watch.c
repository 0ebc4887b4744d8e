/* SPDX-License-Identifier: Apache-2.0 */
/* The watch over GPUs, with a library that shows what a file says (tests/fake-nvml). */
#include "agentd/device/gpu-watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/wire/telemetry.h"

static const char *library;
static char path[] = "/tmp/test-gpu-watch-XXXXXX";

static struct seen {
        unsigned inventories, conditions, faults;
        unsigned fine; /* told of what had not been bad */
        char subject[128], text[400], fault[400], uuids[256];
        enum gpu_severity severity;
        uint64_t for_usec;
} seen;

static void on_inventory(void *userdata) {
        seen.inventories++;
}

static void on_condition(const char *subject, enum gpu_severity severity, const char *text, uint64_t for_usec,
                         void *userdata) {
        if (severity == GPU_FINE && seen.severity == GPU_FINE) {
                seen.fine++;
                return;
        }
        seen.conditions++;
        snprintf(seen.subject, sizeof(seen.subject), "%s", subject);
        snprintf(seen.text, sizeof(seen.text), "%s", text);
        seen.severity = severity;
        seen.for_usec = for_usec;
}

static void on_fault(char *const *uuids, const char *pci, const char *text, void *userdata) {
        seen.faults++;
        seen.uuids[0] = 0;
        for (; *uuids; uuids++)
                strcat(strcat(seen.uuids, *uuids), " ");
        snprintf(seen.fault, sizeof(seen.fault), "%s", text);
}

static const struct gpu_watch_ops ops = { .inventory = on_inventory,
                                          .condition = on_condition,
                                          .fault = on_fault };

static void show(const char *text) {
        assert_int_equal(write_file_atomic(path, text, strlen(text), 0644, false), 0);
}

#define GPU0                                                                                                 \
        "gpu 0 uuid=GPU-0000 name=NVIDIA_H100_80GB_HBM3 pci=0000:3b:00 minor=1 memory=85899345920 "          \
        "used=1000 reserved=500 "                                                                            \
        "utilization=50 power=250000 temperature=45 corrected=7 uncorrected=0 rows=0,0 replays=0 "           \
        "throttle=0 "                                                                                        \
        "recovery=0 mig=0\n"
#define GPU1                                                                                                 \
        "gpu 1 uuid=GPU-1111 name=NVIDIA_H100_80GB_HBM3 pci=0000:19:00 minor=0 memory=85899345920 "          \
        "used=2000 utilization=100 power=300000\n"

struct scene {
        sd_event *event;
        struct gpu_watch *watch;
};

static struct scene begin(const char *text, const char *which) {
        const struct gpu_watch_options options = { .library = which,
                                                   .look_usec = 100 * USEC_PER_MSEC,
                                                   .hang_usec = 400 * USEC_PER_MSEC };
        struct scene s = {};

        seen = (struct seen){};
        show(text);
        assert_true(sd_event_new(&s.event) >= 0);
        assert_int_equal(gpu_watch_new(s.event, &options, &ops, NULL, &s.watch), 0);
        return s;
}

static void end(struct scene *s) {
        gpu_watch_free(s->watch);
        sd_event_unref(s->event);
}

#define wait_for(s, condition)                                                                               \
        do {                                                                                                 \
                uint64_t _end = now_boot() + 10 * USEC_PER_SEC;                                              \
                while (!(condition)) {                                                                       \
                        assert_true(now_boot() < _end);                                                      \
                        assert_true(sd_event_run((s)->event, 50 * USEC_PER_MSEC) >= 0);                      \
                }                                                                                            \
        } while (0)

static const struct gpu_state *device(const struct scene *s, size_t i) {
        const struct gpu_state *states;

        assert_true(gpu_watch_devices(s->watch, &states) > i);
        return states + i;
}

static size_t count(const struct scene *s) {
        const struct gpu_state *states;

        return gpu_watch_devices(s->watch, &states);
}

static void test_look(void **state) {
        struct scene s = begin(GPU0 GPU1 "link 0 1\nprocess 0 pid=1 memory=500\n", library);
        uint64_t values[_TELEMETRY_MAX];

        wait_for(&s, gpu_watch_settled(s.watch));
        assert_int_equal(seen.inventories, 1);
        assert_int_equal(count(&s), 2);
        assert_string_equal(device(&s, 0)->uuid, "GPU-1111"); /* PCI order */
        assert_string_equal(device(&s, 1)->uuid, "GPU-0000");
        assert_string_equal(device(&s, 1)->model, "NVIDIA H100 80GB HBM3");
        assert_string_equal(device(&s, 1)->pci, "0000:3b:00.0");
        assert_int_equal(device(&s, 1)->minor, 1);
        assert_int_equal(device(&s, 1)->values[GPU_UTILIZATION], 500);
        assert_int_equal(device(&s, 1)->values[GPU_MEMORY_USED], 1000); /* without what is reserved */
        assert_int_equal(device(&s, 0)->values[GPU_MEMORY_USED], 2000); /* a driver that cannot tell */
        assert_int_equal(device(&s, 1)->values[GPU_ECC_CORRECTED], 7);
        assert_true(device(&s, 0)->values[GPU_ECC_CORRECTED] == GPU_UNKNOWN);
        assert_true(device(&s, 0)->links == 1 && device(&s, 1)->links == 2);
        assert_int_equal(device(&s, 1)->n_processes, 1);

        wait_for(&s, device(&s, 0)->values[GPU_BUSY_USEC] > 0);
        telemetry_clear(values);
        gpu_watch_fill(s.watch, "GPU-0000 GPU-1111", "primus-1-w-0.1.service", values);
        assert_int_equal(values[TELEMETRY_GPUS], 2);
        assert_int_equal(values[TELEMETRY_GPU_UTILIZATION], 750);
        assert_int_equal(values[TELEMETRY_GPU_MEMORY_BYTES], 3000);
        assert_int_equal(values[TELEMETRY_GPU_POWER_MILLIWATTS], 550000);
        telemetry_clear(values);
        gpu_watch_fill(s.watch, NULL, NULL, values);
        assert_true(values[TELEMETRY_GPUS] == TELEMETRY_UNKNOWN);
        assert_true(values[TELEMETRY_GPU_UTILIZATION] == TELEMETRY_UNKNOWN);
        assert_int_equal(seen.conditions, 0);
        /* An agent that was stopped meanwhile may have told of the library and of each GPU: once they are
         * well. */
        assert_int_equal(seen.fine, 3);
        assert_string_equal(gpu_watch_problem(s.watch), "");
        end(&s);
}

static void test_changes(void **state) {
        struct scene s = begin(GPU0, library);

        wait_for(&s, gpu_watch_settled(s.watch));
        show(GPU0 GPU1);
        wait_for(&s, count(&s) == 2);
        assert_int_equal(seen.inventories, 2);
        show("gpu 0 uuid=GPU-0000 name=NVIDIA_A100 pci=0000:3b:00 minor=1 memory=40000 mig=1\n"
             "part 0 gi=2 ci=0 uuid=MIG-b profile=2g.10gb memory=10000\n"
             "part 0 gi=1 ci=0 uuid=MIG-a profile=1g.5gb memory=5000\n");
        wait_for(&s, count(&s) == 3);
        assert_true(device(&s, 0)->cut);
        assert_string_equal(device(&s, 1)->uuid, "MIG-a");
        assert_string_equal(device(&s, 1)->mig, "1g.5gb");
        assert_string_equal(device(&s, 1)->parent, "GPU-0000");
        assert_string_equal(device(&s, 1)->model, "NVIDIA A100");
        assert_int_equal(device(&s, 2)->instance, 2);
        assert_int_equal(device(&s, 2)->values[GPU_MEMORY_TOTAL], 10000);
        end(&s);
}

static void test_xid(void **state) {
        struct scene s = begin(GPU0 GPU1, library);

        wait_for(&s, gpu_watch_settled(s.watch));
        show(GPU0 GPU1 "xid 0 79\n");
        wait_for(&s, seen.faults == 1);
        assert_string_equal(seen.subject, "GPU-0000 Xid 79");
        assert_int_equal(seen.severity, GPU_DRAIN);
        assert_true(seen.for_usec == USEC_INFINITY);
        assert_non_null(strstr(seen.text, "GPU has fallen off the bus: restart the host"));
        assert_string_equal(seen.uuids, "GPU-0000 ");
        assert_non_null(strstr(seen.fault, "Xid 79"));

        /* The kernel's log tells of it as well: once is enough. Of another GPU it is news. */
        gpu_watch_kmsg(s.watch, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.");
        assert_int_equal(seen.faults, 1);
        gpu_watch_kmsg(s.watch, "NVRM: Xid (PCI:0000:19:00): 31, pid=1, MMU Fault");
        assert_int_equal(seen.faults, 2);
        assert_int_equal(seen.severity, GPU_NOTE);
        assert_string_equal(seen.uuids, "GPU-1111 ");
        /* One that the library does not know. */
        gpu_watch_kmsg(s.watch, "NVRM: Xid (PCI:0000:aa:00): 48, pid=1, DBE");
        assert_string_equal(seen.subject, "0000:aa:00.0 Xid 48");
        assert_string_equal(seen.uuids, "");
        /* Nothing to be done: nobody is told. */
        gpu_watch_kmsg(s.watch, "NVRM: Xid (PCI:0000:19:00): 45, pid=1");
        assert_int_equal(seen.faults, 3);
        wait_for(&s, device(&s, 1)->values[GPU_LAST_XID] == 79);
        end(&s);
}

static void test_parts_fault(void **state) {
        struct scene s = begin("gpu 0 uuid=GPU-0 name=A100 pci=0000:3b:00 minor=0 memory=4 mig=1\n"
                               "part 0 gi=1 ci=0 uuid=MIG-a profile=1g.5gb memory=5\n",
                               library);

        wait_for(&s, gpu_watch_settled(s.watch));
        gpu_watch_kmsg(s.watch, "NVRM: Xid (PCI:0000:3b:00): 95, pid=1");
        assert_string_equal(seen.uuids, "GPU-0 MIG-a ");
        end(&s);
}

static void test_health(void **state) {
        struct scene s = begin(GPU0, library);

        wait_for(&s, gpu_watch_settled(s.watch));
        show("gpu 0 uuid=GPU-0000 name=H100 pci=0000:3b:00 minor=1 memory=85899345920 uncorrected=2 rows=0,1 "
             "failed=1\n");
        wait_for(&s, seen.conditions == 1);
        assert_string_equal(seen.subject, "GPU-0000");
        assert_int_equal(seen.severity, GPU_DRAIN);
        assert_int_equal(seen.for_usec, 0);
        assert_non_null(strstr(seen.text, "GPU 0 (H100, 0000:3b:00.0): a row of its memory failed"));
        show(GPU0);
        wait_for(&s, seen.conditions == 2);
        assert_int_equal(seen.severity, GPU_FINE);
        /* It falls off the bus: it stays in the inventory, as something that is not to be used. */
        show("gpu 0 uuid=GPU-0000 name=H100 pci=0000:3b:00 minor=1 memory=85899345920 lost=1\n");
        wait_for(&s, seen.conditions == 3);
        assert_int_equal(seen.severity, GPU_DRAIN);
        assert_int_equal(count(&s), 1);
        assert_true(device(&s, 0)->lost);
        end(&s);
}

/* From the start, and later: the loop goes on, it is said, and taken back. */
static void test_hang(void **state) {
        struct scene s = begin(GPU0 "hang\n", library);
        uint64_t begun = now_boot();

        wait_for(&s, gpu_watch_settled(s.watch));
        assert_true(now_boot() - begun < 5 * USEC_PER_SEC);
        assert_int_equal(count(&s), 0);
        assert_string_equal(seen.subject, "nvml");
        assert_int_equal(seen.severity, GPU_DRAIN);
        assert_true(*gpu_watch_problem(s.watch));
        show(GPU0);
        wait_for(&s, count(&s) == 1);
        assert_int_equal(seen.inventories, 2);
        assert_int_equal(seen.severity, GPU_FINE);
        show(GPU0 "hang\n");
        wait_for(&s, seen.severity == GPU_DRAIN);
        assert_int_equal(count(&s), 1); /* what was known is */
        begun = now_boot();
        end(&s); /* does not wait for it */
        assert_true(now_boot() - begun < USEC_PER_SEC);
        show(GPU0);
        usleep(300000); /* the thread finds its way out */
}

static void test_none(void **state) {
        struct scene s = begin("absent\n", library);

        wait_for(&s, gpu_watch_settled(s.watch));
        assert_int_equal(count(&s), 0);
        assert_int_equal(seen.conditions, 0); /* no driver: no fault */
        assert_non_null(strstr(gpu_watch_problem(s.watch), "not loaded"));
        end(&s);

        s = begin("", "libno-such-library.so.1");
        wait_for(&s, gpu_watch_settled(s.watch));
        assert_int_equal(count(&s), 0);
        assert_true(*gpu_watch_problem(s.watch));
        end(&s);
}

/* Who is no executor, and a person's. */
static void test_stray(void **state) {
        struct gpu_state s = { .processes = { { .pid = 10, .uid = UINT32_MAX },
                                              { .pid = 11, .uid = 0 },
                                              { .pid = 12, .uid = 999 },
                                              { .pid = 13, .uid = 1000, .unit = "primus-1-w-0.1.service" },
                                              { .pid = 14, .uid = 1000 } },
                               .n_processes = 4 };

        assert_null(gpu_stray(&s, 1000));
        s.n_processes = 5;
        assert_int_equal(gpu_stray(&s, 1000)->pid, 14);
        assert_true(gpu_listed("GPU-1 GPU-12", "GPU-1") && gpu_listed("GPU-12 GPU-1", "GPU-1"));
        assert_false(gpu_listed("GPU-12 GPU-13", "GPU-1") || gpu_listed("GPU-1", "") ||
                     gpu_listed("", "GPU-1"));
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_look),   cmocka_unit_test(test_changes),
                cmocka_unit_test(test_xid),    cmocka_unit_test(test_parts_fault),
                cmocka_unit_test(test_health), cmocka_unit_test(test_hang),
                cmocka_unit_test(test_none),   cmocka_unit_test(test_stray),
        };
        int r, fd = mkstemp(path);

        if (argc < 2 || fd < 0)
                return 77;
        close(fd);
        library = argv[1];
        setenv("FAKE_NVML", path, 1);
        r = cmocka_run_group_tests(tests, NULL, NULL);
        unlink(path);
        return r;
}
