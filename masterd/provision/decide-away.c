/* SPDX-License-Identifier: Apache-2.0 */
/* What goes, and what is kept after all. Invariant: nothing is drained that has something on it, and nothing
 * is stopped that has, but for what is lost or listed as no longer running. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/format.h"
#include "lib/base/try.h"
#include "masterd/provision/decide-parts.h"

#define KEYS 5u

/* In the order of the keys, then of the index: so that the same input gives the same answer. */
struct candidate {
        uint64_t keys[KEYS];
        uint32_t instance;
        const char *why; /* it goes; NULL: it does not */
};

static int compare_candidates(const void *x, const void *y) {
        const struct candidate *a = x, *b = y;

        for (size_t k = 0; k < KEYS; k++)
                if (a->keys[k] != b->keys[k])
                        return a->keys[k] < b->keys[k] ? -1 : 1;
        return a->instance < b->instance ? -1 : a->instance > b->instance;
}

static void sort_candidates(struct candidate *list, size_t n) {
        if (n > 0)
                qsort(list, n, sizeof(*list), compare_candidates);
}

static bool is_listed(const struct provision_instance *i) {
        return i->seen != SEEN_NOT_ASKED && i->seen != SEEN_ABSENT;
}

/* A host that speaks is there, whatever the list says. */
static bool is_connected(const struct provision_instance *i) {
        return i->state >= INSTANCE_JOINED && i->state <= INSTANCE_DRAINING && i->lost_since == 0;
}

/* From when on each rule holds; NEVER: as things are, it does not. */
static uint64_t gone_from(const struct provision_conf *c, const struct provision_instance *i) {
        if (i->state == INSTANCE_WANTED || i->seen != SEEN_ABSENT || i->absent < 2 || is_connected(i))
                return NEVER;
        /* Of what is given back it is expected. */
        return i->state == INSTANCE_STOPPING ? 0 : after(i->made, c->absent_usec);
}

static uint64_t stopped_from(const struct provision_conf *c, const struct provision_instance *i) {
        return i->seen == SEEN_STOPPED && !is_connected(i) ? 0 : NEVER;
}

static uint64_t failed_from(const struct provision_conf *c, const struct provision_instance *i) {
        return i->seen == SEEN_FAILED && !is_connected(i) ? 0 : NEVER;
}

static uint64_t lost_from(const struct provision_conf *c, const struct provision_instance *i) {
        if (i->state < INSTANCE_JOINED || i->lost_since == 0 || !is_listed(i))
                return NEVER;
        return after(i->lost_since, c->lost_usec);
}

static uint64_t late_from(const struct provision_conf *c, const struct provision_instance *i) {
        return i->state <= INSTANCE_STARTING ? after(i->made, c->start_usec) : NEVER;
}

static uint64_t useless_from(const struct provision_conf *c, const struct provision_instance *i) {
        return i->state == INSTANCE_JOINED ? after(i->since, c->start_usec) : NEVER;
}

static const struct rule {
        uint64_t (*from)(const struct provision_conf *c, const struct provision_instance *i);
        enum provision_verb verb;
        const char *why;
        size_t usec; /* of provision_conf, what `why` ends with; SIZE_MAX: none */
} rules[] = {
        { gone_from, PROVISION_FORGET, "its provider does not have it any more", SIZE_MAX },
        { stopped_from, PROVISION_STOP, "its provider lists it as stopped", SIZE_MAX },
        { failed_from, PROVISION_STOP, "its provider lists it as failed", SIZE_MAX },
        { lost_from, PROVISION_STOP, "its host has been lost for ",
          offsetof(struct provision_conf, lost_usec) },
        { late_from, PROVISION_STOP, "its host has not joined within ",
          offsetof(struct provision_conf, start_usec) },
        { useless_from, PROVISION_STOP, "its host has joined, and is of no use after ",
          offsetof(struct provision_conf, start_usec) },
};

static uint64_t usec_at(const struct provision_conf *c, size_t offset) {
        return *(const uint64_t *)(const void *)((const char *)c + offset);
}

