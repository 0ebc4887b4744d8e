/* SPDX-License-Identifier: Apache-2.0 */
/* The turn of masterd's loop: scheduling, commit, effects. Invariant: no effect runs before what it stands on
 * is on disk. */
#include "masterd/manager.h"
#include "masterd/blaming.h"
#include "masterd/healing.h"

#include <dirent.h>
#include <pwd.h>
#include <systemd/sd-daemon.h>

#include "lib/base/clock.h"
#include "lib/base/exit.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "masterd/api/api.h"
#include "masterd/api/reply.h"
#include "masterd/arrays.h"
#include "masterd/bundles.h"
#include "masterd/depend.h"
#include "masterd/hooks.h"
#include "masterd/hosts.h"
#include "masterd/identity.h"
#include "masterd/link.h"
#include "masterd/liveness.h"
#include "masterd/logs.h"
#include "masterd/placement.h"
#include "masterd/queueing.h"
#include "masterd/recover.h"
#include "masterd/savepoints.h"
#include "masterd/sessions.h"
#include "masterd/telemetry.h"

#define DUE_USEC (5 * USEC_PER_MSEC)
#define PRUNE_USEC (600 * USEC_PER_SEC)
#define PRUNE_AGAIN_USEC USEC_PER_SEC /* while the store has more than KeepBytes= */

struct effect {
        effect_fn run;
        void *data;
        struct effect *next;
};

struct batch {
        struct manager *manager;
        struct effect *effects, **effects_end;
};

struct job *manager_job(struct manager *m, uint32_t number) {
        struct job *j;

        HASH_FIND(hh, m->jobs, &number, sizeof(number), j);
        return j;
}

struct executor *manager_attempt(struct manager *m, const struct executor_id *id) {
        struct job *j = manager_job(m, id->job);

        return j && sd_id128_equal(j->uid, id->job_uid) ? job_attempt(j, id->role, id->index, id->attempt)
                                                        : NULL;
}

static void effects_free(struct effect *e) {
        while (e) {
                struct effect *next = e->next;
                free(e->data);
                free(e);
                e = next;
        }
}

/* Orders for thousands of hosts may be due at once: after DUE_USEC whoever waits has his turn, then the rest
 * follows in its order. */
