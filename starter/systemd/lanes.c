/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: PID 1 has at most three times LANE_JOBS match rules for jobs of ours: for the connection of the
 * starter, for the one that is in use beside it, and for one that is about to be closed. */
#include "starter/systemd/lanes.h"

#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"

#define LOCAL "org.freedesktop.DBus.Local"
#define LOCAL_PATH "/org/freedesktop/DBus/Local"

static struct lane *lane_free(struct lane *lane) {
        if (!lane)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(lane->slots); i++)
                sd_bus_slot_unref(lane->slots[i]);
        if (lane->bus && lane->number > 0) {
                (void)sd_bus_set_exit_on_disconnect(lane->bus, false);
                (void)sd_bus_detach_event(lane->bus);
                sd_bus_close(lane->bus);
        }
        sd_bus_unref(lane->bus);
        free(lane);
        return NULL;
}

static int on_connected(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct lane *lane = userdata;

        lane->connected = true;
        /* From here on it is as the agent's own: if it is lost, so may be answers. */
        (void)sd_bus_set_exit_on_disconnect(lane->bus, true);
        lane->lanes->connected(lane->lanes->userdata);
        return 0;
}

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct lane *lane = userdata;

        if (lane->connected)
                return 0;
        log_warning("The system bus did not take another connection of the starter; some starts wait until "
                    "others are over");
        lane->lanes->extra = NULL;
        lane_free(lane);
        return 0;
}

static struct lane *lane_open(struct lanes *l) {
        static const struct {
                const char *member;
                sd_bus_message_handler_t handler;
        } signals[] = { { "Connected", on_connected }, { "Disconnected", on_disconnected } };
        struct lane *lane = calloc(1, sizeof(*lane));
        int r;

        if (!lane) {
                log_oom();
                return NULL;
        }
        *lane = (struct lane){ .lanes = l, .number = ++l->count };
        r = l->connect(&lane->bus, l->userdata);
        if (r >= 0)
                r = sd_bus_set_connected_signal(lane->bus, true);
        for (size_t i = 0; i < ELEMENTSOF(signals) && r >= 0; i++)
                r = sd_bus_match_signal_async(lane->bus, &lane->slots[i], LOCAL, LOCAL_PATH, LOCAL,
                                              signals[i].member, signals[i].handler, NULL, lane);
        if (r >= 0)
                r = sd_bus_start(lane->bus);
        if (r >= 0)
                r = sd_bus_attach_event(lane->bus, sd_bus_get_event(l->own.bus), SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                return lane;
        log_full(LOG_WARNING, r, NULL,
                 "Cannot open another connection to the system bus; some starts wait until others are over");
        return lane_free(lane);
}

void lanes_init(struct lanes *l, sd_bus *own, int (*connect)(sd_bus **ret, void *userdata),
                void (*connected)(void *userdata), void *userdata) {
        *l = (struct lanes){ .own = { .lanes = l, .bus = sd_bus_ref(own), .connected = true },
                             .connect = connect,
                             .connected = connected,
                             .userdata = userdata };
}

void lanes_done(struct lanes *l) {
        l->extra = lane_free(l->extra);
        l->leaving = lane_free(l->leaving);
        l->own.bus = sd_bus_unref(l->own.bus);
}

struct lane *lanes_pick(struct lanes *l) {
        if (l->own.jobs < LANE_JOBS)
                return &l->own;
        if (l->extra && l->extra->jobs >= LANE_JOBS && !l->leaving) {
                if (l->extra->calls > 0)
                        l->leaving = l->extra;
                else
                        lane_free(l->extra);
                l->extra = NULL;
        }
        if (!l->extra)
                l->extra = lane_open(l);
        return l->extra && l->extra->connected && l->extra->jobs < LANE_JOBS ? l->extra : NULL;
}

void lane_called(struct lane *lane) {
        lane->calls++;
        lane->jobs++;
}

void lane_answered(struct lane *lane, bool job) {
        struct lanes *l = lane->lanes;

        lane->calls--;
        lane->jobs -= !job;
        if (lane == l->leaving && lane->calls == 0)
                l->leaving = lane_free(lane);
}

void lanes_job_over(struct lanes *l, uint64_t number) {
        struct lane *const all[] = { &l->own, l->extra, l->leaving };

        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                if (all[i] && all[i]->number == number)
                        all[i]->jobs--;
}
