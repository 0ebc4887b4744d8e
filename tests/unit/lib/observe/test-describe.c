/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/observe/describe.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "agentd/capture/found.h"
#include "lib/base/cleanup.h"

static void test_stat(void **state) {
        char name[16], letter;

        assert_int_equal(describe_stat("12 (python3) S 1 2 3", name, &letter), 0);
        assert_string_equal(name, "python3");
        assert_int_equal(letter, 'S');
        /* A name is what a program likes. */
        assert_int_equal(describe_stat("12 (a) R (b)) D 1", name, &letter), 0);
        assert_string_equal(name, "a) R (b)");
        assert_int_equal(letter, 'D');
        assert_int_equal(describe_stat("12 (0123456789012345678) R 1", name, &letter), 0);
        assert_string_equal(name, "012345678901234");
        assert_int_equal(describe_stat("", name, &letter), -EBADMSG);
        assert_int_equal(describe_stat("12 (x)", name, &letter), -EBADMSG);
        assert_int_equal(describe_stat(") (", name, &letter), -EBADMSG);
}

static void test_call(void **state) {
        struct described_call c;

        assert_int_equal(describe_call("running\n", &c), 0);
        assert_int_equal(c.where, CALL_RUNNING);
        assert_int_equal(describe_call("-1 0x7ffe 0x7f00\n", &c), 0);
        assert_int_equal(c.where, CALL_NONE);
        assert_int_equal(describe_call("202 0x7f01 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe 0x7f00\n", &c), 0);
        assert_int_equal(c.where, CALL_IN);
        assert_int_equal(c.number, 202);
        assert_true(c.arguments[0] == 0x7f01 && c.arguments[1] == 0x189 && c.arguments[5] == 0xffffffff);
        assert_int_equal(describe_call("", &c), -EBADMSG);
        assert_int_equal(describe_call("202 0x1", &c), -EBADMSG);
        assert_int_equal(describe_call("what is this", &c), -EBADMSG);
}

static void test_names(void **state) {
        char name[32];

        call_name(SYS_futex, name, sizeof(name));
        assert_string_equal(name, "futex");
        call_name(SYS_pread64, name, sizeof(name));
        assert_string_equal(name, "pread64");
        call_name(987654, name, sizeof(name));
        assert_string_equal(name, "call 987654");
        assert_int_equal(call_waits(SYS_epoll_pwait), WAITS_EPOLL);
        assert_int_equal(call_waits(SYS_ppoll), WAITS_POLL);
        assert_int_equal(call_waits(-1), WAITS_OTHER);
}

static void test_stack(void **state) {
        _cleanup_free_ char *s = describe_stack("[<0>] futex_wait_queue+0x60/0x90\n[<0>] futex_wait+0x1/0x2\n"
                                                "[<0>] do_syscall_64+0x5/0x9\n[<0>] 0xffffffff\n"),
                            *plain = describe_stack("hrtimer_nanosleep"), *long_text = malloc(40000),
                            *cut = NULL;

        assert_string_equal(s, "futex_wait_queue futex_wait do_syscall_64");
        assert_string_equal(plain, "hrtimer_nanosleep");
        assert_null(describe_stack(""));
        assert_null(describe_stack("[<"));
        long_text[0] = 0;
        for (unsigned i = 0; i < 1000; i++)
                strcpy(long_text + i * 20, "[<0>] function+0x1/\n");
        cut = describe_stack(long_text);
        assert_true(strlen(cut) <= CAPTURE_STACK_MAX && strlen(cut) > CAPTURE_STACK_MAX - 20);
}

static void test_objects(void **state) {
        assert_int_equal(describe_object("socket:[123]"), OBJECT_SOCKET);
        assert_int_equal(describe_object("pipe:[1]"), OBJECT_PIPE);
        assert_int_equal(describe_object("/dev/nvidia0"), OBJECT_DEVICE);
        assert_int_equal(describe_object("/dev/shm/x"), OBJECT_FILE);
        assert_int_equal(describe_object("/data/a (deleted)"), OBJECT_FILE);
        assert_int_equal(describe_object("anon_inode:[eventpoll]"), OBJECT_EPOLL);
        assert_int_equal(describe_object("anon_inode:inotify"), OBJECT_OTHER);
        assert_int_equal(describe_socket("UNIX"), OBJECT_LOCAL);
        assert_int_equal(describe_socket("UNIX-STREAM"), OBJECT_LOCAL);
        assert_int_equal(describe_socket("TCPv6"), OBJECT_SOCKET);
        assert_int_equal(object_more(OBJECT_EVENT, OBJECT_SOCKET), OBJECT_SOCKET);
        assert_int_equal(object_more(OBJECT_SOCKET, OBJECT_NONE), OBJECT_SOCKET);
}

static void test_classes(void **state) {
        static const struct {
                char state;
                long call;
                enum object object;
                const char *place;
                enum capture_class expected;
        } cases[] = {
                { 'T', SYS_futex, OBJECT_NONE, NULL, CAPTURE_STOPPED },
                { 't', SYS_read, OBJECT_PIPE, NULL, CAPTURE_STOPPED },
                { 'S', SYS_read, OBJECT_PIPE, "do_freezer_trap get_signal", CAPTURE_STOPPED },
                { 'R', SYS_read, OBJECT_FILE, NULL, CAPTURE_RUNNING },
                { 'S', SYS_futex, OBJECT_NONE, NULL, CAPTURE_FUTEX },
                { 'D', SYS_futex, OBJECT_NONE, NULL, CAPTURE_FUTEX },
                { 'S', SYS_clock_nanosleep, OBJECT_NONE, NULL, CAPTURE_SLEEP },
                { 'S', SYS_ppoll, OBJECT_NONE, NULL, CAPTURE_SLEEP },
                { 'S', SYS_ppoll, OBJECT_SOCKET, NULL, CAPTURE_NETWORK },
                { 'S', SYS_epoll_pwait, OBJECT_EVENT, NULL, CAPTURE_PIPE },
                { 'S', SYS_recvfrom, OBJECT_SOCKET, NULL, CAPTURE_NETWORK },
                { 'S', SYS_recvfrom, OBJECT_LOCAL, NULL, CAPTURE_PIPE },
                { 'S', SYS_read, OBJECT_NONE, NULL, CAPTURE_OTHER },
                { 'D', SYS_read, OBJECT_FILE, NULL, CAPTURE_DISK },
                { 'D', SYS_ioctl, OBJECT_DEVICE, NULL, CAPTURE_DEVICE },
                { 'D', SYS_mmap, OBJECT_NONE, NULL, CAPTURE_DISK },
                { 'D', SYS_fsync, OBJECT_NONE, NULL, CAPTURE_DISK },
                { 'S', SYS_wait4, OBJECT_NONE, NULL, CAPTURE_OTHER },
                { 'Z', -1, OBJECT_NONE, NULL, CAPTURE_OTHER },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const struct described_call in = { .where = CALL_IN, .number = cases[i].call };

                assert_int_equal(describe_class(cases[i].state, &in, cases[i].object, cases[i].place),
                                 cases[i].expected);
        }
        assert_int_equal(describe_class('D', NULL, OBJECT_NONE, NULL), CAPTURE_DISK);
        assert_int_equal(describe_class('S', NULL, OBJECT_NONE, NULL), CAPTURE_OTHER);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stat),  cmocka_unit_test(test_call),    cmocka_unit_test(test_names),
                cmocka_unit_test(test_stack), cmocka_unit_test(test_objects), cmocka_unit_test(test_classes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
