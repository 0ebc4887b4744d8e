/* SPDX-License-Identifier: Apache-2.0 */
/* The members of many tar records in one call, for callers that each call costs a lot. Invariant: a record is
 * handed out with all of its members, or not at all. */
#include <errno.h>
#include <string.h>

#include "lib/primus/handle.h"

struct table {
        const uint8_t *block;
        struct primus_member *members;
        size_t n, max;
        char *names;
        size_t names_used, names_max;
};

/* 0; -ENOBUFS; -EBADMSG. */
static int add_record(struct table *t, const struct primus_record *record, uint64_t number) {
        struct record_tar_member member;
        size_t at = 0;
        int r;

        while ((r = record_tar_next(record->data, record->size, &at, &member)) > 0) {
                if (t->n == t->max || t->n == INT32_MAX || member.name_size > t->names_max - t->names_used)
                        return -ENOBUFS;
                if (member.name_size > 0)
                        memcpy(t->names + t->names_used, member.name, member.name_size);
                t->names_used += member.name_size;
                t->members[t->n++] = (struct primus_member){
                        .record = number,
                        .data = (uint64_t)(member.data - t->block),
                        .size = member.size,
                        .name_end = t->names_used,
                };
        }
        return r;
}

int primus_block_members(struct primus *p, const struct primus_block *block, size_t *iterator,
                         struct primus_member *ret, size_t n, char *names, size_t names_size) {
        struct table t = {
                .block = block->data, .members = ret, .max = n, .names = names, .names_max = names_size
        };

        if (handle_format_of(p, block->source)->kind != RECORD_TAR)
                return handle_fail(p, EINVAL, "the block's records are no tar records");
        for (uint64_t number = 0;; number++) {
                size_t at = *iterator, members = t.n;
                struct primus_record record;
                int r = primus_block_next(p, block, &at, &record);

                if (r > 0)
                        r = add_record(&t, &record, number);
                else if (r == 0)
                        return (int)t.n;
                if (r == -EBADMSG && members == 0)
                        return handle_fail(p, r, "a member of the tar cannot be read");
                if (r == -ENOBUFS && members == 0)
                        return handle_fail(p, r, "a record has more members than there is room for");
                if (r < 0)
                        return r == -ENOBUFS || r == -EBADMSG ? (int)members : r;
                *iterator = at;
        }
}
