/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for data although there is some, and why. There should be nobody (masterd/data/takers.h), but for
 * what has to be waited for: a database, a listing, somebody who has to say first what he holds. Invariant:
 * no such wait is silent. When one has lasted for TAKERS_STARVED_USEC, it is an event of the job, with its
 * reason; so is its end. */
#include <inttypes.h>
#include <stdio.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding-parts.h"
#include "masterd/link/link.h"

#define LOOK_APART USEC_PER_SEC
#define HELD_MANY 100000u /* tasks with one executor, which it may not be able to add to */

/* Those of the job that have waited for so long. */
struct waiting {
        struct executor *first;
        uint64_t since;
        uint32_t n;
};

static struct waiting who_waits(const struct job *j, uint64_t now, uint64_t usec) {
        struct waiting w = {};
        struct executor *e;

        if (j->data->takers.n_hungry == 0)
                return w;
        JOB_FOREACH (j, e) {
                if (e->feed.taker.waits_usec == 0 || now < usec_add(e->feed.taker.waits_usec, usec))
                        continue;
                w.n++;
                if (w.first && w.since <= e->feed.taker.waits_usec)
                        continue;
                w.first = e;
                w.since = e->feed.taker.waits_usec;
        }
        return w;
}

/* A task that was granted to it and that it does not read. */
static const struct task *untouched(const struct executor *e) {
        const struct task *t;

        DL_FOREACH2 (e->feed.leases, t, lease_next)
                if (t->read == t->read_before && t->read < t->end)
                        return t;
        return NULL;
}

/* What keeps it from what is pending. */
static void reason(struct job *j, const struct executor *e, uint64_t now, char *buf, size_t size) {
        struct job_data *d = j->data;
        enum data_hold hold = data_hold(d->data, now);
        const struct executor *unknown = d->unknown < j->n_executors ? j->executors[d->unknown] : NULL;
        const struct task *t = untouched(e);

        if (d->n_unknown > 0 && !d->in_limbo && unknown && unknown->feed.leases_unknown)
                snprintf(buf, size,
                         "nothing is granted before %s/%" PRIu32 " on %s has said which tasks it holds",
                         executor_role(unknown)->name, unknown->index,
                         unknown->node ? unknown->node->name : "no host");
        else if (hold == DATA_HELD_DISK)
                snprintf(buf, size,
                         "new tasks are granted once they are in the master's database, which is slow "
                         "now");
        else if (hold == DATA_HELD_FILES)
                snprintf(buf, size,
                         "the list of files is being read from the master's database, which is slow "
                         "now");
        else if (hold == DATA_HELD_LIST)
                snprintf(
                        buf, size,
                        "which task is next is known when more of the sources has been listed (order shuffle "
                        "needs all of it)");
        else if (hold == DATA_HELD_PAUSED)
                snprintf(buf, size,
                         "what is left is of data sources that are paused: 'primusctl data resume %" PRIu32
                         " SOURCE' lets one go on",
                         j->number);
        else if (hold == DATA_HELD_REST)
                snprintf(buf, size, "what is pending had nothing to read and rests for a moment");
        else if (!link_bus(e->node))
                snprintf(buf, size, "its host cannot be reached");
        else if (e->feed.taker.credits == 0 && e->feed.n_leases >= HELD_MANY)
                snprintf(buf, size,
                         "it holds %" PRIu32
                         " tasks and takes no more; with input.ack exit they count when its "
                         "trainer ends: use fewer, larger ones",
                         e->feed.n_leases);
        else if (t)
                snprintf(buf, size, "it was granted task %llu, %.300s, %llu s ago and has read nothing of it",
                         (unsigned long long)t->id, t->what.path,
                         (unsigned long long)(usec_sub(now, t->granted_usec) / USEC_PER_SEC));
        else
                snprintf(buf, size,
                         "no reason is known, which is a defect of Primus: 'primusctl doctor' and "
                         "'primusctl data %" PRIu32 "' show what its developers need to see; until then, "
                         "'primusctl restart %" PRIu32 " %s/%" PRIu32 "' helps",
                         j->number, j->number, executor_role(e)->name, e->index);
}

