/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to agents. Invariant: an order carries the term and the node's epoch, and describes what is on disk;
 * sending it twice is harmless, since the agent answers for what it has. */
#include "masterd/orders.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/cpulist.h"
#include "lib/base/log.h"
#include "lib/wire/input.h"
#include "masterd/feeding.h"
#include "masterd/hosts.h"
#include "masterd/job/peers.h"
#include "masterd/lifecycle.h"
#include "masterd/link.h"
#include "masterd/manager.h"
#include "masterd/suspension.h"
#include "masterd/record.h"
#include "masterd/sched/sched.h"

/* Staging files and slow hosts take their time; losing the link ends the wait at once. */
#define START_TIMEOUT (3600 * USEC_PER_SEC)
#define LIMITS_TIMEOUT (60 * USEC_PER_SEC)
#define STOP_TIMEOUT (600 * USEC_PER_SEC)
/* So many starts may wait for a node's answer. An order carries the whole rendezvous: a thousand of them for
 * a thousand executors are more than a connection takes, and than its agent should hold. More than agentd
 * hands to systemd at once, so that it is never idle for lack of orders. */
#define STARTS_MAX 192u

struct executor_id executor_id_of(const struct executor *e) {
        struct executor_id id = {
                .job_uid = e->job->uid, .job = e->job->number, .index = e->index, .attempt = e->attempt
        };

        snprintf(id.role, sizeof(id.role), "%s", executor_role(e)->name);
        return id;
}

/* What an effect remembers: names, not pointers, since all may be gone when the disk has answered. */
struct order {
        struct manager *manager;
        struct executor_id id;
        char node[65];
        struct order *next, *prev; /* waits in its link */
};

static struct order *order_new(struct manager *m, const struct node *node, const struct executor_id *id) {
        struct order *o = calloc(1, sizeof(*o));

        if (!o)
                return NULL;
        o->manager = m;
        o->id = *id;
        snprintf(o->node, sizeof(o->node), "%s", node->name);
        return o;
}

/* The executor, if the order is still for its current attempt. */
static struct executor *order_executor(struct manager *m, const struct order *o) {
        struct job *j = manager_job(m, o->id.job);
        struct executor *e;

        if (!j || !sd_id128_equal(j->uid, o->id.job_uid))
                return NULL;
        e = job_attempt(j, o->id.role, o->id.index, o->id.attempt);
        return e;
}

static int new_order(struct manager *m, struct node *node, const char *method, sd_bus_message **ret) {
        sd_bus *bus = link_bus(node);
        int r;

        if (!bus)
                return -ENOTCONN;
        r = sd_bus_message_new_method_call(bus, ret, NULL, LINK_PATH, LINK_INTERFACE, method);
        if (r >= 0)
                r = sd_bus_message_append(*ret, "tt", m->term, node->epoch);
        return r;
}

/* ---- Start
 * ------------------------------------------------------------------------------------------------------ */

static void run_start(struct manager *m, void *data);

/* One start less is under way on the connection that the answer came by: the next may go. */
static void start_next(struct manager *m, const char *name, sd_bus_message *reply) {
        struct node *node = nodes_get(&m->nodes, name);
        struct link *link = node ? node->link : NULL;
        struct order *o;

        if (!link || peer_bus(link->peer) != sd_bus_message_get_bus(reply))
                return;
        link->starts--;
        while (link->starts < STARTS_MAX && (o = link->waiting)) {
                DL_DELETE(link->waiting, o);
                run_start(m, o);
        }
}

void orders_forget_waiting(struct link *link) {
        struct order *o, *next;

        DL_FOREACH_SAFE (link->waiting, o, next)
                free(o);
        link->waiting = NULL;
}

