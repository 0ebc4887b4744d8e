/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/message-kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/wire/messages.h"

sd_bus *message_bus;
int message_other_end;

int message_setup(void **state) {
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        message_other_end = fds[1];
        assert_true(sd_bus_new(&message_bus) >= 0);
        assert_true(sd_bus_set_fd(message_bus, fds[0], fds[0]) >= 0);
        assert_true(sd_bus_start(message_bus) >= 0);
        return 0;
}

int message_teardown(void **state) {
        sd_bus_close_unref(message_bus);
        close(message_other_end);
        return 0;
}

sd_bus_message *message_new(void) {
        sd_bus_message *m = NULL;

        assert_true(sd_bus_message_new_method_call(message_bus, &m, NULL, LINK_PATH, LINK_INTERFACE,
                                                   "Test") >= 0);
        return m;
}

sd_bus_message *message_of_every_type(void) {
        sd_bus_message *m = message_new();

        assert_true(sd_bus_message_append(m, "ybnqiuxtdsog", 1, 1, 2, 3, 4, 5, INT64_C(6), UINT64_C(7), 8.0,
                                          "s", "/o", "g") >= 0);
        assert_true(sd_bus_message_append(m, "asa{sv}(s(iay))", 2, "a", "", 2, "k", "v", "ay", 2, 1, 2, "l",
                                          "aa{ss}", 1, 1, "x", "y", "t", 3, 1, 9) >= 0);
        assert_true(sd_bus_message_append(m, "aabaxa(dd)v", 1, 2, 1, 0, 2, INT64_C(1), INT64_C(2), 1, 1.0,
                                          2.0, "v", "(a{yv})", 1, 3, "s", "deep") >= 0);
        return m;
}

void message_seal(sd_bus_message *m) {
        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
        assert_true(sd_bus_message_rewind(m, true) >= 0);
}

bool message_find_property(sd_bus_message *m, const char *head, const char *name, const char *signature) {
        const char *s;

        assert_true(sd_bus_message_rewind(m, true) >= 0);
        if (*head)
                assert_true(sd_bus_message_skip(m, head) >= 0);
        assert_true(sd_bus_message_enter_container(m, 'a', "(sv)") > 0);
        while (sd_bus_message_enter_container(m, 'r', "sv") > 0) {
                assert_true(sd_bus_message_read(m, "s", &s) > 0);
                if (strcmp(s, name) == 0) {
                        assert_true(sd_bus_message_enter_container(m, 'v', signature) > 0);
                        return true;
                }
                assert_true(sd_bus_message_skip(m, "v") >= 0);
                assert_true(sd_bus_message_exit_container(m) >= 0);
        }
        return false;
}

void message_assert_number(sd_bus_message *m, const char *head, const char *name, uint64_t expected) {
        uint64_t n;

        assert_true(message_find_property(m, head, name, "t"));
        assert_true(sd_bus_message_read(m, "t", &n) > 0);
        assert_true(n == expected);
}