static int apply_rule(struct deciding *d, uint32_t instance, const struct rule *rule) {
        char why[PROVISION_WHY_MAX], usec[FORMAT_DURATION_MAX] = "";

        if (rule->usec != SIZE_MAX)
                (void)format_duration(usec_at(d->conf, rule->usec), usec, sizeof(usec));
        (void)snprintf(why, sizeof(why), "%s%s", rule->why, usec);
        /* What was READY did start, and a STOPPING one had its turn. */
        return act_on(d, rule->verb, instance, d->instances[instance].state < INSTANCE_READY, why);
}

static int decide_ends(struct deciding *d) {
        for (uint32_t k = 0; k < d->n; k++) {
                const struct provision_instance *i = d->instances + k;
                for (size_t r = 0; r < ELEMENTSOF(rules) && !d->done[k]; r++) {
                        bool stops = rules[r].verb == PROVISION_STOP;
                        uint64_t from;
                        if (stops && (i->held || i->state == INSTANCE_STOPPING))
                                continue;
                        from = rules[r].from(d->conf, i);
                        if (from <= d->now)
                                TRY(apply_rule(d, k, &rules[r]));
                        else
                                wake(d, from);
                }
        }
        return 0;
}

/* Which limit so many more that stay would be above of; NULL: none. for_min: what min needs stays though
 * there are too many of its shape, or it is too dear, until there is another instead. */
static const char *limit_above(const struct deciding *d, const struct provision_instance *i, uint32_t more,
                               bool for_min) {
        uint64_t cost = cost_of(d, i->shape);
        bool known = i->shape < d->conf->n_shapes;

        if (d->staying.n + more > d->max)
                return "there are more instances than may be";
        if (for_min && is_sound(i) && d->sound + more <= d->min)
                return NULL;
        if (!known || d->staying.shape[i->shape] + more > max_of(d, i->shape))
                return known ? "there are more of its shape than may be" : "its shape is not in the settings";
        if (d->conf->cost_max > 0 && cost > 0 && d->staying.cost + (wide)cost * more > d->conf->cost_max)
                return "all cost more than they may";
        return NULL;
}

/* Who goes first of those with nothing on them, into keys[]: what is of no use, dearest, empty for longest,
 * newest. */
static void order_of_leaving(const struct deciding *d, const struct provision_instance *i, uint64_t keys[4]) {
        keys[0] = is_sound(i);
        keys[1] = ~cost_of(d, i->shape);
        keys[2] = i->idle_since;
        keys[3] = ~i->made;
}

/* In the order in which they are kept: who would go last comes first. */
static size_t list_draining(const struct deciding *d, struct candidate *list) {
        size_t n = 0;

        for (uint32_t k = 0; k < d->n; k++) {
                const struct provision_instance *i = d->instances + k;
                struct candidate c = { .keys[0] = i->held ? 0 : is_wanted(i) ? 1 : 2, .instance = k };
                if (i->state != INSTANCE_DRAINING || d->done[k])
                        continue;
                order_of_leaving(d, i, c.keys + 1);
                for (size_t key = 1; key < KEYS; key++)
                        c.keys[key] = ~c.keys[key];
                list[n++] = c;
        }
        sort_candidates(list, n);
        return n;
}

static const char *reason_to_keep(const struct deciding *d, const struct provision_instance *i) {
        if (i->leaves)
                return NULL;
        if (i->held)
                return "a person keeps it";
        if (limit_above(d, i, 1, false))
                return NULL;
        if (is_wanted(i))
                return "it is wanted again";
        if (is_sound(i) && d->sound < d->min)
                return "fewer would stay than have to";
        if (is_spare(i) && d->empty < d->conf->spare)
                return "too few would stay that have nothing to do";
        return NULL;
}

static int decide_kept(struct deciding *d, struct candidate *list) {
        size_t n = list_draining(d, list);

        for (size_t k = 0; k < n; k++) {
                const char *why = reason_to_keep(d, d->instances + list[k].instance);
                if (why)
                        TRY(act_on(d, PROVISION_KEEP, list[k].instance, false, why));
        }
        return 0;
}

static uint64_t superfluous_class(const struct provision_instance *i) {
        if (!is_sound(i))
                return 0;
        return 1u + (is_wanted(i) ? 2u : 0u) + (is_coming(i) ? 0u : 1u);
}

/* What would go first if there were too many: what is of no use, then what is on its way, newest first, then
 * what is empty; and what is wanted after all of that. */