static int on_started(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct order *o = userdata;
        struct manager *m = o->manager;
        struct executor *e = order_executor(m, o);
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct start_result result = {};

        start_next(m, o->node, reply);
        if (!e) {
                free(o);
                return 0;
        }
        e->ordered = false;
        if (failure) {
                result.error = failure->name;
                result.message = failure->message ? failure->message : failure->name;
        } else {
                const void *id;
                size_t size;
                if (sd_bus_message_read_array(reply, 'y', &id, &size) >= 0 &&
                    size == sizeof(result.invocation) &&
                    sd_bus_message_read_basic(reply, 't', &result.started_real) >= 0)
                        memcpy(&result.invocation, id, size);
        }
        lifecycle_start_answered(m, e, &result);
        free(o);
        return 0;
}

static void strv_free(char **list) {
        for (char **p = list; p && *p; p++)
                free(*p);
        free(list);
}
DEFINE_CLEANUP(char **, strv_free)

/* A later layer wins. Borrowed strings, allocated array. */
static int environment_of(char **const layers[], size_t n_layers, char ***ret) {
        size_t n = 0, k = 0;
        char **all;

        for (size_t i = 0; i < n_layers; i++)
                for (char **p = layers[i]; p && *p; p++)
                        n++;
        all = calloc(n + 1, sizeof(*all));
        if (!all)
                return -ENOMEM;
        for (size_t i = 0; i < n_layers; i++)
                for (char **p = layers[i]; p && *p; p++)
                        all[k++] = *p;
        *ret = all;
        return 0;
}

/* Submitter's variables, then the job's, the role's, which element it is, and the rendezvous. */
static int executor_environment(const struct executor *e, char **rendezvous, char ***ret) {
        char **const layers[] = { e->job->env, e->job->spec->env, executor_role(e)->env, e->job->array_env,
                                  rendezvous };

        return environment_of(layers, ELEMENTSOF(layers), ret);
}

/* What a source is reached with: AWS_*, proxies, certificates. */
static int scan_environment(const struct job *j, char ***ret) {
        char **const layers[] = { j->env, j->spec->env };

        return environment_of(layers, ELEMENTSOF(layers), ret);
}

/* Uuids of the GPUs in the mask, NULL-ended, borrowed strings. */
static int gpu_names(const struct node *node, uint64_t mask, char ***ret) {
        char **list = calloc(65, sizeof(*list));
        size_t k = 0;

        if (!list)
                return -ENOMEM;
        for (size_t i = 0; i < node->inventory.n_gpus && i < 64; i++)
                if (mask & (UINT64_C(1) << i))
                        list[k++] = node->inventory.gpus[i].uuid;
        *ret = list;
        return 0;
}

/* The description of the job's input, as a private file: configurations of Kafka may hold passwords. */
static struct secret input_secret(const struct job *j) {
        return (struct secret){ (char *)INPUT_FILE, j->data->input_text, strlen(j->data->input_text) };
}

static int append_start_extra(sd_bus_message *message, const struct executor *e, char *const *rendezvous) {
        _cleanup_free_ char *cpus = NULL;
        const struct ready_spec *ready = &executor_role(e)->failure.ready;
        struct start_extra extra = { .epoch = e->job->epoch };

        while (rendezvous[extra.n_rendezvous])
                extra.n_rendezvous++;
        if (e->cpus) {
                extra.cpus = cpus = cpulist_format(e->cpus->bits, ELEMENTSOF(e->cpus->bits));
                if (!cpus)
                        return -ENOMEM;
        }
        if (ready->kind != READY_STARTED) {
                snprintf(extra.ready, sizeof(extra.ready), "%s", ready_kind_to_string((enum ready_kind)ready->kind));
                extra.ready_timeout_usec = ready->timeout_usec;
        }
        if (ready->kind == READY_TCP && ready->port <= e->n_ports)
                extra.ready_port = e->ports[ready->port - 1];
        if (ready->kind == READY_FILE)
                extra.ready_file = ready->file;
        return start_extra_append(message, &extra);
}

