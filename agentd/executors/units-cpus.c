/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs that executors have for themselves. Invariant: AllowedCPUs= of everybody else here leaves them out,
 * from before the unit that owns them begins until after it has ended. */
#include <stdlib.h>
#include <string.h>

#include "agentd/executors/units-internal.h"
#include "lib/base/cpulist.h"
#include "lib/base/try.h"

static bool any(const uint64_t *bits) {
        uint64_t all = 0;

        for (size_t i = 0; i < CPU_WORDS; i++)
                all |= bits[i];
        return all;
}

/* What is left for those that share; all of it when nobody has CPUs of its own. */
static void shared(const struct units *u, uint64_t bits[static CPU_WORDS]) {
        uint64_t numa[CPU_WORDS];
        const struct executor *e, *next;

        memset(bits, 0, CPU_WORDS * sizeof(*bits));
        for (char **l = u->options.inventory ? u->options.inventory->numa : NULL; l && *l; l++)
                for (size_t i = 0; cpulist_parse(*l, numa, CPU_WORDS) == 0 && i < CPU_WORDS; i++)
                        bits[i] |= numa[i];
        HASH_ITER (hh, u->executors, e, next)
                for (size_t i = 0; e->cpus && i < CPU_WORDS; i++)
                        bits[i] &= ~e->cpus[i];
}

char *cpus_shared(const struct units *u) {
        uint64_t bits[CPU_WORDS];

        if (u->n_own_cpus == 0)
                return NULL;
        shared(u, bits);
        return any(bits) ? cpulist_format(bits, CPU_WORDS) : NULL; /* else there is nowhere to keep them */
}

static void on_told(sd_bus_message *reply, void *userdata) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (e && !sd_bus_error_has_name(e, "org.freedesktop.systemd1.NoSuchUnit"))
                log_warning("systemd did not keep an executor off the CPUs of another: %s", e->message);
}

static int tell_allowed(struct units *u, const char *unit, const char *list) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(starter_message(u->systemd, "SetCPUs", &m));
        TRY(sd_bus_message_append(m, "ss", unit, list));
        return systemd_call(u->systemd, m, false, on_told, NULL);
}

static void tell_others(struct units *u) {
        _cleanup_free_ char *list = NULL;
        uint64_t bits[CPU_WORDS];
        struct executor *e, *next;

        shared(u, bits);
        if (!any(bits))
                return;
        list = cpulist_format(bits, CPU_WORDS);
        if (!list) {
                log_oom();
                return;
        }
        HASH_ITER (hh, u->executors, e, next)
                if (!e->cpus && e->submitted && tell_allowed(u, e->unit, list) < 0)
                        log_executor(e, LOG_WARNING, "Cannot keep %s off the CPUs of another executor",
                                     e->unit);
}

int cpus_own(struct executor *e, const char *list, bool known) {
        uint64_t bits[CPU_WORDS];

        if (!list || !*list || e->cpus || cpulist_parse(list, bits, CPU_WORDS) < 0)
                return 0;
        e->cpus = malloc(sizeof(bits));
        if (!e->cpus)
                return -ENOMEM;
        memcpy(e->cpus, bits, sizeof(bits));
        e->units->n_own_cpus++;
        if (!known)
                tell_others(e->units);
        return 0;
}

void cpus_leave(struct executor *e) {
        if (!e->cpus)
                return;
        free(TAKE_PTR(e->cpus));
        e->units->n_own_cpus--;
        if (!e->units->closing)
                tell_others(e->units);
}
