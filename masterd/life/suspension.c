/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that a person holds. Invariant: what feeders and agents are told follows from the job's state on disk.
 */
#include "masterd/life/suspension.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/job/suspend.h"
#include "masterd/life/arrays.h"
#include "masterd/life/depend.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/requeue.h"
#include "masterd/life/time-limit.h"
#include "masterd/link/orders.h"
#include "masterd/queue/queueing.h"

static const char *const mode_names[_SUSPEND_MODE_MAX] = {
        [SUSPEND_DATA] = "data",
        [SUSPEND_FREEZE] = "freeze",
        [SUSPEND_STOP] = "stop",
};

enum suspend_mode suspend_mode_from_string(const char *s) {
        for (int i = 0; i <= SUSPEND_STOP; i++)
                if (strcmp(mode_names[i], s) == 0)
                        return i;
        return _SUSPEND_MODE_INVALID;
}

static void set_held(struct job *j, enum suspend_mode mode, uint32_t uid) {
        j->held.mode = (uint8_t)mode + 1;
        j->held.by = uid;
        j->held.since_real = now_real();
}

static void set_free(struct job *j) {
        j->held.mode = 0;
        j->held.by = 0;
        j->held.since_real = 0;
}

/* ---- data ---- */

struct hold {
        uint32_t number;
        sd_id128_t uid;
};

/* What holds by now is told, not what held when it was recorded: another word may have come in between. */
static void run_hold(struct manager *m, void *data) {
        struct hold *h = data;
        struct job *j = manager_job(m, h->number);

        if (j && j->data && sd_id128_equal(j->uid, h->uid)) {
                if (j->state == JOB_SUSPENDED)
                        feeding_suspend(m, j);
                else if (j->state == JOB_RUNNING)
                        feeding_resume(m, j);
        }
        free(h);
}

static void effect_later(struct manager *m, const struct job *j, effect_fn run) {
        struct hold *h = malloc(sizeof(*h));

        if (!h) {
                (void)sd_event_exit(m->event, log_oom()); /* what is on disk stays right */
                return;
        }
        *h = (struct hold){ j->number, j->uid };
        (void)manager_effect(m, run, h);
}

static void hold_later(struct manager *m, const struct job *j) {
        effect_later(m, j, run_hold);
}

/* ---- freezing ---- */

static bool runs(const struct executor *e) {
        return e->state == EXECUTOR_RUNNING && e->node;
}

static void freeze_all(struct manager *m, struct job *j) {
        j->held.froze_real = MAX(now_real(), j->held.froze_real + 1);
        for (uint32_t i = 0; i < j->n_executors; i++)
                if (runs(j->executors[i]))
                        (void)orders_freeze_later(m, j->executors[i]);
}

static int check_freeze(const struct job *j, char text[static SUSPENSION_TEXT_MAX]) {
        for (size_t i = 0; i < j->spec->n_roles; i++)
                if (j->spec->roles[i].failure.watchdog_usec > 0) {
                        snprintf(text, SUSPENSION_TEXT_MAX,
                                 "Role %s has a watchdog, which goes on while its processes are frozen and "
                                 "would kill them; 'primusctl suspend --stop %u' stops the job and keeps it "
                                 "waiting",
                                 j->spec->roles[i].name, j->number);
                        return -EOPNOTSUPP;
                }
        for (uint32_t i = 0; i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                if (executor_state_holds(e->state) && e->node && !e->node->inventory.controllers) {
                        snprintf(text, SUSPENSION_TEXT_MAX,
                                 "Host %s cannot freeze processes: its cgroups are not version 2; "
                                 "'primusctl suspend --stop %u' stops the job and keeps it waiting",
                                 e->node->name, j->number);
                        return -EOPNOTSUPP;
                }
        }
        return 0;
}

void suspension_runs(struct manager *m, struct executor *e) {
        if (job_frozen(e->job))
                (void)orders_freeze_later(m, e);
}