static int send_start(struct manager *m, struct executor *e) {
        _cleanup_(strv_free_p) char **rendezvous_env = NULL;
        _cleanup_free_ char **env = NULL, **gpus = NULL, **visible = NULL;
        const struct role_spec *spec = executor_role(e);
        const struct job_spec *js = e->job->spec;
        char identity_text[8][96], uid[SD_ID128_STRING_MAX];
        char *identity[9] = {};
        bool feeds = spec->input_policy == INPUT_STREAMING && e->job->data;
        struct secret secrets[LINK_SECRETS_MAX];
        size_t n_secrets = 0;
        sd_bus_message *message = NULL;
        struct order *o;
        int r;

        r = job_peers_environment(e, &rendezvous_env);
        if (r >= 0)
                r = executor_environment(e, rendezvous_env, &env);
        if (r >= 0)
                r = gpu_names(e->node, job_gpus_on_node(e), &gpus);
        if (r >= 0)
                r = gpu_names(e->node,
                              js->gpu_visibility == GPU_VISIBILITY_EXECUTOR ? e->gpus : job_gpus_on_node(e),
                              &visible);
        if (r < 0)
                return r;

        snprintf(identity_text[0], sizeof(identity_text[0]), "PRIMUS_JOB=%u", e->job->number);
        snprintf(identity_text[1], sizeof(identity_text[1]), "PRIMUS_JOB_UID=%s",
                 sd_id128_to_string(e->job->uid, uid));
        snprintf(identity_text[2], sizeof(identity_text[2]), "PRIMUS_ROLE=%s", spec->name);
        snprintf(identity_text[3], sizeof(identity_text[3]), "PRIMUS_INDEX=%u", e->index);
        snprintf(identity_text[4], sizeof(identity_text[4]), "PRIMUS_ATTEMPT=%u", e->attempt);
        snprintf(identity_text[5], sizeof(identity_text[5]), "PRIMUS_NODE=%s", e->node->name);
        for (size_t i = 0; i < 6; i++)
                identity[i] = identity_text[i];
        for (size_t i = 0; i < e->job->n_secrets && i < ELEMENTSOF(secrets) - 1; i++)
                secrets[n_secrets++] = (struct secret){ e->job->secrets[i].name, e->job->secrets[i].data,
                                                        e->job->secrets[i].size };
        if (feeds)
                secrets[n_secrets++] = input_secret(e->job);

        struct start_order order = {
                .id = executor_id_of(e),
                .kind = feeds ? ORDER_FEED : ORDER_TRAINER,
                .uid = e->job->owner,
                .argv = spec->argv,
                .cwd = e->job->cwd,
                .env = env,
                .identity = identity,
                .secrets = secrets,
                .n_secrets = n_secrets,
                .cpu_usec_per_sec = (uint64_t)spec->cpu_milli * 1000,
                .memory_max = executor_memory(e),
                .job_memory_max = job_memory_on_node(e),
                .gpus = gpus,
                .visible_gpus = visible,
                .ports = e->ports,
                .n_ports = e->n_ports,
                .runtime_max_usec = spec->time_limit_usec == UINT64_MAX ? 0 : spec->time_limit_usec,
                .grace_usec = js->stop_grace_usec,
                .on_partition = (enum on_partition)js->on_partition,
                .ack = (enum ack_mode)js->input_ack,
                .pipe_size = js->input_mode == DELIVERY_STDIN ? (uint32_t)js->pipe_size : 0,
                .output = js->output ? js->output : (char *)"",
                .new_privileges = js->new_privileges,
        };
        memcpy(order.bundle, e->job->bundle, sizeof(order.bundle));

        r = new_order(m, e->node, "Start", &message);
        if (r >= 0)
                r = start_order_append(message, &order);
        if (r >= 0)
                r = append_start_extra(message, e, rendezvous_env);
        o = r >= 0 ? order_new(m, e->node, &order.id) : NULL;
        if (r >= 0 && !o)
                r = -ENOMEM;
        if (r >= 0)
                r = sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, on_started, o,
                                      START_TIMEOUT);
        sd_bus_message_unref(message);
        if (r < 0) {
                free(o);
                return r;
        }
        e->ordered = true;
        e->epoch = e->job->epoch;
        e->node->link->starts++;
        return 0;
}

