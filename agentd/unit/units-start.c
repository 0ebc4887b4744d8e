/* SPDX-License-Identifier: Apache-2.0 */
/* From an order to a unit: the job's files, the private directory, the slice, StartTransientUnit. Invariant:
 * a struct preparing belongs to whoever works on it (the bundle's transfer, the call to systemd) and is freed
 * there, also when its executor has gone meanwhile. */
#include <string.h>

#include "agentd/unit/admission.h"
#include "agentd/unit/host.h"
#include "agentd/unit/units-internal.h"

/* What a start needs until systemd has it. The executor may go before it does: then executor is NULL. */
struct preparing {
        struct units *units;
        struct executor *executor;
        struct start_order order;
        uint64_t term;
        char *bundle, *work, *why;
        struct io_limit *io; /* on this host's devices */
        size_t n_io;
        struct shm_names shm;
        struct ports_pins pins;
        bool pinned;
        struct job *waits;      /* for the prolog of the job, in its list */
        sd_event_source *again; /* systemd is asked once more then */
        unsigned tries;
        struct preparing *next, *prev;
};

static void preparing_free(struct preparing *p) {
        if (p->waits)
                DL_DELETE(p->waits->waiting, p);
        if (p->executor)
                p->executor->preparing = NULL;
        sd_event_source_disable_unref(p->again);
        start_order_done(&p->order);
        free(p->bundle);
        free(p->work);
        free(p->why);
        io_limits_free(p->io, p->n_io);
        free(p);
}

void executor_drop_start(struct executor *e) {
        preparing_free(e->preparing);
}

void executor_abandon_start(struct executor *e) {
        struct preparing *p = TAKE_PTR(e->preparing);

        if (!p)
                return;
        p->executor = NULL;
        if (p->again) /* nobody else has it */
                preparing_free(p);
}

static void refuse_as(struct executor *e, const char *error, const char *why) {
        executor_answer(e, &(struct start_result){ .error = error, .message = why });
        executor_event(e, EVENT_REFUSED);
}

static void refuse(struct executor *e, const char *why) {
        refuse_as(e, LINK_ERROR_START, why);
}

void executor_refuse_shm(struct executor *e) {
        char why[160];

        snprintf(why, sizeof(why), "the job's shared memory could not be mounted on host %s",
                 e->units->options.node);
        if (e->job)
                e->job->shm = false;
        refuse(e, why);
}

/* ---- the prolog
 * ----------------------------------------------------------------------------------------------------- */

void starts_go(struct job *j, bool ok, const char *why) {
        struct preparing *p;

        while ((p = j->waiting)) {
                struct executor *e = p->executor;
                DL_DELETE(j->waiting, p);
                p->waits = NULL;
                if (e && ok) {
                        executor_event(e, EVENT_PREPARED);
                        continue;
                }
                preparing_free(p);
                if (e)
                        refuse_as(e, LINK_ERROR_PROLOG, why);
        }
}

void starts_drop(struct job *j) {
        while (j->waiting)
                preparing_free(j->waiting);
}

/* All is there but what the site wants to do first. May end in the end of e. */
static void prepared(struct executor *e) {
        struct preparing *p = e->preparing;
        struct job *j = e->job;

        if (job_hooked(j)) {
                executor_event(e, EVENT_PREPARED);
                return;
        }
        p->waits = j;
        DL_APPEND(j->waiting, p);
        job_run_prolog(j);
}

/* The job's slice is on its way out, with the last unit that was here a moment ago: no unit gets into it
 * before it is gone. */
#define SLICE_GOES "org.freedesktop.systemd1.TransactionIsDestructive"
#define SLICE_TRIES 100u
#define SLICE_AGAIN_USEC (100 * USEC_PER_MSEC)

static int build_start(struct preparing *p, sd_bus_message **ret);
static int call_start(struct preparing *p, sd_bus_message *m);

static int on_start_again(sd_event_source *s, uint64_t usec, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct preparing *p = userdata;
        struct executor *e = p->executor;
        int r;

        p->again = sd_event_source_disable_unref(p->again);
        e->job->sliced = e->job->shm = false;
        r = build_start(p, &m);
        if (r >= 0)
                r = call_start(p, m);
        if (r < 0) {
                preparing_free(p);
                refuse(e, strerror(-r));
        }
        return 0;
}

