/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to systemd whose answer is the answer to a call of agentd's. Invariant: each such call is answered once,
 * unless its connection ends first; at most RELAYED_MAX of a connection are under way. */
#include <stdlib.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "starter/starter.h"

#define SERVICE "org.freedesktop.systemd1"
#define OBJECT "/org/freedesktop/systemd1"
/* PID 1 may be busy for long (a herd of units, a reload); longer than agentd waits. */
#define CALL_USEC (UINT64_C(130) * USEC_PER_SEC)

struct relayed {
        struct connection *connection;
        sd_bus_message *call;
        sd_bus_slot *slot;
        struct relayed *next, *prev;
};

static void relayed_free(struct relayed *x) {
        DL_DELETE(x->connection->relayed, x);
        x->connection->n_relayed--;
        sd_bus_slot_unref(x->slot);
        sd_bus_message_unref(x->call);
        free(x);
}

void relayed_free_all(struct connection *c) {
        while (c->relayed)
                relayed_free(c->relayed);
}

int relay_message(struct connection *c, const char *member, sd_bus_message **ret) {
        return sd_bus_message_new_method_call(c->starter->systemd, ret, SERVICE, OBJECT, SERVICE ".Manager", member);
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct relayed *x = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        const char *job;

        if (e)
                (void)sd_bus_reply_method_error(x->call, e);
        else if (sd_bus_message_read(reply, "o", &job) > 0)
                (void)sd_bus_reply_method_return(x->call, "o", job);
        else
                (void)sd_bus_reply_method_return(x->call, NULL);
        relayed_free(x);
        return 0;
}

int relay(struct connection *c, sd_bus_message *call, sd_bus_message *m, sd_bus_error *error) {
        struct relayed *x;
        int r;

        if (c->n_relayed >= RELAYED_MAX)
                return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED, "too many calls are under way");
        x = calloc(1, sizeof(*x));
        if (!x)
                return -ENOMEM;
        *x = (struct relayed){ .connection = c, .call = sd_bus_message_ref(call) };
        DL_APPEND(c->relayed, x);
        c->n_relayed++;
        r = sd_bus_call_async(c->starter->systemd, &x->slot, m, on_reply, x, CALL_USEC);
        if (r < 0) {
                relayed_free(x);
                return r;
        }
        return 1;
}