static void run_start(struct manager *m, void *data) {
        struct order *o = data;
        struct executor *e = order_executor(m, o);
        int r;

        if (e && e->node->link && e->node->link->starts >= STARTS_MAX) {
                DL_APPEND(e->node->link->waiting, o);
                return;
        }
        free(o);
        if (!e || (e->state != EXECUTOR_PLACED && e->state != EXECUTOR_STARTING) || e->ordered)
                return;
        r = send_start(m, e);
        if (r == -ENOTCONN)
                return; /* sent again when the node registers */
        if (r < 0) {
                log_full(LOG_ERR, r, &(struct log_fields){ .job = e->job->number },
                         "Cannot order job %u %s/%u on %s", e->job->number, executor_role(e)->name, e->index,
                         e->node->name);
                lifecycle_start_answered(
                        m, e, &(struct start_result){ .error = LINK_ERROR_START, .message = strerror(-r) });
                return;
        }
        if (e->state == EXECUTOR_PLACED)
                (void)executor_transition(e, EXECUTOR_EVENT_ORDERED);
}

static int start_later(struct manager *m, struct executor *e) {
        struct executor_id id = executor_id_of(e);
        struct order *o = order_new(m, e->node, &id);

        return o ? manager_effect(m, run_start, o) : -ENOMEM;
}

static int on_start_due(sd_event_source *s, uint64_t usec, void *userdata) {
        struct executor *e = userdata;

        e->start_timer = sd_event_source_disable_unref(e->start_timer);
        if (e->state == EXECUTOR_PLACED)
                (void)start_later(e->job->manager, e);
        return 0;
}

int orders_start_later(struct manager *m, struct executor *e) {
        struct role *role = e->job->roles + e->role;
        uint64_t due, delay = role->spec->failure.delay_usec;

        e->start_timer = sd_event_source_disable_unref(e->start_timer);
        if (delay == 0 || e->state != EXECUTOR_PLACED)
                return start_later(m, e);
        due = MAX(now_boot(), role->next_start_boot);
        role->next_start_boot = usec_add(due, delay);
        if (due <= now_boot() ||
            sd_event_add_time(m->event, &e->start_timer, CLOCK_BOOTTIME, due, 1, on_start_due, e) < 0)
                return start_later(m, e);
        return 0;
}

/* ---- Stop
 * ------------------------------------------------------------------------------------------------------- */

static int on_stopped(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct order *o = userdata;
        struct executor *e;

        /* The agent knows nothing of it: neither a unit nor a record. Then there is nothing to wait for. */
        if (failure && strcmp(failure->name, LINK_ERROR_UNKNOWN) == 0 &&
            (e = order_executor(o->manager, o)) && e->state == EXECUTOR_STOPPING)
                lifecycle_vanished(o->manager, e);
        free(o);
        return 0;
}

static int send_stop(struct manager *m, struct node *node, const struct executor_id *id, uint64_t grace_usec,
                     const char *why) {
        sd_bus_message *message = NULL;
        struct order *o = NULL;
        int r;

        r = new_order(m, node, "Stop", &message);
        if (r >= 0)
                r = executor_id_append(message, id);
        if (r >= 0)
                r = sd_bus_message_append(message, "ts", grace_usec, why);
        if (r >= 0)
                r = link_append_extra_empty(message);
        if (r >= 0) {
                o = order_new(m, node, id);
                r = o ? sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, on_stopped, o,
                                          STOP_TIMEOUT)
                      : -ENOMEM;
        }
        sd_bus_message_unref(message);
        if (r < 0)
                free(o);
        return r;
}

