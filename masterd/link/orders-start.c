/* SPDX-License-Identifier: Apache-2.0 */
/* The order that starts a unit: an executor, or what lists a source. Invariant: no more than STARTS_MAX of
 * them are under way with a node, and each executor has one on its way at the most. */
#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/cpulist.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/wire/errors.h"
#include "lib/wire/input.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/job/job-data.h"
#include "masterd/job/peers.h"
#include "masterd/link/link.h"
#include "masterd/link/orders-parts.h"
#include "masterd/node/gpus.h"
#include "masterd/sched/sched.h"
#include "masterd/search/filled.h"

/* Staging files and slow hosts take their time; losing the link ends the wait at once. */
#define START_TIMEOUT (3600 * USEC_PER_SEC)
/* So many starts may be under way with a node: not answered, and not said to be with systemd. An order
 * carries the whole rendezvous: a thousand of them for a thousand executors are more than a connection takes,
 * and than its agent should hold. More than agentd hands to systemd at once, so that it is never idle for
 * lack of orders. */
#define STARTS_MAX 192u
#define STARTS_SHARE 144u /* of one user's */

static void start_one(struct manager *m, struct link *link, struct order *o);

static void leave_place(struct order *o) {
        if (o->place)
                turns_give_back(&o->link->turns, TAKE_PTR(o->place));
}

static struct order *of_turn(struct turn *turn) {
        return (struct order *)((char *)turn - offsetof(struct order, turn));
}

static void starts_pump(struct manager *m, struct link *link) {
        struct turn *turn;

        while ((turn = turns_next(&link->turns))) {
                struct order *o = of_turn(turn);
                o->place = turn->user;
                o->link = link;
                start_one(m, link, o);
        }
}

/* It is answered: the next may go. */
static void start_over(struct manager *m, struct order *o) {
        struct link *link = o->link;

        if (!link)
                return;
        HASH_DEL(link->starts, o);
        leave_place(o);
        o->link = NULL;
        starts_pump(m, link);
}

void orders_taken(struct manager *m, struct link *link, const struct executor_id *id) {
        char unit[UNIT_NAME_MAX];
        struct order *o;

        executor_unit_name(id->job, id->role, id->index, id->attempt, unit);
        HASH_FIND_STR(link->starts, unit, o);
        if (!o || !executor_id_equal(&o->id, id))
                return;
        leave_place(o);
        starts_pump(m, link);
}

void orders_forget(struct link *link) {
        struct order *o, *next;
        struct turn *turn;

        HASH_ITER (hh, link->starts, o, next) {
                HASH_DEL(link->starts, o);
                leave_place(o);
                o->link = NULL; /* its answer, an error, is still to come */
        }
        while ((turn = turns_drop(&link->turns)))
                free(of_turn(turn));
}

static int on_started(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct order *o = userdata;
        struct manager *m = o->manager;
        struct executor *e = order_executor(m, o);
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct start_result result = {};

        start_over(m, o);
        if (!e) {
                free(o);
                return 0;
        }
        e->orders.starting = false;
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
        m->up->start_answered(m, e, &result);
        free(o);
        return 0;
}

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
        char **const layers[] = { e->job->given.env, e->job->spec->env, executor_role(e)->env,
                                  e->job->element.env, rendezvous };

        return environment_of(layers, ELEMENTSOF(layers), ret);
}

