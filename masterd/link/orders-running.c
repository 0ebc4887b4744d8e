/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to executors that run: freeze, other limits, other peers, a signal. Invariant: what holds when the
 * order is sent is said, not what held when it was asked for; so the next registration may say it again. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/wire/errors.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/job/peers.h"
#include "masterd/job/suspend.h"
#include "masterd/link/link.h"
#include "masterd/link/orders-parts.h"

#define ANSWER_TIMEOUT (60 * USEC_PER_SEC)

static void run_signal(struct manager *m, void *data) {
        struct order *o = data;
        struct executor *e = order_executor(m, o);
        int32_t number = e ? e->job->spec->waits.signal_number : 0;
        sd_bus_message *message = NULL;
        int r;

        if (number > 0 && executor_state_holds(e->state) && e->state != EXECUTOR_STOPPING) {
                r = order_message(m, e->node, "Signal", &message);
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
        return order_later_of(m, e, run_signal);
}

static int on_frozen(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct order *o = userdata;
        struct executor *e = order_executor(o->manager, o);

        /* Without a link the next registration has it said again; one that does not run yet is told when it
         * does. */
        if (failure && e && strcmp(failure->name, LINK_ERROR_REFUSED) == 0)
                o->manager->up->freeze_refused(o->manager, e, failure->message);
        free(o);
        return 0;
}

static void run_freeze(struct manager *m, void *data) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct order *o = data;
        struct executor *e = order_executor(m, o);
        struct node *node = nodes_get(&m->nodes, o->node);
        int r = e && e->state == EXECUTOR_RUNNING && node ? order_message(m, node, "Freeze", &message)
                                                          : -ENOENT;

        if (r >= 0)
                r = executor_id_append(message, &o->id);
        if (r >= 0)
                r = sd_bus_message_append(message, "b", (int)job_frozen(e->job));
        if (r >= 0)
                r = link_append_extra_empty(message);
        if (r >= 0)
                r = sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, on_frozen, o,
                                      ANSWER_TIMEOUT);
        if (r < 0)
                free(o);
}

int orders_freeze_later(struct manager *m, struct executor *e) {
        return order_later_of(m, e, run_freeze);
}

static int on_limits(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct order *o = userdata;
        struct executor *e = order_executor(o->manager, o);

        /* Without a link the next registration has it said again. */
        if (failure && e && error_is_primus(failure->name))
                record_event(o->manager, e->job, "limits-refused", e, "%s keeps the limits that it had: %s",
                             o->node, failure->message);
        free(o);
        return 0;
}

int orders_limits_send(struct manager *m, struct executor *e, const struct unit_limits *limits,
                       sd_bus_message_handler_t handler, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct executor_id id = executor_id_of(e);
        int r = order_message(m, e->node, "SetLimits", &message);

        if (r >= 0)
                r = executor_id_append(message, &id);
        if (r >= 0)
                r = unit_limits_append(message, limits);
        return r < 0 ? r
                     : sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, handler, userdata,
                                         ANSWER_TIMEOUT);
}

static void run_limits(struct manager *m, void *data) {
        struct order *o = data;
        struct executor *e = order_executor(m, o);
        const struct role_spec *role = e ? executor_role(e) : NULL;

        if (!e || (e->state != EXECUTOR_RUNNING && e->state != EXECUTOR_STARTING) ||
            orders_limits_send(m, e,
                               &(struct unit_limits){ .cpu_usec_per_sec = (uint64_t)role->cpu_milli * 1000,
                                                      .memory_max = executor_memory(e),
                                                      .job = { job_memory_on_node(e), job_cpu_on_node(e),
                                                               job_tasks_on_node(e), job_weight_on_node(e) },
                                                      .has_more = true,
                                                      .memory_high = role->limits.memory_high,
                                                      .cpu_weight = role->limits.cpu_weight,
                                                      .tasks_max = role->limits.tasks },
                               on_limits, o) < 0)
                free(o);
}

int orders_limits_later(struct manager *m, struct executor *e) {
        return order_later_of(m, e, run_limits);
}

static int send_rendezvous(struct manager *m, struct executor *e) {
        _cleanup_(strings_free_p) char **env = NULL;
        struct executor_id id = executor_id_of(e);
        struct rendezvous_order order = { .epoch = e->job->rendezvous.epoch,
                                          .signal = (uint32_t)e->job->spec->rendezvous.signal_number };
        sd_bus_message *message = NULL;
        int r = job_peers_environment(e, &env);

        if (r >= 0)
                r = order_message(m, e->node, "SetRendezvous", &message);
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

        if (e && !e->leaver.leaves && e->state == EXECUTOR_RUNNING && e->epoch != e->job->rendezvous.epoch) {
                r = send_rendezvous(m, e);
                if (r < 0 && r != -ENOTCONN) /* else the next registration has it said */
                        log_full(LOG_WARNING, r, &(struct log_fields){ .job = e->job->number },
                                 "Cannot tell job %u %s/%u who its peers are", e->job->number,
                                 executor_role(e)->name, e->index);
        }
        free(o);
}

int orders_rendezvous_later(struct manager *m, struct executor *e) {
        return order_later_of(m, e, run_rendezvous);
}
