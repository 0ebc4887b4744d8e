/* SPDX-License-Identifier: Apache-2.0 */
/* The guard of executors' private files. Invariant: one is ended at a look, so that what the
 * next one sees is what is left. */
#include "agentd/private-guard.h"

#include <string.h>

#include "agentd/manager.h"
#include "agentd/unit/private-usage.h"
#include "agentd/unit/private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define LOOK_USEC (2 * USEC_PER_SEC)
#define SAY_USEC (300 * USEC_PER_SEC)
#define REASON_MAX 160u

struct private_guard {
        struct manager *manager;
        sd_event_source *timer;
        uint64_t said; /* when, that nobody knows who it is */
};

struct seen {
        struct private_share *shares;
        struct executor_id *ids;
        size_t n, max;
};

static int look(const char *unit, const struct unit_facts *facts, void *userdata) {
        struct seen *s = userdata;

        if (s->n == s->max || facts->state >= EXECUTOR_ENDING ||
            private_usage_read("", unit, &s->shares[s->n].usage) < 0)
                return 0;
        s->shares[s->n].uid = facts->uid;
        s->ids[s->n++] = facts->id;
        return 0;
}

static void end(struct private_guard *g, const struct seen *s, size_t i) {
        const struct private_usage *u = &s->shares[i].usage;
        char why[REASON_MAX];
        int r;

        snprintf(why, sizeof(why),
                 "it has %llu MiB in %u files at $PRIMUS_SECRETS_DIR and beside it, which all jobs of this "
                 "host share",
                 (unsigned long long)(u->bytes >> 20), u->files);
        r = units_kill_for(g->manager->units, &s->ids[i], why);
        if (r < 0 && r != -ENOENT)
                log_error_errno(r, "Cannot end an executor that fills " PRIVATE_DIR);
}

static void say_unknown(struct private_guard *g, const struct private_filling *f) {
        uint64_t now = now_boot();

        if (g->said && now < usec_add(g->said, SAY_USEC))
                return;
        g->said = now;
        log_warning(
                "%llu MiB and %llu files are used in " PRIVATE_DIR
                ", most of it by files that are open and have no name; executors that need room there fail "
                "until "
                "who has them ends: lsof +L1 " PRIVATE_DIR,
                (unsigned long long)(f->used >> 20), (unsigned long long)f->used_files);
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata) {
        struct private_guard *g = userdata;
        struct private_filling filling;
        _cleanup_free_ struct private_share *shares = NULL;
        _cleanup_free_ struct executor_id *ids = NULL;
        struct seen s = { .max = units_count(g->manager->units) };
        ssize_t i;

        (void)sd_event_source_set_time_relative(source, LOOK_USEC);
        (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        if (s.max == 0 || private_filling_read("", &filling) < 0 || !private_filling_high(&filling))
                return 0;
        s.shares = shares = calloc(s.max, sizeof(*shares));
        s.ids = ids = calloc(s.max, sizeof(*ids));
        if (!shares || !ids) {
                log_oom();
                return 0;
        }
        (void)units_visit(g->manager->units, look, &s);
        i = private_usage_pick(&filling, shares, s.n);
        if (i >= 0)
                end(g, &s, (size_t)i);
        else if (i == -ENODATA)
                say_unknown(g, &filling);
        return 0;
}

int private_guard_new(struct manager *m, struct private_guard **ret) {
        struct private_guard *g = calloc(1, sizeof(*g));
        int r;

        if (!g)
                return -ENOMEM;
        g->manager = m;
        r = sd_event_add_time_relative(m->event, &g->timer, CLOCK_BOOTTIME, LOOK_USEC, USEC_PER_SEC / 4,
                                       on_look, g);
        if (r < 0) {
                free(g);
                return r;
        }
        *ret = g;
        return 0;
}

void private_guard_free(struct private_guard *g) {
        if (!g)
                return;
        sd_event_source_disable_unref(g->timer);
        free(g);
}