static void run_stop(struct manager *m, void *data) {
        struct order *o = data;
        struct executor *e = order_executor(m, o);

        if (e && e->state == EXECUTOR_STOPPING)
                (void)send_stop(m, e->node, &o->id, hosts_grace(e),
                                e->stop_why                     ? e->stop_why
                                : e->job->state == JOB_STOPPING ? "the job ends"
                                                                : "it goes on elsewhere");
        free(o);
}

int orders_stop_later(struct manager *m, struct executor *e) {
        struct executor_id id = executor_id_of(e);
        struct order *o = order_new(m, e->node, &id);

        return o ? manager_effect(m, run_stop, o) : -ENOMEM;
}

static void run_signal(struct manager *m, void *data) {
        struct order *o = data;
        struct executor *e = order_executor(m, o);
        int32_t number = e ? e->job->spec->waits.signal_number : 0;
        sd_bus_message *message = NULL;
        int r;

        if (number > 0 && executor_state_holds(e->state) && e->state != EXECUTOR_STOPPING) {
                r = new_order(m, e->node, "Signal", &message);
                if (r >= 0)
                        r = sd_bus_message_set_expect_reply(message, false);
                if (r >= 0)
                        r = executor_id_append(message, &o->id);
                if (r >= 0)
                        r = sd_bus_message_append(message, "i", number);
                if (r >= 0)
                        r = link_append_extra_empty(message);
                if (r >= 0)
                        (void)sd_bus_send(NULL, message, NULL);
                sd_bus_message_unref(message);
        }
        free(o);
}

int orders_signal_later(struct manager *m, struct executor *e) {
        struct executor_id id = executor_id_of(e);
        struct order *o = order_new(m, e->node, &id);

        return o ? manager_effect(m, run_signal, o) : -ENOMEM;
}

static void run_stop_stale(struct manager *m, void *data) {
        struct order *o = data;
        struct node *node = nodes_get(&m->nodes, o->node);

        if (node)
                (void)send_stop(m, node, &o->id, 0, "superseded: this attempt is over for the master");
        free(o);
}

int orders_stop_stale_later(struct manager *m, const struct node *node, const struct executor_id *id) {
        struct order *o = order_new(m, node, id);

        return o ? manager_effect(m, run_stop_stale, o) : -ENOMEM;
}

/* ---- Freeze ---- */

static int on_frozen(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct order *o = userdata;
        struct executor *e = order_executor(o->manager, o);

        /* Without a link the next registration has it said again; one that does not run yet is told when it does. */
        if (failure && e && strcmp(failure->name, LINK_ERROR_REFUSED) == 0)
                suspension_freeze_refused(o->manager, e, failure->message);
        free(o);
        return 0;
}

static void run_freeze(struct manager *m, void *data) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct order *o = data;
        struct executor *e = order_executor(m, o);
        struct node *node = nodes_get(&m->nodes, o->node);
        int r = e && e->state == EXECUTOR_RUNNING && node ? new_order(m, node, "Freeze", &message) : -ENOENT;

        if (r >= 0)
                r = executor_id_append(message, &o->id);
        if (r >= 0)
                r = sd_bus_message_append(message, "b", (int)suspension_frozen(e->job));
        if (r >= 0)
                r = link_append_extra_empty(message);
        if (r >= 0)
                r = sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, on_frozen, o, STOP_TIMEOUT);
        if (r < 0)
                free(o);
}

int orders_freeze_later(struct manager *m, struct executor *e) {
        struct executor_id id = executor_id_of(e);
        struct order *o = order_new(m, e->node, &id);

        return o ? manager_effect(m, run_freeze, o) : -ENOMEM;
}

/* ---- SetLimits ---- */

static int on_limits(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct order *o = userdata;
        struct executor *e = order_executor(o->manager, o);

        /* Without a link the next registration has it said again. */
        if (failure && e && strncmp(failure->name, "org.primus.Error.", 17) == 0)
                record_event(o->manager, e->job, "limits-refused", e, "%s keeps the limits that it had: %s",
                             o->node, failure->message);
        free(o);
        return 0;
}

