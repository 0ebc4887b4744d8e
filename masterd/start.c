/* SPDX-License-Identifier: Apache-2.0 */
/* How the rooms become one program: made, started and freed here. Invariant: nobody is served before the new
 * term is on disk. */
#include "masterd/start.h"

#include <systemd/sd-daemon.h>

#include "lib/base/clock.h"
#include "lib/base/exit.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "masterd/admit/collect.h"
#include "masterd/admit/keys.h"
#include "masterd/api/api.h"
#include "masterd/api/audience.h"
#include "masterd/api/changes-call.h"
#include "masterd/api/link-object.h"
#include "masterd/api/looking.h"
#include "masterd/calls/calls.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/blaming.h"
#include "masterd/fleet/conditions.h"
#include "masterd/fleet/fleet.h"
#include "masterd/fleet/gpus-off.h"
#include "masterd/fleet/hooks.h"
#include "masterd/fleet/hosts.h"
#include "masterd/fleet/liveness.h"
#include "masterd/fleet/ownhost.h"
#include "masterd/fleet/stuck.h"
#include "masterd/fleet/unit-run.h"
#include "masterd/job/suspend.h"
#include "masterd/life/arrays.h"
#include "masterd/life/attempts.h"
#include "masterd/life/depend.h"
#include "masterd/life/epochs.h"
#include "masterd/life/family.h"
#include "masterd/life/kept-progress.h"
#include "masterd/life/life.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/limits.h"
#include "masterd/life/requeue.h"
#include "masterd/life/revive.h"
#include "masterd/life/savepoints.h"
#include "masterd/life/suspension.h"
#include "masterd/life/time-limit.h"
#include "masterd/link/identity.h"
#include "masterd/link/link.h"
#include "masterd/link/registration.h"
#include "masterd/providers/providers.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/queueing.h"
#include "masterd/recover/load.h"
#include "masterd/relay/logs.h"
#include "masterd/relay/prune.h"
#include "masterd/relay/relay.h"
#include "masterd/relay/sessions.h"
#include "masterd/watch/checkpoints.h"
#include "masterd/watch/healing.h"
#include "masterd/watch/models.h"
#include "masterd/watch/telemetry.h"
#include "masterd/watch/training.h"
#include "masterd/watch/watch.h"

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        struct manager *m = userdata;

        log_info("Received SIG%s, exiting; executors go on", sigabbrev_np((int)si->ssi_signo));
        /* The last thing that is recorded; store_close() waits for it. */
        training_write_all(m);
        if (store_commit(m->store, NULL, NULL) < 0)
                log_warning("The latest metrics of jobs are not written; their agents say them again");
        return sd_event_exit(m->event, 0);
}

static int on_reload(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        queueing_reload(userdata);
        providers_reload(userdata);
        return 0;
}

/* ---- what rooms hear and ask of those above them ---- */

static void fleet_executor_placed(struct manager *m, struct executor *e) {
        blaming_place_changed(m, e->node);
}

static void fleet_executor_released(struct manager *m, struct executor *e) {
        hosts_left(m, e->node);
        blaming_place_changed(m, e->node);
}

static void fleet_executor_over(struct manager *m, struct executor *e) {
        if (e->node)
                stuck_review(m, e->node);
}

static void fleet_job_ended(struct manager *m, struct job *j) {
        hooks_notify(m, "job-ended", NULL, j, j->reason ? j->reason : "");
}

static void fleet_node_joined(struct manager *m, struct node *node, bool taken_over, const char *text) {
        hooks_notify(m, taken_over ? "host-taken-over" : "host-joined", node, NULL, text);
}

static void watch_executor_over(struct manager *m, struct executor *e) {
        telemetry_ended(e);
        healing_ended(m, e);
}

static int watch_jobs_loaded(struct manager *m) {
        TRY(training_load(m));
        TRY(checkpoints_load(m));
        TRY(models_load(m));
        return healing_load(m);
}

static void watch_job_freed(struct job *j) {
        training_job_freed(j);
        healing_forget(j);
}

static void watch_job_attempt_over(struct manager *m, struct job *j) {
        telemetry_job_ended(m, j);
        healing_job_ended(m, j);
}

static void feed_node_registered(struct manager *m, struct node *node, const struct registration *g) {
        feeding_node_gone(m, node, true);
}

static void life_node_registered(struct manager *m, struct node *node, const struct registration *g) {
        requeue_registered(m, node);
        limits_registered(m, node);
        suspension_registered(m, node);
        epochs_registered(m, node);
}

static int fleet_nodes_loaded(struct manager *m) {
        int r = hosts_load_nodes(m);

        r = r < 0 ? r : gpus_off_load(m);
        return r < 0 ? r : blaming_load(m);
}

