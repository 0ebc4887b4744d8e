/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/exit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/log.h"

static void test_what_stays(void **state) {
        assert_int_equal(exit_person(0), 0);
        assert_int_equal(exit_person(-EINVAL), -EPERSON);
        assert_int_equal(exit_person(-EPROTONOSUPPORT), -EPERSON);
        assert_int_equal(exit_person(-EPERSON), -EPERSON);
        assert_int_equal(exit_person(-ENOMEM), -ENOMEM);
        assert_int_equal(exit_person(-EBUSY), -EBUSY);
        assert_int_equal(exit_person(-EADDRINUSE), -EADDRINUSE);
        assert_int_equal(exit_person_unless_short(1), 1);
        assert_int_equal(exit_person_unless_short(-ENOENT), -EPERSON);
        assert_int_equal(exit_person_unless_short(-ENOMEM), -ENOMEM);
        assert_int_equal(exit_person_unless_short(-ENOSPC), -ENOSPC);
        assert_int_equal(exit_person_unless_short(-ENFILE), -ENFILE);
}

static void test_status_and_sentence(void **state) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        char text[256] = "";
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int size = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "primus-test-exit-%d", (int)getpid());

        assert_true(fd >= 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&a,
                              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size)),
                         0);
        snprintf(text, sizeof(text), "@%s", a.sun_path + 1);
        assert_int_equal(setenv("NOTIFY_SOCKET", text, 1), 0);

        assert_int_equal(exit_status(0), 0);
        assert_int_equal(exit_status(5), 0);
        log_error_errno(EACCES, "Cannot read %s", "/etc/x");
        log_warning("not this");
        assert_int_equal(exit_status(-EPERSON), EXIT_PERSON);
        memset(text, 0, sizeof(text));
        assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
        assert_string_equal(text, "STATUS=Cannot read /etc/x: Permission denied");
        assert_int_equal(exit_status(-EIO), EXIT_FAILURE);
        (void)recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
        /* What somebody else has said is no word of ours to systemd. */
        log_error("masterd refused Hello: %s", "no\nMAINPID=1\nWATCHDOG=trigger");
        assert_int_equal(exit_status(-EIO), EXIT_FAILURE);
        memset(text, 0, sizeof(text));
        assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
        assert_null(strchr(text, '\n'));
        (void)close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_stays),
                cmocka_unit_test(test_status_and_sentence),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