/* What a source is reached with: AWS_*, proxies, certificates. */
static int scan_environment(const struct job *j, char ***ret) {
        char **const layers[] = { j->given.env, j->spec->env };

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

#define IDENTITY_VARIABLES 6

struct identity {
        char text[IDENTITY_VARIABLES][96];
        char *list[IDENTITY_VARIABLES + 1];
};

/* What tells a unit who it is: NULL-ended, in i. */
static char **identity_of(struct identity *i, const struct executor_id *id, const struct node *node) {
        char uid[SD_ID128_STRING_MAX];

        snprintf(i->text[0], sizeof(i->text[0]), "PRIMUS_JOB=%u", id->job);
        snprintf(i->text[1], sizeof(i->text[1]), "PRIMUS_JOB_UID=%s", sd_id128_to_string(id->job_uid, uid));
        snprintf(i->text[2], sizeof(i->text[2]), "PRIMUS_ROLE=%s", id->role);
        snprintf(i->text[3], sizeof(i->text[3]), "PRIMUS_INDEX=%u", id->index);
        snprintf(i->text[4], sizeof(i->text[4]), "PRIMUS_ATTEMPT=%u", id->attempt);
        snprintf(i->text[5], sizeof(i->text[5]), "PRIMUS_NODE=%s", node->name);
        for (size_t k = 0; k < IDENTITY_VARIABLES; k++)
                i->list[k] = i->text[k];
        i->list[IDENTITY_VARIABLES] = NULL;
        return i->list;
}

/* Paths are the specification's. */
static size_t io_of(const struct limits_spec *limits, struct io_limit ret[static LINK_IO_MAX]) {
        static_assert(SPEC_IO_MAX <= LINK_IO_MAX, "what a role may say has room in an order");

        for (size_t i = 0; i < limits->n_io; i++) {
                const struct io_spec *io = limits->io + i;
                ret[i] = (struct io_limit){ .path = io->path ? io->path : (char *)"",
                                            .read_bps = io->read_bps,
                                            .write_bps = io->write_bps,
                                            .read_iops = io->read_iops,
                                            .write_iops = io->write_iops,
                                            .weight = io->weight };
        }
        return limits->n_io;
}

static void limits_extra(const struct executor *e, struct io_limit io[static LINK_IO_MAX],
                         struct start_extra *x) {
        static const char *const numa[_NUMA_POLICY_MAX] = { "", "prefer", "require" };
        const struct role_spec *role = executor_role(e);

        x->memory_high = role->limits.memory_high;
        x->cpu_weight = role->limits.cpu_weight;
        x->open_files = role->limits.open_files;
        x->locked_memory = role->limits.locked_memory;
        x->delegate = role->limits.delegate;
        x->job_cpu = job_cpu_on_node(e);
        x->job_weight = job_weight_on_node(e);
        x->job_tasks = job_tasks_on_node(e);
        x->job_shm = role->placement.shm > 0 ? job_shm_on_node(e) : 0;
        x->io = io;
        x->n_io = io_of(&role->limits, io);
        if (e->place.cpus)
                snprintf(x->numa, sizeof(x->numa), "%s", numa[role->placement.numa]);
}

static int append_start_extra(sd_bus_message *message, const struct executor *e, char *const *rendezvous) {
        _cleanup_free_ char *cpus = NULL, *gpus = gpus_text(&e->node->inventory, e->place.gpus);
        const struct ready_spec *ready = &executor_role(e)->failure.ready;
        struct start_extra extra = { .epoch = e->job->rendezvous.epoch,
                                     .gpus = gpus,
                                     .rdma = executor_role(e)->placement.rdma,
                                     .stack_signal = (uint32_t)e->job->spec->stack_signal_number };
        struct io_limit io[LINK_IO_MAX];

        if (!gpus)
                return -ENOMEM;
        while (rendezvous[extra.n_rendezvous])
                extra.n_rendezvous++;
        if (e->place.cpus) {
                extra.cpus = cpus = cpulist_format(e->place.cpus->bits, ELEMENTSOF(e->place.cpus->bits));
                if (!cpus)
                        return -ENOMEM;
        }
        limits_extra(e, io, &extra);
        if (ready->kind != READY_STARTED) {
                snprintf(extra.ready, sizeof(extra.ready), "%s",
                         ready_kind_to_string((enum ready_kind)ready->kind));
                extra.ready_timeout_usec = ready->timeout_usec;
        }
        extra.watchdog_usec = executor_role(e)->failure.watchdog_usec;
        if (ready->kind == READY_TCP && ready->port <= e->place.n_ports)
                extra.ready_port = e->place.ports[ready->port - 1];
        if (ready->kind == READY_FILE)
                extra.ready_file = ready->file;
        return start_extra_append(message, &extra);
}

/* Of a trial: its arguments with its parameters in them, where there is a place for one. NULL: as the role
 * has them. */
static int trial_arguments(const struct executor *e, char ***ret) {
        static const char given[] = "PRIMUS_TRIAL_PARAMS=";
        const struct role_spec *role = executor_role(e);
        char **env = e->job->element.env;
        json_t *params;
        int r;

        *ret = NULL;
        while (env && *env && strncmp(*env, given, strlen(given)) != 0)
                env++;
        if (!env || !*env || role->command || !filled_any(role->argv))
                return 0;
        params = json_loads(*env + strlen(given), 0, NULL);
        r = params ? filled_argv(role->argv, params, ret) : -ENOMEM;
        json_decref(params);
        return r;
}

static int send_start(struct manager *m, struct executor *e, struct order *o) {
        _cleanup_(strings_free_p) char **rendezvous_env = NULL, **filled = NULL;
        _cleanup_free_ char **env = NULL, **gpus = NULL, **visible = NULL;
        const struct role_spec *spec = executor_role(e);
        const struct job_spec *js = e->job->spec;
        struct identity identity;
        bool feeds = spec->input_policy == INPUT_STREAMING && e->job->data;
        _cleanup_free_ char *lockstep_input = NULL;
        struct secret secrets[LINK_SECRETS_MAX];
        size_t n_secrets = 0;
        sd_bus_message *message = NULL;
        uint64_t may_open;
        int r;

        /* Who was given none opens none; the others of the job here need to reach each other's. */
        may_open = e->place.gpus ? job_gpus_on_node(e) : 0;
        TRY(trial_arguments(e, &filled));
        r = job_peers_environment(e, &rendezvous_env);
        if (r >= 0)
                r = executor_environment(e, rendezvous_env, &env);
        if (r >= 0 && spec->input_policy == INPUT_STREAMING && js->lockstep != LOCKSTEP_OFF)
                r = spec_input_json(js, &lockstep_input);
        if (r >= 0)
                r = gpu_names(e->node, may_open, &gpus);
        if (r >= 0)
                r = gpu_names(e->node,
                              js->gpu_visibility == GPU_VISIBILITY_EXECUTOR ? e->place.gpus : may_open,
                              &visible);
        if (r < 0)
                return r;

        for (size_t i = 0; i < e->job->given.n_secrets && i < ELEMENTSOF(secrets) - 1; i++)
                secrets[n_secrets++] =
                        (struct secret){ e->job->given.secrets[i].name, e->job->given.secrets[i].data,
                                         e->job->given.secrets[i].size };
        if (feeds)
                secrets[n_secrets++] = input_secret(e->job);
        else if (lockstep_input)
                secrets[n_secrets++] =
                        (struct secret){ (char *)INPUT_FILE, lockstep_input, strlen(lockstep_input) };

        struct start_order order = {
                .id = o->id,
                .kind = feeds ? ORDER_FEED : ORDER_TRAINER,
                .uid = e->job->owner,
                .argv = filled ?: spec->argv,
                .cwd = e->job->given.cwd,
                .env = env,
                .identity = identity_of(&identity, &o->id, e->node),
                .secrets = secrets,
                .n_secrets = n_secrets,
                .cpu_usec_per_sec = (uint64_t)spec->cpu_milli * 1000,
                .memory_max = executor_memory(e),
                .job_memory_max = job_memory_on_node(e),
                .tasks_max = spec->limits.tasks,
                .gpus = gpus,
                .visible_gpus = visible,
                .ports = e->place.ports,
                .n_ports = e->place.n_ports,
                .runtime_max_usec = spec->time_limit_usec == UINT64_MAX ? 0 : spec->time_limit_usec,
                .grace_usec = js->stop_grace_usec,
                .on_partition = (enum on_partition)js->on_partition,
                .ack = (enum ack_mode)js->input_ack,
                .pipe_size = js->input_mode == DELIVERY_STDIN ? (uint32_t)js->pipe_size : 0,
                .output = js->output ? js->output : (char *)"",
                .new_privileges = js->new_privileges,
        };
        memcpy(order.bundle, e->job->given.bundle, sizeof(order.bundle));

        r = start_order_bad_text(&order) ? -EILSEQ : order_message(m, e->node, "Start", &message);
        if (r >= 0)
                r = start_order_append(message, &order);
        if (r >= 0)
                r = append_start_extra(message, e, rendezvous_env);
        if (r >= 0)
                r = sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, on_started, o,
                                      START_TIMEOUT);
        sd_bus_message_unref(message);
        if (r < 0)
                return r;
        e->orders.starting = true;
        e->epoch = e->job->rendezvous.epoch;
        return 0;
}