static void fleet_node_registered(struct manager *m, struct node *node, const struct registration *g) {
        gpus_off_apply(m, node);
        stuck_registered(m, node);
        conditions_registered(m, node, g->conditions, g->n_conditions);
        hosts_registered(m, node);
        ownhost_registered(m, node);
}

static const struct listener feed = {
        .node_registered = feed_node_registered,
};

static int life_jobs_loaded(struct manager *m) {
        TRY(kept_progress_load(m));
        return family_load(m);
}

static void life_job_freed(struct job *j) {
        kept_progress_drop(j);
        family_job_freed(j);
}

static const struct listener life = {
        .node_registered = life_node_registered,
        .jobs_loaded = life_jobs_loaded,
        .job_attempt_over = kept_progress_attempt_over,
        .job_ended = family_job_ended,
        .job_freed = life_job_freed,
};

static const struct listener fleet = {
        .nodes_loaded = fleet_nodes_loaded,
        .jobs_read = hosts_load_jobs,
        .jobs_loaded = stuck_load,
        .node_registered = fleet_node_registered,
        .executor_placed = fleet_executor_placed,
        .executor_released = fleet_executor_released,
        .executor_over = fleet_executor_over,
        .executor_ended = blaming_ended,
        .executor_remembered = blaming_remember,
        .job_ended = fleet_job_ended,
        .node_joined = fleet_node_joined,
        .prolog_failed = hosts_prolog_failed,
};

static const struct listener watch = {
        .jobs_loaded = watch_jobs_loaded,
        .executor_over = watch_executor_over,
        .executor_failure_counted = healing_failed,
        .job_attempt_over = watch_job_attempt_over,
        .job_ended = training_job_ended,
        .job_freed = watch_job_freed,
};

static void providers_registered(struct manager *m, struct node *node, const struct registration *g) {
        providers_node_registered(m, node);
}

static void providers_executor_released(struct manager *m, struct executor *e) {
        providers_poke(m);
}

static const struct listener providers = {
        .nodes_loaded = providers_load,
        .node_registered = providers_registered,
        .executor_placed = providers_executor_placed,
        .executor_released = providers_executor_released,
};

static const struct listener relay = {
        .executor_failed = logs_note_failure,
};

static const struct listener admit = {
        .jobs_loaded = keys_load,
        .job_ended = collect_job_ended,
};

static const struct listener api = {
        .job_freed = audience_forget,
};

static const struct listener *const listeners[] = { &feed,  &life,  &fleet, &providers, &watch,
                                                    &relay, &admit, &api,   NULL };

static bool job_not_placeable(struct manager *m, struct job *j) {
        return depend_holds_back(j) || arrays_take(m, j);
}

static bool job_kept_waiting(struct manager *m, struct job *j) {
        return job_held_back(j) || requeue_holds(m, j);
}

static void job_begins(struct manager *m, struct job *j) {
        lifecycle_job_changed(m, j);
        time_limit_arm(m, j);
}

static void scan_refused(struct manager *m, struct job *j, struct node *node, const struct executor_id *id,
                         const char *text) {
        if (text)
                (void)feeding_scan_exited(
                        m, j, node,
                        &(struct exit_report){ .id = *id, .result = "not started", .detail = (char *)text });
        else
                feeding_leave(m, node);
}

static const struct source *scan_source(struct job *j, struct node *node, const struct executor_id *id) {
        return feeding_scan_known(j, node, id) ? j->data->sources + id->index : NULL;
}

static const struct upcalls upcalls = {
        .tell_watchers = audience_tell,
        .changed = changes_call_wake,
        .may_look = api_sees,
        .job_not_placeable = job_not_placeable,
        .job_kept_waiting = job_kept_waiting,
        .job_begins = job_begins,
        .job_places_changed = epochs_update,
        .job_is_served = requeue_not_needed,
        .job_preempt = requeue_preempt,
        .job_time_to_stop = requeue_time_needed,
        .job_saved_real = savepoints_latest,
        .hosts_excluded = hosts_excluded,
        .host_room = blaming_room,
        .job_stop = lifecycle_stop_job,
        .start_answered = attempts_start_answered,
        .executor_vanished = attempts_vanished,
        .freeze_refused = suspension_freeze_refused,
        .scan_refused = scan_refused,
        .scan_source = scan_source,
};

/* ---- beginning and end ---- */

/* What waits behind a pass may want hosts. */
static void schedule(struct manager *m) {
        placement_run(m);
        providers_poke(m);
}

