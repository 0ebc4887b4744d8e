/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs that a job's executors here share. Invariant: what a unit may open is what the executors of its
 * job on this host have been given, no more: when one of them ends, its GPUs are taken from the others before
 * anybody is told that they are free. */
#include <stdlib.h>
#include <string.h>

#include "agentd/executors/units-internal.h"

static char *join_uuids(char *const *list) {
        size_t size = 1, l = 0;
        char *text;

        for (char *const *g = list; g && *g; g++)
                size += strlen(*g) + 1;
        text = malloc(size);
        if (!text)
                return NULL;
        *text = 0;
        for (char *const *g = list; g && *g; g++)
                l += (size_t)sprintf(text + l, "%s%s", l ? " " : "", *g);
        return text;
}

int devices_own(struct executor *e, const struct start_order *order, char *const *environment) {
        const char *gpus = order ? order->extra.gpus : environment_find(environment, "PRIMUS_GPUS");

        e->rdma = order ? order->extra.rdma > 0 : environment_find(environment, "PRIMUS_RDMA") != NULL;
        if (!gpus || !*gpus || e->gpus)
                return 0;
        e->gpus = strdup(gpus);
        if (!e->gpus)
                return -ENOMEM;
        e->open_gpus = order ? join_uuids(order->gpus) : NULL; /* a unit that was found is told anew */
        return order && !e->open_gpus ? -ENOMEM : 0;
}

/* uuids are of one length each, and none is the beginning of another. */
static bool has(const char *list, const char *uuid) {
        return list && strstr(list, uuid);
}

void units_gpu_fault(struct units *u, const char *uuid, const char *text) {
        struct executor *e, *next;

        HASH_ITER (hh, u->executors, e, next)
                if (e->state < EXECUTOR_ENDED && has(e->gpus, uuid)) {
                        free(e->fault);
                        e->fault = strdup(text);
                        log_executor(e, LOG_NOTICE, "%s: %s", e->unit, text);
                }
}

char *devices_blame(const struct executor *e, const char *detail) {
        char *text;

        if (!e->fault || strcmp(e->exit.result, "success") == 0 || e->exit.stop_requested ||
            asprintf(&text, "%s%s%s", e->fault, *detail ? "; " : "", detail) < 0)
                return NULL;
        return text;
}

static void on_told(sd_bus_message *reply, void *userdata) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (e && !sd_bus_error_has_name(e, "org.freedesktop.systemd1.NoSuchUnit"))
                log_warning("systemd did not change which GPUs an executor may open: %s", e->message);
}

static int tell_devices(const struct executor *e, char *const *gpus) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct units *u = e->units;
        int r = starter_message(u->systemd, "SetDevices", &m);

        if (r < 0 || (r = sd_bus_message_append(m, "s", e->unit)) < 0 ||
            (r = sd_bus_message_append_strv(m, (char **)gpus)) < 0 ||
            (r = sd_bus_message_append(m, "b", (int)e->rdma)) < 0)
                return r;
        return systemd_call(u->systemd, m, false, on_told, NULL);
}

/* In the order of the inventory: the same GPUs are the same text. */
static size_t shared_gpus(const struct job *j, char *list[static LINK_GPUS_MAX + 1]) {
        const struct inventory *v = j->units->options.inventory;
        const struct executor *e, *next;
        size_t n = 0;

        for (size_t i = 0; v && i < v->n_gpus && n < LINK_GPUS_MAX; i++) {
                bool given = false;

                HASH_ITER (hh, j->units->executors, e, next)
                        given |= e->job == j && has(e->gpus, v->gpus[i].uuid);
                if (given)
                        list[n++] = v->gpus[i].uuid;
        }
        list[n] = NULL;
        return n;
}

static bool may_open_all(const struct executor *e, char *const *gpus) {
        for (; e->open_gpus && *gpus; gpus++)
                if (!strstr(e->open_gpus, *gpus))
                        return false;
        return e->open_gpus;
}

void devices_share(struct job *j, bool gone) {
        char *list[LINK_GPUS_MAX + 1];
        _cleanup_free_ char *text = NULL;
        struct executor *e, *next;

        if (j->units->closing || shared_gpus(j, list) == 0)
                return;
        text = join_uuids(list);
        if (!text) {
                log_oom();
                return;
        }
        HASH_ITER (hh, j->units->executors, e, next) {
                if (e->job != j || !e->gpus || !e->submitted)
                        continue;
                /* masterd names also those of executors that are about to come: nothing to take back. */
                if (gone ? e->open_gpus && strcmp(e->open_gpus, text) == 0 : may_open_all(e, list))
                        continue;
                free(e->open_gpus);
                e->open_gpus = strdup(text);
                if (!e->open_gpus || tell_devices(e, list) < 0)
                        log_executor(e, LOG_WARNING, "Cannot change which GPUs %s may open", e->unit);
        }
}