int orders_limits_send(struct manager *m, struct executor *e, const struct unit_limits *limits,
                       sd_bus_message_handler_t handler, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct executor_id id = executor_id_of(e);
        int r = new_order(m, e->node, "SetLimits", &message);

        if (r >= 0)
                r = executor_id_append(message, &id);
        if (r >= 0)
                r = unit_limits_append(message, limits);
        return r < 0 ? r
                     : sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, handler, userdata,
                                         LIMITS_TIMEOUT);
}

static void run_limits(struct manager *m, void *data) {
        struct order *o = data;
        struct executor *e = order_executor(m, o);
        const struct role_spec *role = e ? executor_role(e) : NULL;

        if (!e || (e->state != EXECUTOR_RUNNING && e->state != EXECUTOR_STARTING) ||
            orders_limits_send(m, e,
                               &(struct unit_limits){ .cpu_usec_per_sec = (uint64_t)role->cpu_milli * 1000,
                                                      .memory_max = role->memory,
                                                      .job_memory_max = job_memory_on_node(e) },
                               on_limits, o) < 0)
                free(o);
}

int orders_limits_later(struct manager *m, struct executor *e) {
        struct executor_id id = executor_id_of(e);
        struct order *o = order_new(m, e->node, &id);

        return o ? manager_effect(m, run_limits, o) : -ENOMEM;
}

/* ---- one-way
 * ---------------------------------------------------------------------------------------------------- */

/* A message that is not answered; NULL where the node is gone or not connected. */
static sd_bus_message *one_way(struct manager *m, const struct order *o, const char *method) {
        struct node *node = nodes_get(&m->nodes, o->node);
        sd_bus *bus = node ? link_bus(node) : NULL;
        sd_bus_message *message = NULL;

        if (!bus ||
            sd_bus_message_new_method_call(bus, &message, NULL, LINK_PATH, LINK_INTERFACE, method) < 0 ||
            sd_bus_message_set_expect_reply(message, false) < 0)
                return sd_bus_message_unref(message);
        return message;
}

/* Ends and sends it, when r says that all of it is in. */
static void send_one_way(sd_bus_message *message, int r) {
        if (r >= 0)
                r = link_append_extra_empty(message);
        if (r >= 0)
                (void)sd_bus_send(NULL, message, NULL);
        sd_bus_message_unref(message);
}

static void run_committed(struct manager *m, void *data) {
        struct order *o = data;
        sd_bus_message *message = one_way(m, o, "ExitCommitted");

        if (message)
                send_one_way(message, executor_id_append(message, &o->id));
        free(o);
}

int orders_committed_later(struct manager *m, const struct node *node, const struct executor_id *id) {
        struct order *o = order_new(m, node, id);

        return o ? manager_effect(m, run_committed, o) : -ENOMEM;
}

static void run_drop_job(struct manager *m, void *data) {
        struct order *o = data;
        sd_bus_message *message = one_way(m, o, "DropJob");
        int r;

        if (message) {
                r = sd_bus_message_append_basic(message, 't', &m->term);
                if (r >= 0)
                        r = sd_bus_message_append_array(message, 'y', &o->id.job_uid, sizeof(o->id.job_uid));
                if (r >= 0)
                        r = sd_bus_message_append_basic(message, 'u', &o->id.job);
                send_one_way(message, r);
        }
        free(o);
}

int orders_drop_job_later(struct manager *m, const struct node *node, sd_id128_t job_uid, uint32_t job) {
        struct executor_id id = { .job_uid = job_uid, .job = job };
        struct order *o = order_new(m, node, &id);

        return o ? manager_effect(m, run_drop_job, o) : -ENOMEM;
}

/* ---- the host itself
 * ------------------------------------------------------------------------------------------------ */

