/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for usage. Invariant: one question is under way at a time, and an answer is of that question's
 * units. */
#include "agentd/telemetry/sampling-usage.h"

#include <string.h>

#include "agentd/core/manager.h"
#include "agentd/observe/observer.h"
#include "agentd/observe/records.h"
#include "agentd/probe/probe.h"
#include "lib/base/log.h"
#include "lib/base/unitname.h"

struct question {
        size_t n;
        struct {
                char unit[UNIT_NAME_MAX];
                uint64_t cgroup_id;
        } units[OBSERVE_USAGE_UNITS_MAX];
};

struct sampling_usage {
        struct manager *manager;
        struct probe *probe;
        struct question *wanted, *asked; /* NULL: nothing yet; it is not under way */
        sd_bus_slot *slot;
        struct records *records;
};

int sampling_usage_new(struct manager *m, struct probe *probe, struct sampling_usage **ret) {
        struct sampling_usage *u = calloc(1, sizeof(*u));

        if (!u)
                return -ENOMEM;
        u->manager = m;
        u->probe = probe;
        *ret = u;
        return 0;
}

static void end_question(struct sampling_usage *u) {
        u->slot = sd_bus_slot_unref(u->slot);
        records_free(u->records);
        u->records = NULL;
        free(u->asked);
        u->asked = NULL;
}

void sampling_usage_free(struct sampling_usage *u) {
        if (!u)
                return;
        end_question(u);
        free(u->wanted);
        free(u);
}

void sampling_usage_want(struct sampling_usage *u, const char *unit, uint64_t cgroup_id) {
        if (!u->wanted && !(u->wanted = calloc(1, sizeof(*u->wanted))))
                return;
        if (u->wanted->n == OBSERVE_USAGE_UNITS_MAX)
                return;
        snprintf(u->wanted->units[u->wanted->n].unit, UNIT_NAME_MAX, "%s", unit);
        u->wanted->units[u->wanted->n++].cgroup_id = cgroup_id;
}

static void on_record(int r, const struct stream_item *item, void *userdata) {
        struct sampling_usage *u = userdata;

        if (!item)
                end_question(u);
        else if (item->type == STREAM_USAGE && item->usage.index < u->asked->n)
                probe_note_usage(u->probe, u->asked->units[item->usage.index].cgroup_id,
                                 &(struct probe_usage){ .read_bytes = item->usage.read_bytes,
                                                        .write_bytes = item->usage.write_bytes,
                                                        .block_read_bytes = item->usage.block_read_bytes,
                                                        .block_write_bytes = item->usage.block_write_bytes });
}

static void on_pipe(int r, const char *error, int fd, void *userdata) {
        struct sampling_usage *u = userdata;

        u->slot = sd_bus_slot_unref(u->slot);
        if (r >= 0)
                r = records_new(u->manager->event, fd, on_record, u, &u->records);
        if (r < 0) {
                log_full(LOG_DEBUG, r, NULL, "Cannot learn what executors have read and written");
                end_question(u);
        }
}

void sampling_usage_ask(struct sampling_usage *u) {
        const char *names[OBSERVE_USAGE_UNITS_MAX];

        if (u->asked && u->wanted)
                u->wanted->n = 0; /* the next round wants them anew */
        if (u->asked || !u->wanted)
                return;
        u->asked = TAKE_PTR(u->wanted);
        for (size_t i = 0; i < u->asked->n; i++)
                names[i] = u->asked->units[i].unit;
        if (observer_usage(u->manager->observer, names, u->asked->n, on_pipe, u, &u->slot) < 0)
                end_question(u);
}
