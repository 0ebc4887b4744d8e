/* SPDX-License-Identifier: Apache-2.0 */
/* The guard of executors' private files. Invariant: one is ended at a look, so that what the
 * next one sees is what is left. */
#include "agentd/host/private-guard.h"

#include <string.h>

#include "agentd/core/manager.h"
#include "agentd/executors/units.h"
#include "agentd/unit/private-usage.h"
#include "agentd/unit/systemd.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/unit/files.h"

#define LOOK_USEC (2 * USEC_PER_SEC)
#define SAY_USEC (300 * USEC_PER_SEC)
#define REASON_MAX 160u

struct private_guard {
        struct manager *manager;
        sd_event_source *timer;
        sd_bus_slot *question; /* under way */
        uint64_t said;         /* when, that nobody knows who it is */
};

struct seen {
        struct private_share *shares;
        struct executor_id *ids;
        size_t n;
};

static void end_executor(struct private_guard *g, const struct seen *s, size_t i) {
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

static int read_usage(struct private_guard *g, sd_bus_message *reply, struct seen *s, size_t max) {
        int r = sd_bus_message_enter_container(reply, 'a', "(stu)");

        while (r >= 0 && s->n < max) {
                struct private_share *share = s->shares + s->n;
                struct unit_facts facts;
                const char *unit;

                r = sd_bus_message_read(reply, "(stu)", &unit, &share->usage.bytes, &share->usage.files);
                if (r <= 0)
                        break;
                if (units_find(g->manager->units, unit, &facts) < 0 || facts.state >= EXECUTOR_ENDING)
                        continue;
                share->uid = facts.uid;
                s->ids[s->n++] = facts.id;
        }
        return r;
}

static void judge_unit(struct private_guard *g, sd_bus_message *reply) {
        struct private_filling filling;
        _cleanup_free_ struct private_share *shares = NULL;
        _cleanup_free_ struct executor_id *ids = NULL;
        struct seen s = { 0 };
        size_t max = units_count(g->manager->units);
        ssize_t i;

        if (max == 0 || private_filling_read("", &filling) < 0)
                return;
        s.shares = shares = calloc(max, sizeof(*shares));
        s.ids = ids = calloc(max, sizeof(*ids));
        if (!shares || !ids || read_usage(g, reply, &s, max) < 0) {
                log_oom();
                return;
        }
        i = private_usage_pick(&filling, shares, s.n);
        if (i >= 0)
                end_executor(g, &s, (size_t)i);
        else if (i == -ENODATA)
                say_unknown(g, &filling);
}

static int on_usage(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct private_guard *g = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        g->question = sd_bus_slot_unref(g->question);
        if (e)
                log_warning("Cannot find out who fills " PRIVATE_DIR ": %s", e->message ?: e->name);
        else
                judge_unit(g, reply);
        return 0;
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct private_guard *g = userdata;
        struct private_filling filling;

        (void)sd_event_source_set_time_relative(source, LOOK_USEC);
        (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        if (g->question || units_count(g->manager->units) == 0 || private_filling_read("", &filling) < 0 ||
            !private_filling_high(&filling))
                return 0;
        if (starter_message(units_systemd(g->manager->units), "Usage", &m) < 0 ||
            sd_bus_call_async(g->manager->starter, &g->question, m, on_usage, g, 0) < 0)
                log_oom();
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
        sd_bus_slot_unref(g->question);
        free(g);
}
