/* SPDX-License-Identifier: Apache-2.0 */
/* Who may look at a job ("visible"). The rule alone: of whom it is asked, and what is known of them, are
 * arguments. Looking is apart from control, which is never given by it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "masterd/caller/people.h"
#include "masterd/conf/pools.h"

struct sight {
        uint32_t
                visible; /* as the job has it: enum visible, _VISIBLE_MAX of one from before there was this */
        uint32_t owner, caller;
        const struct pools *pools;
        const struct pool *pool;       /* the job's; NULL: there is none of its name any more */
        const struct person *who, *of; /* the caller, the owner; NULL: not known */
        uint32_t min_uid;              /* users begin there, and groups that are somebody's team */
};

/* What holds: no more than its pool allows, and the owner alone where nothing was said. */
enum visible sight_of(uint32_t visible, const struct pool *pool);

/* Whether the caller may look. Root and the owner always may. Beside them, with
 *   owner  nobody;
 *   group  members of the pool's Group=; of a pool without one, members of the owner's primary group, but of
 *          one only that is a team: no system's group (below min_uid), nor nobody's, nor in SharedGroups=;
 *   pool   those who may submit to the pool, by their groups of now;
 *   all    everybody.
 * What is not known (a pool, a group, a person) lets nobody in. */
bool sight_may(const struct sight *s);

/* Whether that depends on who the caller is, or the owner. */
bool sight_needs_caller(const struct sight *s);
bool sight_needs_owner(const struct sight *s);

/* "visible to its owner only", "visible to members of group research", ...; into buf, which is returned. */
#define SIGHT_TEXT_MAX 320u
char *sight_text(const struct sight *s, const char *owner, char *buf, size_t size);
