/* SPDX-License-Identifier: Apache-2.0 */
/* agentd: joins units, link and data. Invariant: masterd is dialled only when all that is on the
 * host is known. */
#include "agentd/start.h"

#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "agentd/api/agentbus.h"
#include "agentd/api/orders.h"
#include "agentd/calls/calls.h"
#include "agentd/core/manager.h"
#include "agentd/core/starter.h"
#include "agentd/device/inventory.h"
#include "agentd/executors/units.h"
#include "agentd/feed/identity.h"
#include "agentd/host/gpus.h"
#include "agentd/host/health.h"
#include "agentd/host/hostwatch.h"
#include "agentd/host/private-guard.h"
#include "agentd/host/serving.h"
#include "agentd/host/verdict.h"
#include "agentd/link/link.h"
#include "agentd/link/renew.h"
#include "agentd/observe/observer.h"
#include "agentd/relay/captures.h"
#include "agentd/relay/data.h"
#include "agentd/relay/finds.h"
#include "agentd/relay/logs.h"
#include "agentd/relay/traces.h"
#include "agentd/session/sessions.h"
#include "agentd/telemetry/sampling.h"
#include "agentd/unit/systemd.h"
#include "lib/base/clock.h"
#include "lib/base/exit.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "lib/base/worker.h"
#include "lib/wire/master-bus.h"

/* Kept for the host itself where MemoryReserve= says nothing. */
#define MEMORY_RESERVE (UINT64_C(256) << 20)
/* So many heartbeats after the last executor ended, unused memory is given back. */
#define TRIM_HEARTBEATS 3u

static void go_on(struct manager *m);

/* ---- onPartition=stop ---- */

/* What a host that was removed gives its executors to end in. */
#define REMOVED_GRACE_USEC (10 * USEC_PER_SEC)

static int on_partition_deadline(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        unsigned n;

        if (!m->ready)
                return 0; /* set again when the units are known */
        n = units_stop_partitioned(m->units);
        if (n > 0)
                log_warning("masterd has not been heard for too long: %u executor%s with onPartition=stop %s "
                            "killed",
                            n, n == 1 ? "" : "s", n == 1 ? "is" : "are");
        return 0;
}

static void set_partition_timer(struct manager *m) {
        uint64_t deadline = link_state_deadline(&m->link_state);
        int r;

        if (deadline == USEC_INFINITY)
                return;
        if (!m->partition)
                r = sd_event_add_time(m->event, &m->partition, CLOCK_BOOTTIME, deadline, 10 * USEC_PER_MSEC,
                                      on_partition_deadline, m);
        else if ((r = sd_event_source_set_time(m->partition, deadline)) >= 0)
                r = sd_event_source_set_enabled(m->partition, SD_EVENT_ONESHOT);
        if (r < 0) {
                log_error_errno(r, "Cannot set the timer for onPartition=stop");
                (void)sd_event_exit(m->event, EXIT_FAILURE);
        }
}

static void save_link_state(struct manager *m) {
        int r = link_state_save("", &m->link_state);

        if (r < 0)
                log_warning_errno(r, "Cannot write /run/primus/agent/link");
}

/* ---- link ---- */

static int on_welcome(const struct welcome *w, const char **ret_why, void *userdata) {
        struct manager *m = userdata;

        if (!sd_id128_is_null(m->link_state.cluster) && !sd_id128_equal(m->link_state.cluster, w->cluster)) {
                *ret_why =
                        "it is of another cluster than the one this host has followed since it booted (where "
                        "that is meant: rm /run/primus/agent/link, and restart primus-agentd)";
                return -EPERM;
        }
        if (w->term < m->fence.term_seen) {
                *ret_why = "its term is lower than one this host has followed: an old masterd, or a restored "
                           "one without a new term";
                return -ESTALE;
        }
        m->fence = (struct fence){ .term = w->term, .epoch = w->epoch, .term_seen = w->term };
        m->link_state.cluster = w->cluster;
        m->link_state.term = w->term;
        m->link_state.lost_usec = w->lost_usec;
        save_link_state(m);
        return 0;
}