static int on_power(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct order *o = userdata;

        /* One that lost its connection in the meantime goes down, or registers and is told again. */
        if (failure && strncmp(failure->name, "org.primus.Error.", 17) == 0)
                log_full(LOG_ERR, 0, &(struct log_fields){ .node = o->node }, "%s: %s", o->node,
                         failure->message ? failure->message : failure->name);
        free(o);
        return 0;
}

/* What is asked for by now is ordered: the drain may have been called off in between. */
static void run_power(struct manager *m, void *data) {
        struct order *o = data;
        struct node *node = nodes_get(&m->nodes, o->node);
        const struct node_hold *h = node ? node->holds + HOLD_ADMIN : NULL;
        sd_bus_message *message = NULL;
        int r;

        if (!node || !h->set || h->then == HOLD_THEN_NOTHING || !node_left(node)) {
                free(o);
                return;
        }
        log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = node->name }, "Node %s is told: %s", node->name,
                 hold_then_to_string(h->then));
        r = new_order(m, node, "Power", &message);
        if (r >= 0)
                r = sd_bus_message_append(message, "ss", hold_then_to_string(h->then), h->reason);
        if (r >= 0)
                r = link_append_extra_empty(message);
        if (r >= 0)
                r = sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, on_power, o,
                                      STOP_TIMEOUT);
        sd_bus_message_unref(message);
        if (r < 0)
                free(o);
}

int orders_power_later(struct manager *m, const struct node *node) {
        struct order *o = order_new(m, node, &(struct executor_id){});

        return o ? manager_effect(m, run_power, o) : -ENOMEM;
}

static int send_rendezvous(struct manager *m, struct executor *e) {
        _cleanup_(strv_free_p) char **env = NULL;
        struct executor_id id = executor_id_of(e);
        struct rendezvous_order order = { .epoch = e->job->epoch,
                                          .signal = (uint32_t)e->job->spec->rendezvous.signal_number };
        sd_bus_message *message = NULL;
        int r = job_peers_environment(e, &env);

        if (r >= 0)
                r = new_order(m, e->node, "SetRendezvous", &message);
        if (r >= 0)
                r = sd_bus_message_set_expect_reply(message, false);
        if (r >= 0)
                r = executor_id_append(message, &id);
        order.env = env;
        if (r >= 0)
                r = rendezvous_order_append(message, &order);
        if (r >= 0)
                r = sd_bus_send(NULL, message, NULL);
        sd_bus_message_unref(message);
        if (r >= 0)
                e->epoch = order.epoch;
        return r;
}

static void run_rendezvous(struct manager *m, void *data) {
        struct order *o = data;
        struct executor *e = order_executor(m, o);
        int r;

        if (e && !e->leaving && e->state == EXECUTOR_RUNNING && e->epoch != e->job->epoch) {
                r = send_rendezvous(m, e);
                if (r < 0 && r != -ENOTCONN) /* else the next registration has it said */
                        log_full(LOG_WARNING, r, &(struct log_fields){ .job = e->job->number },
                                 "Cannot tell job %u %s/%u who its peers are", e->job->number,
                                 executor_role(e)->name, e->index);
        }
        free(o);
}

int orders_rendezvous_later(struct manager *m, struct executor *e) {
        struct executor_id id = executor_id_of(e);
        struct order *o = order_new(m, e->node, &id);

        return o ? manager_effect(m, run_rendezvous, o) : -ENOMEM;
}

/* ---- scan
 * ------------------------------------------------------------------------------------------------------- */

