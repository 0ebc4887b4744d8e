/* SPDX-License-Identifier: Apache-2.0 */
/* Records to captures. Invariant: every thread is there once, and what belongs to it is not more than a
 * capture's bounds let. */
#include "agentd/capture/found.h"

#include <seccomp.h>
#include <string.h>

#include "lib/base/cleanup.h"

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

static int add_thread(struct capture *c, const struct stream_thread *from, const char *stack) {
        struct capture_thread *t;

        if (c->n == CAPTURE_THREADS_MAX || capture_find(c, from->tid))
                return 0;
        t = realloc(c->threads, (c->n + 1) * sizeof(*t));
        if (!t)
                return -ENOMEM;
        c->threads = t;
        t += c->n;
        *t = (struct capture_thread){ .pid = from->pid,
                                      .tid = from->tid,
                                      .state = (char)from->state,
                                      .class = (enum capture_class)from->class };
        memcpy(t->name, from->name, sizeof(t->name));
        if (from->call != STREAM_NO_CALL)
                call_name(from->call, t->call, sizeof(t->call));
        if (*stack && !(t->stack = strdup(stack)))
                return -ENOMEM;
        c->n++;
        return 0;
}

static int set_text(char **target, const char *text) {
        char *copy = strdup(text);

        if (!copy)
                return -ENOMEM;
        free(*target);
        *target = copy;
        return 0;
}

/* Of how many processes something is there. */
static size_t pythons(const struct capture *c) {
        size_t n = 0;

        for (size_t i = 0; i < c->n; i++)
                n += c->threads[i].python != NULL;
        return n;
}

int found_add(struct capture *c, const struct stream_item *item) {
        struct capture_thread *t;

        switch (item->type) {
        case STREAM_TOTAL:
                c->total = item->number > UINT32_MAX - c->total ? UINT32_MAX : c->total + item->number;
                return 0;
        case STREAM_THREAD:
                return add_thread(c, &item->thread, item->text);
        case STREAM_STACK:
                t = capture_find(c, item->number);
                return t && *item->text ? set_text(&t->stack, item->text) : 0;
        case STREAM_PYTHON:
                t = capture_find(c, item->number);
                return t && *item->text && !t->python && pythons(c) < CAPTURE_PYTHONS_MAX
                               ? set_text(&t->python, item->text)
                               : 0;
        default:
                return 0;
        }
}
