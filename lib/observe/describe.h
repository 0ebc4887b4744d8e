/* SPDX-License-Identifier: Apache-2.0 */
/* What files of /proc say of a thread, read: pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/capture.h"

/* /proc/PID/task/TID/stat: its name and state. -EBADMSG. */
int describe_stat(const char *text, char ret_name[static 16], char *ret_state);

/* /proc/PID/task/TID/syscall */
struct described_call {
        enum {
                CALL_RUNNING, /* it was on a processor */
                CALL_NONE,    /* it waits, but in no system call (a page fault) */
                CALL_IN,
        } where;
        long number;
        uint64_t arguments[6];
};
int describe_call(const char *text, struct described_call *ret); /* -EBADMSG */

/* /proc/PID/task/TID/stack: names of functions, blanks between, at most CAPTURE_STACK_MAX bytes. Allocated;
 * NULL: there are none, or ENOMEM. */
char *describe_stack(const char *text);

/* What an open descriptor is. */
enum object {
        OBJECT_NONE, /* not known */
        OBJECT_SOCKET,
        OBJECT_LOCAL, /* a unix socket */
        OBJECT_PIPE,
        OBJECT_FILE,
        OBJECT_DEVICE,
        OBJECT_TERMINAL,
        OBJECT_EVENT, /* eventfd: somebody of the same host */
        OBJECT_TIMER,
        OBJECT_EPOLL,
        OBJECT_OTHER,
        _OBJECT_MAX
};
/* By what /proc/PID/fd/N points to. */
enum object describe_object(const char *link);
/* system.sockprotoname of a socket: "TCP", "UNIX", ... */
enum object describe_socket(const char *protocol);
/* Of two that are waited for at once, the one that says more. */
enum object object_more(enum object a, enum object b);

/* What decides over the class of a system call. */
enum waits {
        WAITS_OTHER,
        WAITS_FUTEX,
        WAITS_SLEEP,
        WAITS_DISK,
        WAITS_DESCRIPTOR, /* what its first argument is */
        WAITS_POLL,       /* what is in the set: poll, ppoll */
        WAITS_SELECT,
        WAITS_EPOLL
};
enum waits call_waits(long number);

/* object: what it waits for, where the call is about descriptors. place: /proc/PID/task/TID/wchan or the
 * innermost function of the kernel; may be NULL. */
enum capture_class describe_class(char state, const struct described_call *call, enum object object,
                                  const char *place);
