/* SPDX-License-Identifier: Apache-2.0 */
/* Growing and shrinking. Invariants: executors never move in memory; the arrays hold exactly those that the
 * configuration asks for; a configuration lives as long as somebody points into it. */
#include "masterd/job/reshape.h"

#include <assert.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/heap.h"
#include "masterd/job/peers.h"
#include "masterd/job/series.h"

struct retired {
        struct job_spec *spec;
        struct retired *next, *prev;
};

int job_retire(struct job *j, struct job_spec *spec) {
        struct retired *t = calloc(1, sizeof(*t));

        if (!t) {
                spec_free(spec);
                return -ENOMEM;
        }
        t->spec = spec;
        DL_PREPEND(j->leavers.retired, t);
        return 0;
}

static void forget_retired(struct job *j) {
        struct retired *t, *next;

        DL_FOREACH_SAFE (j->leavers.retired, t, next) {
                spec_free(t->spec);
                free(t);
        }
        j->leavers.retired = NULL;
}

size_t job_retired_bytes(const struct job *j) {
        size_t sum = 0;
        struct retired *t;

        DL_FOREACH (j->leavers.retired, t)
                sum += heap_of(sizeof(*t)) + spec_bytes(t->spec);
        return sum;
}

void job_retired_trim(struct job *j) {
        if (!j->leavers.list)
                forget_retired(j);
}

const struct role_spec *job_role_known(const struct job *j, const char *name) {
        const struct role_spec *found = spec_role(j->spec, name);
        struct retired *t;

        if (!found)
                DL_FOREACH (j->leavers.retired, t)
                        if ((found = spec_role(t->spec, name)))
                                break;
        return found;
}

/* An old role without anybody, where there is none of that name. */
static struct role *role_of(const struct job *j, const char *name) {
        for (size_t i = 0; i < j->spec->n_roles; i++)
                if (strcmp(j->spec->roles[i].name, name) == 0)
                        return j->roles + i;
        return NULL;
}

/* What the change needs, made before anything changes. */
struct shape {
        struct role *roles;
        struct executor **executors; /* by rank; new ones are made, the others are NULL for now */
        uint32_t n_executors, n_roles;
        struct retired *retired;
};

static void shape_done(struct shape *s) {
        for (uint32_t i = 0; s->executors && i < s->n_executors; i++)
                executor_free(s->executors[i]);
        free(s->executors);
        for (uint32_t i = 0; s->roles && i < s->n_roles; i++)
                scope_free(s->roles[i].scope);
        free(s->roles);
        free(s->retired);
        *s = (struct shape){};
}

static int shape_make(struct job *j, const struct job_spec *spec, struct shape *ret) {
        _cleanup_(shape_done) struct shape s = { .n_executors = spec_executors(spec),
                                                 .n_roles = (uint32_t)spec->n_roles };
        uint32_t rank = 0;

        s.roles = calloc(spec->n_roles, sizeof(*s.roles));
        s.executors = calloc(s.n_executors, sizeof(*s.executors));
        s.retired = calloc(1, sizeof(*s.retired));
        if (!s.roles || !s.executors || !s.retired)
                return -ENOMEM;
        for (uint32_t i = 0; i < spec->n_roles; i++) {
                const struct role *before = role_of(j, spec->roles[i].name);
                uint32_t had = before ? before->spec->num : 0;
                if (!before && !(s.roles[i].scope = scope_new(j)))
                        return -ENOMEM;
                for (uint32_t k = 0; k < spec->roles[i].num; k++, rank++)
                        if (k >= had && !(s.executors[rank] = executor_new(j, i, k, rank)))
                                return -ENOMEM;
        }
        *ret = s;
        s = (struct shape){};
        return 0;
}

/* Out of the counts of its role, and onto the list. */
static void leave_role(struct job *j, struct role *r, struct executor *e) {
        assert(!e->leaver.leaves && r->n_state[e->state] > 0);
        r->n_state[e->state]--;
        r->restarts -= e->restart.n;
        if (e->gone && e->end.fate == FATE_IGNORE)
                r->n_ignored--;
        else if (e->gone && e->state == EXECUTOR_SUCCEEDED)
                r->n_succeeded--;
        else if (e->gone && (e->state == EXECUTOR_FAILED || e->state == EXECUTOR_LOST))
                r->n_failed--;
        e->leaver.role = r->spec;
        e->leaver.leaves = true;
        j->leavers.attempt_base = MAX(j->leavers.attempt_base, e->attempt);
        DL_APPEND2(j->leavers.list, e, leaver.prev, leaver.next);
        j->leavers.n++;
}

int job_reshape(struct job *j, struct job_spec *spec) {
        struct shape s = {};
        uint32_t rank = 0;
        int r = shape_make(j, spec, &s);

        if (r < 0)
                return r;
        for (size_t i = 0; i < j->spec->n_roles; i++) {
                struct role *before = j->roles + i;
                const struct role_spec *after = spec_role(spec, before->spec->name);
                for (uint32_t k = after ? after->num : 0; k < before->spec->num; k++)
                        leave_role(j, before, before->executors[k]);
        }
        for (uint32_t i = 0; i < spec->n_roles; i++) {
                struct role *now = s.roles + i, *before = role_of(j, spec->roles[i].name);
                uint32_t had = before ? before->spec->num : 0;
                if (before) {
                        *now = *before;
                        before->scope = NULL;
                        before->series = NULL;
                }
                for (uint32_t k = 0; k < spec->roles[i].num; k++) {
                        struct executor *e = k < had ? before->executors[k] : s.executors[rank + k];
                        now->n_state[EXECUTOR_PENDING] += k >= had;
                        s.executors[rank + k] = e;
                        e->role = i;
                        e->rank = rank + k;
                }
                now->spec = spec->roles + i;
                now->executors = s.executors + rank;
                rank += spec->roles[i].num;
        }
        free(j->executors);
        for (size_t i = 0; i < j->spec->n_roles; i++) { /* of roles that are gone */
                scope_free(j->roles[i].scope);
                series_free(j->roles[i].series);
        }
        free(j->roles);
        s.retired->spec = j->spec;
        DL_PREPEND(j->leavers.retired, s.retired);
        j->executors = s.executors;
        j->roles = s.roles;
        j->n_executors = s.n_executors;
        j->spec = spec;
        job_peers_drop(j);
        job_retired_trim(j);
        return 0;
}

void job_dismiss(struct executor *e) {
        struct job *j = e->job;

        assert(e->leaver.leaves && j->leavers.n > 0);
        DL_DELETE2(j->leavers.list, e, leaver.prev, leaver.next);
        j->leavers.n--;
        executor_free(e);
        job_retired_trim(j);
}

int job_add_leaving(struct job *j, const struct role_spec *role, uint32_t index, struct executor **ret) {
        struct executor *e = executor_new(j, 0, index, UINT32_MAX);

        if (!e)
                return -ENOMEM;
        e->leaver.role = role;
        e->leaver.leaves = true;
        DL_APPEND2(j->leavers.list, e, leaver.prev, leaver.next);
        j->leavers.n++;
        *ret = e;
        return 0;
}

void job_leaving_done(struct job *j) {
        struct executor *e, *next;

        DL_FOREACH_SAFE2 (j->leavers.list, e, next, leaver.next)
                executor_free(e);
        j->leavers.list = NULL;
        j->leavers.n = 0;
        forget_retired(j);
}