static int send_final(const struct exit_report *x, void *userdata) {
        return data_send_final(userdata, &x->id);
}

static int on_registration(sd_bus_message *message, const struct addr *local, void *userdata) {
        struct manager *m = userdata;

        m->inventory.address = m->settings.address.family != AF_UNSPEC ? m->settings.address
                                                                       : hostwatch_address(m->watch, local);
        TRY(serving_describe(m->serving, &m->inventory.serves));
        TRY(hostwatch_networks(m->watch, &m->inventory));
        TRY(inventory_append(message, &m->inventory));
        /* Ahead of the registration, which tells masterd that they have ended. */
        TRY(data_send_metrics(m->data, sd_bus_message_get_bus(message)));
        TRY(units_visit_exits(m->units, send_final, sd_bus_message_get_bus(message)));
        TRY(units_append(m->units, message));
        TRY(sd_bus_message_open_container(message, 'a', "{sv}"));
        TRY(units_append_epochs(m->units, message));
        TRY(units_append_work(m->units, message));
        TRY(inventory_append_extra(message, &m->inventory));
        TRY(hostwatch_append(m->watch, message));
        return sd_bus_message_close_container(message);
}

static void set_refused(struct manager *m, const char *why) {
        char *copy = why ? strdup(why) : NULL;

        if (copy && m->refused && strcmp(text_one_line(copy), m->refused) == 0) {
                free(copy);
                return;
        }
        free(m->refused);
        /* In lines of its own it would be more than a status to systemd: another main process, for one. */
        m->refused = copy ? text_one_line(copy) : NULL;
        agent_bus_changed(m, "Refused");
}

static void heard(struct manager *m, uint64_t sent_boot) {
        m->link_state.acked_boot = sent_boot;
        save_link_state(m);
        set_partition_timer(m);
}

static void on_up(uint64_t sent_boot, void *userdata) {
        struct manager *m = userdata;

        /* Before what masterd starts now: primus-alone goes by that time. */
        heard(m, sent_boot);
        units_registered(m->units);
        data_link_up(m->data);
        calls_registered(m->calls);
        if (m->refused)
                set_refused(m, NULL);
        (void)renewal_start(m);
        health_link_up(m);
        agent_bus_changed(m, "Connected");
        (void)sd_notifyf(false, "STATUS=Registered with masterd at %s as %s", m->settings.master, m->node);
}

static void on_refused(const struct link_refused *r, void *userdata) {
        struct manager *m = userdata;
        unsigned n;

        set_refused(m, r->why);
        if (r->removed && (n = units_stop_all(m->units, REMOVED_GRACE_USEC)) > 0)
                log_error("This host was removed from the cluster: its %u executor%s stopped", n,
                          n == 1 ? " is" : "s are");
        (void)sd_notifyf(false, "STATUS=Not with masterd at %s; executors go on: %s", m->settings.master,
                         m->refused ?: "refused");
        /* Our master knows that this host is there, and waits for it. */
        if (r->sent_boot == 0 || !sd_id128_equal(r->who.cluster, m->link_state.cluster) ||
            r->who.term < m->fence.term_seen)
                return;
        m->fence.term_seen = m->link_state.term = r->who.term;
        heard(m, r->sent_boot);
}

static void on_down(void *userdata) {
        struct manager *m = userdata;

        agent_bus_changed(m, "Connected");
        if (!m->refused) /* else that is what the status says */
                (void)sd_notifyf(false, "STATUS=Not connected to masterd at %s; executors go on",
                                 m->settings.master);
}

static void on_bulk_up(void *userdata) {
        struct manager *m = userdata;

        data_bulk_up(m->data);
        logs_bulk_up(m->logs);
}

static void on_bulk_down(void *userdata) {
        struct manager *m = userdata;

        data_bulk_down(m->data);
        logs_bulk_down(m->logs);
        sessions_bulk_down(m->sessions);
}

