/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing and thawing executors, by systemd. Invariant: what is to be stopped is thawed first, since a
 * frozen process does not see SIGTERM. */
#include <string.h>

#include "agentd/executors/units-internal.h"
#include "lib/base/try.h"

/* Who waits for systemd's word. */
struct freezing {
        struct units *units;
        char unit[UNIT_NAME_MAX];
        bool freeze;
        freeze_handler handler;
        void *userdata;
        struct freezing *next, *prev;
};

static void freezing_free(struct freezing *f) {
        DL_DELETE(f->units->freezing, f);
        free(f);
}

void freezings_free(struct units *u) {
        while (u->freezing)
                freezing_free(u->freezing);
}

static void on_reply(sd_bus_message *reply, void *userdata) {
        struct freezing *f = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        struct executor *x = executor_find_unit(f->units, f->unit);

        if (x)
                x->frozen = f->freeze && !e;
        if (f->handler)
                f->handler(e ? -sd_bus_error_get_errno(e) : 0, e ? e->message ?: e->name : NULL, f->userdata);
        freezing_free(f);
}

static int ask_freeze(struct executor *e, bool freeze, freeze_handler handler, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct units *u = e->units;
        struct freezing *f;
        int r;

        TRY(starter_message(u->systemd, "Freeze", &m));
        TRY(sd_bus_message_append(m, "sb", e->unit, (int)freeze));
        f = calloc(1, sizeof(*f));
        if (!f)
                return -ENOMEM;
        *f = (struct freezing){ .units = u, .freeze = freeze, .handler = handler, .userdata = userdata };
        strcpy(f->unit, e->unit);
        DL_APPEND(u->freezing, f);
        r = systemd_call(u->systemd, m, true, on_reply, f);
        if (r < 0)
                freezing_free(f);
        return r;
}

int units_freeze(struct units *u, const struct executor_id *id, bool freeze, freeze_handler handler,
                 void *userdata) {
        struct executor *e = executor_find(u, id);

        if (!e)
                return -ENOENT;
        if (e->state != EXECUTOR_RUNNING)
                return freeze ? -EAGAIN : -EALREADY;
        e->frozen |= freeze; /* a stop in between thaws it */
        log_executor(e, LOG_INFO, "%s %s", freeze ? "Freezing" : "Thawing", e->unit);
        return ask_freeze(e, freeze, handler, userdata);
}

void executor_thaw(struct executor *e) {
        if (!e->frozen)
                return;
        e->frozen = false;
        if (ask_freeze(e, false, NULL, NULL) < 0)
                log_oom();
}
