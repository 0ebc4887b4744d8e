/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of org.primus.Starter1.Observe over a socket pair, at a tree of the test's own: what is handed
 * out, and what a captured agent would ask for in vain. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agentd/observe/observer.h"
#include "agentd/observe/records.h"
#include "lib/base/file.h"
#include "starter/observe/observe.h"

#define UNIT "primus-7-worker-0.1.service"
#define WORK "7-9f86d081"

static char root[] = "/tmp/primus-calls-XXXXXX";
static sd_event *event;
static sd_bus *starter, *agent;
static struct observe *observe;
static struct widened *widened;
static struct observer *observer;

static void put(const char *path, const char *text) {
        char full[256], *slash;

        snprintf(full, sizeof(full), "%s%s", root, path);
        slash = strrchr(full, '/');
        *slash = 0;
        assert_int_equal(make_directories(full, 0755), 0);
        *slash = '/';
        assert_int_equal(write_file_atomic(full, text, strlen(text), 0644, false), 0);
}

static sd_bus *open_end(int fd, bool server) {
        sd_bus *bus;
        sd_id128_t id;

        assert_true(sd_bus_new(&bus) >= 0 && sd_bus_set_fd(bus, fd, fd) >= 0);
        assert_true(!server || (sd_id128_randomize(&id) >= 0 && sd_bus_set_server(bus, 1, id) >= 0));
        assert_true(sd_bus_negotiate_fds(bus, 1) >= 0 && sd_bus_start(bus) >= 0);
        assert_true(sd_bus_attach_event(bus, event, 0) >= 0);
        return bus;
}

static int setup(void **state) {
        struct observe_options options = { .root = root };
        int fds[2];

        assert_non_null(mkdtemp(root));
        put("/sys/fs/cgroup/unified/primus.slice/primus-7.slice/" UNIT "/cgroup.procs", "");
        put("/sys/fs/cgroup/unified/primus.slice/primus-7.slice/" UNIT "/memory.pressure", "some\n");
        put("/sys/fs/cgroup/unified/primus.slice/primus-7.slice/" UNIT "/memory.max", "max\n");
        put("/run/primus/x/" UNIT "/progress", "0123456789abcdef");
        put("/run/primus/x/" UNIT "/env", "SECRET=1");
        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        starter = open_end(fds[0], true);
        agent = open_end(fds[1], false);
        assert_int_equal(widened_new(4, 1 << 20, &widened), 0);
        options.widened = widened;
        assert_true(observe_offer(starter, event, &options, &observe) >= 0);
        return observer_new(agent, &observer);
}

static int teardown(void **state) {
        observer_free(observer);
        observe_free(observe);
        widened_free(widened);
        sd_bus_close_unref(agent);
        sd_bus_close_unref(starter);
        sd_event_unref(event);
        return remove_tree(root);
}

struct answer {
        bool done;
        int r, fd;
        uint32_t told, processes;
        char error[256];
};

static void run(const struct answer *a) {
        for (unsigned i = 0; i < 1000 && !a->done; i++)
                assert_true(sd_event_run(event, 20000) >= 0);
        assert_true(a->done);
}

static void on_fd(int r, const char *error, int fd, void *userdata) {
        struct answer *a = userdata;

        *a = (struct answer){ .done = true, .r = r, .fd = fd };
        snprintf(a->error, sizeof(a->error), "%s", error ?: "");
        assert_true((r < 0) == (fd < 0));
        assert_true((r < 0) == (*a->error != 0));
}

static struct answer open_file(const char *unit, const char *file) {
        struct answer a = {};
        sd_bus_slot *slot;

        assert_int_equal(observer_open(observer, unit, file, on_fd, &a, NULL, &slot), 0);
        run(&a);
        sd_bus_slot_unref(slot);
        return a;
}

static void test_open(void **state) {
        static const struct {
                const char *unit, *file;
        } bad[] = {
                { UNIT, "memory.max" },
                { UNIT, "cgroup.procs" },
                { UNIT, "cgroup.kill" },
                { UNIT, "env" },
                { UNIT, "" },
                { UNIT, "../" UNIT "/progress" },
                { UNIT, "progress/../env" },
                { "../x/" UNIT, "progress" },
                { "primus-7-worker-0.1.service/..", "memory.pressure" },
                { "", "memory.pressure" },
                { "primus-8-worker-0.1.service", "memory.pressure" },
                { "primus-8-worker-0.1.service", "progress" },
                { UNIT, "io.pressure" }, /* is not there */
        };
        struct answer a = open_file(UNIT, OBSERVE_FILE_MEMORY_PRESSURE);

        assert_int_equal(a.r, 0);
        assert_int_equal(fcntl(a.fd, F_GETFL) & O_ACCMODE, O_RDWR);
        close(a.fd);
        a = open_file(UNIT, OBSERVE_FILE_PROGRESS);
        assert_int_equal(a.r, 0);
        assert_int_equal(lseek(a.fd, 0, SEEK_END), 16);
        close(a.fd);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_true(open_file(bad[i].unit, bad[i].file).r < 0);
}