static void on_acked(uint64_t sent_boot, void *userdata) {
        struct manager *m = userdata;

        heard(m, sent_boot);
        data_resume(m->data);
        logs_resume(m->logs);
        if (m->ended > 0 && --m->ended == 0)
                (void)malloc_trim(0); /* what a herd of executors needed goes back */
}

/* ---- units ---- */

static void on_readiness(const struct executor_id *id, bool ready, const char *why, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct manager *m = userdata;
        int r;

        if ((r = link_message(m->link, false, "Ready", &message)) == -ENOTCONN)
                return; /* with the next registration */
        if (r < 0 || (r = executor_id_append(message, id)) < 0 ||
            (r = sd_bus_message_append(message, "bsa{sv}", (int)ready, why, 0)) < 0 ||
            (r = link_send(m->link, message)) < 0)
                log_warning_errno(
                        r, "Cannot report that an executor is ready; it is reported again with the next "
                           "registration");
}

static void on_taken(const struct executor_id *id, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct manager *m = userdata;
        int r;

        /* With another connection the start is asked for again, and counts again. */
        if ((r = link_message(m->link, false, "Taken", &message)) < 0 ||
            (r = executor_id_append(message, id)) < 0 || (r = link_append_extra_empty(message)) < 0 ||
            (r = link_send(m->link, message)) < 0)
                log_full(LOG_DEBUG, r, NULL, "Cannot say that systemd has an executor");
}

static int on_exited(const struct exit_report *report, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct manager *m = userdata;
        int r;

        if ((r = link_message(m->link, false, "Exited", &message)) == -ENOTCONN)
                return r; /* until the next registration */
        if (r < 0 || (r = data_send_last(m->data, sd_bus_message_get_bus(message), &report->id)) < 0 ||
            (r = exit_report_append(message, report)) < 0 ||
            (r = sd_bus_message_append(message, "a{sv}", 0)) < 0 || (r = link_send(m->link, message)) < 0)
                log_warning_errno(r, "Cannot report the end of an executor; it is reported again with the "
                                     "next registration");
        return r;
}

static void on_forgotten(const struct executor_id *id, void *userdata) {
        data_forget_final(id);
}

static void on_starting(const struct start_order *order, void *userdata) {
        struct manager *m = userdata;

        logs_starting(m->logs, &order->id);
        sampling_starting(m->sampling, &order->id);
}

static void on_account(struct exit_report *report, void *userdata) {
        sampling_account(((struct manager *)userdata)->sampling, report);
}

static void on_ended(const struct executor_id *id, void *userdata) {
        struct manager *m = userdata;

        logs_ended(m->logs, id);
        if (m->traces)
                traces_ended(m->traces, id);
        sampling_ended(m->sampling, id);
        m->ended = TRIM_HEARTBEATS;
}

/* Heard of by who waits for it: a line in the journal. */
struct told {
        struct executor_id id;
        int signal;
};

static void on_told(int r, const char *error, uint32_t told, uint32_t processes, void *userdata) {
        struct told *t = userdata;
        const struct log_fields fields = { .job = t->id.job, .role = t->id.role };

        if (r < 0)
                log_full(r == -ENOENT ? LOG_DEBUG : LOG_WARNING, 0, &fields, "SIG%s for %s %u: %s",
                         sigabbrev_np(t->signal) ?: "RT", t->id.role, t->id.index, error);
        else
                log_full(LOG_INFO, 0, &fields, "SIG%s for %s %u: %u of %u processes catch it",
                         sigabbrev_np(t->signal) ?: "RT", t->id.role, t->id.index, told, processes);
}

static int on_signal(const struct executor_id *id, const char *unit, int signal, void *userdata) {
        struct manager *m = userdata;
        struct told *t = malloc(sizeof(*t));

        if (!t)
                return -ENOMEM;
        *t = (struct told){ .id = *id, .signal = signal };
        return observer_signal(m->observer, unit, signal, on_told, t, free);
}

static void on_other_job(const char *unit, const char *result, void *userdata) {
        struct manager *m = userdata;

        if (m->sessions)
                sessions_job_over(m->sessions, unit, result);
}

