/* SPDX-License-Identifier: Apache-2.0 */
/* From an order to a unit: the job's files, the private directory, the slice, StartTransientUnit. Invariant:
 * a struct preparing belongs to whoever works on it (the bundle's transfer, the call to systemd) and is freed
 * there, also when its executor has gone meanwhile. */
#include <string.h>

#include "agentd/core/admission.h"
#include "agentd/executors/units-internal.h"
#include "lib/base/try.h"

/* What a start needs until systemd has it. The executor may go before it does: then executor is NULL. */
struct preparing {
        struct units *units;
        struct executor *executor;
        struct start_order order;
        uint64_t term;
        bool bundled; /* its bundle is in the cache */
        char *ready, *why;
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
        free(p->ready);
        free(p->why);
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

static void refuse_start(struct executor *e, const char *why) {
        refuse_as(e, LINK_ERROR_START, why);
}

void executor_refuse_shm(struct executor *e) {
        char why[160];

        snprintf(why, sizeof(why), "the job's shared memory could not be mounted on host %s",
                 e->units->options.node);
        if (e->job)
                e->job->shm = false;
        refuse_start(e, why);
}

/* ---- the prolog ---- */

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
                refuse_start(e, strerror(-r));
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
                refuse_start(e, error->message ?: error->name);
        else if (e) {
                e->submitted = true;
                if (sd_bus_message_read(reply, "o", &job) >= 0)
                        e->start_job = strdup(job);
                executor_watch_limit(e);
                if (e->state == EXECUTOR_STOPPING)
                        executor_event(e, EVENT_STOP); /* it came while the start waited */
                else if (u->ops.taken && (*p->order.bundle || strcmp(p->order.extra.ready, "notify") == 0))
                        u->ops.taken(&e->id, u->userdata);
        }
        preparing_free(p);
}

static int append_beside(struct preparing *p, sd_bus_message *m) {
        _cleanup_free_ char *shared_cpus = p->order.extra.cpus ? NULL : cpus_shared(p->units);
        int r;

        if ((r = sd_bus_message_open_container(m, 'a', "{sv}")) < 0 ||
            (r = sd_bus_message_append(m, "{sv}{sv}", "term", "t", p->term, "bundled", "b",
                                       (int)p->bundled)) < 0 ||
            (shared_cpus && (r = sd_bus_message_append(m, "{sv}", "sharedCpus", "s", shared_cpus)) < 0))
                return r;
        if (p->ready &&
            ((r = sd_bus_message_open_container(m, 'e', "sv")) < 0 ||
             (r = sd_bus_message_append(m, "s", "ready")) < 0 ||
             (r = sd_bus_message_open_container(m, 'v', "ay")) < 0 ||
             (r = sd_bus_message_append_array(m, 'y', p->ready, strlen(p->ready))) < 0 ||
             (r = sd_bus_message_close_container(m)) < 0 || (r = sd_bus_message_close_container(m)) < 0))
                return r;
        return sd_bus_message_close_container(m);
}

static int build_start(struct preparing *p, sd_bus_message **ret) {
        TRY(starter_message(p->units->systemd, "Start", ret));
        TRY(start_order_append(*ret, &p->order));
        TRY(start_extra_append(*ret, &p->order.extra));
        return append_beside(p, *ret);
}

static int call_start(struct preparing *p, sd_bus_message *m) {
        struct job *j = p->executor->job;

        TRY(job_make_slice(j));
        if (p->order.extra.job_shm > 0)
                TRY(job_make_shm(j, p->order.extra.job_shm));
        return systemd_call_job(p->units->systemd, p->order.uid, p->executor->unit, m, on_start_reply, p);
}