static int run_due(sd_event_source *s, void *userdata) {
        struct manager *m = userdata;
        uint64_t end = now_boot() + DUE_USEC;

        while (m->due && (now_boot() < end || sd_event_get_state(m->event) == SD_EVENT_FINISHED)) {
                struct effect *e = m->due;
                m->due = e->next;
                if (!m->due)
                        m->due_end = &m->due;
                e->run(m, e->data); /* takes its data over */
                free(e);
        }
        return sd_event_source_set_enabled(s, m->due ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void on_durable(void *userdata, int error) {
        struct batch *batch = userdata;
        struct manager *m = batch->manager;

        if (error < 0) {
                /* Memory is ahead of the disk: begin again from what is stored. */
                log_full(LOG_CRIT, error, NULL,
                         "The store in %s failed; exiting to start again from what is on disk",
                         m->conf.state_directory);
                (void)sd_event_exit(m->event, error);
                effects_free(batch->effects);
        } else if (batch->effects) {
                *m->due_end = batch->effects;
                m->due_end = batch->effects_end;
                (void)run_due(m->run_due, m);
        }
        free(batch);
}

static int on_turn(sd_event_source *s, void *userdata) {
        struct manager *m = userdata;
        struct batch *batch;
        int r;

        (void)sd_event_source_set_enabled(s, SD_EVENT_OFF);
        if (m->schedule_wanted && m->serving) {
                m->schedule_wanted = false;
                placement_run(m);
        }
        if (!m->batch_open)
                return 0;
        m->batch_open = false;
        batch = malloc(sizeof(*batch));
        if (!batch)
                return sd_event_exit(m->event, log_oom()); /* what is on disk stays right */
        *batch = (struct batch){ m, m->effects, m->effects_end };
        m->effects = NULL;
        m->effects_end = &m->effects;
        r = store_commit(m->store, on_durable, batch);
        if (r < 0) {
                on_durable(batch, r);
                return 0;
        }
        return 0;
}

static void want_turn(struct manager *m) {
        if (m->turn)
                (void)sd_event_source_set_enabled(m->turn, SD_EVENT_ONESHOT);
}

void manager_touch(struct manager *m) {
        m->batch_open = true;
        want_turn(m);
}

void manager_schedule(struct manager *m) {
        m->schedule_wanted = true;
        want_turn(m);
}

int manager_effect(struct manager *m, effect_fn run, void *data) {
        struct effect *e = calloc(1, sizeof(*e));

        if (!e) {
                free(data);
                /* An effect that is dropped would leave memory and the world apart. */
                (void)sd_event_exit(m->event, log_oom());
                return -ENOMEM;
        }
        *e = (struct effect){ run, data, NULL };
        *m->effects_end = e;
        m->effects_end = &e->next;
        manager_touch(m);
        return 0;
}

struct reply {
        sd_bus_message *message;
};

static void send_reply(struct manager *m, void *data) {
        struct reply *r = data;

        (void)reply_send(r->message); /* a caller that is gone is no fault of ours */
        sd_bus_message_unref(r->message);
        free(r);
}

int manager_reply_later(struct manager *m, sd_bus_message *reply) {
        struct reply *r = malloc(sizeof(*r));

        if (!r) {
                sd_bus_message_unref(reply);
                return -ENOMEM;
        }
        r->message = reply;
        return manager_effect(m, send_reply, r);
}

struct forgotten {
        struct manager *manager;
        uint32_t number;
};

static void on_known(void *userdata, int error, const struct job_record *jobs, size_t n) {
        struct forgotten *f = userdata;

        if (error >= 0 && n == 0)
                logs_forget(f->manager, f->number);
        free(f);
}

/* Kept logs of jobs that the store has forgotten. The directory's names say which jobs there are; the store,
 * which answers behind the pruning, which of them it still knows. */
static void prune_logs(struct manager *m) {
        _cleanup_free_ char *path = NULL;
        struct dirent *entry;
        DIR *d;

        if (asprintf(&path, "%s/logs", m->conf.state_directory) < 0)
                return;
        d = opendir(path);
        while (d && (entry = readdir(d))) {
                struct forgotten *f;
                uint32_t number;
                if (parse_u32(entry->d_name, 1, UINT32_MAX, &number) < 0 || manager_job(m, number))
                        continue;
                f = malloc(sizeof(*f));
                if (!f)
                        break;
                *f = (struct forgotten){ m, number };
                if (store_query_job(m->store, number, on_known, f) < 0) {
                        free(f);
                        break; /* the rest at the next time */
                }
        }
        if (d)
                closedir(d);
}

static int on_prune(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;

        uint64_t used = store_bytes_used(m->store);

        store_prune(m->store,
                    &(struct store_keep){ .older_than_real = usec_sub(now_real(), m->conf.keep_usec),
                                          .newest = m->conf.keep_jobs,
                                          .now_real = now_real(),
                                          .bytes = m->conf.keep_bytes });
        manager_touch(m);
        prune_logs(m);
        /* As long as it becomes less. */
        (void)sd_event_source_set_time_relative(
                s, used > m->conf.keep_bytes && used < m->pruned_used ? PRUNE_AGAIN_USEC : PRUNE_USEC);
        m->pruned_used = used;
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

void manager_prune_soon(struct manager *m) {
        uint64_t used = store_bytes_used(m->store), due;

        /* It has grown since. */
        if (used <= m->conf.keep_bytes || used <= m->pruned_used || !m->prune_timer ||
            sd_event_source_get_time(m->prune_timer, &due) < 0 ||
            due <= usec_add(now_boot(), PRUNE_AGAIN_USEC))
                return;
        m->pruned_used = UINT64_MAX;
        (void)sd_event_source_set_time_relative(m->prune_timer, PRUNE_AGAIN_USEC);
}

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        struct manager *m = userdata;

        log_info("Received SIG%s, exiting; executors go on", sigabbrev_np((int)si->ssi_signo));
        return sd_event_exit(m->event, 0);
}

static int on_reload(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        queueing_reload(userdata);
        return 0;
}

/* At the start, since the question may go to a directory on the network. */
static void find_backup_user(struct manager *m) {
        const struct passwd *pw = getpwnam("primus-backup");

        m->backup_uid_known = pw != NULL;
        m->backup_uid = pw ? pw->pw_uid : 0;
}

int manager_new(struct manager **ret) {
        struct manager *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return log_oom();
        m->effects_end = &m->effects;
        m->due_end = &m->due;
        m->histories.max = TELEMETRY_HISTORY_MAX;
        /* The turn has the priority of everybody else: it runs behind what was pending before it, and is
         * never starved. */
        r = conf_read(&m->conf, NULL);
        if (r < 0) {
                manager_free(m);
                return exit_person(r); /* logged, with file and line */
        }
        find_backup_user(m);
        r = sd_event_default(&m->event);
        if (r >= 0)
                r = sd_event_add_defer(m->event, &m->turn, on_turn, m);
        if (r >= 0)
                r = sd_event_source_set_enabled(m->turn, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(m->event, &m->run_due, run_due, m);
        if (r >= 0)
                r = sd_event_source_set_enabled(m->run_due, SD_EVENT_OFF);
        if (r < 0) {
                manager_free(m);
                return log_error_errno(r, "Cannot make the event loop");
        }
        *ret = m;
        return 0;
}

/* The new term is on disk: from here on orders may leave. */
static void serve(struct manager *m, void *data) {
        int r;

        m->serving = true;
        m->ready_boot = now_boot();
        r = link_listen(m);
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
        if (r < 0) {
                (void)sd_event_exit(m->event, r);
                return;
        }
        manager_schedule(m);
        log_info("Serving cluster " SD_ID128_FORMAT_STR " on port %u, term %llu, %u active jobs, %u nodes",
                 SD_ID128_FORMAT_VAL(m->cluster), listener_port(m->listener), (unsigned long long)m->term,
                 m->n_active, m->nodes.n);
        (void)sd_notifyf(false, "READY=1\nSTATUS=Serving agents on port %u", listener_port(m->listener));
}

/* What a masterd that was killed over a backup left of it. */
static void clear_backup(struct manager *m) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s/" BACKUP_FILE, m->conf.state_directory) < 0)
                path = NULL;
        else
                (void)unlink(path);
}

int manager_start(struct manager *m) {
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
        r = logs_new(m, &m->logs);
        if (r < 0)
                return exit_person(log_error_errno(r, "Cannot set up the kept logs in %s/logs",
                                                   m->conf.state_directory));
        r = bundles_new(m, &m->bundles);
        if (r < 0)
                return exit_person(log_error_errno(r, "Cannot set up %s/bundles", m->conf.state_directory));
        r = sessions_new(m, &m->sessions);
        if (r < 0)
                return log_oom();
        r = hooks_new(m, &m->hooks);
        if (r < 0)
                return exit_person(log_error_errno(r, "Cannot set up %s/hooks", m->conf.state_directory));
        r = recover_load(m);
        if (r < 0)
                return exit_person(log_error_errno(r, "Cannot load the cluster's state from %s", path));
        r = api_connect(m);
        if (r < 0)
                return log_error_errno(r, "Cannot connect to the system bus");
        r = sd_event_add_time_relative(m->event, &m->prune_timer, CLOCK_BOOTTIME, PRUNE_USEC, USEC_PER_SEC,
                                       on_prune, m);
        if (r < 0)
                return r;
        return manager_effect(m, serve, NULL);
}

void manager_free(struct manager *m) {
        struct job *j, *next;

        if (!m)
                return;
        store_close(m->store);
        hooks_free(m->hooks);
        m->hooks = NULL;
        api_disconnect(m);
        sessions_free(m->sessions);
        m->sessions = NULL;
        link_close_all(m);
        HASH_ITER (hh, m->jobs, j, next) {
                HASH_DEL(m->jobs, j);
                recover_job_free(j);
        }
        arrays_free_owners(m);
        depend_free(m);
        savepoints_free(m);
        logs_free(m->logs);
        bundles_free(m->bundles);
        placement_free(m->placement);
        hosts_stop(m);
        blaming_stop(m);
        healing_stop(m);
        nodes_clear(&m->nodes);
        identity_done(m);
        effects_free(m->effects);
        effects_free(m->due);
        sd_event_source_disable_unref(m->turn);
        sd_event_source_disable_unref(m->run_due);
        sd_event_source_disable_unref(m->live_timer);
        sd_event_source_disable_unref(m->prune_timer);
        sd_event_source_disable_unref(m->renew_timer);
        sd_event_unref(m->event);
        conf_done(&m->conf);
        free(m);
}
