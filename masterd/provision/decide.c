/* SPDX-License-Identifier: Apache-2.0 */
/* The counts behind a decision, and its plan. Invariant: an instance has at most one action in a plan. */
#include "masterd/provision/decide.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/grow.h"
#include "lib/base/try.h"
#include "masterd/provision/decide-parts.h"

void provision_conf_defaults(struct provision_conf *c) {
        *c = (struct provision_conf){
                .max = 5,
                .idle_usec = 20 * MINUTE_USEC,
                .start_usec = 20 * MINUTE_USEC,
                .lost_usec = 10 * MINUTE_USEC,
                .absent_usec = MINUTE_USEC,
        };
}

void provision_plan_done(struct provision_plan *p) {
        if (!p)
                return;
        free(p->actions);
        free(p->refused);
        *p = (struct provision_plan){ 0 };
}

uint64_t cost_of(const struct deciding *d, uint32_t shape) {
        return shape < d->conf->n_shapes ? d->conf->shapes[shape].cost : 0;
}

uint32_t max_of(const struct deciding *d, uint32_t shape) {
        return shape < d->conf->n_shapes ? d->conf->shapes[shape].max : 0;
}

void tally_add(struct tally *t, const struct deciding *d, uint32_t shape) {
        t->n++;
        t->cost += cost_of(d, shape);
        if (shape < d->conf->n_shapes)
                t->shape[shape]++;
}

static void tally_take(struct tally *t, const struct deciding *d, uint32_t shape) {
        t->n--;
        t->cost -= cost_of(d, shape);
        if (shape < d->conf->n_shapes)
                t->shape[shape]--;
}

static void count_present(struct deciding *d, const struct provision_instance *i) {
        tally_add(&d->there, d, i->shape);
        if (is_coming(i))
                tally_add(&d->coming, d, i->shape);
}

void count_staying(struct deciding *d, const struct provision_instance *i) {
        tally_add(&d->staying, d, i->shape);
        d->sound += is_sound(i);
        d->empty += is_spare(i);
}

static void uncount_present(struct deciding *d, const struct provision_instance *i) {
        tally_take(&d->there, d, i->shape);
        if (is_coming(i))
                tally_take(&d->coming, d, i->shape);
}

void uncount_staying(struct deciding *d, const struct provision_instance *i) {
        tally_take(&d->staying, d, i->shape);
        d->sound -= is_sound(i);
        d->empty -= is_spare(i);
}

void wake(struct deciding *d, uint64_t when) {
        if (when > d->now)
                d->plan.next = MIN(d->plan.next, when);
}

static int add_action(struct deciding *d, const struct provision_action *a, const char *why) {
        TRY(ARRAY_DOUBLE(d->plan.actions, d->plan.n));
        d->plan.actions[d->plan.n] = *a;
        (void)snprintf(d->plan.actions[d->plan.n].why, PROVISION_WHY_MAX, "%s", why);
        d->plan.n++;
        return 0;
}

int act_on(struct deciding *d, enum provision_verb verb, uint32_t instance, bool failed, const char *why) {
        const struct provision_instance *i = d->instances + instance;
        bool stayed = i->state < INSTANCE_DRAINING,
             leaves = verb == PROVISION_STOP || verb == PROVISION_FORGET;

        assert(!d->done[instance]);
        TRY(add_action(d,
                       &(struct provision_action){
                               .verb = verb, .instance = instance, .shape = i->shape, .failed = failed },
                       why));
        d->done[instance] = true;
        if (leaves && is_there(i))
                uncount_present(d, i);
        if (stayed)
                uncount_staying(d, i);
        if (verb == PROVISION_KEEP)
                count_staying(d, i);
        return 0;
}

int ask_for(struct deciding *d, uint32_t shape, uint32_t job, const char *why) {
        TRY(add_action(d,
                       &(struct provision_action){
                               .verb = PROVISION_UP, .instance = UINT32_MAX, .shape = shape, .job = job },
                       why));
        tally_add(&d->there, d, shape);
        tally_add(&d->coming, d, shape);
        d->sound++;
        d->asked++;
        return 0;
}

static void count_all(struct deciding *d) {
        for (size_t k = 0; k < d->n; k++) {
                const struct provision_instance *i = d->instances + k;
                if (!is_there(i))
                        continue;
                count_present(d, i);
                if (i->state < INSTANCE_DRAINING)
                        count_staying(d, i);
        }
}

/* A time to come is a clock that was put back: it counts for nothing, rather than until then. */
static void count_asked(struct deciding *d) {
        d->first_asked = d->now;
        for (size_t k = 0; d->pace && k < d->pace->n; k++) {
                uint64_t asked = d->pace->asked[k];
                if (asked > d->now || d->now - asked >= MINUTE_USEC)
                        continue;
                d->asked++;
                d->first_asked = MIN(d->first_asked, asked);
        }
}

static void deciding_done(struct deciding *d) {
        free(d->done);
        provision_plan_done(&d->plan);
}

int provision_decide(const struct provision_conf *conf, const struct provision_trouble *trouble,
                     const struct provision_instance *instances, size_t n,
                     const struct provision_demand *demand, size_t n_demand,
                     const struct provision_pace *pace, uint64_t now, struct provision_plan *ret) {
        _cleanup_(deciding_done) struct deciding d = {
                .conf = conf,
                .trouble = trouble,
                .instances = instances,
                .n = n,
                .pace = pace,
                .now = now,
                .max = MIN(conf->max, PROVISION_INSTANCES_MAX),
                .plan.next = NEVER,
        };

        assert(conf->n_shapes <= PROVISION_SHAPES_MAX && n < UINT32_MAX);
        d.min = MIN(conf->min, d.max);
        d.done = calloc(MAX(n, (size_t)1), sizeof(*d.done));
        d.plan.refused = calloc(MAX(n_demand, (size_t)1), sizeof(*d.plan.refused));
        if (!d.done || !d.plan.refused)
                return -ENOMEM;
        count_all(&d);
        count_asked(&d);
        TRY(decide_away(&d));
        TRY(decide_up(&d, demand, n_demand));
        d.plan.cost = (uint64_t)MIN(d.there.cost, (wide)UINT64_MAX);
        *ret = d.plan;
        d.plan = (struct provision_plan){ 0 };
        return 0;
}
