/* SPDX-License-Identifier: Apache-2.0 */
/* Giving way. Invariant: what was decided is on disk before anybody is told, so that a master that comes up
 * in between goes on with it; a signal may then come twice. */
#include "masterd/life/requeue.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "lib/wire/messages.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/job/suspend.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/suspension.h"
#include "masterd/link/orders.h"
#include "masterd/queue/queueing.h"

#define MARGIN_USEC (5 * USEC_PER_SEC) /* for systemd and the way there and back */

static const char *const kinds[_REQUEUE_CAUSE_MAX] = {
        [REQUEUE_PREEMPTED] = "preempted", [REQUEUE_TIME] = "time-slot", [REQUEUE_ASKED] = "asked-requeue",
        [REQUEUE_PERSON] = "requeue",      [REQUEUE_HELD] = "suspended", [REQUEUE_PARKED] = "parked",
};

static bool up(const struct job *j) {
        return !j->array && (j->state == JOB_STARTING || job_state_up(j->state));
}

uint64_t requeue_time_needed(const struct job *j) {
        uint64_t before = j->spec->waits.signal_number ? j->spec->waits.signal_before_usec : 0;

        return usec_add(usec_add(before, j->spec->stop_grace_usec), MARGIN_USEC);
}

void requeue_drop_timers(struct job *j) {
        j->requeue.timer = sd_event_source_disable_unref(j->requeue.timer);
        j->slot.signal_timer = sd_event_source_disable_unref(j->slot.signal_timer);
        j->queue.timer = sd_event_source_disable_unref(j->queue.timer);
}

/* ---- leaving ---- */

static char *cause_text(const struct job *j, char *buf, size_t size) {
        char limit[FORMAT_DURATION_MAX];

        switch ((enum requeue_cause)j->requeue.why) {
        case REQUEUE_PREEMPTED:
                snprintf(buf, size, "preempted by job %u", j->requeue.by);
                break;
        case REQUEUE_TIME:
                snprintf(buf, size, "its time slot (%s) is over",
                         format_duration(j->spec->time_limit_usec, limit, sizeof(limit)));
                break;
        case REQUEUE_ASKED:
                snprintf(buf, size, "it asked to be requeued");
                break;
        case REQUEUE_HELD:
                snprintf(buf, size, "suspended by hand");
                break;
        case REQUEUE_PARKED:
                snprintf(buf, size, "parked by its search");
                break;
        default:
                snprintf(buf, size, "requeued by hand");
        }
        return buf;
}

static void stop_now(struct manager *m, struct job *j) {
        char reason[REQUEUE_TEXT_MAX];

        if (!up(j))
                return;
        j->requeue.begun = true;
        j->slot.timer = sd_event_source_disable_unref(j->slot.timer); /* of the slot that ends now */
        lifecycle_stop_job(m, j, JOB_EVENT_REQUEUE, cause_text(j, reason, sizeof(reason)));
}

static int on_leave(sd_event_source *s, uint64_t usec, void *userdata) {
        struct job *j = userdata;

        j->requeue.timer = sd_event_source_disable_unref(j->requeue.timer);
        stop_now(j->manager, j);
        return 0;
}

static void arm_leave(struct manager *m, struct job *j) {
        if (sd_event_add_time_relative(m->event, &j->requeue.timer, CLOCK_BOOTTIME,
                                       usec_sub(j->requeue.leave_real, now_real()), USEC_PER_MSEC, on_leave,
                                       j) < 0)
                stop_now(m, j); /* rather early than never */
}

static void signal_all(struct manager *m, struct job *j) {
        for (uint32_t i = 0; i < j->n_executors; i++)
                if (executor_state_holds(j->executors[i]->state))
                        (void)orders_signal_later(m, j->executors[i]);
}

/* Its executors are told, and stopped later; or stopped at once where there is nothing to tell. */
static void leave(struct manager *m, struct job *j, enum requeue_cause cause, uint32_t by, bool tell) {
        const struct queue_spec *q = &j->spec->waits;
        char before[FORMAT_DURATION_MAX];

        j->requeue.why = (uint8_t)cause;
        j->requeue.by = by;
        if (!tell || q->signal_number == 0 || q->signal_before_usec == 0) {
                if (q->signal_number != 0 && tell)
                        signal_all(m, j);
                stop_now(m, j);
                return;
        }
        j->requeue.leave_real = usec_add(now_real(), q->signal_before_usec);
        queueing_leaving(m, j, requeue_time_needed(j));
        record_event(m, j, "signalled", NULL, "%s: told by %s, stopped in %s", kinds[cause], q->signal,
                     format_duration(q->signal_before_usec, before, sizeof(before)));
        signal_all(m, j);
        lifecycle_job_changed(m, j);
        arm_leave(m, j);
}

/* Somebody who still may have use for the place of another. */
static bool needs_room(const struct job *j) {
        return j && !j->array && j->state != JOB_STOPPING && !job_state_ended(j->state) && !job_held_back(j);
}

