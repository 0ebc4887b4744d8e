/* SPDX-License-Identifier: Apache-2.0 */
/* Identify, then compare, then ask polkit. Invariant: polkit is asked only about callers that are neither the
 * owner nor root, so that what is one's own never depends on it. */
#include "masterd/caller/authorize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "masterd/caller/audit.h"
#include "masterd/caller/polkit.h"

/* A call on its way. Owned by whatever it waits in. */
struct request {
        struct callers *callers;
        uint32_t owner, uid;
        const char *action;
        char *refusal; /* NULL: the usual one */
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
        free(q->refusal);
        free(q);
}

static int refuse(const struct request *q, sd_bus_message *m, enum polkit_answer answer,
                  sd_bus_error *ret_error) {
        static const enum audit_permission said[] = {
                [POLKIT_NO] = AUDIT_POLKIT_NO,
                [POLKIT_CHALLENGE] = AUDIT_POLKIT_CHALLENGE,
                [POLKIT_ABSENT] = AUDIT_POLKIT_ABSENT,
                [POLKIT_FAR] = AUDIT_POLKIT_FAR,
        };
        const char *name, *more, *who = q->owner == OWNER_NONE ? "root" : "the owner and root";

        audit_permission(m, said[answer], q->action);
        name = answer == POLKIT_CHALLENGE ? SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED
                                          : SD_BUS_ERROR_ACCESS_DENIED;
        more = answer == POLKIT_CHALLENGE
                       ? "; an administrator's password would do, and nothing here can ask "
                         "for one"
               : answer == POLKIT_ABSENT ? "; polkit does not answer"
               : answer == POLKIT_FAR    ? "; from another host it is not asked: call from the master's own "
                                           "(primusctl -H)"
                                         : "";
        if (q->refusal)
                return sd_bus_error_setf(ret_error, name, "%s%s.", q->refusal,
                                         answer >= POLKIT_ABSENT ? more : "");
        return sd_bus_error_setf(ret_error, name, "Only %s, and whom polkit grants %s, may do this%s.", who,
                                 q->action, more);
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
        return polkit_check(callers_polkit(q->callers), m, uid, q->action, true, on_polkit, q, request_unref,
                            ret_error);
}

int authorize_saying(struct callers *c, sd_bus_message *m, uint32_t owner, const char *action,
                     const char *refusal, caller_handler handler, void *userdata,
                     void (*destroy)(void *userdata), sd_bus_error *ret_error) {
        struct request *q = malloc(sizeof(*q));
        char *copy = refusal ? strdup(refusal) : NULL;

        if (!q || (refusal && !copy)) {
                free(q);
                free(copy);
                if (destroy)
                        destroy(userdata);
                return -ENOMEM;
        }
        *q = (struct request){ .callers = c,
                               .owner = owner,
                               .action = action,
                               .refusal = copy,
                               .handler = handler,
                               .userdata = userdata,
                               .destroy = destroy,
                               .n_ref = 1 };
        return caller_identify_full(c, m, on_identified, q, request_unref, ret_error);
}

int authorize(struct callers *c, sd_bus_message *m, uint32_t owner, const char *action,
              caller_handler handler, void *userdata, void (*destroy)(void *userdata),
              sd_bus_error *ret_error) {
        return authorize_saying(c, m, owner, action, NULL, handler, userdata, destroy, ret_error);
}