/* A user cannot have anything else opened in the place of his page. */
static void test_open_link(void **state) {
        char path[256], shadow[256];

        snprintf(path, sizeof(path), "%s/run/primus/x/" UNIT "/progress", root);
        snprintf(shadow, sizeof(shadow), "%s/run/primus/x/" UNIT "/env", root);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink(shadow, path), 0);
        assert_true(open_file(UNIT, OBSERVE_FILE_PROGRESS).r < 0);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_true(open_file(UNIT, OBSERVE_FILE_PROGRESS).r < 0);
}

static void on_told(int r, const char *error, uint32_t told, uint32_t processes, void *userdata) {
        *(struct answer *)userdata =
                (struct answer){ .done = true, .r = r, .told = told, .processes = processes };
}

static void nothing(void *userdata) {
}

static int send_signal(const char *unit, int number) {
        struct answer a = {};

        assert_int_equal(observer_signal(observer, unit, number, on_told, &a, nothing), 0);
        run(&a);
        assert_int_equal(a.told, 0);
        return a.r;
}

static void test_signal(void **state) {
        assert_int_equal(send_signal(UNIT, SIGUSR1), 0);
        assert_true(send_signal(UNIT, SIGKILL) < 0);
        assert_true(send_signal(UNIT, SIGSTOP) < 0);
        assert_true(send_signal(UNIT, 0) < 0);
        assert_true(send_signal("init.scope", SIGUSR1) < 0);
        assert_int_equal(send_signal("primus-8-worker-0.1.service", SIGUSR1), -ENOENT);
}

/* ---- looks ---- */

static void on_record(int r, const struct stream_item *item, void *userdata) {
        struct answer *a = userdata;

        if (item) {
                a->told++;
                return;
        }
        a->r = r;
        a->done = true;
}

static struct answer capture(const char *unit, const char *work, int number) {
        struct answer a = {};
        sd_bus_slot *slot;
        struct records *records;
        int fd;

        assert_int_equal(observer_capture(observer, unit, work, number, on_fd, &a, &slot), 0);
        run(&a);
        sd_bus_slot_unref(slot);
        if (a.r < 0)
                return a;
        fd = a.fd;
        a = (struct answer){};
        assert_int_equal(records_new(event, fd, on_record, &a, &records), 0);
        run(&a);
        records_free(records);
        return a;
}

static void test_capture(void **state) {
        assert_int_equal(capture(UNIT, WORK, 0).r, 0); /* of nobody, and to its end */
        assert_int_equal(capture(UNIT, WORK, SIGUSR2).r, 0);
        assert_true(capture(UNIT, WORK, SIGKILL).r < 0);
        assert_true(capture(UNIT, "8-9f86d081", 0).r < 0); /* another job's */
        assert_true(capture(UNIT, "../../etc", 0).r < 0);
        assert_true(capture(UNIT, "", 0).r < 0);
        assert_int_equal(capture("primus-8-worker-0.1.service", "8-9f86d081", 0).r, -ENOENT);
        assert_true(capture("init.scope", WORK, 0).r < 0);
}

static void test_usage(void **state) {
        const char *units[] = { UNIT, "primus-8-worker-0.1.service" }, *bad[] = { UNIT, "init.scope" };
        static const char *many[OBSERVE_USAGE_UNITS_MAX + 1];
        struct answer a = {};
        struct records *records;
        sd_bus_slot *slot;
        int fd;

        assert_int_equal(observer_usage(observer, units, 2, on_fd, &a, &slot), 0);
        run(&a);
        sd_bus_slot_unref(slot);
        assert_int_equal(a.r, 0);
        fd = a.fd;
        a = (struct answer){};
        assert_int_equal(records_new(event, fd, on_record, &a, &records), 0);
        run(&a);
        records_free(records);
        assert_int_equal(a.r, 0);
        assert_int_equal(a.told, 0);
        a = (struct answer){};
        assert_int_equal(observer_usage(observer, bad, 2, on_fd, &a, &slot), 0);
        run(&a);
        sd_bus_slot_unref(slot);
        assert_true(a.r < 0);
        for (size_t i = 0; i < ELEMENTSOF(many); i++)
                many[i] = UNIT;
        a = (struct answer){};
        assert_int_equal(observer_usage(observer, many, ELEMENTSOF(many), on_fd, &a, &slot), 0);
        run(&a);
        sd_bus_slot_unref(slot);
        assert_true(a.r < 0);
}

/* ---- pipes ---- */