void requeue_preempt(struct manager *m, struct job *j, uint32_t by) {
        struct job *other = manager_job(m, by);

        if (!up(j) || j->requeue.why != REQUEUE_NONE)
                return;
        if (!needs_room(other) || other == j) { /* it has gone in this very turn */
                queueing_stays(m, j);
                return;
        }
        record_event(m, j, kinds[REQUEUE_PREEMPTED], NULL, "has to make room for job %u (%s)", by,
                     other->spec->queue);
        record_event(m, other, "preempts", NULL, "job %u is stopped for it and waits again", j->number);
        leave(m, j, REQUEUE_PREEMPTED, by, true);
        other->requeue.preempts = other->requeue.preempts || j->requeue.timer;
}

static void call_off(struct manager *m, struct job *j) {
        record_event(m, j, "preemption-off", NULL, "job %u does not need its place any more: it goes on",
                     j->requeue.by);
        j->requeue.timer = sd_event_source_disable_unref(j->requeue.timer);
        j->requeue.why = REQUEUE_NONE;
        j->requeue.by = 0;
        j->requeue.leave_real = 0;
        queueing_stays(m, j);
        requeue_arm_signal(m, j); /* it may have come due meanwhile, and then was left out */
        lifecycle_job_changed(m, j);
}

void requeue_not_needed(struct manager *m, struct job *by) {
        struct job *j, *next;

        if (!by->requeue.preempts)
                return;
        by->requeue.preempts = false;
        HASH_ITER (hh, m->jobs.by_number, j, next)
                if (j->requeue.by == by->number && j->requeue.why == REQUEUE_PREEMPTED && j->requeue.timer &&
                    up(j))
                        call_off(m, j);
}

void requeue_time(struct manager *m, struct job *j) {
        char limit[FORMAT_DURATION_MAX];

        if (!up(j))
                return;
        if (j->requeue.why == REQUEUE_NONE)
                record_event(m, j, kinds[REQUEUE_TIME], NULL, "its time slot (%s) is over",
                             format_duration(j->spec->time_limit_usec, limit, sizeof(limit)));
        j->requeue.timer = sd_event_source_disable_unref(j->requeue.timer);
        leave(m, j, j->requeue.why == REQUEUE_NONE ? REQUEUE_TIME : (enum requeue_cause)j->requeue.why,
              j->requeue.by, false);
}

bool requeue_asks(const struct executor *e) {
        return e->end.fate == FATE_REQUEUE && up(e->job);
}

void requeue_asked(struct manager *m, struct executor *e) {
        struct job *j = e->job;

        record_event(m, j, kinds[REQUEUE_ASKED], e, "exit status %d asks for the job to be requeued",
                     e->end.status);
        j->requeue.timer = sd_event_source_disable_unref(j->requeue.timer);
        /* Told that it has to go, it may ask for it itself. */
        leave(m, j, j->requeue.why == REQUEUE_NONE ? REQUEUE_ASKED : (enum requeue_cause)j->requeue.why,
              j->requeue.by, false);
}

int requeue_person(struct manager *m, struct job *j, uint32_t uid, const char *reason,
                   char text[static REQUEUE_TEXT_MAX]) {
        if (job_state_ended(j->state)) {
                snprintf(text, REQUEUE_TEXT_MAX, "Job %u is %s: there is nothing to requeue", j->number,
                         job_state_to_string(j->state));
                return -ESRCH;
        }
        if (j->array) {
                snprintf(text, REQUEUE_TEXT_MAX, "Job %u is an array: requeue its elements (%u[INDEX])",
                         j->number, j->number);
                return -EPERM;
        }
        if (j->state == JOB_STOPPING || j->requeue.why != REQUEUE_NONE) {
                snprintf(text, REQUEUE_TEXT_MAX, "Job %u is being stopped already", j->number);
                return -EAGAIN;
        }
        if (j->array) {
                snprintf(text, REQUEUE_TEXT_MAX, "Job %u is an array: requeue its elements, %u[INDEX]",
                         j->number, j->number);
                return -EINVAL;
        }
        if (!up(j)) {
                snprintf(text, REQUEUE_TEXT_MAX, "Job %u is %s: it waits already", j->number,
                         job_state_to_string(j->state));
                return -EALREADY;
        }
        record_event(m, j, kinds[REQUEUE_PERSON], NULL, "put back into the queue by uid %u%s%.200s", uid,
                     *reason ? ": " : "", reason);
        leave(m, j, REQUEUE_PERSON, 0, true);
        return 0;
}

void requeue_to_hold(struct manager *m, struct job *j, enum requeue_cause cause) {
        j->requeue.timer = sd_event_source_disable_unref(j->requeue.timer);
        j->requeue.leave_real = 0;
        leave(m, j, cause, 0, false);
}

/* ---- waiting again ---- */

