/* SPDX-License-Identifier: Apache-2.0 */
/* org.freedesktop.PolicyKit1.Authority.CheckAuthorization, asynchronously. Invariant: every question ends in
 * exactly one call of its handler, or in its destruction with the whole. */
#include "masterd/caller/polkit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "masterd/caller/caller.h"
#include "masterd/caller/reply.h"

#define ALLOW_USER_INTERACTION 1u
#define ANSWER_USEC (25 * USEC_PER_SEC)
#define INTERACTIVE_USEC (120 * USEC_PER_SEC) /* somebody may be looking for the password */

struct question {
        struct polkit *polkit;
        sd_bus_message *message;
        uint32_t uid;
        sd_bus_slot *slot;
        polkit_handler handler;
        void *userdata;
        void (*destroy)(void *userdata);
        struct question *prev, *next;
};

struct polkit {
        sd_bus *bus;
        struct question *pending;
        size_t n_pending;
};

int polkit_new(sd_bus *bus, struct polkit **ret) {
        struct polkit *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        p->bus = sd_bus_ref(bus);
        *ret = p;
        return 0;
}

static void question_done(struct question *q) {
        if (!q->polkit)
                return;
        DL_DELETE(q->polkit->pending, q);
        q->polkit->n_pending--;
        q->polkit = NULL;
}

static void question_free(struct question *q) {
        question_done(q);
        sd_bus_slot_unref(q->slot);
        sd_bus_message_unref(q->message);
        if (q->destroy)
                q->destroy(q->userdata);
        free(q);
}

static void question_free_p(struct question **q) {
        if (*q)
                question_free(*q);
}

struct polkit *polkit_free(struct polkit *p) {
        if (!p)
                return NULL;
        while (p->pending)
                question_free(p->pending);
        sd_bus_unref(p->bus);
        free(p);
        return NULL;
}

static enum polkit_answer read_answer(sd_bus_message *reply) {
        int authorized, challenge;

        if (sd_bus_message_is_method_error(reply, NULL))
                return POLKIT_ABSENT;
        if (sd_bus_message_enter_container(reply, 'r', "bba{ss}") < 0 ||
            sd_bus_message_read(reply, "bb", &authorized, &challenge) < 0)
                return POLKIT_ABSENT;
        return authorized ? POLKIT_YES : challenge ? POLKIT_CHALLENGE : POLKIT_NO;
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        struct question *q = userdata;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        question_done(q); /* the handler may have another one, which takes its place */
        r = q->handler(q->message, read_answer(reply), q->userdata, &error);
        if (sd_bus_error_is_set(&error) || r < 0)
                (void)reply_failed(q->message, r, &error);
        sd_bus_error_free(&error);
        question_free(q);
        return 0;
}

static size_t pending_of(const struct polkit *p, uint32_t uid) {
        const struct question *q;
        size_t n = 0;

        DL_FOREACH (p->pending, q)
                n += q->uid == uid;
        return n;
}

/* ((sa{sv}) subject, s action, a{ss} details, u flags, s cancellation) */
static int make_question(sd_bus *bus, const char *sender, const char *action, bool interactive,
                         sd_bus_message **ret) {
        sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, "org.freedesktop.PolicyKit1",
                                           "/org/freedesktop/PolicyKit1/Authority",
                                           "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");
        if (r >= 0)
                r = sd_bus_message_append(m, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s", sender,
                                          action, 0, interactive ? ALLOW_USER_INTERACTION : 0u, "");
        if (r < 0) {
                sd_bus_message_unref(m);
                return r;
        }
        *ret = m;
        return 0;
}

static int ask(struct polkit *p, struct question *q, const char *sender, const char *action, bool dialog) {
        bool interactive = dialog && sd_bus_message_get_allow_interactive_authorization(q->message) > 0;
        sd_bus_message *m = NULL;
        int r;

        r = make_question(p->bus, sender, action, interactive, &m);
        if (r < 0)
                return r;
        r = sd_bus_call_async(p->bus, &q->slot, m, on_answer, q,
                              interactive ? INTERACTIVE_USEC : ANSWER_USEC);
        sd_bus_message_unref(m);
        return r;
}

int polkit_check(struct polkit *p, sd_bus_message *m, uint32_t uid, const char *action, bool dialog,
                 polkit_handler handler, void *userdata, void (*destroy)(void *userdata),
                 sd_bus_error *ret_error) {
        _cleanup_(question_free_p) struct question *q = calloc(1, sizeof(*q));
        const char *sender = sd_bus_message_get_sender(m);
        int r;

        if (!q) {
                if (destroy)
                        destroy(userdata);
                return -ENOMEM;
        }
        *q = (struct question){ .message = sd_bus_message_ref(m),
                                .uid = uid,
                                .handler = handler,
                                .userdata = userdata,
                                .destroy = destroy };
        if (caller_is_far(m))
                return handler(m, POLKIT_FAR, userdata, ret_error);
        if (!sender)
                return sd_bus_error_set(ret_error, SD_BUS_ERROR_ACCESS_DENIED, "The call has no sender.");
        if (p->n_pending >= POLKIT_PENDING_MAX || pending_of(p, uid) >= POLKIT_PENDING_PER_USER_MAX)
                return sd_bus_error_set(ret_error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                        "Too many calls wait for polkit's answer; try again.");
        r = ask(p, q, sender, action, dialog);
        if (r < 0)
                return r;
        q->polkit = p;
        DL_APPEND(p->pending, q);
        p->n_pending++;
        TAKE_PTR(q);
        return 1;
}