static bool start_again(struct preparing *p) {
        return p->tries++ < SLICE_TRIES &&
               sd_event_add_time_relative(p->units->event, &p->again, CLOCK_BOOTTIME, SLICE_AGAIN_USEC, 0,
                                          on_start_again, p) >= 0;
}

static void on_start_reply(sd_bus_message *reply, void *userdata) {
        struct preparing *p = userdata;
        struct executor *e = p->executor;
        struct units *u = p->units;
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        const char *job;

        if (e && error && strcmp(error->name, SLICE_GOES) == 0 && start_again(p))
                return;
        if (e && error)
                refuse(e, error->message ?: error->name);
        else if (e) {
                e->submitted = true;
                if (sd_bus_message_read(reply, "o", &job) >= 0)
                        e->start_job = strdup(job);
                if (e->state == EXECUTOR_STOPPING)
                        executor_event(e, EVENT_STOP); /* it came while the start waited */
                else if (u->ops.taken && (*p->order.bundle || strcmp(p->order.extra.ready, "notify") == 0))
                        u->ops.taken(&e->id, u->userdata);
        }
        preparing_free(p);
}

/* The last ones of the order's environment. */
static char **rendezvous_of(const struct start_order *o) {
        size_t n = 0;

        while (o->env && o->env[n])
                n++;
        return o->env ? o->env + (n - MIN(n, (size_t)o->extra.n_rendezvous)) : NULL;
}

static int write_private(struct preparing *p, const struct unit_context *context) {
        _cleanup_free_ char *text = NULL;
        const char *bad = NULL;
        char **environment;
        size_t size;
        int r = unit_environment(&p->order, context, &environment);

        if (r < 0)
                return r;
        r = environment_format(environment, &text, &size, &bad);
        if (r == -EINVAL) {
                int l = (int)strcspn(bad, "=");
                if (asprintf(&p->why,
                             "environment variable %.*s has no valid name or its value is not UTF-8, which "
                             "systemd cannot take",
                             MIN(l, 100), bad) < 0)
                        p->why = NULL;
        }
        strings_free(environment);
        if (r < 0)
                return r;
        r = private_create(p->units->options.root, p->executor->unit, p->order.uid, text, size,
                           p->order.secrets, p->order.n_secrets);
        if (r >= 0 && p->order.kind != ORDER_SCAN)
                r = private_create_progress(p->units->options.root, p->executor->unit, p->order.uid);
        if (r >= 0 && p->order.extra.epoch > 0)
                r = private_write_rendezvous(p->units->options.root, p->executor->unit, p->order.uid,
                                             p->order.extra.epoch, rendezvous_of(&p->order));
        if (r >= 0)
                p->executor->epoch = p->order.extra.epoch;
        return r;
}

/* Without what is read of the host, which only the unit needs. */
static struct unit_context context_of(const struct preparing *p, const char *shared_cpus) {
        return (struct unit_context){
                .node = p->units->options.node,
                .term = p->term,
                .inventory = p->units->options.inventory,
                .directory = p->executor->directory,
                .work = p->work,
                .bundle = p->bundle,
                .shared_cpus = shared_cpus,
                .io = p->io,
                .n_io = p->n_io,
                .hide_managers = p->units->options.hide_managers,
                .pins = p->pinned ? &p->pins : NULL,
                .shm = p->order.extra.job_shm > 0 ? &p->shm : NULL,
        };
}

static int build_start(struct preparing *p, sd_bus_message **ret) {
        _cleanup_free_ char *shared_cpus = p->order.extra.cpus ? NULL : cpus_shared(p->units);
        const char *root = p->units->options.root;
        struct unit_context context = context_of(p, shared_cpus);
        int r = systemd_message(p->units->systemd, "StartTransientUnit", ret);

        context.numa_nodes = *p->order.extra.numa ? host_numa_nodes(root, p->order.extra.cpus) : 0;
        context.tasks_bound = host_tasks_bound(root);
        return r < 0 ? r : unit_build(*ret, &p->order, &context, &p->why);
}

static int call_start(struct preparing *p, sd_bus_message *m) {
        struct job *j = p->executor->job;
        int r = job_make_slice(j);

        if (r >= 0 && p->order.extra.job_shm > 0)
                r = job_make_shm(j, p->order.extra.job_shm);
        return r < 0 ? r
                     : systemd_call_job(p->units->systemd, p->order.uid, p->executor->unit, m, on_start_reply,
                                        p);
}