/* What asks again and again is tried less and less often. */
static uint64_t back_off(struct job *j) {
        uint64_t delay = MAX(j->spec->backoff.initial_usec, USEC_PER_SEC),
                 most = MAX(j->spec->backoff.max_usec, delay);

        if (usec_sub(now_real(), j->slot.since_real) > j->spec->backoff.max_usec)
                j->requeue.asked = 0;
        for (uint32_t i = 0; i < j->requeue.asked && delay < most; i++)
                delay = usec_add(delay, delay);
        j->requeue.asked++;
        delay = MIN(delay, most);
        j->queue.not_before_real = usec_add(now_real(), delay);
        return delay;
}

void requeue_begin(struct manager *m, struct job *j) {
        char cause[REQUEUE_TEXT_MAX], text[FORMAT_DURATION_MAX];
        uint64_t delay = 0;

        requeue_drop_timers(j);
        j->slot.timer = sd_event_source_disable_unref(j->slot.timer);
        (void)cause_text(j, cause, sizeof(cause));
        j->requeue.n++;
        j->queue.not_before_real = 0;
        if (j->requeue.why == REQUEUE_ASKED)
                delay = back_off(j);
        else
                j->requeue.asked = 0;
        if (j->requeue.why != REQUEUE_PREEMPTED) /* who was preempted does not lose its place as well */
                j->queue.waits_real = now_real();
        requeue_plan_over(j);
        j->slot.since_real = 0;
        (void)text_set(&j->reason, "%s", cause);
        if (delay > 0)
                record_event(m, j, "requeued", NULL, "%s; waits again (requeue %u), for %s at least", cause,
                             j->requeue.n, format_duration(delay, text, sizeof(text)));
        else
                record_event(m, j, "requeued", NULL, "%s; waits again (requeue %u)", cause, j->requeue.n);
}

void requeue_plan_over(struct job *j) {
        j->requeue.begun = false;
        j->requeue.why = REQUEUE_NONE;
        j->requeue.by = 0;
        j->requeue.leave_real = 0;
}

static int on_hold_over(sd_event_source *s, uint64_t usec, void *userdata) {
        struct job *j = userdata;

        j->queue.timer = sd_event_source_disable_unref(j->queue.timer);
        placement_enqueue(j->manager, j);
        return 0;
}

bool requeue_holds(struct manager *m, struct job *j) {
        uint64_t now = now_real();

        if (j->state != JOB_QUEUED || j->queue.not_before_real <= now)
                return false;
        if (!j->queue.timer &&
            sd_event_add_time_relative(m->event, &j->queue.timer, CLOCK_BOOTTIME,
                                       j->queue.not_before_real - now, USEC_PER_MSEC, on_hold_over, j) < 0)
                return false; /* rather early than never */
        return true;
}

/* ---- before the time limit ---- */

static int on_signal_due(sd_event_source *s, uint64_t usec, void *userdata) {
        struct job *j = userdata;
        const struct queue_spec *q = &j->spec->waits;
        char before[FORMAT_DURATION_MAX];

        j->slot.signal_timer = sd_event_source_disable_unref(j->slot.signal_timer);
        if (!up(j) || j->requeue.why != REQUEUE_NONE)
                return 0;
        record_event(j->manager, j, "signalled", NULL, "told by %s: its time limit is over in %s", q->signal,
                     format_duration(q->signal_before_usec, before, sizeof(before)));
        signal_all(j->manager, j);
        return 0;
}

void requeue_arm_signal(struct manager *m, struct job *j) {
        const struct queue_spec *q = &j->spec->waits;
        uint64_t used = usec_sub(now_real(), j->slot.since_real);

        if (q->signal_number == 0 || j->spec->time_limit_usec == UINT64_MAX || j->slot.signal_timer ||
            j->slot.since_real == 0)
                return;
        (void)sd_event_add_time_relative(
                m->event, &j->slot.signal_timer, CLOCK_BOOTTIME,
                usec_sub(usec_sub(j->spec->time_limit_usec, q->signal_before_usec), used), USEC_PER_MSEC,
                on_signal_due, j);
}

void requeue_restored(struct manager *m, struct job *j) {
        struct job *by = j->requeue.by ? manager_job(m, j->requeue.by) : NULL;

        if (!up(j) || j->requeue.leave_real == 0)
                return;
        if (j->requeue.why == REQUEUE_PREEMPTED && !needs_room(by)) {
                call_off(m, j);
                return;
        }
        if (by)
                by->requeue.preempts = true;
        queueing_leaving(m, j, usec_add(usec_sub(j->requeue.leave_real, now_real()), requeue_time_needed(j)));
        arm_leave(m, j);
}

void requeue_registered(struct manager *m, struct node *node) {
        struct executor *e;

        DL_FOREACH2 (node->executors, e, node_next) {
                if (e->job->requeue.leave_real > 0 && up(e->job))
                        (void)orders_signal_later(m, e);
        }
}