static void on_other_removed(const char *unit, void *userdata) {
        struct manager *m = userdata;

        if (m->sessions)
                sessions_unit_gone(m->sessions, unit);
}

static int on_bundle(uint32_t uid, const char *sha256, bundle_handler handler, void *handler_data,
                     void *userdata) {
        return data_want_bundle(((struct manager *)userdata)->data, uid, sha256, handler, handler_data);
}

static void on_serve(uint32_t uid, serve_handler handler, void *handler_data, void *userdata) {
        serving_ask(((struct manager *)userdata)->serving, uid, handler, handler_data);
}

static void on_serving_changed(void *userdata) {
        struct manager *m = userdata;

        go_on(m);
        link_again(m->link, "whom this host serves is known by now");
}

static void on_hook(const char *name, uint32_t job, bool ok, const char *text, void *userdata) {
        /* A prolog that failed is the answer to the start. */
        if (strcmp(name, "epilog") == 0)
                health_tell(userdata, name, job, ok, text);
}

static void on_unkillable(const struct executor_id *id, const char *text, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct manager *m = userdata;
        int r = link_message(m->link, false, "Unkillable", &message);

        if (r == -ENOTCONN)
                return; /* until the next registration */
        if (r < 0 || (r = executor_id_append(message, id)) < 0 ||
            (r = link_append_text(message, text, LINK_TEXT_MAX)) < 0 ||
            (r = link_append_extra_empty(message)) < 0 || (r = link_send(m->link, message)) < 0)
                log_warning_errno(r, "Cannot tell masterd of an executor that does not die");
}

static uint32_t job_of(int fd, void *userdata) {
        const struct manager *m = userdata;
        char unit[IDENTITY_UNIT_MAX];
        struct unit_facts facts;
        struct identity who;
        uint32_t job = 0;

        if (identity_open(fd, &who) < 0)
                return 0;
        if (identity_unit(&who, unit) >= 0 && units_find(m->units, unit, &facts) >= 0 && identity_alive(&who))
                job = facts.id.job;
        (void)close_fd(who.pidfd);
        return job;
}

static void on_calls_up(void *userdata) {
        calls_up(((struct manager *)userdata)->calls);
}

static void on_calls_down(void *userdata) {
        calls_down(((struct manager *)userdata)->calls);
}

static int start_link(struct manager *m) {
        static const struct link_ops ops = {
                .welcome = on_welcome,
                .registration = on_registration,
                .up = on_up,
                .down = on_down,
                .refused = on_refused,
                .bulk_up = on_bulk_up,
                .bulk_down = on_bulk_down,
                .calls_up = on_calls_up,
                .calls_down = on_calls_down,
                .acked = on_acked,
        };
        const struct link_options options = {
                .master = m->settings.master,
                .node = m->node,
                .boot_id = m->boot_id,
                .lost_usec = m->link_state.lost_usec,
                .orders = orders_vtable,
                .bulk_orders = bulk_orders_vtable,
                .orders_data = m,
        };
        int r = link_new(m->event, m->resolver, m->credentials, &options, &ops, m, &m->link);

        if (r < 0)
                return log_error_errno(r, "Cannot start the link to masterd at %s", m->settings.master);
        data_set_link(m->data, m->link);
        logs_set_link(m->logs, m->link);
        calls_set_link(m->calls, m->link);
        return 0;
}

static void go_on(struct manager *m) {
        if (!m->ready || m->link || !gpus_settled(m->gpus) || !serving_settled(m->serving))
                return;
        if (start_link(m) < 0) {
                (void)sd_event_exit(m->event, EXIT_FAILURE);
                return;
        }
        (void)sd_notifyf(false, "READY=1\nSTATUS=Connecting to masterd at %s", m->settings.master);
}

static void on_units_ready(void *userdata) {
        struct manager *m = userdata;

        m->ready = true;
        log_info("%zu executors found on this host", units_count(m->units));
        set_partition_timer(m); /* an expired deadline fires at once */
        if (health_start(m) < 0 || sampling_start(m->sampling) < 0)
                log_oom();
        if (logs_start(m->logs) < 0 || data_listen(m->data) < 0) {
                (void)sd_event_exit(m->event, EXIT_FAILURE);
                return;
        }
        go_on(m);
}