/* A kernel that does not let us leaves the ports to the jobs' good manners. */
static void pin_ports(struct preparing *p) {
        const struct inventory *i = p->units->options.inventory;
        const char *unit = p->executor->unit;
        int r;

        if (!i || i->port_first == 0 || *p->units->options.root || p->units->ports_open)
                return;
        r = ports_pin(unit, i->port_first, i->port_last, p->order.ports, p->order.n_ports, &p->pins);
        p->pinned = r >= 0;
        if (r >= 0)
                return;
        p->units->ports_open = true; /* and it is not tried again */
        log_full(LOG_NOTICE, r, NULL,
                 "Jobs on this host can listen on ports that others were granted, unless systemd is built "
                 "with "
                 "its BPF framework: the kernel does not take a program that refuses them");
}

static int submit_unit(struct preparing *p) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct unit_context context;
        struct units *u = p->units;
        int r;

        shm_names(p->order.id.job, p->order.id.job_uid, &p->shm);
        r = host_io(u->options.root, u->options.node, p->order.extra.io, p->order.extra.n_io, &p->io,
                    &p->n_io, &p->why);
        if (r < 0 || (r = cpus_own(p->executor, p->order.extra.cpus, false)) < 0 ||
            (r = devices_own(p->executor, &p->order, NULL)) < 0)
                return r;
        pin_ports(p);
        if ((r = build_start(p, &m)) < 0)
                return r;
        context = context_of(p, NULL);
        if ((r = write_private(p, &context)) < 0 || (r = ready_prepare(p->executor, &p->order)) < 0)
                return r;
        if (u->ops.starting)
                u->ops.starting(&p->order, u->userdata);
        r = call_start(p, m);
        if (r >= 0)
                devices_share(p->executor->job, false);
        return r;
}

void executor_submit(struct executor *e) {
        struct preparing *p = e->preparing;
        int r = submit_unit(p);

        if (r >= 0)
                return; /* on_start_reply() goes on */
        char why[512];
        snprintf(why, sizeof(why), "%s", p->why ?: strerror(-r));
        preparing_free(p);
        refuse(e, why);
}

static void on_bundle(void *userdata, int r, const char *text, const char *path) {
        struct preparing *p = userdata;
        struct executor *e = p->executor;
        char why[512];

        if (!e) {
                preparing_free(p);
                return;
        }
        if (r >= 0) {
                p->bundle = strdup(path);
                if (p->bundle) {
                        prepared(e);
                        return;
                }
                text = strerror(ENOMEM);
        }
        snprintf(why, sizeof(why), "cannot fetch the job's files: %s", text && *text ? text : strerror(-r));
        preparing_free(p);
        refuse(e, why);
}

/* Nothing has been made for it so far. */
static int make_room(struct executor *e, char **ret_why) {
        struct preparing *p = e->preparing;
        struct start_order *order = &p->order;
        struct units *u = e->units;
        const struct slice_limits limits = { order->job_memory_max, order->extra.job_cpu,
                                             order->extra.job_tasks, order->extra.job_weight };
        int r;

        if ((r = job_enter(u, e, order->kind == ORDER_SCAN ? NULL : &limits)) < 0 ||
            (r = work_create(u->options.root, e->id.job, e->id.job_uid, e->uid)) < 0)
                return r;
        if (!*order->bundle)
                prepared(e);
        else if (!u->ops.bundle)
                return asprintf(ret_why, "this agent was built without the transfer of files") < 0
                               ? -ENOMEM
                               : -EOPNOTSUPP;
        else
                return u->ops.bundle(order->uid, order->bundle, on_bundle, p, u->userdata);
        return 0;
}

/* No room was made for it: r says why. */
static void refuse_room(struct executor *e, int r, const char *why) {
        char text[160];

        if (e->preparing)
                preparing_free(e->preparing);
        snprintf(text, sizeof(text), "the job's work directory on host %s belongs to another user",
                 e->units->options.node);
        refuse(e, why ?: r == -EPERM ? text : strerror(-r));
}

