/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: masterd knows the GPUs that we know: when they are others than it was told, the link is made
 * anew, and the registration tells it. Executors do not notice. */
#include "agentd/host/gpus.h"

#include <stdlib.h>
#include <string.h>

#include "agentd/core/manager.h"
#include "agentd/executors/units.h"
#include "agentd/host/conditions.h"
#include "agentd/host/hostwatch.h"
#include "agentd/link/link.h"
#include "lib/base/clock.h"

#define LIBRARY "libnvidia-ml.so.1"
#define LOOK_USEC (5 * USEC_PER_SEC)
/* The first call of all may wake every GPU of a host up, which takes a second or two for each. */
#define HANG_USEC (20 * USEC_PER_SEC)

struct gpus {
        struct manager *manager;
        struct gpu_watch *watch;
};

static void on_inventory(void *userdata) {
        struct gpus *g = userdata;
        struct manager *m = g->manager;
        const struct gpu_state *states;
        bool first = !m->link;

        if (gpu_watch_devices(g->watch, &states) > 0 && m->ops->load_inventory(m) < 0)
                return;
        m->ops->changed(m, "GPUs");
        if (first)
                m->ops->go_on(m);
        else
                link_again(m->link, "the host's GPUs are others than before");
}

/* The severities are the same, in the same order. */
static void on_condition(const char *subject, enum gpu_severity severity, const char *text, uint64_t for_usec,
                         void *userdata) {
        struct gpus *g = userdata;
        struct conditions *c = hostwatch_conditions(g->manager->watch);

        if (for_usec > 0)
                conditions_happened(c, CONDITION_GPU, subject, (enum condition_severity)severity, text,
                                    for_usec);
        else
                conditions_set(c, CONDITION_GPU, subject, (enum condition_severity)severity, text);
}

/* ---- who uses a GPU that was given away, outside of any executor ---- */

struct taking {
        const struct gpu_state *gpu;
        struct unit_facts facts; /* of the executor that has it */
        bool found;
};

static int find_taker(const char *unit, const struct unit_facts *facts, void *userdata) {
        struct taking *t = userdata;

        if (facts->state == EXECUTOR_RUNNING && facts->gpus && gpu_listed(facts->gpus, t->gpu->uuid)) {
                t->facts = *facts;
                t->found = true;
                return -ECANCELED;
        }
        return 0;
}

static void say_stray(struct manager *m, const struct taking *t, const struct gpu_process *p) {
        struct conditions *c = hostwatch_conditions(m->watch);
        char subject[CONDITION_SUBJECT_MAX + 1], text[CONDITION_TEXT_MAX + 1];

        snprintf(subject, sizeof(subject), "%.55s outside", t->gpu->uuid);
        if (!p) {
                conditions_set(c, CONDITION_GPU, subject, CONDITION_FINE, "");
                return;
        }
        snprintf(
                text, sizeof(text),
                "process %u (%s) of uid %u%s uses it outside of any executor, in %s; it is %s/%u's of job %u",
                p->pid, p->name, p->uid, p->uid == t->facts.uid ? ", the job's owner," : "", p->where,
                t->facts.id.role, t->facts.id.index, t->facts.id.job);
        conditions_set(c, CONDITION_GPU, subject, CONDITION_WARN, text);
}

static void on_looked(void *userdata) {
        struct manager *m = ((struct gpus *)userdata)->manager;
        const struct gpu_state *states;
        size_t n = gpu_watch_devices(((struct gpus *)userdata)->watch, &states);

        for (size_t i = 0; i < n; i++) {
                struct taking t = { .gpu = states + i };

                (void)units_visit(m->units, find_taker, &t);
                say_stray(m, &t, t.found ? gpu_stray(states + i, m->settings.serve.min_uid) : NULL);
        }
}

static void on_fault(char *const *uuids, const char *pci, const char *text, void *userdata) {
        struct manager *m = ((struct gpus *)userdata)->manager;

        for (char *const *u = uuids; *u; u++)
                units_gpu_fault(m->units, *u, text);
        for (size_t i = 0; !*uuids && i < m->inventory.n_gpus; i++)
                if (strcmp(m->inventory.gpus[i].pci, pci) == 0)
                        units_gpu_fault(m->units, m->inventory.gpus[i].uuid, text);
}

bool gpus_settled(const struct gpus *g) {
        return gpu_watch_settled(g->watch);
}

struct gpu_watch *gpus_watch(struct gpus *g) {
        return g->watch;
}

static void on_kernel_line(const char *line, void *userdata) {
        gpu_watch_kmsg(((struct gpus *)userdata)->watch, line);
}

int gpus_new(struct manager *m, struct gpus **ret) {
        static const struct gpu_watch_ops ops = {
                .inventory = on_inventory,
                .looked = on_looked,
                .condition = on_condition,
                .fault = on_fault,
        };
        static const struct gpu_watch_options options = {
                .library = LIBRARY,
                .look_usec = LOOK_USEC,
                .hang_usec = HANG_USEC,
        };
        struct gpus *g = calloc(1, sizeof(*g));
        int r;

        if (!g)
                return -ENOMEM;
        g->manager = m;
        r = gpu_watch_new(m->event, &options, &ops, g, &g->watch);
        if (r < 0) {
                free(g);
                return r;
        }
        hostwatch_gpu_lines(m->watch, on_kernel_line, g);
        *ret = g;
        return 0;
}

void gpus_free(struct gpus *g) {
        if (!g)
                return;
        gpu_watch_free(g->watch);
        free(g);
}
