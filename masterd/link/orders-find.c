/* SPDX-License-Identifier: Apache-2.0 */
/* Asks agents what is in logs. Invariant: who asks is answered once, also when the link breaks meanwhile. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/strv.h"
#include "masterd/core/manager.h"
#include "masterd/link/orders-parts.h"

/* An agent takes 11 s for one at the most, but they wait for each other there. */
#define FIND_TIMEOUT (120 * USEC_PER_SEC)

struct seeking {
        struct order order;
        sd_id128_t invocation;
        uint32_t uid;
        struct find_question question;
        find_handler handler;
        void *userdata;
};

static void answer_seeker(struct seeking *s, int r, const struct found_line *lines) {
        s->handler(s->order.manager, r, lines, s->userdata);
        find_question_done(&s->question);
        free(s);
}

static int on_found(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct found_line lines[FIND_PATTERNS_MAX] = {};
        struct seeking *s = userdata;

        if (!sd_bus_message_is_method_error(reply, NULL))
                answer_seeker(s, found_lines_read(reply, lines, s->question.n) > 0 ? 0 : -EIO, lines);
        else /* what waits for a connection that is closed gets an error as if it were an answer */
                answer_seeker(s, sd_bus_is_open(sd_bus_message_get_bus(reply)) > 0 ? -EIO : -ENOTCONN, NULL);
        return 0;
}

static int send_find(struct manager *m, struct node *node, struct seeking *s) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = order_message(m, node, "FindInLog", &message);

        if (r < 0 || (r = executor_id_append(message, &s->order.id)) < 0 ||
            (r = sd_bus_message_append_array(message, 'y', s->invocation.bytes, sizeof(s->invocation))) < 0 ||
            (r = sd_bus_message_append_basic(message, 'u', &s->uid)) < 0 ||
            (r = find_question_append(message, &s->question)) < 0)
                return r;
        return sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, on_found, s, FIND_TIMEOUT);
}

static void run_find(struct manager *m, void *data) {
        struct seeking *s = data;
        struct node *node = nodes_get(&m->nodes, s->order.node);
        int r = node ? send_find(m, node, s) : -ENOTCONN;

        if (r < 0)
                answer_seeker(s, r == -ENOTCONN ? r : -EIO, NULL);
}

int orders_find_later(struct manager *m, const struct executor *e, sd_id128_t invocation,
                      const char *const *patterns, size_t n, find_handler handler, void *userdata) {
        struct executor_id id = executor_id_of(e);
        struct seeking *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        *s = (struct seeking){ .order = { .manager = m, .id = id },
                               .invocation = invocation,
                               .uid = e->job->owner,
                               .question.n = n,
                               .handler = handler,
                               .userdata = userdata };
        snprintf(s->order.node, sizeof(s->order.node), "%s", e->node->name);
        r = strings_copy((char *const *)patterns, n, &s->question.patterns);
        r = r < 0 ? r : manager_effect(m, run_find, s);
        if (r < 0) {
                find_question_done(&s->question);
                free(s);
        }
        return r;
}
