/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: every way to "yes" names something that is known, of now. */
#include "masterd/core/sight.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/policy/serve.h"

#define NOGROUP 65534u

enum visible sight_of(uint32_t visible, const struct pool *pool) {
        if (visible >= _VISIBLE_MAX || !pool)
                return VISIBLE_OWNER; /* of a pool that is no more, VisibleMax= is not known */
        return (enum visible)MIN(visible, pool->visible_max);
}

static bool is_among(uint32_t id, const uint32_t *sorted, size_t n) {
        size_t low = 0;

        while (low < n) {
                size_t middle = low + (n - low) / 2;
                if (sorted[middle] == id)
                        return true;
                if (sorted[middle] < id)
                        low = middle + 1;
                else
                        n = middle;
        }
        return false;
}

/* Of people who work together, and not of everybody, or of a service. */
static bool is_team(const struct sight *s, uint32_t gid) {
        return gid > 0 && gid >= s->min_uid && gid != NOGROUP && gid != UINT32_MAX &&
               !is_among(gid, s->pools->shared_gids, s->pools->n_shared);
}

static bool in_group(const struct sight *s) {
        if (!s->pool || !s->who || !s->who->found)
                return false;
        if (s->pool->group)
                return s->pool->group_known && person_in(s->who, s->pool->gid);
        return s->of && s->of->found && is_team(s, s->of->gid) && person_in(s->who, s->of->gid);
}

static bool in_pool(const struct sight *s) {
        const struct pool *p = s->pool;

        if (!p || serve_uid_is_nobodys(s->caller))
                return false;
        if (!p->users && !p->groups)
                return s->caller >= s->min_uid;
        if (is_among(s->caller, p->named, p->n_named))
                return true;
        for (size_t i = 0; i < p->n_gids; i++)
                if (s->who && s->who->found && person_in(s->who, p->gids[i]))
                        return true;
        return false;
}

bool sight_may(const struct sight *s) {
        if (s->caller == 0 || s->caller == s->owner)
                return true;
        switch (sight_of(s->visible, s->pool)) {
        case VISIBLE_GROUP:
                return in_group(s);
        case VISIBLE_POOL:
                return in_pool(s);
        case VISIBLE_ALL:
                return true;
        default:
                return false;
        }
}

bool sight_needs_caller(const struct sight *s) {
        enum visible v = sight_of(s->visible, s->pool);

        return s->pool && s->caller != 0 && s->caller != s->owner &&
               (v == VISIBLE_GROUP || (v == VISIBLE_POOL && s->pool->groups));
}

bool sight_needs_owner(const struct sight *s) {
        return sight_needs_caller(s) && sight_of(s->visible, s->pool) == VISIBLE_GROUP && !s->pool->group;
}

char *sight_text(const struct sight *s, const char *owner, char *buf, size_t size) {
        enum visible v = sight_of(s->visible, s->pool);

        if (v == VISIBLE_ALL)
                snprintf(buf, size, "visible to everybody");
        else if (v == VISIBLE_POOL && s->pool)
                snprintf(buf, size, "visible to those who may use pool %s", s->pool->policy.name);
        else if (v == VISIBLE_GROUP && s->pool && s->pool->group)
                snprintf(buf, size, "visible to members of group %s", s->pool->group);
        else if (v == VISIBLE_GROUP && s->pool && s->of && s->of->found && is_team(s, s->of->gid))
                snprintf(buf, size, "visible to members of %s's primary group (%u)", owner, s->of->gid);
        else if (v == VISIBLE_GROUP && !s->pool->group && !s->of)
                snprintf(buf, size, "visible to members of %s's primary group, if that is a team", owner);
        else
                snprintf(buf, size, "visible to its owner only");
        return buf;
}
