/* SPDX-License-Identifier: Apache-2.0 */
/* Asks agents what executors are doing: their threads, and how long what they do takes. Invariant: who asks
 * is answered once, also when the link breaks meanwhile. */
#include <string.h>

#include "lib/base/clock.h"
#include "masterd/core/manager.h"
#include "masterd/link/orders-parts.h"

/* An agent answers within 10 s; its answer may stand behind others. */
#define CAPTURE_TIMEOUT (20 * USEC_PER_SEC)

struct asking {
        struct order order;
        capture_answer answer;
        void *userdata;
};

static int on_captured(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        _cleanup_(capture_done) struct capture c = {};
        struct asking *a = userdata;

        if (failure)
                a->answer(a->order.manager, NULL, failure, a->userdata);
        else if (capture_read(reply, &c) < 0)
                a->answer(a->order.manager, NULL,
                          &SD_BUS_ERROR_MAKE_CONST(SD_BUS_ERROR_FAILED, "the host's answer is not usable"),
                          a->userdata);
        else
                a->answer(a->order.manager, &c, NULL, a->userdata);
        free(a);
        return 0;
}

static int append_signal(sd_bus_message *message, uint32_t flags, int32_t number) {
        if (!(flags & CAPTURE_PYTHON) || number <= 0)
                return sd_bus_message_append(message, "ua{sv}", flags & ~CAPTURE_PYTHON, 0);
        return sd_bus_message_append(message, "ua{sv}", flags, 1, "signal", "u", (uint32_t)number);
}

int orders_capture_all(struct manager *m, struct executor *e, uint32_t flags, capture_answer answer,
                       void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct executor_id id = executor_id_of(e);
        struct asking *a;
        int r = e->node ? order_message(m, e->node, "Capture", &message) : -ENOTCONN;

        if (r < 0 || (r = executor_id_append(message, &id)) < 0 ||
            (r = append_signal(message, flags, e->job->spec->stack_signal_number)) < 0)
                return r;
        a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        *a = (struct asking){ .order = { .manager = m, .id = id }, .answer = answer, .userdata = userdata };
        r = sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, on_captured, a,
                              CAPTURE_TIMEOUT);
        if (r < 0)
                free(a);
        return r;
}

/* ---- of one attempt, as others in here ask ---- */

struct plain {
        struct order order;
        capture_handler handler;
        void *userdata;
};

static void on_plain(struct manager *m, const struct capture *c, const sd_bus_error *error, void *userdata) {
        struct plain *p = userdata;

        p->handler(m, order_executor(m, &p->order), c ? c->threads : NULL, c ? c->n : 0,
                   error ? error->message ?: error->name : NULL, p->userdata);
        free(p);
}

int orders_capture(struct manager *m, struct executor *e, uint32_t flags, capture_handler handler,
                   void *userdata) {
        struct plain *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        *p = (struct plain){ .order = { .manager = m, .id = executor_id_of(e) },
                             .handler = handler,
                             .userdata = userdata };
        r = orders_capture_all(m, e, flags, on_plain, p);
        if (r < 0)
                free(p);
        return r;
}

/* ---- latency on demand ---- */

int orders_trace(struct manager *m, struct executor *e, const char *kind, uint64_t lease_usec,
                 sd_bus_message_handler_t handler, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct executor_id id = executor_id_of(e);
        int r = e->node ? order_message(m, e->node, "Trace", &message) : -ENOTCONN;

        if (r < 0 || (r = executor_id_append(message, &id)) < 0 ||
            (r = sd_bus_message_append(message, "st", kind, lease_usec)) < 0 ||
            (r = link_append_extra_empty(message)) < 0)
                return r;
        return sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, handler, userdata,
                                 CAPTURE_TIMEOUT);
}
