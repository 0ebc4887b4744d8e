/* SPDX-License-Identifier: Apache-2.0 */
/* Identify, then compare, then ask polkit. Invariant: polkit is asked only about callers that are neither the
 * owner nor root, so that what is one's own never depends on it. */
#include "masterd/api/authorize.h"

#include <errno.h>
#include <stdlib.h>

#include "masterd/api/audit.h"
#include "masterd/api/polkit.h"

/* A call on its way. Owned by whatever it waits in. */
struct request {
        struct callers *callers;
        uint32_t owner, uid;
        const char *action;
        caller_handler handler;
        void *userdata;
        void (*destroy)(void *userdata);
        unsigned n_ref;
};

static void request_unref(void *userdata) {
        struct request *q = userdata;

        if (--q->n_ref > 0)
                return;
        if (q->destroy)
                q->destroy(q->userdata);
        free(q);
}

static int refuse(const struct request *q, sd_bus_message *m, enum polkit_answer answer,
                  sd_bus_error *ret_error) {
        static const enum audit_permission said[] = {
                [POLKIT_NO] = AUDIT_POLKIT_NO,
                [POLKIT_CHALLENGE] = AUDIT_POLKIT_CHALLENGE,
                [POLKIT_ABSENT] = AUDIT_POLKIT_ABSENT,
        };
        const char *who = q->owner == OWNER_NONE ? "root" : "the owner and root";

        audit_permission(m, said[answer], q->action);
        if (answer == POLKIT_CHALLENGE)
                return sd_bus_error_setf(ret_error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                         "This needs a password (polkit action %s), and nothing here can ask "
                                         "for one: run it as root.",
                                         q->action);
        return sd_bus_error_setf(ret_error, SD_BUS_ERROR_ACCESS_DENIED,
                                 "Only %s, and whom polkit grants %s, may do this%s.", who, q->action,
                                 answer == POLKIT_ABSENT ? "; polkit does not answer" : "");
}

static int on_polkit(sd_bus_message *m, enum polkit_answer answer, void *userdata, sd_bus_error *ret_error) {
        struct request *q = userdata;

        if (answer != POLKIT_YES)
                return refuse(q, m, answer, ret_error);
        audit_permission(m, AUDIT_POLKIT_YES, q->action);
        return q->handler(m, q->uid, q->userdata, ret_error);
}

static int on_identified(sd_bus_message *m, uint32_t uid, void *userdata, sd_bus_error *ret_error) {
        struct request *q = userdata;

        if (uid == 0 || (q->owner < OWNER_ANOTHER && uid == q->owner)) {
                audit_permission(m, uid == q->owner ? AUDIT_OWNER : AUDIT_ROOT, NULL);
                return q->handler(m, uid, q->userdata, ret_error);
        }
        q->uid = uid;
        q->n_ref++; /* for polkit's question; the other is dropped by whoever called this */
        return polkit_check(callers_polkit(q->callers), m, uid, q->action, on_polkit, q, request_unref,
                            ret_error);
}

int authorize(struct callers *c, sd_bus_message *m, uint32_t owner, const char *action,
              caller_handler handler, void *userdata, void (*destroy)(void *userdata),
              sd_bus_error *ret_error) {
        struct request *q = malloc(sizeof(*q));

        if (!q) {
                if (destroy)
                        destroy(userdata);
                return -ENOMEM;
        }
        *q = (struct request){ .callers = c,
                               .owner = owner,
                               .action = action,
                               .handler = handler,
                               .userdata = userdata,
                               .destroy = destroy,
                               .n_ref = 1 };
        return caller_identify_full(c, m, on_identified, q, request_unref, ret_error);
}
