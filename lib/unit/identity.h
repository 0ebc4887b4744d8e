/* SPDX-License-Identifier: Apache-2.0 */
/* The public identity of an executor: the Environment= of its unit, which everybody on the host may read, and
 * by which it is found again after a restart. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/messages.h"

/* How long the start may take, where it is the program that says when it is over; 0: as long as it likes. */
uint64_t start_max(const struct start_order *o);

/* As Environment= carries it (PRIMUS_JOB=418 ...): of the order, on this node, in that term of masterd's.
 * Free with strings_free(). */
int unit_identity(const struct start_order *o, const char *node, uint64_t term, char ***ret);

/* Whether a NAME=VALUE is of a name that belongs to the host, to systemd or to this identity. */
bool identity_owns(const char *entry, char *const *identity);

/* What a unit's Environment= says it is. -EBADMSG: not an executor of ours. */
struct unit_identity {
        struct executor_id id;
        uint32_t uid;
        enum order_kind kind;
        enum on_partition on_partition;
        uint64_t term, grace_usec;
        uint64_t start_max_usec, runtime_max_usec; /* 0: none */
        enum ack_mode ack;
        uint32_t pipe_size;
};
int unit_identity_parse(char *const *environment, struct unit_identity *ret);

/* The same as lines of a file, for when the unit is gone. -EINVAL: one has a line break. */
#define IDENTITY_TEXT_MAX (64u << 10)
int identity_text_format(char *const *environment, char **ret);
/* Changes text. -EBADMSG as above. */
int identity_text_parse(char *text, struct unit_identity *ret);

/* The value of a name in a NULL-ended list (NULL: an empty one), or NULL. */
const char *environment_find(char *const *environment, const char *name);
