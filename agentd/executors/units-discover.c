/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the executors again, after a restart of agentd or a daemon-reload: systemd's list, each new unit's
 * Transient and Environment=, then the exit records. Invariant: only a transient unit whose Environment=
 * carries our identity and whose name is the one of that identity counts. */
#include <string.h>

#include "agentd/executors/units-internal.h"
#include "lib/base/strv.h"

struct discovery {
        struct units *units;
        char unit[UNIT_NAME_MAX];
        enum executor_state state;
        bool transient, failed, frozen;
        char **environment;
        unsigned pending;
        struct discovery *next, *prev;
};

static void discovery_free(struct discovery *d) {
        DL_DELETE(d->units->discoveries, d);
        strings_free(d->environment);
        free(d);
}

void discoveries_free(struct units *u) {
        while (u->discoveries)
                discovery_free(u->discoveries);
}

static void finish_listing(struct units *u) {
        if (u->listing || u->discovering > 0)
                return;
        if (u->list_again) {
                u->list_again = false;
                if (units_list(u) < 0)
                        log_oom();
                return;
        }
        (void)exits_scan(u->exits);
        if (!u->ready && !u->asking_left) {
                u->asking_left = units_ask_left(u);
                if (!u->asking_left)
                        units_all_known(u);
        }
}

void units_all_known(struct units *u) {
        u->asking_left = false;
        u->ready = true;
        jobs_stop_empty_slices(u);
        if (jobs_start_sweeping(u) < 0)
                log_oom();
        if (u->ops.ready)
                u->ops.ready(u->userdata);
}

static int adopt(struct discovery *d) {
        struct units *u = d->units;
        struct unit_identity identity;
        char name[UNIT_NAME_MAX];
        struct executor *e;
        int r;

        if (d->failed || !d->transient)
                return 0;
        if (unit_identity_parse(d->environment, &identity) < 0)
                return 0;
        executor_unit_name(identity.id.job, identity.id.role, identity.id.index, identity.id.attempt, name);
        if (strcmp(name, d->unit) != 0)
                return log_full(LOG_WARNING, 0, &(struct log_fields){ .unit = d->unit },
                                "Ignoring unit %s: its environment says it is %s", d->unit, name);
        if (executor_find_unit(u, d->unit))
                return 0;
        e = executor_new(u, &identity.id);
        if (!e)
                return log_oom();
        e->kind = identity.kind;
        e->on_partition = identity.on_partition;
        e->uid = identity.uid;
        e->ack = identity.ack;
        e->pipe_size = identity.pipe_size;
        e->grace_usec = identity.grace_usec;
        e->start_max_usec = identity.start_max_usec;
        e->runtime_max_usec = identity.runtime_max_usec;
        e->state = d->state;
        e->submitted = true;
        e->frozen = d->frozen;
        e->started = d->state != EXECUTOR_STARTING;
        e->stop_requested = private_stop_marked(u->options.root, e->unit);
        if (e->stop_requested && e->state == EXECUTOR_RUNNING)
                e->state = EXECUTOR_STOPPING;
        if (e->stop_requested) {
                e->stop_grace = identity.grace_usec;
                e->grace_guessed = true; /* its master says again which one was ordered */
                executor_limit_grace(e, identity.grace_usec); /* what is left of it is not known */
        }
        if (e->state == EXECUTOR_STOPPING && e->stop_requested)
                executor_stop_again(e);
        if (e->on_partition == ON_PARTITION_STOP) /* it may be older than primus-alone */
                starter_tell(u->systemd, "Put", "ssay", e->unit, "alone", 0);
        executor_watch_limit(e);
        e->epoch = private_rendezvous_epoch(u->options.root, e->unit);
        executor_read_start(e);
        if (cpus_own(e, environment_find(d->environment, "PRIMUS_CPUS"), true) < 0)
                return log_oom();
        if (devices_own(e, NULL, d->environment) < 0)
                return log_oom();
        r = ready_recall(e);
        if (r < 0)
                log_executor(e, LOG_WARNING, "What %s is waited for to become ready cannot be read", e->unit);
        r = job_enter(u, e, NULL);
        if (r < 0)
                return log_oom();
        e->job->sliced = true;
        e->job->told_known = false;
        return 0;
}

static void discovered(struct discovery *d) {
        struct units *u = d->units;

        if (--d->pending > 0)
                return;
        (void)adopt(d);
        discovery_free(d);
        u->discovering--;
        finish_listing(u);
}

static void on_transient(sd_bus_message *reply, void *userdata) {
        struct discovery *d = userdata;
        int transient = 0;

        if (sd_bus_message_is_method_error(reply, NULL) ||
            sd_bus_message_read(reply, "v", "b", &transient) < 0)
                d->failed = true;
        d->transient = transient;
        discovered(d);
}

