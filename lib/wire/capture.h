/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of an executor are doing, as agentd found them (Link1.Capture): its answer. Conventions of
 * messages.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#define CAPTURE_THREADS_MAX 256u  /* of one executor */
#define CAPTURE_STACK_MAX 1024u   /* bytes of a kernel stack */
#define CAPTURE_PYTHON_MAX 16384u /* bytes of what one process said of itself; its end is kept */
#define CAPTURE_PYTHONS_MAX 16u   /* such processes */
#define LINK_THREAD_SIGNATURE "(uusssss)"

/* What a thread waits for. */
enum capture_class {
        CAPTURE_RUNNING,
        CAPTURE_NETWORK,
        CAPTURE_FUTEX, /* another thread, or a process that shares memory */
        CAPTURE_SLEEP, /* the clock */
        CAPTURE_DISK,
        CAPTURE_PIPE, /* another process of the host: pipes, unix sockets, eventfd */
        CAPTURE_DEVICE,
        CAPTURE_STOPPED, /* by a signal, a debugger, or frozen */
        CAPTURE_OTHER,
        _CAPTURE_CLASS_MAX,
        _CAPTURE_CLASS_INVALID = -22
};
const char *capture_class_to_string(enum capture_class c);
enum capture_class capture_class_from_string(const char *s);

struct capture_thread {
        uint32_t pid, tid;
        char state; /* as proc(5) has it: R, S, D, T, Z ... */
        enum capture_class class;
        char name[16]; /* of the thread */
        char call[32]; /* system call; "": none, or not readable */
        char *stack;   /* names of the kernel's functions, innermost first, blanks between; NULL: not readable
                        */
        char *python;  /* tid == pid: what the process wrote when it got the stack signal, lines; else NULL */
};
void capture_thread_done(struct capture_thread *t);

struct capture {
        struct capture_thread *threads;
        size_t n;
        uint32_t total; /* that there are; more than n: the others were left out */
        char *note;     /* for people: why something is missing; NULL: nothing is */
};
void capture_done(struct capture *c);
/* The thread of that number, NULL. */
struct capture_thread *capture_find(const struct capture *c, uint32_t tid);

/* a(thread), a{sv} {"total" u, "python" a(us), "note" s}: the whole answer. */
int capture_append(sd_bus_message *m, const struct capture *c);
int capture_read(sd_bus_message *m, struct capture *ret);
