/* SPDX-License-Identifier: Apache-2.0 */
/* Watching the host. Invariant: masterd hears of each change while it is connected, and of everything when it
 * registers us. */
#include "agentd/hostwatch.h"

#include <stdlib.h>

#include "agentd/manager.h"
#include "lib/base/log.h"

struct hostwatch {
        struct manager *manager;
        struct conditions *conditions;
        sd_event_source *due;
};

/* ---- conditions
 * ------------------------------------------------------------------------------------------------------ */

static int send_condition(struct manager *m, const struct host_condition *c) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = link_message(m->link, false, "HostCondition", &message);

        if (r == -ENOTCONN)
                return 0; /* with the next registration */
        if (r < 0 || (r = host_condition_append(message, c)) < 0 ||
            (r = link_append_extra_empty(message)) < 0)
                return r;
        return link_send(m->link, message);
}

static void on_condition(const struct host_condition *c, void *userdata) {
        struct hostwatch *w = userdata;
        int r;

        if (c->severity == CONDITION_FINE)
                log_notice("%s %s: fine again", condition_kind_to_string(c->kind), c->subject);
        else
                log_full(c->severity == CONDITION_NOTE ? LOG_NOTICE : LOG_WARNING, 0, NULL, "%s %s: %s",
                         condition_kind_to_string(c->kind), c->subject, c->text);
        r = send_condition(w->manager, c);
        if (r < 0)
                log_warning_errno(
                        r, "Cannot tell masterd how the host is; it is told with the next registration");
        r = w->conditions ? conditions_save(w->conditions, "") : 0;
        if (r < 0)
                log_full(LOG_DEBUG, r, NULL, "Cannot write /run/primus/conditions");
        if (w->manager->bus)
                agent_bus_changed(w->manager, "Conditions");
}

static int on_due(sd_event_source *s, uint64_t usec, void *userdata) {
        struct hostwatch *w = userdata;
        uint64_t next = conditions_tick_at(w->conditions, now_boot());

        if (next == USEC_INFINITY)
                return sd_event_source_set_enabled(s, SD_EVENT_OFF);
        (void)sd_event_source_set_time(s, next);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static void arm(uint64_t boot_usec, void *userdata) {
        struct hostwatch *w = userdata;

        (void)sd_event_source_set_time(w->due, boot_usec);
        (void)sd_event_source_set_enabled(w->due, SD_EVENT_ONESHOT);
}

struct conditions *hostwatch_conditions(struct hostwatch *w) {
        return w->conditions;
}

int hostwatch_append(struct hostwatch *w, sd_bus_message *m) {
        int r;

        if ((r = sd_bus_message_open_container(m, 'e', "sv")) < 0 ||
            (r = sd_bus_message_append(m, "s", "conditions")) < 0 ||
            (r = sd_bus_message_open_container(m, 'v', "a" CONDITION_SIGNATURE)) < 0 ||
            (r = conditions_append(w->conditions, m)) < 0 || (r = sd_bus_message_close_container(m)) < 0)
                return r;
        return sd_bus_message_close_container(m);
}

/* ---- start
 * -----------------------------------------------------------------------------------------------------------
 */

int hostwatch_new(struct manager *m, struct hostwatch **ret) {
        static const struct conditions_ops ops = { .tell = on_condition, .due = arm };
        struct hostwatch *w = calloc(1, sizeof(*w));
        struct conditions *c;
        int r;

        if (!w)
                return -ENOMEM;
        w->manager = m;
        *ret = w; /* the caller frees it in any case */
        r = sd_event_add_time(m->event, &w->due, CLOCK_BOOTTIME, USEC_INFINITY, 100 * USEC_PER_MSEC, on_due,
                              w);
        if (r >= 0)
                r = conditions_new(m->settings.condition_settle_usec, &ops, w, &c);
        if (r < 0)
                return r;
        r = conditions_load_at(c, now_boot(), "");
        w->conditions = c;
        if (r < 0)
                log_full(LOG_NOTICE, r, NULL, "Ignoring /run/primus/conditions");
        return 0;
}

void hostwatch_free(struct hostwatch *w) {
        if (!w)
                return;
        sd_event_source_disable_unref(w->due);
        conditions_free(w->conditions);
        free(w);
}
