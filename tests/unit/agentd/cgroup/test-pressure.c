/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/cgroup/pressure.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"

static const struct pressure_options usual = { 2 * USEC_PER_SEC, 400 * USEC_PER_MSEC, 1500 * USEC_PER_MSEC };

static void on_pressure(enum pressure_kind kind, uint64_t amount, void *userdata) {
        fail();
}

static void test_options(void **state) {
        struct pressure_options o = usual;

        assert_true(pressure_options_valid(&o));
        o.memory_usec = 0;
        o.io_usec = o.window_usec;
        assert_true(pressure_options_valid(&o));
        o.io_usec++;
        assert_false(pressure_options_valid(&o));
        o.io_usec = 0;
        o.window_usec = 499999;
        assert_false(pressure_options_valid(&o));
        o.window_usec = 10000001;
        assert_false(pressure_options_valid(&o));
}

static void test_names(void **state) {
        for (unsigned k = 0; k < _PRESSURE_KIND_MAX; k++)
                assert_non_null(pressure_kind_to_string((enum pressure_kind)k));
        assert_null(pressure_kind_to_string(_PRESSURE_KIND_MAX));
}

/* Files that are none of the kernel's are refused by epoll, one by one. */
static void test_strange_files(void **state) {
        char root[] = "/tmp/primus-pressure-XXXXXX", path[64];
        _cleanup_close_ int dir = -EBADF;
        sd_event *event = NULL;
        struct pressure *p = NULL;

        assert_non_null(mkdtemp(root));
        dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(pressure_new(event, &usual, on_pressure, NULL, &p), 0);
        assert_int_equal(pressure_watch_events(p, dir), -ENOENT);
        snprintf(path, sizeof(path), "%s/memory.events", root);
        assert_int_equal(write_file_atomic(path, "high 0\n", 7, 0644, false), 0);
        assert_int_equal(pressure_watch_events(p, dir), -EPERM);
        snprintf(path, sizeof(path), "%s/io.pressure", root);
        assert_int_equal(write_file_atomic(path, "", 0, 0644, false), 0);
        assert_true(pressure_watch(p, PRESSURE_IO, open(path, O_RDWR | O_CLOEXEC)) < 0);
        assert_int_equal(pressure_watch(p, PRESSURE_OOM, -EBADF), -EINVAL);
        pressure_free(p);
        sd_event_unref(event);
        assert_int_equal(remove_tree(root), 0);
}

/* The host's own, where it can be had: triggers are taken, and let go again, also by who has no more than the
 * descriptor. */
static void test_host(void **state) {
        struct pressure *p = NULL;
        sd_event *event = NULL;
        int fd = open("/sys/fs/cgroup/unified/io.pressure", O_RDWR | O_NONBLOCK | O_CLOEXEC), status;
        pid_t pid;

        if (fd < 0)
                skip();
        pid = fork();
        if (pid == 0) {
                if (geteuid() == 0 && setuid(65534) < 0)
                        _exit(1);
                _exit(sd_event_new(&event) < 0 || pressure_new(event, &usual, on_pressure, NULL, &p) < 0 ||
                      pressure_watch(p, PRESSURE_IO, fd) < 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        close(fd);
        assert_int_equal(status, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_options),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_strange_files),
                cmocka_unit_test(test_host),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