static void on_environment(sd_bus_message *reply, void *userdata) {
        struct discovery *d = userdata;

        if (sd_bus_message_is_method_error(reply, NULL) ||
            sd_bus_message_enter_container(reply, 'v', "as") < 0 ||
            sd_bus_message_read_strv(reply, &d->environment) < 0)
                d->failed = true; /* gone in between */
        discovered(d);
}

/* It is kept by the kernel, over our death and a reload of systemd. */
static void on_freezer(sd_bus_message *reply, void *userdata) {
        struct discovery *d = userdata;
        const char *state;

        if (!sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "v", "s", &state) >= 0)
                d->frozen = strcmp(state, "frozen") == 0 || strcmp(state, "freezing") == 0;
        discovered(d);
}

static int discover(struct units *u, const struct systemd_unit *row, enum executor_state state) {
        struct discovery *d = calloc(1, sizeof(*d));
        int r;

        if (!d)
                return -ENOMEM;
        *d = (struct discovery){ .units = u, .state = state, .pending = 1 };
        DL_APPEND(u->discoveries, d);
        u->discovering++;
        snprintf(d->unit, sizeof(d->unit), "%s", row->name);
        r = systemd_get(u->systemd, row->path, "Unit", "Transient", on_transient, d);
        if (r >= 0) {
                d->pending++;
                r = systemd_get(u->systemd, row->path, "Service", "Environment", on_environment, d);
        }
        if (r >= 0) {
                d->pending++;
                r = systemd_get(u->systemd, row->path, "Unit", "FreezerState", on_freezer, d);
        }
        if (r >= 0)
                d->pending++;
        else
                d->failed = true;
        discovered(d); /* the reference that this function holds */
        return r;
}

static const struct {
        const char *active_state;
        enum executor_state state;
} states[] = {
        { "active", EXECUTOR_RUNNING },
        { "reloading", EXECUTOR_RUNNING },
        { "activating", EXECUTOR_STARTING },
        { "deactivating", EXECUTOR_STOPPING },
};

static bool is_service(const char *name) {
        size_t l = strlen(name), suffix = strlen(".service");

        return l > suffix && strcmp(name + l - suffix, ".service") == 0;
}

/* The environment of a session is its executor's. */
static bool is_session(const char *name) {
        return strncmp(name, "primus-session-", strlen("primus-session-")) == 0;
}

static bool is_get(const char *name) {
        return strncmp(name, "primus-get-", strlen("primus-get-")) == 0;
}

static void on_list(sd_bus_message *reply, void *userdata) {
        struct units *u = userdata;
        struct executor *e, *next;
        struct systemd_unit row;
        int r = sd_bus_message_is_method_error(reply, NULL) ? -sd_bus_message_get_errno(reply)
                                                            : systemd_list_enter(reply);

        struct seen {
                struct executor *executor;
                UT_hash_handle hh;
        } *seen = NULL, *s, *s_next;

        while (r >= 0 && (r = systemd_list_next(reply, &row)) > 0) {
                size_t i = 0;

                if (!u->ready && job_note_slice(u, row.name) < 0)
                        log_oom();
                if (!is_service(row.name) || is_session(row.name))
                        continue;
                if (hooks_stale(row.name) || is_get(row.name)) {
                        if (!u->ready) /* nobody waits for its end any more */
                                (void)systemd_stop(u->systemd, row.name, NULL, NULL);
                        continue;
                }
                while (i < ELEMENTSOF(states) && strcmp(states[i].active_state, row.active_state) != 0)
                        i++;
                if (i == ELEMENTSOF(states) || strlen(row.name) >= UNIT_NAME_MAX)
                        continue;
                e = executor_find_unit(u, row.name);
                if (!e) {
                        if (discover(u, &row, states[i].state) < 0)
                                log_oom();
                        continue;
                }
                s = malloc(sizeof(*s));
                if (!s)
                        break;
                s->executor = e;
                HASH_ADD_PTR(seen, executor, s);
                if (e->state == EXECUTOR_STARTING && e->submitted && states[i].state == EXECUTOR_RUNNING)
                        executor_event(e, EVENT_STARTED); /* its JobRemoved was lost */
        }
        if (r < 0)
                log_warning_errno(r, "Cannot list the units of this host");
        else /* what we believe in and systemd does not have */
                HASH_ITER (hh, u->executors, e, next) {
                        HASH_FIND_PTR(seen, &e, s);
                        if (!s && e->submitted && e->state <= EXECUTOR_STOPPING)
                                executor_verify(e);
                }
        HASH_ITER (hh, seen, s, s_next) {
                HASH_DEL(seen, s);
                free(s);
        }
        u->listing = false;
        finish_listing(u);
}

int units_list(struct units *u) {
        int r;

        if (u->listing) {
                u->list_again = true;
                return 0;
        }
        u->listing = true;
        r = systemd_list(u->systemd, "primus-*", on_list, u);
        if (r < 0)
                u->listing = false;
        return r;
}
