/* SPDX-License-Identifier: Apache-2.0 */
/* What was delivered to masterd lately, to be delivered again: a masterd that is killed loses what it had not
 * written, and a gap in what it keeps of an executor costs all before it. masterd passes over what it has.
 * Pure. */
#pragma once

#include "agentd/log/tail.h"

#define SENT_USEC UINT64_C(10000000) /* masterd writes within a second, on a disk that is well */
#define SENT_BYTES_MAX (4u << 20)    /* of all executors; beyond, the oldest go */

struct sent_chunk;

/* Zero-initialised. */
struct sent {
        struct sent_chunk *chunks; /* in their order */
        size_t bytes;
};

/* Copies it. -ENOMEM: it is not kept. */
int sent_add(struct sent *s, const struct tail_chunk *c, uint64_t now_usec);
/* Forgets what is old. */
void sent_trim(struct sent *s, uint64_t now_usec);
/* Shows each that is not old to f, oldest first, until that returns a negative number. */
void sent_each(struct sent *s, uint64_t now_usec, int (*f)(void *userdata, const struct tail_chunk *c),
               void *userdata);
void sent_done(struct sent *s);