void suspension_registered(struct manager *m, struct node *node) {
        struct executor *e;

        DL_FOREACH2 (node->executors, e, node_next)
                if (runs(e) && e->placed_real < e->job->held.froze_real)
                        (void)orders_freeze_later(m, e);
}

static int go_on(struct manager *m, struct job *j, uint32_t uid, char text[static SUSPENSION_TEXT_MAX]);

void suspension_freeze_refused(struct manager *m, struct executor *e, const char *why) {
        struct job *j = e->job;
        char text[SUSPENSION_TEXT_MAX];

        record_event(m, j, "freeze-refused", e, "%s does not freeze it: %s", e->node ? e->node->name : "?",
                     why);
        if (job_frozen(j))
                (void)go_on(m, j, j->held.by, text);
}

/* ---- stopping ---- */

static const char *held_text(const struct job *j, char buf[static SUSPENSION_TEXT_MAX]) {
        if (job_held_as(j, SUSPEND_PARK)) {
                snprintf(buf, SUSPENSION_TEXT_MAX,
                         "parked by search %u, with nothing of any host: it goes on when it is among the "
                         "best of its rung, and ends when it cannot be any more",
                         j->element.array);
                return buf;
        }
        time_t t = (time_t)(j->held.since_real / USEC_PER_SEC);
        struct tm tm;
        char when[32] = "?";

        if (localtime_r(&t, &tm))
                (void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
        snprintf(buf, SUSPENSION_TEXT_MAX, "held by uid %u since %s; 'primusctl resume %u' lets it go on",
                 j->held.by, when, j->number);
        return buf;
}

void suspension_stopping(struct job *j) {
        if (j->verdict != JOB_EVENT_REQUEUE || !job_held_back(j))
                set_free(j);
}

void suspension_queued(struct manager *m, struct job *j) {
        char text[SUSPENSION_TEXT_MAX];

        if (!job_held_back(j))
                return;
        placement_dequeue(m, j);
        requeue_not_needed(m, j);
        /* Its time stands still. */
        j->slot.timer = sd_event_source_disable_unref(j->slot.timer);
        j->slot.signal_timer = sd_event_source_disable_unref(j->slot.signal_timer);
        (void)text_set(&j->reason, "%s", held_text(j, text));
}

static int stop(struct manager *m, struct job *j, uint32_t uid) {
        set_held(j, SUSPEND_STOP, uid);
        record_event(m, j, "suspended", NULL, "%s (uid %u)",
                     j->state == JOB_QUEUED ? "it is not placed" : "its executors are stopped; it waits",
                     uid);
        if (j->state == JOB_QUEUED) {
                suspension_queued(m, j);
                lifecycle_job_changed(m, j);
                return 0;
        }
        requeue_to_hold(m, j, REQUEUE_HELD);
        return 0;
}

void suspension_park(struct manager *m, struct job *j, const char *why) {
        bool leaves = j->state == JOB_STOPPING;

        if (job_state_ended(j->state) || (leaves && j->verdict != JOB_EVENT_REQUEUE))
                return;
        set_held(j, SUSPEND_PARK, j->owner);
        record_event(m, j, "parked", NULL, "%s", why);
        if (leaves)
                lifecycle_job_changed(m, j);
        else
                requeue_to_hold(m, j, REQUEUE_PARKED);
}

/* ---- what people ask for ---- */

static int refuse_hold(const struct job *j, const char *verb, enum suspend_mode mode,
                       char text[static SUSPENSION_TEXT_MAX]) {
        const char *state = job_state_to_string(j->state);

        if (job_state_ended(j->state) || j->state == JOB_STOPPING) {
                snprintf(text, SUSPENSION_TEXT_MAX, "Job %u is %s: there is nothing to %s", j->number, state,
                         verb);
                return -ESRCH;
        }
        if (mode == SUSPEND_DATA && !j->data) {
                snprintf(text, SUSPENSION_TEXT_MAX,
                         "Job %u is not fed with data: there is nothing to %s; --freeze or --stop hold its "
                         "executors",
                         j->number, verb);
                return -ENODATA;
        }
        if (job_held_back(j)) {
                snprintf(text, SUSPENSION_TEXT_MAX, "Job %u is held already", j->number);
                return -EALREADY;
        }
        if (!job_state_up(j->state)) {
                snprintf(text, SUSPENSION_TEXT_MAX, "Job %u is %s; wait until it is RUNNING", j->number,
                         state);
                return -EAGAIN;
        }
        snprintf(text, SUSPENSION_TEXT_MAX, "Job %u is %s already", j->number, state);
        return -EALREADY;
}

/* ---- arrays ---- */

static struct job *element_at(struct manager *m, const struct job *array, uint32_t i) {
        enum element_state s = array->array->states[i];
        struct job *e =
                s == ELEMENT_WAITS || s == ELEMENT_RUNS ? manager_job(m, array->array->jobs[i]) : NULL;

        return e && !job_state_ended(e->state) ? e : NULL;
}

/* One that does not run yet is kept from it, however the others are held; one that starts is held as it runs.
 */
static void hold_element(struct manager *m, struct job *array, struct job *e) {
        enum suspend_mode mode = (enum suspend_mode)(array->held.mode - 1);
        char text[SUSPENSION_TEXT_MAX] = "";

        if (e->held.mode > 0 || (e->state == JOB_STARTING && mode != SUSPEND_STOP))
                return;
        if (e->state == JOB_QUEUED || e->state == JOB_STOPPING)
                mode = SUSPEND_STOP;
        if (e->state == JOB_STOPPING && e->verdict != JOB_EVENT_REQUEUE)
                return; /* it ends */
        if (suspension_begin(m, e, mode, array->held.by, text) < 0)
                record_event(m, array, "suspended", NULL, "%u[%u] goes on: %s", array->number,
                             e->element.index, text);
}

static void run_hold_element(struct manager *m, void *data) {
        struct hold *h = data;
        struct job *e = manager_job(m, h->number), *array;

        array = e && sd_id128_equal(e->uid, h->uid) ? manager_job(m, e->element.array) : NULL;
        if (array && array->held.mode > 0 && e->state == JOB_RUNNING)
                hold_element(m, array, e);
        free(h);
}

void suspension_element_runs(struct manager *m, const struct job *array, const struct job *e) {
        if (array->held.mode > 0 && e->state == JOB_RUNNING)
                effect_later(m, e, run_hold_element);
}

static int refuse_array(const struct job *j, enum suspend_mode mode, char text[static SUSPENSION_TEXT_MAX]) {
        if (job_state_ended(j->state) || j->state == JOB_STOPPING)
                snprintf(text, SUSPENSION_TEXT_MAX, "Array %u is %s: there is nothing to suspend", j->number,
                         job_state_to_string(j->state));
        else if (j->held.mode > 0)
                snprintf(text, SUSPENSION_TEXT_MAX, "Array %u is held already", j->number);
        else if (mode != SUSPEND_STOP && j->state != JOB_RUNNING)
                snprintf(text, SUSPENSION_TEXT_MAX,
                         "No element of array %u runs; --stop keeps its elements from starting", j->number);
        else if (mode == SUSPEND_DATA && spec_n_sources(j->spec) == 0)
                snprintf(
                        text, SUSPENSION_TEXT_MAX,
                        "Array %u is not fed with data: there is nothing to suspend; --freeze or --stop hold "
                        "its elements",
                        j->number);
        else
                return 0;
        return -EALREADY;
}

static int begin_array(struct manager *m, struct job *j, enum suspend_mode mode, uint32_t uid,
                       char text[static SUSPENSION_TEXT_MAX]) {
        int r = refuse_array(j, mode, text);
        struct job *e;

        for (uint32_t i = 0; r >= 0 && mode == SUSPEND_FREEZE && i < j->array->range.n; i++)
                if ((e = element_at(m, j, i)))
                        r = check_freeze(e, text); /* none of them is frozen where one cannot be */
        if (r < 0)
                return r;
        if (j->state == JOB_RUNNING && job_transition(j, JOB_EVENT_SUSPEND) < 0)
                return -EPROTO;
        set_held(j, mode, uid);
        record_event(m, j, "suspended", NULL, "its elements are held, and no more of them begin (uid %u)",
                     uid);
        if (j->state == JOB_QUEUED)
                suspension_queued(m, j);
        lifecycle_job_changed(m, j);
        for (uint32_t i = 0; i < j->array->range.n; i++)
                if ((e = element_at(m, j, i)))
                        hold_element(m, j, e);
        return 0;
}

static int end_array(struct manager *m, struct job *j, uint32_t uid, char text[static SUSPENSION_TEXT_MAX]) {
        struct job *e;

        if (j->held.mode == 0 || job_state_ended(j->state) || j->state == JOB_STOPPING) {
                snprintf(text, SUSPENSION_TEXT_MAX, "Array %u is %s: it is not suspended", j->number,
                         job_state_to_string(j->state));
                return -EALREADY;
        }
        if (j->state == JOB_SUSPENDED && job_transition(j, JOB_EVENT_RESUME) < 0)
                return -EPROTO;
        set_free(j);
        record_event(m, j, "resumed", NULL, "its elements go on (uid %u)", uid);
        if (j->state == JOB_QUEUED) {
                (void)text_set(&j->reason, NULL);
                depend_watch(m, j);
        }
        lifecycle_job_changed(m, j);
        for (uint32_t i = 0; i < j->array->range.n; i++)
                if ((e = element_at(m, j, i)) && e->held.mode > 0)
                        (void)go_on(m, e, uid, text);
        placement_enqueue(m, j); /* those whose turn has come meanwhile */
        return 0;
}

int suspension_begin(struct manager *m, struct job *j, enum suspend_mode mode, uint32_t uid,
                     char text[static SUSPENSION_TEXT_MAX]) {
        int r;

        if (j->array)
                return begin_array(m, j, mode, uid, text);
        if (mode == SUSPEND_STOP && j->state == JOB_STOPPING && j->verdict == JOB_EVENT_REQUEUE &&
            !job_held_back(j)) {
                set_held(j, mode, uid);
                record_event(m, j, "suspended", NULL,
                             "it is being stopped, and is then kept waiting (uid %u)", uid);
                lifecycle_job_changed(m, j);
                return 0;
        }
        if (mode == SUSPEND_STOP) {
                if (job_state_ended(j->state) || j->state == JOB_STOPPING || j->state == JOB_SUBMITTED ||
                    job_held_back(j))
                        return refuse_hold(j, "suspend", mode, text);
                return stop(m, j, uid);
        }
        if (j->state != JOB_RUNNING || (mode == SUSPEND_DATA && !j->data))
                return refuse_hold(j, "suspend", mode, text);
        r = mode == SUSPEND_FREEZE ? check_freeze(j, text) : 0;
        if (r < 0)
                return r;
        if (job_transition(j, JOB_EVENT_SUSPEND) < 0)
                return -EPROTO;
        set_held(j, mode, uid);
        record_event(m, j, "suspended", NULL, "%s (uid %u)",
                     mode == SUSPEND_FREEZE ? "its processes are frozen" : "its data is held back", uid);
        lifecycle_job_changed(m, j);
        if (mode == SUSPEND_FREEZE)
                freeze_all(m, j);
        hold_later(m, j);
        return 0;
}

/* One that waits, or is on its way there. */
static void let_go(struct manager *m, struct job *j) {
        if (j->state == JOB_QUEUED && j->slot.since_real > 0) /* the time that it was held does not count */
                j->slot.since_real = usec_add(j->slot.since_real, usec_sub(now_real(), j->held.since_real));
        if (j->queue.placeable_real > 0)
                j->queue.placeable_real =
                        usec_add(j->queue.placeable_real,
                                 usec_sub(now_real(), MAX(j->held.since_real, j->queue.placeable_real)));
        set_free(j);
        if (j->state == JOB_QUEUED) {
                (void)text_set(&j->reason, NULL);
                depend_watch(m, j);
                time_limit_arm(m, j);
                placement_enqueue(m, j);
        }
        lifecycle_job_changed(m, j);
}

void suspension_unpark(struct manager *m, struct job *j) {
        const struct job *array = manager_job(m, j->element.array);

        if (!job_held_as(j, SUSPEND_PARK) || job_state_ended(j->state))
                return;
        record_event(m, j, "promoted", NULL, "it is among the best of its rung now");
        if (array && array->held.mode > 0) { /* like all the others: resumed with them */
                set_held(j, SUSPEND_STOP, array->held.by);
                if (j->state == JOB_QUEUED)
                        suspension_queued(m, j);
                lifecycle_job_changed(m, j);
        } else
                let_go(m, j);
}

static int go_on(struct manager *m, struct job *j, uint32_t uid, char text[static SUSPENSION_TEXT_MAX]) {
        bool frozen = job_frozen(j);

        if (job_held_as(j, SUSPEND_PARK) && !job_state_ended(j->state)) {
                snprintf(text, SUSPENSION_TEXT_MAX,
                         "Job %u is parked: search %u lets it go on when it is among the best of its rung",
                         j->number, j->element.array);
                return -EALREADY;
        }
        if (job_held_back(j) && !job_state_ended(j->state)) {
                record_event(m, j, "resumed", NULL, "it may be placed again (uid %u)", uid);
                let_go(m, j);
                return 0;
        }
        if (j->state == JOB_RUNNING || j->state == JOB_QUEUED || j->state == JOB_STARTING) {
                snprintf(text, SUSPENSION_TEXT_MAX, "Job %u is %s: it is not suspended", j->number,
                         job_state_to_string(j->state));
                return -EALREADY;
        }
        if (j->state != JOB_SUSPENDED)
                return refuse_hold(j, "resume", SUSPEND_STOP, text);
        if (job_transition(j, JOB_EVENT_RESUME) < 0)
                return -EPROTO;
        j->held.saving = false;
        set_free(j);
        record_event(m, j, "resumed", NULL, "%s (uid %u)",
                     frozen ? "its processes go on" : "its data goes on", uid);
        lifecycle_job_changed(m, j);
        if (frozen)
                freeze_all(m, j);
        hold_later(m, j);
        return 0;
}

int suspension_end(struct manager *m, struct job *j, uint32_t uid, char text[static SUSPENSION_TEXT_MAX]) {
        const struct job *array = j->element.array > 0 ? manager_job(m, j->element.array) : NULL;

        if (j->array)
                return end_array(m, j, uid, text);
        if (array && array->held.mode > 0) {
                snprintf(text, SUSPENSION_TEXT_MAX,
                         "Job %u is %u[%u], and all of array %u is held; 'primusctl resume %u' lets it go on",
                         j->number, array->number, j->element.index, array->number, array->number);
                return -EALREADY;
        }
        return go_on(m, j, uid, text);
}

void suspension_restored(struct manager *m, struct job *j) {
        if (!j->held.saving)
                return;
        j->held.saving = false;
        if (j->state != JOB_SUSPENDED || job_transition(j, JOB_EVENT_RESUME) < 0)
                return;
        set_free(j);
        record_event(
                m, j, "resumed", NULL,
                "the master was restarted before the savepoint was complete; the job goes on without it");
        lifecycle_job_changed(m, j);
        hold_later(m, j);
}