static size_t list_superfluous(const struct deciding *d, struct candidate *list) {
        size_t n = 0;

        for (uint32_t k = 0; k < d->n; k++) {
                const struct provision_instance *i = d->instances + k;
                bool coming = is_coming(i), empty = i->state == INSTANCE_READY && i->idle_since > 0;
                struct candidate c = { .keys[0] = superfluous_class(i), .instance = k };
                if ((!coming && !empty) || i->held || d->done[k])
                        continue;
                if (coming)
                        c.keys[1] = ~i->made;
                else
                        order_of_leaving(d, i, c.keys + 1);
                list[n++] = c;
        }
        sort_candidates(list, n);
        return n;
}

/* Costs differ: one that had to go early may have room once a dearer one goes, too. */
static void bring_back_what_fits(struct deciding *d, struct candidate *list, size_t n) {
        for (size_t k = n; k-- > 0;) {
                const struct provision_instance *i = d->instances + list[k].instance;
                if (!list[k].why || limit_above(d, i, 1, true))
                        continue;
                list[k].why = NULL;
                count_staying(d, i);
        }
}

static int decide_superfluous(struct deciding *d, struct candidate *list) {
        size_t n = list_superfluous(d, list);

        for (size_t k = 0; k < n; k++) {
                const struct provision_instance *i = d->instances + list[k].instance;
                list[k].why = limit_above(d, i, 0, true);
                if (list[k].why)
                        uncount_staying(d, i);
        }
        bring_back_what_fits(d, list, n);
        for (size_t k = 0; k < n; k++) {
                const struct provision_instance *i = d->instances + list[k].instance;
                if (!list[k].why)
                        continue;
                count_staying(d, i);
                TRY(act_on(d, is_coming(i) ? PROVISION_STOP : PROVISION_DRAIN, list[k].instance, false,
                           list[k].why));
        }
        return 0;
}

/* One that was kept begins anew: demand that comes and goes does not drain it each time. */
static uint64_t idle_from(const struct provision_conf *c, const struct provision_instance *i) {
        uint64_t empty = after(MAX(i->idle_since, i->since), c->idle_usec),
                 lived = after(i->made, c->min_life_usec);

        return MAX(empty, lived);
}

static size_t list_idle(struct deciding *d, struct candidate *list) {
        size_t n = 0;

        for (uint32_t k = 0; k < d->n; k++) {
                const struct provision_instance *i = d->instances + k;
                struct candidate c = { .instance = k };
                uint64_t from;
                if (i->state != INSTANCE_READY || i->idle_since == 0 || is_wanted(i) || i->held || d->done[k])
                        continue;
                from = idle_from(d->conf, i);
                wake(d, from);
                if (from > d->now)
                        continue;
                order_of_leaving(d, i, c.keys);
                list[n++] = c;
        }
        sort_candidates(list, n);
        return n;
}

static int decide_idle(struct deciding *d, struct candidate *list) {
        size_t n = list_idle(d, list);
        char why[PROVISION_WHY_MAX], usec[FORMAT_DURATION_MAX];

        (void)snprintf(why, sizeof(why), "it has been empty for %s",
                       format_duration(d->conf->idle_usec, usec, sizeof(usec)));
        for (size_t k = 0; k < n; k++) {
                bool needed = is_sound(d->instances + list[k].instance) &&
                              (d->sound <= d->min || d->empty <= d->conf->spare);
                if (!needed)
                        TRY(act_on(d, PROVISION_DRAIN, list[k].instance, false, why));
        }
        return 0;
}

static int decide_drained(struct deciding *d) {
        for (uint32_t k = 0; k < d->n; k++)
                if (d->instances[k].state == INSTANCE_DRAINING && d->instances[k].idle_since > 0 &&
                    !d->done[k])
                        TRY(act_on(d, PROVISION_STOP, k, false, "it is drained"));
        return 0;
}

int decide_away(struct deciding *d) {
        _cleanup_free_ struct candidate *list = calloc(MAX(d->n, (size_t)1), sizeof(*list));

        if (!list)
                return -ENOMEM;
        TRY(decide_ends(d));
        TRY(decide_kept(d, list));
        TRY(decide_superfluous(d, list));
        TRY(decide_idle(d, list));
        return decide_drained(d);
}