/* ---- start ---- */

/* Orders name GPUs, whose device nodes these are. */
static int tell_starter(struct manager *m) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct systemd *s = units_systemd(m->units);

        TRY(starter_message(s, "SetInventory", &message));
        TRY(sd_bus_message_append(message, "s", m->node));
        TRY(inventory_append(message, &m->inventory));
        TRY(sd_bus_message_open_container(message, 'a', "{sv}"));
        TRY(inventory_append_extra(message, &m->inventory));
        TRY(sd_bus_message_close_container(message));
        return starter_send(s, message);
}

static int load_inventory(struct manager *m) {
        struct inventory inventory;
        struct inventory_limits limits = {
                .cpus = m->settings.cpus,
                .memory = m->settings.memory,
                .memory_reserve = m->settings.memory_reserve ?: MEMORY_RESERVE,
                .gpu_memory = m->settings.gpu_memory,
                .labels = m->settings.labels,
        };
        int r;

        if (m->gpus)
                limits.n_gpus = gpu_watch_devices(gpus_watch(m->gpus), &limits.gpus);
        r = inventory_read_host("", &limits, &inventory);
        if (r < 0)
                return log_oom();
        inventory_done(&m->inventory);
        m->inventory = inventory;
        m->inventory.port_first = m->settings.ports.first;
        m->inventory.port_last = m->settings.ports.last;
        m->inventory.allow_root = m->settings.serve.allow_root;
        if (m->units && (r = tell_starter(m)) < 0)
                return log_error_errno(r, "Cannot tell primus-starter what this host has");
        return 0;
}

static int load_identity(struct manager *m) {
        int r = identity_load(&m->credentials, &m->node);

        if (r < 0)
                return exit_person_unless_short(r);
        if (m->settings.node_name && strcmp(m->settings.node_name, m->node) != 0) {
                log_error("NodeName=%s in agentd.conf is not the name in this host's certificate, %s",
                          m->settings.node_name, m->node);
                return -EPERSON;
        }
        return 0;
}

static const struct manager_ops manager_ops = {
        .load_inventory = load_inventory,
        .go_on = go_on,
        .changed = agent_bus_changed,
};

