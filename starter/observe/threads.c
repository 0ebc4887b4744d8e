/* SPDX-License-Identifier: Apache-2.0 */
/* A thread as /proc has it. Invariant: each file is small or read in part, and one that may not be read only
 * makes the answer poorer. */
#include "starter/observe/threads.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/observe/describe.h"

#define FILE_MAX (64u << 10)
#define POLLED_MAX 64u /* descriptors of a set that are looked at */

/* ---- which there are ---- */

uint32_t threads_count(const char *proc, pid_t pid) {
        _cleanup_free_ char *text = NULL;
        char path[512];
        const char *line;

        snprintf(path, sizeof(path), "%s/%d/status", proc, (int)pid);
        if (read_file(path, FILE_MAX, &text, NULL) < 0 || !(line = strstr(text, "\nThreads:")))
                return 0;
        return (uint32_t)strtoul(line + strlen("\nThreads:"), NULL, 10);
}

DIR *threads_open(const char *proc, pid_t pid) {
        char path[512];

        snprintf(path, sizeof(path), "%s/%d/task", proc, (int)pid);
        return opendir(path);
}

pid_t threads_next(DIR *list) {
        struct dirent *entry;

        while ((entry = readdir(list))) {
                long tid = strtol(entry->d_name, NULL, 10);

                if (tid > 0)
                        return (pid_t)tid;
        }
        return 0;
}

/* ---- descriptors ---- */

struct of {
        const char *proc;
        pid_t pid, tid;
};

static enum object object_at(const struct of *o, uint64_t fd);

/* "tfd:        5 events: ..." for each descriptor of an epoll set. */
static enum object epoll_object(const struct of *o, uint64_t fd) {
        _cleanup_free_ char *text = NULL;
        enum object best = OBJECT_NONE;
        char path[512];
        unsigned n = 0;

        snprintf(path, sizeof(path), "%s/%d/fdinfo/%" PRIu64, o->proc, (int)o->pid, fd);
        if (read_file(path, FILE_MAX, &text, NULL) < 0)
                return OBJECT_EPOLL;
        for (const char *p = strstr(text, "tfd:"); p && n < POLLED_MAX; p = strstr(p + 4, "tfd:"), n++) {
                uint64_t inner = strtoull(p + 4, NULL, 10);

                /* Not into sets of sets. */
                best = object_more(best, inner == fd ? OBJECT_EPOLL : object_at(o, inner));
        }
        return best;
}

static enum object object_at(const struct of *o, uint64_t fd) {
        char path[512], link[256], protocol[32];
        enum object object;
        ssize_t n;

        if (fd > INT32_MAX)
                return OBJECT_NONE;
        snprintf(path, sizeof(path), "%s/%d/fd/%" PRIu64, o->proc, (int)o->pid, fd);
        n = readlink(path, link, sizeof(link) - 1);
        if (n < 0)
                return OBJECT_NONE;
        link[n] = 0;
        object = describe_object(link);
        if (object != OBJECT_SOCKET)
                return object;
        n = getxattr(path, "system.sockprotoname", protocol, sizeof(protocol) - 1);
        if (n < 0)
                return OBJECT_SOCKET;
        protocol[n] = 0;
        return describe_socket(protocol);
}

/* What is read from the memory of the process itself. */
static ssize_t peek(pid_t pid, uint64_t address, void *buf, size_t size) {
        struct iovec here = { buf, size }, there = { (void *)(uintptr_t)address, size };

        return process_vm_readv(pid, &here, 1, &there, 1, 0);
}

static enum object poll_object(const struct of *o, const struct described_call *c) {
        struct pollfd set[POLLED_MAX];
        size_t n = MIN(c->arguments[1], (uint64_t)POLLED_MAX);
        enum object best = OBJECT_NONE;

        if (n == 0)
                return OBJECT_NONE;
        if (peek(o->pid, c->arguments[0], set, n * sizeof(*set)) != (ssize_t)(n * sizeof(*set)))
                return OBJECT_OTHER;
        for (size_t i = 0; i < n; i++)
                if (set[i].fd >= 0)
                        best = object_more(best, object_at(o, (uint64_t)set[i].fd));
        return best;
}

static enum object select_object(const struct of *o, const struct described_call *c) {
        size_t n = MIN(c->arguments[0], (uint64_t)FD_SETSIZE);
        enum object best = OBJECT_NONE;

        for (unsigned which = 1; which <= 2 && n > 0; which++) {
                fd_set set;

                FD_ZERO(&set);
                if (c->arguments[which] == 0)
                        continue;
                if (peek(o->pid, c->arguments[which], &set, (n + 7) / 8) < 0)
                        return OBJECT_OTHER;
                for (size_t fd = 0; fd < n; fd++)
                        if (FD_ISSET((int)fd, &set))
                                best = object_more(best, object_at(o, fd));
        }
        return best;
}

static enum object waited_for(const struct of *o, const struct described_call *c) {
        enum object object;

        switch (call_waits(c->number)) {
        case WAITS_DESCRIPTOR:
                object = object_at(o, c->arguments[0]);
                return object == OBJECT_EPOLL ? OBJECT_OTHER : object;
        case WAITS_EPOLL:
                return epoll_object(o, c->arguments[0]);
        case WAITS_POLL:
                return poll_object(o, c);
        case WAITS_SELECT:
                return select_object(o, c);
        default:
                return OBJECT_NONE;
        }
}

/* ---- a thread ---- */

static char *task_file(const struct of *o, const char *name) {
        char path[512], *text = NULL;

        snprintf(path, sizeof(path), "%s/%d/task/%d/%s", o->proc, (int)o->pid, (int)o->tid, name);
        return read_file(path, FILE_MAX, &text, NULL) < 0 ? NULL : text;
}

int thread_read(const char *proc, pid_t pid, pid_t tid, struct stream_thread *ret, char **ret_stack) {
        struct stream_thread t = { .pid = (uint32_t)pid, .tid = (uint32_t)tid, .call = STREAM_NO_CALL };
        const struct of o = { proc, pid, tid };
        _cleanup_free_ char *stat = task_file(&o, "stat"), *text = NULL, *stack = NULL, *place = NULL,
                            *described = NULL;
        struct described_call call = {};
        enum object object = OBJECT_NONE;
        char state;
        bool known;

        if (!stat || describe_stat(stat, t.name, &state) < 0)
                return -ESRCH;
        t.state = (uint8_t)state;
        text = task_file(&o, "syscall");
        known = text && describe_call(text, &call) >= 0;
        if (known && call.where == CALL_IN && call.number <= INT32_MAX) {
                t.call = (int32_t)call.number;
                object = waited_for(&o, &call);
        }
        stack = task_file(&o, "stack");
        place = task_file(&o, "wchan");
        if (stack)
                described = describe_stack(stack);
        if (!described && place && *place && strcmp(place, "0") != 0)
                described = describe_stack(place);
        t.class = (uint8_t)describe_class(state, known ? &call : NULL, object, described);
        *ret = t;
        *ret_stack = TAKE_PTR(described);
        return 0;
}
