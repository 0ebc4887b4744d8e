/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over those that wait, in order. Invariant: whoever is tried has been preceded by all that are before
 * it. */
#include "masterd/sched/pass.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* ---- what has not fit in this pass
 * ----------------------------------------------------------------------------------------------------------
 */

/* Whether nothing but amounts is asked for. */
static bool plain(const struct sched_shape *h) {
        return !h->restricted && h->n_excluded == 0 && h->max_per_node == 0 && h->per_node == 0 &&
               h->n_present == 0;
}

static bool takes_as_much(const struct sched_shape *h, const struct sched_shape *as) {
        return h->min >= as->min && h->cpu_milli >= as->cpu_milli && h->memory >= as->memory &&
               h->gpus >= as->gpus && h->ports >= as->ports;
}

static bool same_shape(const struct sched_shape *a, const struct sched_shape *b) {
        return plain(a) && takes_as_much(a, b) && takes_as_much(b, a);
}

/* The reason why a gang does not fit, if that follows from those before it. Whether it ever will, and so
 * whether to ask again, is looked up once for each. */
static const struct miss *find_miss(const struct pass *pass, const struct entry *e,
                                    const struct sched_gang *g, uint32_t *ret_shape) {
        bool known = e->why.reason == POLICY_NO_FIT || e->why.reason == POLICY_RESERVED;

        for (uint32_t i = 0; i < g->n_shapes; i++)
                for (size_t k = 0; k < pass->n_misses; k++)
                        if ((known && takes_as_much(g->shapes + i, &pass->misses[k].shape)) ||
                            same_shape(g->shapes + i, &pass->misses[k].shape)) {
                                *ret_shape = i;
                                return pass->misses + k;
                        }
        return NULL;
}

static void add_miss(struct pass *pass, const struct sched_gang *g, const struct sched_no_fit *why) {
        const struct sched_shape *h = g->shapes;

        if (g->n_shapes != 1 || h->min == 0 || !plain(h) || pass->n_misses == MISSES_MAX)
                return;
        pass->misses[pass->n_misses++] = (struct miss){ .shape = *h, .why = *why };
}

/* ---- one job
 * ----------------------------------------------------------------------------------------------------------
 */

static void waits(struct pass *pass, struct entry *e, enum policy_reason reason,
                  const struct sched_no_fit *no_fit, uint64_t ahead) {
        struct policy_why why = { .reason = reason, .starts_by = UINT64_MAX, .ahead = ahead };

        if (no_fit)
                why.no_fit = *no_fit;
        entry_waits(pass->policy, e, &why);
}

/* The gang does not fit. */
static void no_room(struct pass *pass, struct entry *e, const struct sched_gang *g,
                    const struct sched_no_fit *why) {
        struct policy *p = pass->policy;
        uint64_t due = time_add(e->job.submitted, p->conf.patience_usec);

        waits(pass, e, why->never ? POLICY_NEVER : POLICY_NO_FIT, why, 0);
        if (why->never)
                return;
        if (due <= pass->now) {
                if (pass->owed == 0)
                        pass->owed_to = e->job.id;
                pass->owed |= why->lacking;
        } else
                pass->next = MIN(pass->next, due);
}

static int place(struct pass *pass, struct entry *e, const struct sched_gang *g) {
        struct sched_shape shapes[SCHED_SHAPES_MAX];
        struct sched_gang within = { shapes, g->n_shapes }, more;
        struct policy *p = pass->policy;
        _cleanup_(sched_placement_done) struct sched_placement found = {};
        struct sched_no_fit why = {};
        const struct miss *miss;
        uint32_t shape;
        int r;

        miss = find_miss(pass, e, g, &shape);
        if (miss) {
                why = miss->why;
                why.shape = shape;
                why.wanted = g->shapes[shape].min;
                no_room(pass, e, g, &why);
                return 0;
        }
        memcpy(shapes, g->shapes, g->n_shapes * sizeof(*shapes));
        quota_shrink(p, e, shapes, g->n_shapes);
        r = sched_place(p->sched, &within, &found, &why);
        if (r == SCHED_E_NO_FIT) {
                add_miss(pass, g, &why);
                no_room(pass, e, g, &why);
                return 0;
        }
        if (r < 0)
                return r;
        pass->started++;
        p->ops->placed(p->userdata, e->job.id, &found);
        if (e->band && p->ops->gang(p->userdata, e->job.id, &more) > 0)
                entry_satisfied(p, e);
        return 0;
}

static int try_entry(struct pass *pass, struct entry *e) {
        struct policy *p = pass->policy;
        struct policy_amount least;
        enum policy_reason reason;
        struct sched_gang g = {};
        int r = p->ops->gang(p->userdata, e->job.id, &g);

        if (r > 0) {
                entry_satisfied(p, e);
                return 0;
        }
        if (r < 0 || g.n_shapes == 0 || g.n_shapes > SCHED_SHAPES_MAX) {
                waits(pass, e, POLICY_SKIPPED, NULL, 0);
                return r == -ENOMEM ? r : 0;
        }
        least = gang_amount(&g, false);
        reason = quota_check(p, e, &least);
        if (reason != POLICY_FREE) {
                waits(pass, e, reason, NULL, 0);
                return 0;
        }
        if (sched_gang_uses(&g) & pass->owed) {
                waits(pass, e, POLICY_RESERVED, NULL, pass->owed_to);
                return 0;
        }
        r = place(pass, e, &g);
        if (r < 0)
                waits(pass, e, POLICY_SKIPPED, NULL, 0);
        return r == -ENOMEM ? r : 0; /* others may still be right */
}

int policy_run(struct policy *p, uint64_t now, uint64_t *ret_next) {
        struct pass *pass = calloc(1, sizeof(*pass));
        struct cursor c = {};
        struct entry *e;
        int r = pass ? 0 : -ENOMEM;

        p->now = MAX(p->now, now);
        policy_measure(p);
        if (r >= 0)
                r = cursor_begin(p, now, &c);
        if (r >= 0) {
                *pass = (struct pass){ .policy = p, .now = now, .next = UINT64_MAX };
                while (r >= 0 && (e = cursor_next(&c)))
                        r = try_entry(pass, e);
                *ret_next = pass->next;
                r = r < 0 ? r : (int)pass->started;
        }
        cursor_done(&c);
        free(pass);
        return r;
}