static void others(const struct waiting *w, char buf[static 64]) {
        buf[0] = 0;
        if (w->n > 1)
                snprintf(buf, 64, ", and so %s %" PRIu32 " other%s", w->n > 2 ? "have" : "has", w->n - 1,
                         w->n > 2 ? "s" : "");
}

static bool runs(const struct manager *m, const struct job *j) {
        return (j->state == JOB_STARTING || j->state == JOB_RUNNING) && m->serving_boot > 0 &&
               !j->data->finished;
}

uint64_t feeding_look_for_starved(struct manager *m, struct job *j, uint64_t now) {
        struct job_data *d = j->data;
        struct data_totals n;
        struct waiting w = {};
        enum data_hold hold;
        uint64_t since;
        char why[600], more[64];

        if (!runs(m, j)) {
                d->starved_since = d->pending_since = 0;
                return UINT64_MAX;
        }
        if (d->takers.n_hungry == 0 && d->starved_since == 0)
                return UINT64_MAX;
        if (now < d->starved_look)
                return d->starved_look;
        d->starved_look = now + LOOK_APART;
        data_totals(d->data, &n);
        /* A stream that has nothing rests for a moment: those who wait for it miss nothing. And who pauses a
         * source knows that they wait. */
        hold = data_hold(d->data, now);
        if (n.pending == 0 || hold == DATA_HELD_REST || hold == DATA_HELD_PAUSED)
                d->pending_since = 0;
        else if (d->pending_since == 0)
                d->pending_since = now;
        if (d->pending_since > 0 && now >= usec_add(d->pending_since, TAKERS_STARVED_USEC))
                w = who_waits(j, now, TAKERS_STARVED_USEC);
        if (w.n > 0 && d->starved_since == 0) {
                since = MAX(w.since, d->pending_since);
                d->starved_since = since;
                reason(j, w.first, now, why, sizeof(why));
                others(&w, more);
                record_event(m, j, "data-starved", w.first,
                             "has waited for data for %llu s%s, although %llu tasks are pending: %s",
                             (unsigned long long)((now - since) / USEC_PER_SEC), more,
                             (unsigned long long)n.pending, why);
        } else if (w.n == 0 && d->starved_since > 0) {
                record_event(m, j, "data-fed", NULL,
                             "nobody waits for pending data any more; some did for %llu s",
                             (unsigned long long)(usec_sub(now, d->starved_since) / USEC_PER_SEC));
                d->starved_since = 0;
        }
        return d->takers.n_hungry > 0 || d->starved_since > 0 ? d->starved_look : UINT64_MAX;
}

bool feeding_why(struct manager *m, struct job *j, char *buf, size_t size) {
        uint64_t now = now_boot();
        struct data_totals n;
        struct waiting w;
        char why[600], more[64];

        if (!j->data || !runs(m, j))
                return false;
        w = who_waits(j, now, TAKERS_STARVED_USEC);
        if (w.n == 0)
                return false;
        data_totals(j->data->data, &n);
        others(&w, more);
        if (n.pending > 0)
                reason(j, w.first, now, why, sizeof(why));
        else if (data_exhausted(j->data->data))
                snprintf(why, sizeof(why), "no task is left to be granted, and %llu are held",
                         (unsigned long long)n.leased);
        else
                snprintf(why, sizeof(why), "nothing more has been listed yet");
        snprintf(buf, size, "%s/%" PRIu32 " has waited for data for %llu s%s; %llu tasks are pending: %s",
                 executor_role(w.first)->name, w.first->index,
                 (unsigned long long)(usec_sub(now, w.since) / USEC_PER_SEC), more,
                 (unsigned long long)n.pending, why);
        return true;
}