static int submit_unit(struct preparing *p) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct executor *e = p->executor;
        struct units *u = p->units;
        int r;

        if ((r = cpus_own(e, p->order.extra.cpus, false)) < 0 || (r = devices_own(e, &p->order, NULL)) < 0 ||
            (r = ready_prepare(e, &p->order, &p->ready)) < 0 || (r = build_start(p, &m)) < 0)
                return r;
        e->epoch = p->order.extra.epoch;
        if (u->ops.starting)
                u->ops.starting(&p->order, u->userdata);
        r = call_start(p, m);
        if (r >= 0)
                devices_share(e->job, false);
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
        refuse_start(e, why);
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
                p->bundled = true;
                prepared(e);
                return;
        }
        snprintf(why, sizeof(why), "cannot fetch the job's files: %s", text && *text ? text : strerror(-r));
        preparing_free(p);
        refuse_start(e, why);
}

/* The job's work directory is there. */
static void on_work(sd_bus_message *reply, void *userdata) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        struct preparing *p = userdata;
        struct executor *e = p->executor;
        struct units *u = p->units;
        char why[256];
        int r;

        if (!e) {
                preparing_free(p);
                return;
        }
        if (!error && !*p->order.bundle) {
                prepared(e);
                return;
        }
        if (!error && (r = u->ops.bundle(p->order.uid, p->order.bundle, on_bundle, p, u->userdata)) >= 0)
                return;
        if (!error)
                snprintf(why, sizeof(why), "cannot fetch the job's files: %s", strerror(-r));
        else if (sd_bus_error_get_errno(error) == EPERM)
                snprintf(why, sizeof(why), "the job's work directory on host %s belongs to another user",
                         u->options.node);
        else
                snprintf(why, sizeof(why), "the job's work directory on host %s cannot be made: %s",
                         u->options.node, error->message ?: error->name);
        preparing_free(p);
        refuse_start(e, why);
}

/* Nothing has been made for it so far. */
static int make_room(struct executor *e) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct preparing *p = e->preparing;
        struct start_order *order = &p->order;
        struct units *u = e->units;
        const struct slice_limits limits = { order->job_memory_max, order->extra.job_cpu,
                                             order->extra.job_tasks, order->extra.job_weight };

        if (*order->bundle && !u->ops.bundle)
                return -EOPNOTSUPP;
        TRY(job_enter(u, e, order->kind == ORDER_SCAN ? NULL : &limits));
        TRY(starter_message(u->systemd, "MakeWork", &m));
        TRY(job_append(e->job, m));
        TRY(sd_bus_message_append(m, "u", e->uid));
        return systemd_call(u->systemd, m, false, on_work, p);
}

/* No room was made for it: r says why. */
static void refuse_room(struct executor *e, int r) {
        if (e->preparing)
                preparing_free(e->preparing);
        refuse_start(e,
                     r == -EOPNOTSUPP ? "this agent was built without the transfer of files" : strerror(-r));
}

static void on_served(const char *why, void *userdata) {
        struct preparing *p = userdata;
        struct executor *e = p->executor;
        int r;

        if (!e || why) {
                preparing_free(p);
                if (e)
                        refuse_as(e, LINK_ERROR_NOT_SERVED, why);
                return;
        }
        r = make_room(e);
        if (r < 0)
                refuse_room(e, r);
}

static int prepare_unit(struct executor *e, uint64_t term, struct start_order *order) {
        _cleanup_free_ char *work = NULL;
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
        e->grace_usec = order->grace_usec;
        e->runtime_max_usec = order->runtime_max_usec;
        e->start_max_usec = start_max(order);
        e->ack = order->ack;
        e->pipe_size = order->pipe_size;
        e->watched = true;
        e->state = EXECUTOR_PREPARING;
        e->command = strdup(order->argv && *order->argv ? *order->argv : "");
        work = work_path(u->options.root, e->id.job, e->id.job_uid);
        if (!e->command || !work)
                return -ENOMEM;
        e->directory = strdup(order->cwd && *order->cwd ? order->cwd : work);
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
                else if (e->submitted && u->ops.taken)
                        u->ops.taken(&e->id, u->userdata); /* asked for anew; it may last still */
                return;
        }
        r = prepare_unit(e, term, order);
        if (r < 0)
                refuse_room(e, r);
}
