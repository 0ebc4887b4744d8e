/* SPDX-License-Identifier: Apache-2.0 */
/* Threads as /proc has them, in words. Invariant: the state comes first (what is stopped or runs waits for
 * nothing), then the system call, then what its descriptors are. */
#include "agentd/capture/describe.h"

#include <errno.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* "1234 (name) S ...": the name may hold anything, parentheses too. */
int describe_stat(const char *text, char ret_name[static 16], char *ret_state) {
        const char *open = strchr(text, '('), *close = strrchr(text, ')');
        size_t n;

        if (!open || !close || close < open || close[1] != ' ' || !close[2])
                return -EBADMSG;
        n = MIN((size_t)(close - open - 1), (size_t)15);
        memcpy(ret_name, open + 1, n);
        ret_name[n] = 0;
        *ret_state = close[2];
        return 0;
}

int describe_call(const char *text, struct described_call *ret) {
        struct described_call c = { .where = CALL_IN, .number = -1 };
        int n;

        if (strncmp(text, "running", 7) == 0) {
                *ret = (struct described_call){ .where = CALL_RUNNING, .number = -1 };
                return 0;
        }
        n = sscanf(text, "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
                   &c.number, c.arguments, c.arguments + 1, c.arguments + 2, c.arguments + 3, c.arguments + 4,
                   c.arguments + 5);
        if (n < 1)
                return -EBADMSG;
        if (c.number < 0)
                c.where = CALL_NONE;
        else if (n < 7)
                return -EBADMSG;
        *ret = c;
        return 0;
}

void call_name(long number, char *buf, size_t size) {
        char *name = number >= 0 && number <= INT32_MAX
                             ? seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number)
                             : NULL;

        if (name)
                snprintf(buf, size, "%s", name);
        else
                snprintf(buf, size, "call %ld", number);
        free(name);
}

/* "[<0>] futex_wait_queue+0x60/0x90", a line for each function. */
char *describe_stack(const char *text) {
        _cleanup_free_ char *all = calloc(1, CAPTURE_STACK_MAX + 1);
        size_t n = 0;

        for (const char *line = text; all && line && *line;
             line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
                const char *name = strncmp(line, "[<", 2) == 0 ? strchr(line, ' ') : line;
                size_t size;

                if (!name)
                        break;
                name += *name == ' ';
                size = strcspn(name, "+/ \n");
                if (size == 0 || *name == '[' || strncmp(name, "0x", 2) == 0)
                        continue;
                if (n + size + 1 > CAPTURE_STACK_MAX)
                        break;
                if (n > 0)
                        all[n++] = ' ';
                memcpy(all + n, name, size);
                n += size;
        }
        return n > 0 ? TAKE_PTR(all) : NULL;
}

/* ---- descriptors ---- */

static const struct {
        const char *begin;
        enum object object;
} objects[] = {
        { "socket:", OBJECT_SOCKET },
        { "pipe:", OBJECT_PIPE },
        { "anon_inode:[eventpoll]", OBJECT_EPOLL },
        { "anon_inode:[eventfd]", OBJECT_EVENT },
        { "anon_inode:[timerfd]", OBJECT_TIMER },
        { "anon_inode:", OBJECT_OTHER },
        { "/dev/pts/", OBJECT_TERMINAL },
        { "/dev/tty", OBJECT_TERMINAL },
        { "/dev/console", OBJECT_TERMINAL },
        { "/dev/null", OBJECT_OTHER },
        { "/dev/zero", OBJECT_OTHER },
        { "/dev/random", OBJECT_OTHER },
        { "/dev/urandom", OBJECT_OTHER },
        { "/dev/shm/", OBJECT_FILE },
        { "/dev/hugepages/", OBJECT_FILE },
        { "/dev/", OBJECT_DEVICE },
        { "/memfd:", OBJECT_OTHER },
        { "/", OBJECT_FILE },
};

enum object describe_object(const char *link) {
        for (size_t i = 0; i < ELEMENTSOF(objects); i++)
                if (strncmp(link, objects[i].begin, strlen(objects[i].begin)) == 0)
                        return objects[i].object;
        return OBJECT_OTHER;
}

enum object describe_socket(const char *protocol) {
        return strncmp(protocol, "UNIX", 4) == 0  ? OBJECT_LOCAL
               : strcmp(protocol, "NETLINK") == 0 ? OBJECT_OTHER
                                                  : OBJECT_SOCKET;
}

enum object object_more(enum object a, enum object b) {
        static const unsigned char weight[_OBJECT_MAX] = {
                [OBJECT_NONE] = 0,  [OBJECT_OTHER] = 1,  [OBJECT_EPOLL] = 2,    [OBJECT_TIMER] = 3,
                [OBJECT_EVENT] = 4, [OBJECT_FILE] = 5,   [OBJECT_TERMINAL] = 6, [OBJECT_PIPE] = 7,
                [OBJECT_LOCAL] = 8, [OBJECT_DEVICE] = 9, [OBJECT_SOCKET] = 10,
        };

        return weight[b] > weight[a] ? b : a;
}

/* ---- classes ---- */