int manager_new(sd_event *event, struct manager **ret) {
        static const struct units_ops ops = {
                .ready = on_units_ready,
                .exited = on_exited,
                .taken = on_taken,
                .readiness = on_readiness,
                .starting = on_starting,
                .account = on_account,
                .ended = on_ended,
                .forgotten = on_forgotten,
                .hook = on_hook,
                .unkillable = on_unkillable,
                .bundle = on_bundle,
                .signal = on_signal,
                .serve = on_serve,
                .other_job = on_other_job,
                .other_removed = on_other_removed,
        };
        _cleanup_(manager_free_p) struct manager *m = calloc(1, sizeof(*m));
        struct units_options options;
        sd_id128_t boot;
        int r;

        if (!m)
                return log_oom();
        m->ops = &manager_ops;
        m->event = sd_event_ref(event);
        r = settings_load("", &m->settings);
        if (r < 0)
                return exit_person(r); /* logged, with file and line */
        if (m->settings.log_level >= 0)
                log_set_level(m->settings.log_level);
        if (!m->settings.master) {
                log_error("No master is set: write Master=HOST in section [Agent] of " PRIMUS_SYSCONFDIR
                          "/agentd.conf");
                return -EPERSON;
        }
        if ((r = load_identity(m)) < 0 || (r = load_inventory(m)) < 0)
                return r;
        r = boot_id_read(&boot);
        if (r < 0)
                return log_error_errno(r, "Cannot read the boot id");
        sd_id128_to_string(boot, m->boot_id);
        r = link_state_load("", &m->link_state);
        if (r < 0)
                log_warning_errno(r, "Ignoring /run/primus/agent/link");
        m->fence.term_seen = m->link_state.term;

        if ((r = worker_new(event, &m->resolver)) < 0 || (r = worker_new(event, &m->remover)) < 0)
                return log_error_errno(r, "Cannot start a thread");
        r = sd_bus_open_system_with_description(&m->bus, "agentd");
        if (r >= 0)
                r = sd_bus_attach_event(m->bus, event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return log_error_errno(r, "Cannot connect to the system bus");
        r = starter_open(event, &m->starter);
        if (r < 0)
                return log_error_errno(r, "Cannot connect to primus-starter at " STARTER_SOCKET);
        r = observer_new(m->starter, &m->observer);
        if (r < 0)
                return log_oom();
        options = (struct units_options){ .root = "",
                                          .node = m->node,
                                          .inventory = &m->inventory,
                                          .hook_usec = m->settings.hook_usec,
                                          .user_max = m->settings.user_max,
                                          .artifacts_max = m->settings.artifacts_max,
                                          .artifacts_usec = m->settings.artifacts_usec,
                                          .unkillable_usec = m->settings.unkillable_usec,
                                          .verdict = unit_verdict };
        r = serving_new(event, &m->settings.serve, m->node, on_serving_changed, m, &m->serving);
        if (r < 0)
                return log_error_errno(r, "Cannot ask the user database");
        if ((r = units_new(m->bus, m->starter, m->remover, &options, &ops, m, &m->units)) < 0 ||
            (r = tell_starter(m)) < 0 || (r = data_new(event, m->units, m->observer, &m->data)) < 0 ||
            (r = logs_new(event, m->units, &m->logs)) < 0 ||
            (r = sessions_new(event, m->units, m->serving, m->node, &m->sessions)) < 0 ||
            (r = sampling_new(m, &m->sampling)) < 0)
                return r;
        r = hostwatch_new(m, &m->watch);
        if (r < 0)
                return log_error_errno(r, "Cannot watch the host");
        r = gpus_new(m, &m->gpus);
        if (r < 0)
                return log_error_errno(r, "Cannot watch the host's GPUs");
        if ((r = captures_new(event, m->units, m->observer, &m->captures)) < 0 ||
            (r = traces_new(event, m->units, m->observer, &m->traces)) < 0 ||
            (r = finds_new(event, &m->finds)) < 0 || (r = private_guard_new(m, &m->private_guard)) < 0)
                return r;
        if (m->settings.relay)
                r = calls_new(event, MASTER_SOCKET, m->settings.master, job_of, m, &m->calls);
        if (r < 0)
                return log_error_errno(r, "Cannot listen for calls of this host's people at " MASTER_SOCKET);
        r = agent_bus_offer(m);
        if (r < 0)
                return log_error_errno(r, "Cannot offer org.primus.Agent1");
        (void)renewal_watch(m);
        *ret = TAKE_PTR(m);
        return 0;
}

void manager_free(struct manager *m) {
        if (!m)
                return;
        worker_free(m->resolver);
        worker_free(m->remover);
        private_guard_free(m->private_guard);
        calls_free(m->calls);
        link_free(m->link);
        sampling_free(m->sampling);
        data_free(m->data);
        logs_free(m->logs);
        units_free(m->units);
        serving_free(m->serving);
        sessions_free(m->sessions);
        hostwatch_free(m->watch); /* which hands lines to the next */
        gpus_free(m->gpus);
        captures_free(m->captures);
        finds_free(m->finds);
        traces_free(m->traces);
        observer_free(m->observer);
        sd_event_source_disable_unref(m->partition);
        sd_event_source_disable_unref(m->renewal);
        sd_event_source_disable_unref(m->health.timer);
        sd_bus_close_unref(m->bus);
        sd_bus_close_unref(m->starter);
        tls_credentials_free(m->credentials);
        inventory_done(&m->inventory);
        settings_done(&m->settings);
        free(m->renewal_key);
        free(m->refused);
        free(m->node);
        sd_event_unref(m->event);
        free(m);
}
