/* SPDX-License-Identifier: Apache-2.0 */
/* A job at the door of its pool. Invariant: what is let in could run there if nobody else did. */
#include "masterd/queue/submit-pool.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/format.h"
#include "lib/wire/errors.h"

#define NAMES_SHOWN 12u

static int unknown_pool(const struct pools *pools, const char *name, sd_bus_error *error) {
        _cleanup_free_ char *names = NULL;
        size_t size, shown = 0;
        FILE *f = open_memstream(&names, &size);

        if (!f)
                return -ENOMEM;
        for (size_t i = 0; i < pools->n && shown < NAMES_SHOWN; i++)
                if (pools->items[i]->defined)
                        fprintf(f, "%s%s", shown++ ? ", " : "", pools->items[i]->policy.name);
        if (fclose(f) != 0)
                return -ENOMEM;
        return sd_bus_error_setf(error, ERROR_REFUSED, "queue: there is no pool %.64s; there are: %s%s", name,
                                 names, pools->n > shown ? ", ... (primusctl pools)" : "");
}

/* The least with which the job would start, or is complete: what every role has to have at a time. */
static struct policy_amount least_of(const struct job_spec *s) {
        struct policy_amount a = {};

        for (size_t i = 0; i < s->n_roles; i++) {
                const struct role_spec *r = s->roles + i;
                a.cpu_milli += (uint64_t)r->min_num * r->cpu_milli;
                a.memory += (uint64_t)r->min_num * r->memory;
                a.gpus += r->min_num * r->gpus;
        }
        return a;
}

static int check_limit(const struct policy_amount *needed, const struct policy_amount *limit,
                       const char *what, const char *pool, sd_bus_error *error) {
        char need[POLICY_AMOUNT_TEXT_MAX], may[POLICY_AMOUNT_TEXT_MAX];

        if (needed->cpu_milli <= limit->cpu_milli && needed->memory <= limit->memory &&
            needed->gpus <= limit->gpus)
                return 0;
        return sd_bus_error_setf(
                error, ERROR_REFUSED,
                "The job needs %s at the least, but %s pool %s may not have more than %s at a time; "
                "ask for less, or use another pool",
                policy_amount_text(needed, need, sizeof(need)), what, pool,
                policy_amount_text(limit, may, sizeof(may)));
}

static int check_time(const struct pool *p, struct job_spec *s, sd_bus_error *error) {
        char asked[FORMAT_DURATION_MAX], most[FORMAT_DURATION_MAX];

        if (s->time_limit_usec == UINT64_MAX)
                s->time_limit_usec = p->default_time_usec;
        if (s->time_limit_usec > p->max_time_usec)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "timeLimit: %s, but pool %s allows %s at most; with requeue a longer job runs "
                        "over several such slots",
                        format_duration(s->time_limit_usec, asked, sizeof(asked)), p->policy.name,
                        format_duration(p->max_time_usec, most, sizeof(most)));
        if (s->waits.signal_number > 0 && s->waits.signal_before_usec >= s->time_limit_usec)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "signal: comes %s before the end, but the time limit of pool %s is %s",
                        format_duration(s->waits.signal_before_usec, asked, sizeof(asked)), p->policy.name,
                        format_duration(s->time_limit_usec, most, sizeof(most)));
        return 0;
}

int submit_pool_visible(const struct pools *pools, struct job_spec *s, sd_bus_error *error) {
        const struct pool *p = pools_find(pools, s->queue);

        if (s->visible >= _VISIBLE_MAX)
                s->visible = (uint32_t)(p ? pool_visible(pools, p) : VISIBLE_OWNER);
        if (p && s->visible > p->visible_max)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "visible: %s, but pool %s allows %s at most (VisibleMax= of [Pool %s])",
                        visible_to_string((enum visible)s->visible), p->policy.name,
                        visible_to_string((enum visible)p->visible_max), p->policy.name);
        return 0;
}

int submit_pool_admit(const struct pools *pools, uint32_t owner, struct job_spec *s, sd_bus_error *error) {
        const struct pool *p = pools_find(pools, s->queue);
        struct policy_amount least = least_of(s);
        int r;

        if (!p || !p->defined)
                return unknown_pool(pools, s->queue, error);
        if (!pool_admits(p, owner))
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "queue: you may not submit to pool %s (Users=, Groups= of [Pool %s])", p->policy.name,
                        p->policy.name);
        if (s->waits.priority == SPEC_PRIORITY_NONE)
                s->waits.priority = p->priority;
        if (owner != 0 && s->waits.priority > p->max_priority)
                return sd_bus_error_setf(error, ERROR_REFUSED, "priority: %d, but pool %s allows %d at most",
                                         s->waits.priority, p->policy.name, p->max_priority);
        r = submit_pool_visible(pools, s, error);
        if (r >= 0)
                r = check_time(p, s, error);
        if (r >= 0)
                r = check_limit(&least, &p->policy.limit, "all jobs together of", p->policy.name, error);
        if (r >= 0)
                r = check_limit(&least, &p->policy.user_limit, "a user of", p->policy.name, error);
        return r;
}
