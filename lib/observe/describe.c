/* SPDX-License-Identifier: Apache-2.0 */
/* Threads as /proc has them, in words. Invariant: the state comes first (what is stopped or runs waits for
 * nothing), then the system call, then what its descriptors are. */
#include "lib/observe/describe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

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
        long number;
        enum waits waits;
} calls[] = {
/* Some machines, or headers, lack some. */
#ifdef SYS_futex
        { SYS_futex, WAITS_FUTEX },
#endif
#ifdef SYS_futex_waitv
        { SYS_futex_waitv, WAITS_FUTEX },
#endif
#ifdef SYS_futex_wait
        { SYS_futex_wait, WAITS_FUTEX },
#endif
#ifdef SYS_nanosleep
        { SYS_nanosleep, WAITS_SLEEP },
#endif
#ifdef SYS_clock_nanosleep
        { SYS_clock_nanosleep, WAITS_SLEEP },
#endif
#ifdef SYS_pause
        { SYS_pause, WAITS_SLEEP },
#endif
        { SYS_rt_sigsuspend, WAITS_SLEEP },
#ifdef SYS_rt_sigtimedwait
        { SYS_rt_sigtimedwait, WAITS_SLEEP },
#endif
#ifdef SYS_poll
        { SYS_poll, WAITS_POLL },
#endif
#ifdef SYS_ppoll
        { SYS_ppoll, WAITS_POLL },
#endif
#ifdef SYS_select
        { SYS_select, WAITS_SELECT },
#endif
#ifdef SYS_pselect6
        { SYS_pselect6, WAITS_SELECT },
#endif
#ifdef SYS_epoll_wait
        { SYS_epoll_wait, WAITS_EPOLL },
#endif
        { SYS_epoll_pwait, WAITS_EPOLL },
#ifdef SYS_epoll_pwait2
        { SYS_epoll_pwait2, WAITS_EPOLL },
#endif
        { SYS_read, WAITS_DESCRIPTOR },
        { SYS_readv, WAITS_DESCRIPTOR },
        { SYS_pread64, WAITS_DESCRIPTOR },
        { SYS_preadv, WAITS_DESCRIPTOR },
#ifdef SYS_preadv2
        { SYS_preadv2, WAITS_DESCRIPTOR },
#endif
        { SYS_write, WAITS_DESCRIPTOR },
        { SYS_writev, WAITS_DESCRIPTOR },
        { SYS_pwrite64, WAITS_DESCRIPTOR },
        { SYS_pwritev, WAITS_DESCRIPTOR },
#ifdef SYS_pwritev2
        { SYS_pwritev2, WAITS_DESCRIPTOR },
#endif
#ifdef SYS_recvfrom
        { SYS_recvfrom, WAITS_DESCRIPTOR },
#endif
#ifdef SYS_recvmsg
        { SYS_recvmsg, WAITS_DESCRIPTOR },
#endif
#ifdef SYS_recvmmsg
        { SYS_recvmmsg, WAITS_DESCRIPTOR },
#endif
#ifdef SYS_sendto
        { SYS_sendto, WAITS_DESCRIPTOR },
#endif
#ifdef SYS_sendmsg
        { SYS_sendmsg, WAITS_DESCRIPTOR },
#endif
#ifdef SYS_sendmmsg
        { SYS_sendmmsg, WAITS_DESCRIPTOR },
#endif
#ifdef SYS_sendfile
        { SYS_sendfile, WAITS_DESCRIPTOR },
#endif
        { SYS_splice, WAITS_DESCRIPTOR },
        { SYS_tee, WAITS_DESCRIPTOR },
        { SYS_vmsplice, WAITS_DESCRIPTOR },
        { SYS_copy_file_range, WAITS_DESCRIPTOR },
#ifdef SYS_accept
        { SYS_accept, WAITS_DESCRIPTOR },
#endif
#ifdef SYS_accept4
        { SYS_accept4, WAITS_DESCRIPTOR },
#endif
#ifdef SYS_connect
        { SYS_connect, WAITS_DESCRIPTOR },
#endif
        { SYS_ioctl, WAITS_DESCRIPTOR },
        { SYS_fcntl, WAITS_DESCRIPTOR },
#ifdef SYS_flock
        { SYS_flock, WAITS_DESCRIPTOR },
#endif
        { SYS_close, WAITS_DESCRIPTOR },
        { SYS_fsync, WAITS_DISK },
        { SYS_fdatasync, WAITS_DISK },
        { SYS_sync, WAITS_DISK },
        { SYS_syncfs, WAITS_DISK },
#ifdef SYS_sync_file_range
        { SYS_sync_file_range, WAITS_DISK },
#endif
        { SYS_msync, WAITS_DISK },
#ifdef SYS_open
        { SYS_open, WAITS_DISK },
#endif
        { SYS_openat, WAITS_DISK },
        { SYS_openat2, WAITS_DISK },
        { SYS_getdents64, WAITS_DISK },
#ifdef SYS_newfstatat
        { SYS_newfstatat, WAITS_DISK },
#endif
        { SYS_statx, WAITS_DISK },
        { SYS_unlinkat, WAITS_DISK },
#ifdef SYS_renameat2
        { SYS_renameat2, WAITS_DISK },
#endif
#ifdef SYS_io_getevents
        { SYS_io_getevents, WAITS_DISK },
#endif
};

enum waits call_waits(long number) {
        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                if (calls[i].number == number)
                        return calls[i].waits;
        return WAITS_OTHER;
}

static const enum capture_class class_of_object[_OBJECT_MAX] = {
        [OBJECT_NONE] = CAPTURE_OTHER,    [OBJECT_SOCKET] = CAPTURE_NETWORK, [OBJECT_LOCAL] = CAPTURE_PIPE,
        [OBJECT_PIPE] = CAPTURE_PIPE,     [OBJECT_FILE] = CAPTURE_DISK,      [OBJECT_DEVICE] = CAPTURE_DEVICE,
        [OBJECT_TERMINAL] = CAPTURE_PIPE, [OBJECT_EVENT] = CAPTURE_PIPE,     [OBJECT_TIMER] = CAPTURE_SLEEP,
        [OBJECT_EPOLL] = CAPTURE_PIPE,    [OBJECT_OTHER] = CAPTURE_OTHER,
};

enum capture_class describe_class(char state, const struct described_call *call, enum object object,
                                  const char *place) {
        if (state == 'T' || state == 't' || (place && strstr(place, "freezer")))
                return CAPTURE_STOPPED;
        if (state == 'R')
                return CAPTURE_RUNNING;
        if (state == 'Z' || state == 'X')
                return CAPTURE_OTHER;
        if (call && call->where == CALL_IN)
                switch (call_waits(call->number)) {
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