static bool startable(const struct executor *e) {
        return e && (e->state == EXECUTOR_PLACED || e->state == EXECUTOR_STARTING) && !e->orders.starting;
}

/* It has a place in the link. */
static void start_one(struct manager *m, struct link *link, struct order *o) {
        struct executor *e = order_executor(m, o);
        struct order *other;
        int r = -ESTALE;

        executor_unit_name(o->id.job, o->id.role, o->id.index, o->id.attempt, o->unit);
        HASH_FIND_STR(link->starts, o->unit, other);
        if (startable(e) && e->node->link == link && !other)
                r = send_start(m, e, o);
        if (r < 0) {
                leave_place(o);
                free(o);
        } else {
                HASH_ADD_STR(link->starts, unit, o);
                if (e->state == EXECUTOR_PLACED)
                        (void)executor_transition(e, EXECUTOR_EVENT_ORDERED);
        }
        if (r >= 0 || r == -ESTALE || r == -ENOTCONN)
                return; /* sent again when the node registers */
        log_full(LOG_ERR, r, &(struct log_fields){ .job = e->job->number }, "Cannot order job %u %s/%u on %s",
                 e->job->number, executor_role(e)->name, e->index, e->node->name);
        m->up->start_answered(m, e,
                              &(struct start_result){
                                      .error = LINK_ERROR_START,
                                      /* Of a job that an earlier masterd took. */
                                      .message = r == -EILSEQ
                                                         ? "its cwd or output has control characters, which "
                                                           "no host takes: submit it anew"
                                                         : strerror(-r) });
}

