/* SPDX-License-Identifier: Apache-2.0 */
/* What the scope that an executor starts again with says of its placement. masterd/life/restart-scopes.h
 * changes scopes. */
#pragma once

#include "masterd/job/job.h"

/* Whether the executor may be placed now; and not before when it counts as placed, so that it is told from
 * those of before. */
static inline bool scope_may_place(const struct executor *e) {
        const struct scope *s = executor_scope(e);

        return !s || !s->held_back;
}
static inline uint64_t scope_since(const struct executor *e) {
        const struct scope *s = executor_scope(e);

        return s ? s->real : 0;
}
/* All of the role's executors that wait are placed at once, or none. */
static inline bool scope_whole(const struct job *j, uint32_t role) {
        switch (spec_restart_scope(j->spec, j->spec->roles + role)) {
        case RESTART_SCOPE_ROLE:
                return j->roles[role].scope->real > 0;
        case RESTART_SCOPE_JOB:
                return j->scope.real > 0;
        default:
                return false;
        }
}
