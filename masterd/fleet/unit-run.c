/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: a run is in the list from its start until it is freed, and done is called at most once; what is
 * heard of its end systemd has sent. */
#include "masterd/fleet/unit-run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/wire/bus-owner.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/fleet-parts.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER "org.freedesktop.systemd1.Manager"

struct unit_run {
        struct manager *manager;
        char unit[128];
        bool matched;
        unit_run_done done;
        void *userdata;
        sd_bus_slot *call;
        sd_event_source *timer;
        struct unit_run *next, *prev;
};

/* JobRemoved of this unit alone: there may be a thousand others a second. sd-bus itself cannot match the
 * third argument behind a first that is no string, so the bus is asked, and a filter takes what it sends. */
static int match_call(const struct unit_run *r, const char *method, sd_bus_slot **slot,
                      sd_bus_message_handler_t handler, void *userdata) {
        char match[512];

        snprintf(match, sizeof(match),
                 "type='signal',sender='" SYSTEMD "',path='" SYSTEMD_PATH "',interface='" SYSTEMD_MANAGER
                 "',member='JobRemoved',arg2='%s'",
                 r->unit);
        return sd_bus_call_method_async(r->manager->bus, slot, "org.freedesktop.DBus",
                                        "/org/freedesktop/DBus", "org.freedesktop.DBus", method, handler,
                                        userdata, "s", match);
}

static int on_unmatched(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return 0;
}

struct unit_run *unit_run_free(struct unit_run *r) {
        if (!r)
                return NULL;
        if (r->matched)
                (void)match_call(r, "RemoveMatch", NULL, on_unmatched, NULL);
        DL_DELETE(r->manager->fleet->unit_runs, r);
        sd_bus_slot_unref(r->call);
        sd_event_source_disable_unref(r->timer);
        free(r);
        return NULL;
}

static void unit_run_over(struct unit_run *r, const char *why) {
        unit_run_done done = r->done;

        r->done = NULL;
        r->timer = sd_event_source_disable_unref(r->timer);
        if (done)
                done(r->userdata, why);
}

static int on_given_up(sd_event_source *s, uint64_t usec, void *userdata) {
        unit_run_over(userdata, "nothing was heard of its end");
        return 0;
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct manager *manager = userdata;
        const char *unit, *result;
        struct unit_run *r;

        if (!sd_bus_message_is_signal(m, SYSTEMD_MANAGER, "JobRemoved") ||
            !bus_owner_sent(manager->fleet->systemd, m) ||
            sd_bus_message_read(m, "uoss", NULL, NULL, &unit, &result) < 0)
                return 0;
        DL_FOREACH (manager->fleet->unit_runs, r)
                if (strcmp(unit, r->unit) == 0) {
                        unit_run_over(r, strcmp(result, "done") == 0 ? NULL : result);
                        break;
                }
        return 0;
}

static int on_started(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        struct unit_run *r = userdata;

        r->call = sd_bus_slot_unref(r->call);
        if (e) /* else its job's end tells */
                unit_run_over(r, e->message ? e->message : e->name);
        return 0;
}

static int on_matched(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct unit_run *r = userdata;
        int k = sd_bus_message_is_method_error(reply, NULL) ? -sd_bus_message_get_errno(reply) : 0;

        r->call = sd_bus_slot_unref(r->call);
        r->matched = k >= 0;
        k = k < 0 ? k
                  : sd_bus_call_method_async(r->manager->bus, &r->call, SYSTEMD, SYSTEMD_PATH,
                                             SYSTEMD_MANAGER, "StartUnit", on_started, r, "ss", r->unit,
                                             "fail");
        if (k < 0)
                unit_run_over(r, strerror(-k));
        return 0;
}

int unit_run_start(struct manager *m, const char *unit, uint64_t give_up_usec, unit_run_done done,
                   void *userdata, struct unit_run **ret) {
        struct unit_run *r = calloc(1, sizeof(*r));
        int k = 0;

        if (!r)
                return -ENOMEM;
        *r = (struct unit_run){ .manager = m, .done = done, .userdata = userdata };
        snprintf(r->unit, sizeof(r->unit), "%s", unit);
        DL_APPEND(m->fleet->unit_runs, r);
        if (!m->fleet->systemd)
                k = bus_owner_new(m->bus, SYSTEMD, NULL, NULL, &m->fleet->systemd);
        if (k >= 0 && !m->fleet->unit_filter)
                k = sd_bus_add_filter(m->bus, &m->fleet->unit_filter, on_message, m);
        k = k < 0 ? k
                  : sd_event_add_time_relative(m->event, &r->timer, CLOCK_BOOTTIME, give_up_usec,
                                               USEC_PER_SEC, on_given_up, r);
        k = k < 0 ? k : match_call(r, "AddMatch", &r->call, on_matched, r);
        if (k < 0) {
                unit_run_free(r);
                return k;
        }
        *ret = r;
        return 0;
}

void unit_runs_stop(struct manager *m) {
        m->fleet->unit_filter = sd_bus_slot_unref(m->fleet->unit_filter);
        m->fleet->systemd = bus_owner_free(m->fleet->systemd);
}
