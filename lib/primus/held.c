/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a task is in at most one of the two lists, and never while it is being delivered. */
#include "lib/primus/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/tasks.h"

void held_done(struct held *h) {
        free(h->whole.tasks);
        free(h->partial.tasks);
        *h = (struct held){};
}

void held_clear(struct held *h) {
        h->whole.n = h->partial.n = 0;
}

static int list_add(struct held_list *l, const struct held_task *t) {
        if (l->n == l->allocated) {
                size_t n = l->allocated == 0 ? 16 : l->allocated * 2;
                struct held_task *tasks = reallocarray(l->tasks, n, sizeof(*tasks));

                if (!tasks)
                        return -ENOMEM;
                l->tasks = tasks;
                l->allocated = n;
        }
        l->tasks[l->n++] = *t;
        return 0;
}

/* From the end: what is asked for was mostly added lately. */
static struct held_task *list_find(struct held_list *l, uint64_t task) {
        for (size_t i = l->n; i > 0; i--)
                if (l->tasks[i - 1].at.task == task)
                        return l->tasks + i - 1;
        return NULL;
}

static void list_remove(struct held_list *l, struct held_task *t) {
        size_t i = (size_t)(t - l->tasks);

        memmove(t, t + 1, (l->n - i - 1) * sizeof(*t));
        l->n--;
}

int held_leave(struct held *h, const struct client_ack *at) {
        struct held_task t = { .at = *at };

        return list_add(at->position == TASK_TO_END ? &h->whole : &h->partial, &t);
}

void held_resume(struct held *h, struct client_ack *at) {
        struct held_task *t = list_find(&h->partial, at->task);

        if (!t)
                return;
        if (t->at.position == at->position && t->at.skip == at->skip)
                at->records = t->at.records;
        list_remove(&h->partial, t);
}

int held_state(const struct held *h, const uint8_t job_uid[static 16], const struct client_ack *now,
               void **ret, size_t *ret_size) {
        size_t n = h->whole.n + h->partial.n + (now ? 1 : 0), size;
        struct client_state *s;
        struct client_ack *a;

        if (n > HELD_STATE_TASKS_MAX)
                return -E2BIG;
        size = sizeof(*s) + n * sizeof(*a);
        s = malloc(size);
        if (!s)
                return -ENOMEM;
        *s = (struct client_state){
                .magic = CLIENT_STATE_MAGIC,
                .version = CLIENT_STATE_VERSION,
                .n = (uint32_t)n,
        };
        memcpy(s->job_uid, job_uid, sizeof(s->job_uid));
        a = (struct client_ack *)(s + 1);
        for (size_t i = 0; i < h->whole.n; i++)
                *a++ = h->whole.tasks[i].at;
        for (size_t i = 0; i < h->partial.n; i++)
                *a++ = h->partial.tasks[i].at;
        if (now)
                *a++ = *now;
        *ret = s;
        *ret_size = size;
        return 0;
}

/* The bytes come from a trainer's file: nothing says that they are aligned. */
static struct client_ack state_entry(const void *state, size_t i) {
        struct client_ack a;

        memcpy(&a, (const uint8_t *)state + sizeof(struct client_state) + i * sizeof(a), sizeof(a));
        return a;
}

static uint32_t state_count(const void *state) {
        struct client_state s;

        memcpy(&s, state, sizeof(s));
        return s.n;
}

int state_check(const void *state, size_t size) {
        struct client_state s;

        if (size < sizeof(s) || size > CLIENT_STATE_MAX)
                return -EBADMSG;
        memcpy(&s, state, sizeof(s));
        if (s.magic != CLIENT_STATE_MAGIC || s.version != CLIENT_STATE_VERSION || s.reserved != 0 ||
            (size - sizeof(s)) / sizeof(struct client_ack) != s.n ||
            (size - sizeof(s)) % sizeof(struct client_ack) != 0)
                return -EBADMSG;
        for (uint32_t i = 0; i < s.n; i++)
                if (state_entry(state, i).task == 0)
                        return -EBADMSG;
        return 0;
}

int held_load(struct held *h, const void *state, size_t size, uint64_t now_usec) {
        uint32_t n = state_count(state);

        for (uint32_t i = 0; i < n; i++) {
                struct held_task t = { .at = state_entry(state, i), .committed_usec = now_usec };
                int r = list_add(t.at.position == TASK_TO_END ? &h->whole : &h->partial, &t);

                if (r < 0)
                        return r;
        }
        return 0;
}

void held_commit(struct held *h, const void *state, size_t size, uint64_t number) {
        uint32_t n = state_count(state), i = 0;

        /* Both have the tasks in the order in which they ended: a task that the state lacks ended later, and
         * so did all behind it. */
        for (size_t k = 0; k < h->whole.n; k++) {
                struct held_task *t = h->whole.tasks + k;

                while (i < n && (state_entry(state, i).task != t->at.task ||
                                 state_entry(state, i).position != TASK_TO_END))
                        i++;
                if (i == n)
                        return;
                if (t->commit == 0)
                        t->commit = number;
                i++;
        }
}

void held_committed(struct held *h, uint64_t number, uint64_t now_usec) {
        for (size_t i = 0; i < h->whole.n; i++) {
                struct held_task *t = h->whole.tasks + i;

                if (t->commit != 0 && t->commit <= number && t->committed_usec == 0)
                        t->committed_usec = now_usec;
        }
}

void held_expire(struct held *h, uint64_t now_usec) {
        size_t kept = 0;

        for (size_t i = 0; i < h->whole.n; i++) {
                const struct held_task *t = h->whole.tasks + i;

                if (t->committed_usec == 0 || now_usec - t->committed_usec < HELD_KEEP_USEC)
                        h->whole.tasks[kept++] = *t;
        }
        h->whole.n = kept;
}
