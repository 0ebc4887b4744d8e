/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints' bytes. Invariant: they may come from anywhere, and no length in them is believed before it is
 * compared with how many there are. */
#include "executor/feed/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

struct checkpoint_entry {
        uint64_t task;
        struct task_mark mark;
        UT_hash_handle hh;
};

void checkpoint_done(struct checkpoint *c) {
        struct checkpoint_entry *e, *next;

        HASH_ITER (hh, c->tasks, e, next) {
                HASH_DEL(c->tasks, e);
                free(e);
        }
}

int64_t checkpoint_size(const void *state, size_t size) {
        struct client_state head;
        uint64_t all;

        if (size < sizeof(head))
                return 0;
        memcpy(&head, state, sizeof(head));
        all = sizeof(head) + (uint64_t)head.n * sizeof(struct client_ack);
        if (head.magic != CLIENT_STATE_MAGIC || head.version != CLIENT_STATE_VERSION ||
            all > CLIENT_STATE_MAX)
                return -EBADMSG;
        return (int64_t)all;
}

int checkpoint_read(const void *state, size_t size, const uint8_t job_uid[static 16],
                    checkpoint_handler handler, void *userdata) {
        const uint8_t *at = (const uint8_t *)state + sizeof(struct client_state);
        struct client_state head;

        if (size < sizeof(head) || checkpoint_size(state, size) != (int64_t)size)
                return -EBADMSG;
        memcpy(&head, state, sizeof(head));
        if (memcmp(head.job_uid, job_uid, sizeof(head.job_uid)) != 0)
                return -EXDEV;
        for (uint32_t i = 0; i < head.n; i++, at += sizeof(struct client_ack)) {
                struct client_ack entry;
                int r;

                memcpy(&entry, at, sizeof(entry));
                if (entry.task == 0)
                        return -EBADMSG;
                r = handler(&entry, userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int keep_entry(const struct client_ack *entry, void *userdata) {
        struct checkpoint *c = userdata;
        struct checkpoint_entry *e = NULL;

        HASH_FIND(hh, c->tasks, &entry->task, sizeof(entry->task), e);
        if (!e) {
                e = calloc(1, sizeof(*e));
                if (!e)
                        return -ENOMEM;
                e->task = entry->task;
                HASH_ADD(hh, c->tasks, task, sizeof(e->task), e);
        }
        e->mark = (struct task_mark){ entry->position, entry->skip };
        return 0;
}

int checkpoint_load(struct checkpoint *c, const void *state, size_t size, const uint8_t job_uid[static 16]) {
        struct checkpoint loaded = {};
        int r = checkpoint_read(state, size, job_uid, keep_entry, &loaded);

        if (r < 0) {
                checkpoint_done(&loaded);
                return r;
        }
        checkpoint_done(c);
        *c = loaded;
        return 0;
}

int checkpoint_each(const struct checkpoint *c, int (*handler)(uint64_t task, void *userdata),
                    void *userdata) {
        struct checkpoint_entry *e, *next;

        HASH_ITER (hh, c->tasks, e, next) {
                int r = handler(e->task, userdata);

                if (r < 0)
                        return r;
        }
        return 0;
}

int checkpoint_find(const struct checkpoint *c, uint64_t task, struct task_mark *ret) {
        struct checkpoint_entry *e = NULL;

        HASH_FIND(hh, c->tasks, &task, sizeof(task), e);
        if (!e)
                return 0;
        *ret = e->mark;
        return 1;
}
