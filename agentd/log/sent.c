/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: bytes is the size of what is in the list, and at most SENT_BYTES_MAX. */
#include "agentd/log/sent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"

struct sent_chunk {
        struct executor_id id;
        uint64_t offset, when;
        struct sent_chunk *prev, *next;
        size_t size;
        char data[];
};

static void drop_oldest(struct sent *s) {
        struct sent_chunk *c = s->chunks;

        DL_DELETE(s->chunks, c);
        s->bytes -= c->size;
        free(c);
}

void sent_trim(struct sent *s, uint64_t now_usec) {
        while (s->chunks && usec_sub(now_usec, s->chunks->when) > SENT_USEC)
                drop_oldest(s);
}

int sent_add(struct sent *s, const struct tail_chunk *chunk, uint64_t now_usec) {
        struct sent_chunk *c;

        sent_trim(s, now_usec);
        if (chunk->size > SENT_BYTES_MAX)
                return 0;
        while (s->bytes + chunk->size > SENT_BYTES_MAX)
                drop_oldest(s);
        c = malloc(sizeof(*c) + chunk->size);
        if (!c)
                return -ENOMEM;
        *c = (struct sent_chunk){
                .id = chunk->id, .offset = chunk->offset, .when = now_usec, .size = chunk->size
        };
        if (chunk->size > 0)
                memcpy(c->data, chunk->data, chunk->size);
        DL_APPEND(s->chunks, c);
        s->bytes += c->size;
        return 0;
}

void sent_each(struct sent *s, uint64_t now_usec, int (*f)(void *userdata, const struct tail_chunk *c),
               void *userdata) {
        struct sent_chunk *c;

        sent_trim(s, now_usec);
        DL_FOREACH (s->chunks, c)
                if (f(userdata, &(struct tail_chunk){ c->id, c->offset, c->data, c->size }) < 0)
                        return;
}

void sent_done(struct sent *s) {
        while (s->chunks)
                drop_oldest(s);
}