static const struct {
        const char *name;
        enum waits waits;
} calls[] = {
        { "futex", WAITS_FUTEX },
        { "futex_waitv", WAITS_FUTEX },
        { "futex_wait", WAITS_FUTEX },
        { "nanosleep", WAITS_SLEEP },
        { "clock_nanosleep", WAITS_SLEEP },
        { "pause", WAITS_SLEEP },
        { "rt_sigsuspend", WAITS_SLEEP },
        { "rt_sigtimedwait", WAITS_SLEEP },
        { "poll", WAITS_POLL },
        { "ppoll", WAITS_POLL },
        { "select", WAITS_SELECT },
        { "pselect6", WAITS_SELECT },
        { "epoll_wait", WAITS_EPOLL },
        { "epoll_pwait", WAITS_EPOLL },
        { "epoll_pwait2", WAITS_EPOLL },
        { "read", WAITS_DESCRIPTOR },
        { "readv", WAITS_DESCRIPTOR },
        { "pread64", WAITS_DESCRIPTOR },
        { "preadv", WAITS_DESCRIPTOR },
        { "preadv2", WAITS_DESCRIPTOR },
        { "write", WAITS_DESCRIPTOR },
        { "writev", WAITS_DESCRIPTOR },
        { "pwrite64", WAITS_DESCRIPTOR },
        { "pwritev", WAITS_DESCRIPTOR },
        { "pwritev2", WAITS_DESCRIPTOR },
        { "recvfrom", WAITS_DESCRIPTOR },
        { "recvmsg", WAITS_DESCRIPTOR },
        { "recvmmsg", WAITS_DESCRIPTOR },
        { "sendto", WAITS_DESCRIPTOR },
        { "sendmsg", WAITS_DESCRIPTOR },
        { "sendmmsg", WAITS_DESCRIPTOR },
        { "sendfile", WAITS_DESCRIPTOR },
        { "splice", WAITS_DESCRIPTOR },
        { "tee", WAITS_DESCRIPTOR },
        { "vmsplice", WAITS_DESCRIPTOR },
        { "copy_file_range", WAITS_DESCRIPTOR },
        { "accept", WAITS_DESCRIPTOR },
        { "accept4", WAITS_DESCRIPTOR },
        { "connect", WAITS_DESCRIPTOR },
        { "ioctl", WAITS_DESCRIPTOR },
        { "fcntl", WAITS_DESCRIPTOR },
        { "flock", WAITS_DESCRIPTOR },
        { "close", WAITS_DESCRIPTOR },
        { "fsync", WAITS_DISK },
        { "fdatasync", WAITS_DISK },
        { "sync", WAITS_DISK },
        { "syncfs", WAITS_DISK },
        { "sync_file_range", WAITS_DISK },
        { "msync", WAITS_DISK },
        { "open", WAITS_DISK },
        { "openat", WAITS_DISK },
        { "openat2", WAITS_DISK },
        { "getdents64", WAITS_DISK },
        { "newfstatat", WAITS_DISK },
        { "statx", WAITS_DISK },
        { "unlinkat", WAITS_DISK },
        { "renameat2", WAITS_DISK },
        { "io_getevents", WAITS_DISK },
};

enum waits call_waits(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                if (strcmp(calls[i].name, name) == 0)
                        return calls[i].waits;
        return WAITS_OTHER;
}

static const enum capture_class class_of_object[_OBJECT_MAX] = {
        [OBJECT_NONE] = CAPTURE_OTHER,    [OBJECT_SOCKET] = CAPTURE_NETWORK, [OBJECT_LOCAL] = CAPTURE_PIPE,
        [OBJECT_PIPE] = CAPTURE_PIPE,     [OBJECT_FILE] = CAPTURE_DISK,      [OBJECT_DEVICE] = CAPTURE_DEVICE,
        [OBJECT_TERMINAL] = CAPTURE_PIPE, [OBJECT_EVENT] = CAPTURE_PIPE,     [OBJECT_TIMER] = CAPTURE_SLEEP,
        [OBJECT_EPOLL] = CAPTURE_PIPE,    [OBJECT_OTHER] = CAPTURE_OTHER,
};

enum capture_class describe_class(char state, const struct described_call *call, const char *name,
                                  enum object object, const char *place) {
        if (state == 'T' || state == 't' || (place && strstr(place, "freezer")))
                return CAPTURE_STOPPED;
        if (state == 'R')
                return CAPTURE_RUNNING;
        if (state == 'Z' || state == 'X')
                return CAPTURE_OTHER;
        if (call && call->where == CALL_IN)
                switch (call_waits(name)) {
                case WAITS_FUTEX:
                        return CAPTURE_FUTEX;
                case WAITS_SLEEP:
                        return CAPTURE_SLEEP;
                case WAITS_DISK:
                        return CAPTURE_DISK;
                case WAITS_POLL:
                case WAITS_SELECT:
                case WAITS_EPOLL:
                        /* Of nothing: for the time alone. */
                        return object == OBJECT_NONE ? CAPTURE_SLEEP : class_of_object[object];
                case WAITS_DESCRIPTOR:
                        if (object != OBJECT_NONE)
                                return class_of_object[object];
                        break;
                case WAITS_OTHER:
                        break;
                }
        return state == 'D' ? CAPTURE_DISK : CAPTURE_OTHER;
}
