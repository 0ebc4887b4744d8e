/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked for. Invariant: nothing that is asked for brings there more than max, more of a shape than
 * its max, or more cost than cost_max. */
#include <inttypes.h>
#include <stdio.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "masterd/provision/decide-parts.h"

/* What n more are refused for as a whole, into why; 0: they may be, one after another at least. */
struct question {
        uint32_t shape, n;
        char why[PROVISION_WHY_MAX];
};

static double of_money(wide cost) {
        return (double)cost / 1e6;
}

static bool above_numbers(const struct deciding *d, struct question *q) {
        uint32_t max = max_of(d, q->shape), have = d->there.shape[q->shape];

        if (d->there.n + (uint64_t)q->n > d->max) {
                (void)snprintf(q->why, sizeof(q->why),
                               "%" PRIu32 " more, with %" PRIu32 " of at most %" PRIu32 " instances there",
                               q->n, d->there.n, d->max);
                return true;
        }
        if (have + (uint64_t)q->n > max) {
                (void)snprintf(q->why, sizeof(q->why),
                               "%" PRIu32 " more, with %" PRIu32 " of at most %" PRIu32
                               " instances of this shape there",
                               q->n, have, max);
                return true;
        }
        return false;
}

static bool above_cost(const struct deciding *d, struct question *q) {
        wide more = (wide)cost_of(d, q->shape) * q->n;

        if (d->conf->cost_max == 0 || more == 0 || d->there.cost + more <= d->conf->cost_max)
                return false;
        (void)snprintf(q->why, sizeof(q->why), "they cost %.2f more an hour; all cost %.2f of at most %.2f",
                       of_money(more), of_money(d->there.cost), of_money(d->conf->cost_max));
        return true;
}

static bool in_trouble(struct deciding *d, struct question *q) {
        const struct provision_trouble *t = d->trouble ? d->trouble + q->shape : NULL;
        const char *what;

        if (!t || !provision_blocked(t, d->now))
                return false;
        wake(d, t->blocked_until);
        what = t->unavailable ? "there are none to be had" : "none is asked for now";
        (void)snprintf(q->why, sizeof(q->why), "%s%s%.*s", what, t->why[0] ? ": " : "",
                       utf8_fit(t->why, PROVISION_WHY_MAX - 32), t->why);
        return true;
}

static bool is_refused(struct deciding *d, struct question *q) {
        if (q->shape >= d->conf->n_shapes) {
                (void)snprintf(q->why, sizeof(q->why), "there is no such shape");
                return true;
        }
        return above_numbers(d, q) || above_cost(d, q) || in_trouble(d, q);
}

/* What of n may be asked for at once; where that is less, why. */
static uint32_t allowed_now(struct deciding *d, struct question *q) {
        const struct provision_conf *c = d->conf;
        bool tried = d->trouble && d->trouble[q->shape].backoffs > 0;
        uint32_t n = q->n;

        if (tried && n > sub_sat(1, d->coming.shape[q->shape])) {
                n = (uint32_t)sub_sat(1, d->coming.shape[q->shape]);
                (void)snprintf(q->why, sizeof(q->why),
                               "%" PRIu32 " of %" PRIu32 " now: its shape has failed, and is tried with one",
                               n, q->n);
        }
        if (c->starting_max > 0 && n > sub_sat(c->starting_max, d->coming.n)) {
                n = (uint32_t)sub_sat(c->starting_max, d->coming.n);
                (void)snprintf(q->why, sizeof(q->why),
                               "%" PRIu32 " of %" PRIu32 " now: at most %" PRIu32
                               " are on their way at a time",
                               n, q->n, c->starting_max);
        }
        if (c->per_minute > 0 && n > sub_sat(c->per_minute, d->asked)) {
                n = (uint32_t)sub_sat(c->per_minute, d->asked);
                wake(d, after(d->first_asked, MINUTE_USEC));
                (void)snprintf(q->why, sizeof(q->why),
                               "%" PRIu32 " of %" PRIu32 " now: at most %" PRIu32
                               " are asked for in a minute",
                               n, q->n, c->per_minute);
        }
        return n;
}

static int meet_demand(struct deciding *d, const struct provision_demand *demand,
                       char refused[PROVISION_WHY_MAX]) {
        struct question q = { .shape = demand->shape, .n = demand->n };
        uint32_t n;

        if (demand->n == 0)
                return 0;
        n = is_refused(d, &q) ? 0 : allowed_now(d, &q);
        for (uint32_t k = 0; k < n; k++)
                TRY(ask_for(d, demand->shape, demand->job, "what waits needs it"));
        (void)snprintf(refused, PROVISION_WHY_MAX, "%s", q.why);
        return 0;
}

/* PROVISION_SHAPES_MAX: none may be, now. */
static uint32_t cheapest_shape(struct deciding *d) {
        uint32_t best = PROVISION_SHAPES_MAX;

        for (uint32_t s = 0; s < d->conf->n_shapes; s++) {
                struct question q = { .shape = s, .n = 1 };
                if (best < PROVISION_SHAPES_MAX && cost_of(d, s) >= cost_of(d, best))
                        continue;
                if (!is_refused(d, &q) && allowed_now(d, &q) > 0)
                        best = s;
        }
        return best;
}

static int add_cheapest(struct deciding *d, uint32_t n, const char *why, uint32_t *ret_asked) {
        uint32_t k;

        for (k = 0; k < n; k++) {
                uint32_t shape = cheapest_shape(d);
                if (shape == PROVISION_SHAPES_MAX)
                        break;
                TRY(ask_for(d, shape, 0, why));
        }
        *ret_asked = k;
        return 0;
}

int decide_up(struct deciding *d, const struct provision_demand *demand, size_t n) {
        uint32_t asked;

        for (size_t k = 0; k < n; k++)
                TRY(meet_demand(d, demand + k, d->plan.refused[k]));
        TRY(add_cheapest(d, (uint32_t)sub_sat(d->min, d->sound), "there are fewer than have to be", &asked));
        /* Nobody has asked for these: they have nothing to do. */
        d->empty += asked;
        TRY(add_cheapest(d, (uint32_t)sub_sat(d->conf->spare, d->empty),
                         "there are too few that have nothing to do", &asked));
        return 0;
}
