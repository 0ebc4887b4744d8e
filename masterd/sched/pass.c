/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over those that wait, in order: each is placed if it fits without delaying those before it; else it
 * gets a reservation, and may have others stopped. Invariant: whoever is tried has been preceded by all that
 * are before it. */
#include "masterd/sched/pass.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"

/* ---- what has not fit in this pass ---- */

bool shape_plain(const struct sched_gang *g, const struct sched_shape *h) {
        return g->topology == SCHED_ANYWHERE && g->whole_hosts == 0 && !h->restricted && h->n_excluded == 0 &&
               h->max_per_node == 0 && h->per_node == 0 && h->n_present == 0 && h->shm == 0 &&
               h->n_required == 0 && h->n_preferred == 0 && !h->gpu.model && h->gpu.memory_mib == 0 &&
               !h->gpu.mig && h->n_amounts == 0 && !h->exclusive_cpus && h->numa == SCHED_NUMA_NONE &&
               h->near == 0 && h->apart == 0;
}

bool shape_takes_as_much(const struct sched_shape *h, const struct sched_shape *as) {
        return h->min >= as->min && h->cpu_milli >= as->cpu_milli && h->memory >= as->memory &&
               h->gpus >= as->gpus && h->ports >= as->ports &&
               (as->gpus == 0 || !h->gpu.mig); /* parts of GPUs are something else */
}

static bool same_shape(const struct sched_gang *g, const struct sched_shape *a, const struct sched_shape *b) {
        return shape_plain(g, a) && shape_takes_as_much(a, b) && shape_takes_as_much(b, a);
}

/* Whether it is known why it does not fit, or that it never will, on the nodes that are here. */
static bool explained(const struct pass *pass, const struct entry *e) {
        return e->explained == pass->policy->sched->changed + 1 && e->why.no_fit.waiting > 0;
}

/* Numbers in an explanation grow old; those of the first ones in the queue are brought up to date, with a
 * small part of the work. */
static bool stale(const struct pass *pass, const struct entry *e) {
        const struct policy *p = pass->policy;

        return time_sub(pass->now, e->explained_at) >= p->conf.replan_usec && p->work < p->conf.work / 8;
}

/* A gang that does not fit before this one, and that takes no more than it. When it is not known why this one
 * does not, and so whether it ever will, only one that takes just as much will do, if there is time to find
 * out. */
static const struct miss *find_miss(const struct pass *pass, const struct entry *e,
                                    const struct sched_gang *g) {
        bool any = explained(pass, e) ? !stale(pass, e) : policy_tired(pass->policy);
        uint64_t end = entry_end(e, pass->now);

        for (size_t k = 0; k < pass->n_misses; k++) {
                const struct miss *m = pass->misses + k;
                if (m->until > end)
                        continue;
                if (g->n_shapes == 1 && m->explained && same_shape(g, g->shapes, &m->shape))
                        return m;
                for (uint32_t i = 0; i < g->n_shapes && any; i++)
                        if (shape_takes_as_much(g->shapes + i, &m->shape))
                                return m;
        }
        return NULL;
}

static void add_miss(struct pass *pass, const struct entry *e, const struct sched_gang *g,
                     const struct sched_no_fit *why, uint64_t ahead) {
        const struct sched_shape *h = g->shapes;

        struct miss m = { .shape = *h, .until = ahead ? entry_end(e, pass->now) : 0, .ahead = ahead };
        size_t k = pass->n_misses;

        if (g->n_shapes != 1 || h->min == 0 || !shape_plain(g, h))
                return;
        m.explained = why;
        if (why)
                m.why = *why;
        if (k == MISSES_MAX) /* instead of one that says less */
                for (k = 0; k < MISSES_MAX; k++)
                        if (pass->misses[k].until >= m.until &&
                            shape_takes_as_much(&pass->misses[k].shape, h))
                                break;
        if (k == MISSES_MAX)
                return;
        pass->misses[k] = m;
        pass->n_misses = MAX(pass->n_misses, k + 1);
}