static int widen(int fd, uint32_t size) {
        struct answer a = {};

        observer_widen(observer, fd, size);
        /* Calls are answered in their order. */
        assert_int_equal(observer_signal(observer, UNIT, SIGUSR1, on_told, &a, nothing), 0);
        run(&a);
        return fcntl(fd, F_GETPIPE_SZ);
}

static void test_widen(void **state) {
        char path[256];
        int fds[2], fifo;

        assert_int_equal(pipe(fds), 0);
        assert_int_equal(widen(fds[1], 256 << 10), 256 << 10);
        assert_int_equal(widen(fds[1], 4096), 256 << 10); /* what waits in it has room */
        assert_int_equal(widen(fds[1], 0), 256 << 10);
        assert_int_equal(widen(fds[1], UINT32_MAX), 256 << 10);
        close(fds[0]);
        close(fds[1]);
        snprintf(path, sizeof(path), "%s/fifo", root);
        assert_int_equal(mkfifo(path, 0600), 0);
        fifo = open(path, O_RDWR);
        assert_int_equal(widen(fifo, 256 << 10), 64 << 10); /* it has a name: it may be anybody's */
        close(fifo);
}

static int on_widen(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct answer *a = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(m);

        *a = (struct answer){ .done = true, .r = e ? -1 : 0 };
        snprintf(a->error, sizeof(a->error), "%s: %s", e ? e->name : "", e ? e->message : "");
        return 0;
}

/* However many are asked for, so many are made; the next one is told why not, in words. */
static void test_widen_too_many(void **state) {
        struct answer a;
        int fds[5][2];

        for (int i = 0; i < 5; i++) {
                assert_int_equal(pipe(fds[i]), 0);
                a = (struct answer){};
                assert_true(sd_bus_call_method_async(agent, NULL, NULL, STARTER_PATH, STARTER_OBSERVE,
                                                     "Widen", on_widen, &a, "hu", fds[i][0],
                                                     128u << 10) >= 0);
                run(&a);
                assert_int_equal(a.r, i < 4 ? 0 : -1);
        }
        assert_non_null(strstr(a.error, OBSERVE_ERROR_BUSY));
        assert_non_null(strstr(a.error, "try again when some have been closed"));
        assert_int_equal(fcntl(fds[4][0], F_GETPIPE_SZ), 64 << 10);
        for (int i = 0; i < 5; i++)
                assert_true(close(fds[i][0]) == 0 && close(fds[i][1]) == 0);
}

/* ---- programs ---- */

static void on_trace(int r, const char *error, int settings, int latencies, void *userdata) {
        struct answer *a = userdata;

        *a = (struct answer){ .done = true, .r = r, .fd = settings };
        close_fd(latencies);
        close_fd(settings);
}

static void on_probes(int r, const char *error, const int fds[static _OBSERVED_FD_MAX],
                      const struct observed_program programs[static _OBSERVE_PROGRAM_MAX], void *userdata) {
        struct answer *a = userdata;

        *a = (struct answer){ .done = true, .r = r };
        for (size_t i = 0; i < _OBSERVED_FD_MAX; i++)
                close_fd(fds[i]);
        for (size_t i = 0; r >= 0 && i < _OBSERVE_PROGRAM_MAX; i++)
                assert_true(programs[i].up || *programs[i].why);
}

/* Also where the kernel refuses all of it there is an answer, and it says why. */
static void test_programs(void **state) {
        struct answer a = {};
        sd_bus_slot *slot;

        for (unsigned i = 0; i < 2; i++) {
                a = (struct answer){};
                assert_int_equal(observer_probes(observer, on_probes, &a, &slot), 0);
                run(&a);
                sd_bus_slot_unref(slot);
                assert_int_equal(a.r, 0);
        }
        for (int k = 0; k < _OBSERVE_TRACE_MAX; k++) {
                a = (struct answer){};
                assert_int_equal(observer_trace(observer, (enum observe_trace)k, on_trace, &a, &slot), 0);
                run(&a);
                sd_bus_slot_unref(slot);
                observer_untrace(observer, (enum observe_trace)k);
                observer_untrace(observer, (enum observe_trace)k);
        }
}

/* An answer that nobody waits for any more. */
static void test_released(void **state) {
        struct answer a = {}, last = {};
        sd_bus_slot *slot;

        assert_int_equal(observer_open(observer, UNIT, OBSERVE_FILE_MEMORY_PRESSURE, on_fd, &a, NULL, &slot),
                         0);
        sd_bus_slot_unref(slot);
        assert_int_equal(observer_signal(observer, UNIT, SIGUSR1, on_told, &last, nothing), 0);
        run(&last);
        assert_false(a.done);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_open),           cmocka_unit_test(test_open_link),
                cmocka_unit_test(test_signal),         cmocka_unit_test(test_capture),
                cmocka_unit_test(test_usage),          cmocka_unit_test(test_widen),
                cmocka_unit_test(test_widen_too_many), cmocka_unit_test(test_programs),
                cmocka_unit_test(test_released),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