static void on_served(const char *why, void *userdata) {
        _cleanup_free_ char *problem = NULL;
        struct preparing *p = userdata;
        struct executor *e = p->executor;
        int r;

        if (!e || why) {
                preparing_free(p);
                if (e)
                        refuse_as(e, LINK_ERROR_NOT_SERVED, why);
                return;
        }
        r = make_room(e, &problem);
        if (r < 0)
                refuse_room(e, r, problem);
}

static int prepare(struct executor *e, uint64_t term, struct start_order *order) {
        struct units *u = e->units;
        struct preparing *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        *p = (struct preparing){ .units = u, .executor = e, .order = *order, .term = term };
        *order = (struct start_order){ 0 };
        e->preparing = p;
        order = &p->order;
        e->kind = order->kind;
        e->uid = order->uid;
        e->on_partition = order->on_partition;
        e->ack = order->ack;
        e->pipe_size = order->pipe_size;
        e->watched = true;
        e->state = EXECUTOR_PREPARING;
        e->command = strdup(order->argv && *order->argv ? *order->argv : "");
        p->work = work_path(u->options.root, e->id.job, e->id.job_uid);
        if (!e->command || !p->work)
                return -ENOMEM;
        e->directory = strdup(order->cwd && *order->cwd ? order->cwd : p->work);
        if (!e->directory)
                return -ENOMEM;
        if (u->ops.serve)
                u->ops.serve(e->uid, on_served, p, u->userdata);
        else
                on_served(NULL, p);
        return 0;
}

/* Those that have something on the host, not those whose end only waits to be committed. */
static uint32_t user_executors(const struct units *u, uint32_t uid) {
        const struct executor *e, *next;
        uint32_t n = 0;

        HASH_ITER (hh, u->executors, e, next)
                n += e->uid == uid && e->state <= EXECUTOR_ENDING;
        return n;
}

void units_start(struct units *u, uint64_t term, struct start_order *order, start_handler handler,
                 void *userdata) {
        struct start_result refused = { .error = LINK_ERROR_START };
        char unit[UNIT_NAME_MAX], text[LINK_TEXT_MAX];
        struct executor *e;
        struct waiter *w;
        uint16_t port;
        int r;

        executor_unit_name(order->id.job, order->id.role, order->id.index, order->id.attempt, unit);
        e = executor_find_unit(u, unit);
        if (e && (e->state >= EXECUTOR_ENDING || !executor_id_equal(&e->id, &order->id))) {
                refused.error = LINK_ERROR_ALREADY_RAN;
                refused.message = "an executor of that name has run on this host; its exit record waits to "
                                  "be committed";
                handler(&refused, userdata);
                return;
        }
        if (!e && exits_present(u->exits, unit)) {
                refused.error = LINK_ERROR_ALREADY_RAN;
                refused.message = "there is an exit record of that name on this host";
                handler(&refused, userdata);
                return;
        }
        if (!e && (port = ports_taken(order->ports, order->n_ports))) {
                snprintf(text, sizeof(text), "port %u is in use on host %s", port, u->options.node);
                refused.error = LINK_ERROR_PORT_TAKEN;
                refused.message = text;
                handler(&refused, userdata);
                return;
        }
        if (!e && u->options.user_max > 0 && user_executors(u, order->uid) >= u->options.user_max) {
                snprintf(text, sizeof(text),
                         "host %s runs %u executors of uid %u already, and takes no more of one user "
                         "(ExecutorsPerUserMax=)",
                         u->options.node, u->options.user_max, order->uid);
                refused.error = LINK_ERROR_USER_FULL;
                refused.message = text;
                handler(&refused, userdata);
                return;
        }
        w = calloc(1, sizeof(*w));
        if (w && !e)
                e = executor_new(u, &order->id);
        if (!w || !e) {
                free(w);
                refused.message = "out of memory";
                handler(&refused, userdata);
                return;
        }
        *w = (struct waiter){ .handler = handler, .userdata = userdata, .next = e->waiters };
        e->waiters = w;
        if (e->preparing || e->state != EXECUTOR_PREPARING) {
                if (e->state == EXECUTOR_RUNNING || e->state == EXECUTOR_STOPPING)
                        executor_answer_running(e);
                return;
        }
        r = prepare(e, term, order);
        if (r < 0)
                refuse_room(e, r, NULL);
}