static int on_scan_started(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct order *o = userdata;
        struct job *j = manager_job(o->manager, o->id.job);
        struct node *node = nodes_get(&o->manager->nodes, o->node);

        /* A scan that cannot start ends like one that failed. A broken link is settled when the node is back
         * or LOST. */
        if (failure && j && node && strncmp(failure->name, "org.primus.Error.", 17) == 0) {
                if (strcmp(failure->name, LINK_ERROR_PROLOG) == 0) {
                        hosts_prolog_failed(o->manager, node, j, failure->message ? failure->message : "");
                        feeding_leave(o->manager, node);
                        free(o);
                        return 0;
                }
                struct exit_report report = { .id = o->id,
                                              .result = "not started",
                                              .detail = (char *)failure->message };
                (void)feeding_scan_exited(o->manager, j, node, &report);
        }
        free(o);
        return 0;
}

static void run_scan(struct manager *m, void *data) {
        struct order *o = data;
        struct node *node = nodes_get(&m->nodes, o->node);
        struct job *j = manager_job(m, o->id.job);
        const struct source *source;
        struct secret secret;
        char identity_text[6][96], uid[SD_ID128_STRING_MAX];
        char *identity[7] = {}, *argv[7] = {}, *none[1] = {};
        char index[16], after_batch[24];
        _cleanup_free_ char **env = NULL;
        sd_bus_message *message = NULL;
        size_t n = 0;
        int r;

        if (!node || !j || !feeding_scan_known(j, node, &o->id)) {
                free(o);
                return;
        }
        r = scan_environment(j, &env);
        if (r < 0) {
                free(o);
                return;
        }
        source = j->data->sources + o->id.index;
        secret = input_secret(j);
        snprintf(index, sizeof(index), "%u", o->id.index);
        argv[n++] = (char *)"--source";
        argv[n++] = index;
        if (source->cursor) {
                snprintf(after_batch, sizeof(after_batch), "%llu", (unsigned long long)source->batch);
                argv[n++] = (char *)"--batch";
                argv[n++] = after_batch;
                argv[n++] = (char *)"--after";
                argv[n++] = source->cursor;
        }
        snprintf(identity_text[0], sizeof(identity_text[0]), "PRIMUS_JOB=%u", j->number);
        snprintf(identity_text[1], sizeof(identity_text[1]), "PRIMUS_JOB_UID=%s",
                 sd_id128_to_string(j->uid, uid));
        snprintf(identity_text[2], sizeof(identity_text[2]), "PRIMUS_ROLE=%s", SCAN_ROLE);
        snprintf(identity_text[3], sizeof(identity_text[3]), "PRIMUS_INDEX=%u", o->id.index);
        snprintf(identity_text[4], sizeof(identity_text[4]), "PRIMUS_ATTEMPT=%u", o->id.attempt);
        snprintf(identity_text[5], sizeof(identity_text[5]), "PRIMUS_NODE=%s", node->name);
        for (size_t i = 0; i < ELEMENTSOF(identity_text); i++)
                identity[i] = identity_text[i];
        struct start_order order = { .id = o->id,
                                     .kind = ORDER_SCAN,
                                     .uid = j->owner,
                                     .argv = argv,
                                     .cwd = (char *)"/",
                                     .env = env,
                                     .identity = identity,
                                     .secrets = &secret,
                                     .n_secrets = 1,
                                     .gpus = none,
                                     .visible_gpus = none,
                                     .grace_usec = USEC_PER_SEC,
                                     .on_partition = ON_PARTITION_REPLACE,
                                     .output = (char *)"" };

        r = new_order(m, node, "Start", &message);
        if (r >= 0)
                r = start_order_append(message, &order);
        if (r >= 0)
                r = link_append_extra_empty(message);
        if (r >= 0)
                r = sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, on_scan_started, o,
                                      START_TIMEOUT);
        sd_bus_message_unref(message);
        if (r < 0)
                free(o);
}

int orders_scan_later(struct manager *m, struct job *j, struct node *node, uint32_t source,
                      uint32_t attempt) {
        struct executor_id id = {
                .job_uid = j->uid, .job = j->number, .role = SCAN_ROLE, .index = source, .attempt = attempt
        };
        struct order *o = order_new(m, node, &id);

        return o ? manager_effect(m, run_scan, o) : -ENOMEM;
}
