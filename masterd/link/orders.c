/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to agents: what all have in common, stops, and those about jobs and hosts. Starts are in
 * orders-start.c, what executors are told while they run in orders-running.c. Invariant: an order carries the
 * term and the node's epoch, and describes what is on disk; sending it twice is harmless, since the agent
 * answers for what it has. */
#include "masterd/link/orders.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/wire/errors.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/link/link.h"
#include "masterd/link/orders-parts.h"

#define STOP_TIMEOUT (600 * USEC_PER_SEC)

struct executor_id executor_id_of(const struct executor *e) {
        struct executor_id id = {
                .job_uid = e->job->uid, .job = e->job->number, .index = e->index, .attempt = e->attempt
        };

        snprintf(id.role, sizeof(id.role), "%s", executor_role(e)->name);
        return id;
}

struct order *order_new(struct manager *m, const struct node *node, const struct executor_id *id) {
        struct order *o = calloc(1, sizeof(*o));

        if (!o)
                return NULL;
        o->manager = m;
        o->id = *id;
        snprintf(o->node, sizeof(o->node), "%s", node->name);
        return o;
}

int order_later(struct manager *m, const struct node *node, const struct executor_id *id, effect_fn run) {
        struct order *o = order_new(m, node, id);

        return o ? manager_effect(m, run, o) : -ENOMEM;
}

int order_later_of(struct manager *m, const struct executor *e, effect_fn run) {
        struct executor_id id = executor_id_of(e);

        return order_later(m, e->node, &id, run);
}

struct executor *order_executor(struct manager *m, const struct order *o) {
        return manager_attempt(m, &o->id);
}

int order_message(struct manager *m, struct node *node, const char *method, sd_bus_message **ret) {
        sd_bus *bus = link_bus(node);
        int r;

        if (!bus)
                return -ENOTCONN;
        r = sd_bus_message_new_method_call(bus, ret, NULL, LINK_PATH, LINK_INTERFACE, method);
        if (r >= 0)
                r = sd_bus_message_append(*ret, "tt", m->term, node->epoch);
        return r;
}

/* ---- stop ---- */

static int on_stopped(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct order *o = userdata;
        struct executor *e;

        /* The agent knows nothing of it: neither a unit nor a record. Then there is nothing to wait for. */
        if (failure && strcmp(failure->name, LINK_ERROR_UNKNOWN) == 0 &&
            (e = order_executor(o->manager, o)) && e->state == EXECUTOR_STOPPING)
                o->manager->up->executor_vanished(o->manager, e);
        free(o);
        return 0;
}

static int send_stop(struct manager *m, struct node *node, const struct executor_id *id, uint64_t grace_usec,
                     const char *why) {
        sd_bus_message *message = NULL;
        struct order *o = NULL;
        int r;

        r = order_message(m, node, "Stop", &message);
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
                (void)send_stop(m, e->node, &o->id, executor_grace(e),
                                e->orders.stop_why              ? e->orders.stop_why
                                : e->job->state == JOB_STOPPING ? "the job ends"
                                                                : "it goes on elsewhere");
        free(o);
}

int orders_stop_later(struct manager *m, struct executor *e) {
        return order_later_of(m, e, run_stop);
}

static void run_stop_stale(struct manager *m, void *data) {
        struct order *o = data;
        struct node *node = nodes_get(&m->nodes, o->node);

        if (node)
                (void)send_stop(m, node, &o->id, 0, "superseded: this attempt is over for the master");
        free(o);
}

int orders_stop_stale_later(struct manager *m, const struct node *node, const struct executor_id *id) {
        return order_later(m, node, id, run_stop_stale);
}

/* ---- one-way ---- */

/* A message that is not answered; NULL where the node is gone or not connected. */
static sd_bus_message *one_way(struct manager *m, const struct order *o, const char *method) {
        struct node *node = nodes_get(&m->nodes, o->node);
        sd_bus_message *message = NULL;

        return node && link_one_way(node, method, &message) >= 0 ? message : NULL;
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
        return order_later(m, node, id, run_committed);
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
        return order_later(m, node, &id, run_drop_job);
}

/* ---- the host itself ---- */

static int on_power(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct order *o = userdata;

        /* One that lost its connection in the meantime goes down, or registers and is told again. */
        if (failure && error_is_primus(failure->name))
                log_full(LOG_ERR, 0, &(struct log_fields){ .node = o->node }, "%s: %s", o->node,
                         failure->message ? failure->message : failure->name);
        free(o);
        return 0;
}

/* What is asked for by now is ordered: the drain may have been called off in between. */
static void run_power(struct manager *m, void *data) {
        struct order *o = data;
        struct node *node = nodes_get(&m->nodes, o->node);
        const enum hold_cause cause = node ? holds_then(node->holds) : _HOLD_INVALID;
        const struct node_hold *h;
        sd_bus_message *message = NULL;
        int r;

        if (cause == _HOLD_INVALID || !node_left(node)) {
                free(o);
                return;
        }
        h = node->holds + cause;
        log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = node->name }, "Node %s is told: %s", node->name,
                 hold_then_to_string(h->then));
        r = order_message(m, node, "Power", &message);
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
        return order_later(m, node, &(struct executor_id){}, run_power);
}
