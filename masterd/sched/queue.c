/* SPDX-License-Identifier: Apache-2.0 */
/* The queue. Invariant: the list is sorted by priority, and among equals by arrival. */
#include "masterd/sched/queue.h"

#include <errno.h>

#include <uthash.h>
#include <utlist.h>

#include "lib/base/cleanup.h"

struct entry {
        uint64_t id, since;
        int32_t priority;
        uint32_t uses;
        struct entry *prev, *next;
        UT_hash_handle hh;
};

struct queue {
        struct entry *list; /* in order */
        struct entry *by_id;
};

int queue_new(struct queue **ret) {
        struct queue *q = calloc(1, sizeof(*q));

        if (!q)
                return -ENOMEM;
        *ret = q;
        return 0;
}

static void drop(struct queue *q, struct entry *e) {
        DL_DELETE(q->list, e);
        HASH_DEL(q->by_id, e);
        free(e);
}

struct queue *queue_free(struct queue *q) {
        if (!q)
                return NULL;
        while (q->list)
                drop(q, q->list);
        free(q);
        return NULL;
}

static struct entry *find(const struct queue *q, uint64_t id) {
        struct entry *e;

        HASH_FIND(hh, q->by_id, &id, sizeof(id), e);
        return e;
}

int queue_add(struct queue *q, uint64_t id, int32_t priority, uint32_t uses, uint64_t since_boot) {
        struct entry *e, *before;

        if (find(q, id))
                return -EEXIST;
        e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        *e = (struct entry){ .id = id, .since = since_boot, .priority = priority, .uses = uses };
        HASH_ADD(hh, q->by_id, id, sizeof(e->id), e);
        if (!q->list || q->list->prev->priority >= priority) { /* mostly: behind the last */
                DL_APPEND(q->list, e);
                return 0;
        }
        for (before = q->list; before->priority >= priority; before = before->next)
                ;
        DL_PREPEND_ELEM(q->list, before, e);
        return 0;
}

bool queue_remove(struct queue *q, uint64_t id) {
        struct entry *e = find(q, id);

        if (e)
                drop(q, e);
        return e;
}

size_t queue_length(const struct queue *q) {
        return HASH_COUNT(q->by_id);
}

int64_t queue_position(const struct queue *q, uint64_t id) {
        int64_t n = 0;

        for (const struct entry *e = q->list; e; e = e->next, n++)
                if (e->id == id)
                        return n;
        return -1;
}

int queue_pass(struct queue *q, uint64_t now_boot, uint64_t patience_usec, unsigned depth, queue_try_t try,
               void *userdata) {
        uint32_t owed = 0; /* resources that those before wait for and may not be passed over for */
        int started = 0, r;

        for (struct entry *e = q->list, *next; e && depth > 0; e = next) {
                uint32_t lacking = 0;
                next = e->next;
                if (e->uses & owed)
                        continue;
                depth--;
                r = try(userdata, e->id, &lacking);
                if (r < 0)
                        return r;
                if (r == 0) {
                        drop(q, e);
                        started++;
                } else if (now_boot >= e->since && now_boot - e->since >= patience_usec)
                        owed |= lacking;
        }
        return started;
}