int start_new(struct manager **ret) {
        struct manager *m;
        int r = manager_new(schedule, &m);

        if (r < 0)
                return r; /* logged */
        m->listeners = listeners;
        m->up = &upcalls;
        r = link_state_new(m);
        if (r >= 0)
                r = life_new(m);
        if (r >= 0)
                r = fleet_new(m);
        r = r < 0 ? r : providers_new(m);
        if (r >= 0)
                r = watch_new(m);
        if (r >= 0)
                r = relay_state_new(m);
        r = r < 0 ? r : keys_new(m);
        r = r < 0 ? r : calls_new(m);
        if (r >= 0)
                r = api_new(m);
        if (r < 0) {
                start_free(m);
                return log_oom();
        }
        *ret = m;
        return 0;
}

/* The new term is on disk: from here on orders may leave. */
static void serve(struct manager *m, void *data) {
        static const struct link_handlers link_handlers = { .vtable = api_link_vtable,
                                                            .main_gone = training_node_gone,
                                                            .bulk_gone = sessions_node_gone,
                                                            .calls_gone = calls_gone };
        int r;

        m->serving_boot = now_boot();
        r = link_listen(m, &link_handlers);
        if (r >= 0)
                r = api_publish(m);
        if (r >= 0)
                r = liveness_start(m);
        if (r >= 0)
                r = hosts_start(m);
        if (r >= 0)
                r = blaming_start(m);
        if (r >= 0)
                r = healing_start(m);
        r = r < 0 ? r : providers_start(m);
        if (r < 0) {
                (void)sd_event_exit(m->event, r);
                return;
        }
        manager_schedule(m);
        log_info("Serving cluster " SD_ID128_FORMAT_STR " on port %u, term %llu, %u active jobs, %u nodes",
                 SD_ID128_FORMAT_VAL(m->cluster), link_port(m), (unsigned long long)m->term, m->jobs.n_active,
                 m->nodes.n);
        (void)sd_notifyf(false, "READY=1\nSTATUS=Serving agents on port %u", link_port(m));
}

/* What a masterd that was killed over a backup left of it. */
static void clear_backup(struct manager *m) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s/" BACKUP_FILE, m->conf.state_directory) < 0)
                path = NULL;
        else
                (void)unlink(path);
}

int start_serving(struct manager *m) {
        _cleanup_free_ char *path = NULL;
        int r;

        r = sd_event_add_signal(m->event, NULL, SIGTERM, on_signal, m);
        if (r >= 0)
                r = sd_event_add_signal(m->event, NULL, SIGHUP, on_reload, m);
        if (r >= 0)
                r = sd_event_add_signal(m->event, NULL, SIGINT, on_signal, m);
        if (r >= 0)
                r = sd_event_set_watchdog(m->event, true);
        if (r < 0)
                return log_error_errno(r, "Cannot start");
        r = make_directories(m->conf.state_directory, 0700);
        if (r < 0)
                return exit_person(log_error_errno(r, "Cannot make %s", m->conf.state_directory));
        if (asprintf(&path, "%s/primus.db", m->conf.state_directory) < 0)
                return log_oom();
        r = store_open(path, m->event, NULL, &m->store);
        if (r < 0)
                return exit_person(r); /* logged, with what to do */
        clear_backup(m);
        r = placement_new(m);
        if (r < 0)
                return log_error_errno(r, "Cannot set up the scheduler");
        r = identity_load(m);
        if (r < 0)
                return exit_person_unless_short(r);
        r = api_load_banner(m);
        if (r < 0)
                return exit_person(log_error_errno(r, "Cannot load the banner from %s", path));
        r = relay_open(m);
        if (r < 0)
                return r; /* logged */
        r = hooks_start(m);
        if (r < 0)
                return exit_person(log_error_errno(r, "Cannot set up %s/hooks", m->conf.state_directory));
        r = recover_load(m);
        if (r < 0)
                return exit_person(log_error_errno(r, "Cannot load the cluster's state from %s", path));
        r = api_connect(m);
        if (r < 0)
                return log_error_errno(r, "Cannot connect to the system bus");
        r = prune_start(m);
        if (r < 0)
                return r;
        return manager_effect(m, serve, NULL);
}

void start_free(struct manager *m) {
        struct job *j, *next;

        if (!m)
                return;
        store_close(m->store);
        if (m->api) { /* the last one that is made */
                hooks_stop(m);
                providers_stop(m);
                unit_runs_stop(m);
                calls_end(m);
                api_disconnect(m);
                relay_close_sessions(m);
                link_close_all(m);
        }
        HASH_ITER (hh, m->jobs.by_number, j, next) {
                HASH_DEL(m->jobs.by_number, j);
                revive_job_free(j);
        }
        life_free(m);
        relay_state_free(m);
        keys_free(m);
        calls_free(m);
        placement_free(m->placement);
        providers_free(m);
        fleet_free(m);
        watch_free(m);
        link_state_free(m);
        api_free(m);
        manager_free(m);
}