static void run_start(struct manager *m, void *data) {
        struct order *o = data;
        struct executor *e = order_executor(m, o);
        struct link *link = startable(e) ? e->node->link : NULL;

        if (!link) {
                free(o);
                return;
        }
        link->turns.places = STARTS_MAX;
        link->turns.share = STARTS_SHARE;
        if (turns_wait(&link->turns, e->job->owner, &o->turn) < 0) {
                log_oom();
                free(o);
                return;
        }
        starts_pump(m, link);
}

static int start_later(struct manager *m, struct executor *e) {
        return order_later_of(m, e, run_start);
}

static int on_start_due(sd_event_source *s, uint64_t usec, void *userdata) {
        struct executor *e = userdata;

        e->orders.start_timer = sd_event_source_disable_unref(e->orders.start_timer);
        if (e->state == EXECUTOR_PLACED)
                (void)start_later(e->job->manager, e);
        return 0;
}

int orders_start_later(struct manager *m, struct executor *e) {
        struct role *role = e->job->roles + e->role;
        uint64_t due, delay = role->spec->failure.delay_usec;

        e->orders.start_timer = sd_event_source_disable_unref(e->orders.start_timer);
        if (delay == 0 || e->state != EXECUTOR_PLACED)
                return start_later(m, e);
        due = MAX(now_boot(), role->next_start_boot);
        role->next_start_boot = usec_add(due, delay);
        if (due <= now_boot() ||
            sd_event_add_time(m->event, &e->orders.start_timer, CLOCK_BOOTTIME, due, 1, on_start_due, e) < 0)
                return start_later(m, e);
        return 0;
}

/* ---- listing a source ---- */

static int on_scan_started(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct order *o = userdata;
        struct job *j = manager_job(o->manager, o->id.job);
        struct node *node = nodes_get(&o->manager->nodes, o->node);

        /* A scan that cannot start ends like one that failed. A broken link is settled when the node is back
         * or LOST. */
        if (failure && j && node && error_is_primus(failure->name)) {
                bool prolog = strcmp(failure->name, LINK_ERROR_PROLOG) == 0;
                const char *text = failure->message ? failure->message : "";
                if (prolog)
                        TELL(o->manager, prolog_failed, o->manager, node, j, text);
                o->manager->up->scan_refused(o->manager, j, node, &o->id, prolog ? NULL : text);
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
        struct identity identity;
        char *argv[7] = {}, *none[1] = {};
        char index[16], after_batch[24];
        _cleanup_free_ char **env = NULL;
        sd_bus_message *message = NULL;
        size_t n = 0;
        int r;

        source = node && j ? m->up->scan_source(j, node, &o->id) : NULL;
        if (!source) {
                free(o);
                return;
        }
        r = scan_environment(j, &env);
        if (r < 0) {
                free(o);
                return;
        }
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
        struct start_order order = { .id = o->id,
                                     .kind = ORDER_SCAN,
                                     .uid = j->owner,
                                     .argv = argv,
                                     .cwd = (char *)"/",
                                     .env = env,
                                     .identity = identity_of(&identity, &o->id, node),
                                     .secrets = &secret,
                                     .n_secrets = 1,
                                     .tasks_max = SPEC_TASKS_PRESET,
                                     .gpus = none,
                                     .visible_gpus = none,
                                     .grace_usec = USEC_PER_SEC,
                                     .on_partition = ON_PARTITION_REPLACE,
                                     .output = (char *)"" };

        r = order_message(m, node, "Start", &message);
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

        return order_later(m, node, &id, run_scan);
}