/* ---- reservations ---- */

static uint64_t mark_array(uint64_t mark, const uint32_t *a, size_t n) {
        mark = (mark ^ n) * UINT64_C(0x100000001b3);
        for (size_t i = 0; i < n; i++)
                mark = (mark ^ a[i]) * UINT64_C(0x100000001b3);
        return mark;
}

static uint64_t mark_text(uint64_t mark, const char *s) {
        for (; s && *s; s++)
                mark = (mark ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
        return (mark ^ 0xff) * UINT64_C(0x100000001b3);
}

/* A number that says what a gang asks for. Of constraints only how many there are: they stay what they are.
 */
static uint64_t gang_mark(const struct sched_gang *g) {
        const uint32_t whole[] = { g->topology, g->level, g->whole_hosts > 0 };
        uint64_t mark = mark_array(g->n_shapes, whole, ELEMENTSOF(whole));

        for (size_t i = 0; i < g->n_shapes; i++) {
                const struct sched_shape *h = g->shapes + i;
                const uint32_t amounts[] = {
                        h->min,
                        h->cpu_milli,
                        (uint32_t)(h->memory >> 32),
                        (uint32_t)h->memory,
                        h->gpus,
                        h->max_per_node,
                        h->per_node,
                        h->ports,
                        h->restricted,
                        (uint32_t)(h->shm >> 32),
                        (uint32_t)h->shm,
                        (uint32_t)h->n_required,
                        h->gpu.memory_mib,
                        (uint32_t)h->n_amounts,
                        h->exclusive_cpus,
                        h->numa,
                        (uint32_t)h->near,
                        (uint32_t)h->apart,
                };
                mark = mark_array(mark, amounts, ELEMENTSOF(amounts));
                mark = mark_array(mark, h->allowed, h->n_allowed);
                mark = mark_array(mark, h->excluded, h->n_excluded);
                mark = mark_array(mark, h->present, h->n_present);
                mark = mark_text(mark_text(mark, h->gpu.model), h->gpu.mig);
        }
        return mark;
}

uint64_t gang_least(const struct sched_gang *g, struct sched_shape *shapes, struct sched_gang *ret) {
        uint64_t n = 0;

        for (size_t i = 0; i < g->n_shapes; i++) {
                shapes[i] = g->shapes[i];
                shapes[i].max = shapes[i].min;
                n += shapes[i].min;
        }
        *ret = *g;
        ret->shapes = shapes;
        return n;
}

/* The entry's reservation is no more. The plan may know it, so it stays until the end of the pass. */
static void drop_reservation(struct pass *pass, struct entry *e) {
        struct reservation **bigger, *r = e->reservation;

        if (!r)
                return;
        pass->policy->claims -= r->claim;
        e->reservation = NULL;
        reservation_void(r);
        bigger = reallocarray(pass->voided, pass->n_voided + 1, sizeof(struct reservation *));
        if (!bigger) /* it is small, and void */
                return;
        pass->voided = bigger;
        pass->voided[pass->n_voided++] = r;
}

int pass_need_plan(struct pass *pass) {
        return pass->plan ? 0 : plan_new(pass->policy, pass->now, &pass->plan);
}

int pass_add_claims(struct pass *pass) {
        struct policy *p = pass->policy;
        int r;

        if (p->claims == 0)
                return 0;
        r = pass_need_plan(pass);
        for (struct entry *e = p->entries; e && r >= 0; e = e->hh.next)
                if (e->reservation && e->reservation->claim)
                        r = plan_add(pass->plan, e->reservation);
        return r;
}

/* Looks for the first time at which it fits. Where none was found a moment ago, there is none. When so much
 * was looked for that the rest has to wait, so have those behind it: the next call begins with what was found
 * in this one. */
static int seek(struct pass *pass, struct entry *e, const struct sched_gang *g, struct reservation **ret) {
        struct policy *p = pass->policy;
        uint64_t nodes = p->sched->changed + 1;
        int r;

        if (!e->reservation && e->sought == nodes && pass->now - e->sought_at < p->conf.replan_usec)
                return SCHED_E_NO_FIT;
        if (plan_exhausted(pass->plan)) {
                pass->cut = true;
                return SCHED_E_NO_FIT;
        }
        r = plan_find(pass->plan, e, g, ret);
        if (r > 0) {
                e->sought = nodes;
                e->sought_at = pass->now;
        }
        return r;
}

/* Reserves for an entry that does not fit now, if it is known when it will. A reservation is given up only
 * for an earlier one, or if those before it have taken it. */
static int reserve(struct pass *pass, struct entry *e, const struct sched_gang *g) {
        struct sched_shape shapes[SCHED_SHAPES_MAX];
        struct sched_gang least;
        struct reservation *found = NULL, *old = e->reservation;
        uint64_t sign;
        int r;

        pass->planned++;
        r = pass_need_plan(pass);
        if (r < 0)
                return r;
        sign = plan_sign(pass->plan);
        if (old && old->start > pass->now &&
            (old->sign == sign ||
             (pass->now - old->made < pass->policy->conf.replan_usec && plan_keeps(pass->plan, old))))
                return plan_add(pass->plan, old);
        if (gang_least(g, shapes, &least) ==
            0) /* none of it has to come: it takes what there is, when there is */
                return SCHED_E_NO_FIT;
        r = seek(pass, e, &least, &found);
        if (r < 0)
                return r;
        if (pass->cut && old && plan_keeps(pass->plan, old)) { /* it will do for this time */
                pass->cut = false;
                pass->next = pass->now;
                return plan_add(pass->plan, old);
        }
        if (pass->cut)
                return SCHED_E_NO_FIT;
        if (old && (!found || found->start >= old->start) && old->guess == (found && found->guess) &&
            plan_keeps(pass->plan, old)) {
                reservation_free(found);
                found = NULL;
                old->made = pass->now;
        } else {
                drop_reservation(pass, e);
                if (!found)
                        return SCHED_E_NO_FIT;
                entry_reserve(pass->policy, e, found);
        }
        e->reservation->sign = sign;
        return plan_add(pass->plan, e->reservation);
}

/* What the start of an executor costs the owner, in units of work. */
#define WORK_PLACED 500u

/* ---- one job ---- */

static void waits(struct pass *pass, struct entry *e, enum policy_reason reason,
                  const struct sched_no_fit *no_fit, uint64_t ahead) {
        const struct reservation *r = e->reservation;
        struct policy_why why = { .reason = reason, .starts_by = UINT64_MAX, .ahead = ahead };

        if (no_fit)
                why.no_fit = *no_fit;
        if (r) {
                why.starts_by = r->guess ? UINT64_MAX : r->start;
                why.victims = r->claim ? r->victims : 0;
                pass->next =
                        MIN(pass->next, r->start > pass->now ? r->start : time_add(pass->now, OVERDUE_USEC));
        }
        if (pass->trial)
                e->why = why;
        else
                entry_waits(pass->policy, e, &why);
}

/* From when on it may not be passed over any more. */
static bool out_of_patience(struct pass *pass, const struct entry *e) {
        uint64_t due = time_add(e->job.submitted, pass->policy->conf.patience_usec);

        if (due > pass->now)
                pass->next = MIN(pass->next, due);
        return due <= pass->now;
}

void pass_keep_hosts(struct pass *pass, const struct entry *e, uint32_t lacking) {
        if (!out_of_patience(pass, e))
                return;
        if (pass->owed == 0)
                pass->owed_to = e->job.id;
        pass->owed |= lacking;
}

void pass_keep_limit(struct pass *pass, const struct entry *e, enum policy_reason reason,
                     const struct policy_amount *least) {
        struct account *a = e->account;

        if (reason == POLICY_NEVER || !out_of_patience(pass, e))
                return;
        switch (reason) {
        case POLICY_POOL_LIMIT:
                pass->pool_owed[e->job.pool] |= quota_lacking(pass->policy, e, least);
                break;
        case POLICY_USER_LIMIT:
                a->owed = (a->owed_at == pass->now ? a->owed : 0) | quota_lacking(pass->policy, e, least);
                a->owed_at = pass->now;
                break;
        default:
                pass->firm_owed = true;
        }
}

/* Nobody knows when it will fit: perhaps because it never will, though each part of it would. */
static int look_whether_possible(struct pass *pass, struct entry *e, const struct sched_gang *g) {
        uint64_t nodes = pass->policy->sched->changed + 1;
        int r;

        if (e->looked_at == nodes)
                return 0;
        if (policy_tired(pass->policy)) {
                pass->next = pass->now;
                return 0;
        }
        pass->policy->work += 4 * (uint64_t)pass->policy->sched->n;
        r = plan_possible(pass->plan, g);
        if (r < 0)
                return r;
        e->impossible = r > 0;
        e->looked_at = nodes;
        return 0;
}

/* Something of it has to come; else it takes what is left over, and nothing is kept for it. */
static bool has_to_come(const struct sched_gang *g) {
        uint32_t n = 0;

        for (size_t i = 0; i < g->n_shapes && n == 0; i++)
                n = g->shapes[i].min;
        return n > 0;
}

/* The gang does not fit now. Of why->wanted 0, where some of it has to come, it was not found out why. */
static int no_room(struct pass *pass, struct entry *e, const struct sched_gang *g,
                   const struct sched_no_fit *why, uint64_t ahead) {
        struct reservation *claim = NULL;
        int r = 0;

        pass->policy->ahead++;
        if (why->never) {
                drop_reservation(pass, e);
                waits(pass, e, POLICY_NEVER, why, 0);
                return 0;
        }
        if (pass->planned < pass->policy->conf.reservations)
                r = reserve(pass, e, g);
        else
                drop_reservation(pass, e);
        if (pass->cut)
                return MIN(r, 0);
        if (r > 0) {
                r = look_whether_possible(pass, e, g);
                if (r >= 0 && e->impossible) {
                        struct sched_no_fit never = *why;
                        never.never = true;
                        never.lacking = 0;
                        waits(pass, e, POLICY_NEVER, &never, 0);
                        return 0;
                }
                r = r < 0 ? r : 1;
        }
        if (r < 0)
                return r;
        if (r > 0 && has_to_come(g))
                pass_keep_hosts(pass, e, why->lacking);
        r = preempt_for(pass, e, g, &claim);
        if (r < 0)
                return r;
        if (claim) {
                drop_reservation(pass, e);
                entry_reserve(pass->policy, e, claim);
                r = plan_add(pass->plan, claim);
                waits(pass, e, POLICY_PREEMPTING, why, 0);
                return r;
        }
        if (why->wanted == 0 && has_to_come(g)) {
                pass->next = pass->now;
                waits(pass, e, ahead ? POLICY_RESERVED : POLICY_NOT_TRIED, why, ahead);
        } else
                waits(pass, e, ahead ? POLICY_RESERVED : POLICY_NO_FIT, why, ahead);
        return 0;
}

/* What is known of why it does not fit. */
static void recall(struct pass *pass, struct entry *e, const struct sched_gang *g, const struct miss *miss,
                   struct sched_no_fit *ret) {
        *ret = (struct sched_no_fit){};
        if (explained(pass, e))
                *ret = e->why.no_fit;
        if (!miss || !miss->explained || g->n_shapes != 1 || !same_shape(g, g->shapes, &miss->shape))
                return;
        *ret = miss->why;
        ret->wanted = g->shapes[0].min;
        e->explained = pass->policy->sched->changed + 1;
        e->explained_at = pass->now;
}

static int started(struct pass *pass, struct entry *e, const struct sched_placement *places) {
        struct policy *p = pass->policy;
        struct sched_gang more;
        int r;

        if (pass->trial) {
                uint64_t grown = p->sched->grown;

                pass->trial->placed = (uint32_t)places->n;
                places_give_back(p->sched, places);
                p->sched->grown = grown; /* nothing came back but what was lent */
                return 0;
        }
        pass->started++;
        p->work += WORK_PLACED * places->n;
        drop_reservation(pass, e);
        p->ops->placed(p->userdata, e->job.id, places);
        r = pass->plan ? plan_started(pass->plan, e, places) : 0;
        if (e->band && p->ops->gang(p->userdata, e->job.id, &more) > 0)
                entry_satisfied(p, e);
        else if (e->band) /* some of it still waits; what for, the next call says */
                pass->next = pass->now;
        return r;
}

/* Its reservation is due, or its victims may have gone. 0: it got its places. */
static int place_reserved(struct pass *pass, struct entry *e, const struct sched_gang *g,
                          struct sched_placement *ret) {
        struct reservation *r = e->reservation;
        int q;

        if (!r || (!r->claim && r->start > pass->now))
                return SCHED_E_NO_FIT;
        q = pass_need_plan(pass);
        if (q == 0)
                q = plan_place_there(pass->plan, e, g, &r->places, ret);
        if (q > 0 && r->claim && r->leaving == 0) /* they have gone, and still: begin again */
                drop_reservation(pass, e);
        return q;
}

static int place_entry(struct pass *pass, struct entry *e, const struct sched_gang *g) {
        struct sched_shape shapes[SCHED_SHAPES_MAX];
        struct sched_gang within = *g;
        struct policy *p = pass->policy;
        _cleanup_(sched_placement_done) struct sched_placement found = {};
        struct sched_no_fit why = {};
        const struct miss *miss;
        uint64_t ahead = 0;
        bool explain;
        int r;

        r = place_reserved(pass, e, g, &found);
        if (r == 0)
                return started(pass, e, &found);
        if (r < 0)
                return r;
        if (e->reservation && e->reservation->claim) {
                waits(pass, e, POLICY_PREEMPTING, &e->why.no_fit, 0);
                return 0;
        }
        if (explained(pass, e) &&
            (e->why.no_fit.never || (e->failed == p->sched->grown + 1 && !stale(pass, e)))) {
                why = e->why.no_fit;
                return no_room(pass, e, g, &why, 0);
        }
        miss = find_miss(pass, e, g);
        if (miss) {
                e->failed = miss->ahead ? 0 : p->sched->grown + 1;
                recall(pass, e, g, miss, &why);
                return no_room(pass, e, g, &why, miss->ahead);
        }
        explain = explained(pass, e) ? stale(pass, e) : !policy_tired(p);
        memcpy(shapes, g->shapes, g->n_shapes * sizeof(*shapes));
        within.shapes = shapes;
        quota_shrink(p, e, shapes, g->n_shapes);
        r = pass->plan && plan_length(pass->plan) > 0
                    ? plan_place(pass->plan, e, &within, &found, explain ? &why : NULL, &ahead)
                    : sched_place(p->sched, &within, &found, explain ? &why : NULL);
        if (r == SCHED_E_NO_FIT) {
                add_miss(pass, e, g, explain ? &why : NULL, ahead);
                e->failed = ahead ? 0 : p->sched->grown + 1;
                p->work += p->sched->n / 8;
                if (explain) {
                        p->work += p->sched->n;
                        e->explained = p->sched->changed + 1;
                        e->explained_at = pass->now;
                } else
                        recall(pass, e, g, NULL, &why);
                return no_room(pass, e, g, &why, ahead);
        }
        return r < 0 ? r : started(pass, e, &found);
}

/* It may not have that much now. Those behind may not have it either once it has waited for its patience:
 * what becomes free under the limit is for it. */
static void no_quota(struct pass *pass, struct entry *e, enum policy_reason reason,
                     const struct policy_amount *least) {
        drop_reservation(pass, e);
        waits(pass, e, reason, NULL, 0);
        if (!pass->trial) /* nobody is behind that one */
                pass_keep_limit(pass, e, reason, least);
}

/* Whether a limit is kept for somebody before it. */
static enum policy_reason limit_owed(const struct pass *pass, const struct entry *e, uint32_t uses) {
        const struct account *a = e->account;

        if (pass->pool_owed[e->job.pool] & uses)
                return POLICY_POOL_LIMIT;
        if (a->owed_at == pass->now && (a->owed & uses))
                return POLICY_USER_LIMIT;
        return POLICY_FREE;
}

int pass_try(struct pass *pass, struct entry *e, const struct sched_gang *g) {
        struct policy *p = pass->policy;
        struct policy_amount least;
        enum policy_reason reason;
        uint64_t mark = gang_mark(g);
        uint32_t uses;
        int r;

        if (e->mark != mark) { /* it asks for something else now */
                e->mark = mark;
                e->looked_at = e->explained = e->failed = e->sought = 0;
                drop_reservation(pass, e);
        }
        least = gang_amount(g, false);
        uses = sched_gang_uses(g);
        reason = quota_check(p, e, &least, pass->firm_owed);
        if (reason == POLICY_FREE)
                reason = limit_owed(pass, e, uses);
        if (reason != POLICY_FREE) {
                no_quota(pass, e, reason, &least);
                return 0;
        }
        if ((uses & pass->owed) && !(e->reservation && e->reservation->claim)) {
                drop_reservation(pass, e);
                waits(pass, e, POLICY_RESERVED, NULL, pass->owed_to);
                return 0;
        }
        r = place_entry(pass, e, g);
        if (r < 0)
                waits(pass, e, POLICY_SKIPPED, NULL, 0);
        return r == -ENOMEM ? r : 0; /* others may still be right */
}

static int try_entry(struct pass *pass, struct entry *e) {
        struct policy *p = pass->policy;
        struct sched_gang g = {};
        int r = p->ops->gang(p->userdata, e->job.id, &g);

        if (r > 0) {
                drop_reservation(pass, e);
                entry_satisfied(p, e);
                return 0;
        }
        if (r < 0 || g.n_shapes == 0 || g.n_shapes > SCHED_SHAPES_MAX) {
                waits(pass, e, POLICY_SKIPPED, NULL, 0);
                return r == -ENOMEM ? r : 0;
        }
        return pass_try(pass, e, &g);
}

static int run_pass(struct pass *pass) {
        struct policy *p = pass->policy;
        struct cursor c = {};
        struct entry *e;
        int r = pass_add_claims(pass);

        if (r >= 0)
                r = cursor_begin(p, pass->now, &c);
        if (r < 0)
                return r;
        while (r >= 0 && !pass->cut && (e = cursor_next(&c))) {
                r = try_entry(pass, e);
                pass->cut |= policy_tired(p);
        }
        cursor_done(&c);
        return r;
}

int pass_new(struct policy *p, uint64_t now, struct pass **ret) {
        struct pass *pass = calloc(1, sizeof(*pass));

        if (!pass)
                return -ENOMEM;
        *pass = (struct pass){ .policy = p, .now = now, .next = UINT64_MAX };
        p->now = MAX(p->now, now);
        p->ahead = 0;
        p->work = 0;
        policy_measure(p);
        *ret = pass;
        return 0;
}

struct pass *pass_free(struct pass *pass) {
        plan_free(pass->plan);
        for (size_t i = 0; i < pass->n_voided; i++)
                reservation_free(pass->voided[i]);
        free(pass->voided);
        free(pass);
        return NULL;
}

int policy_run(struct policy *p, uint64_t now, uint64_t *ret_next) {
        struct pass *pass;
        int r = pass_new(p, now, &pass);

        if (r < 0)
                return r;
        r = run_pass(pass);
        if (!pass->cut)
                p->cuts = 0;
        else if (p->cut_grown != p->sched->grown)
                p->cuts = MIN(p->cuts + 1, 1024u);
        p->cut_grown = p->sched->grown;
        if (pass->cut)
                pass->next = now;
        if (r >= 0) {
                *ret_next = pass->next;
                r = (int)pass->started;
        }
        pass_free(pass);
        return r;
}
