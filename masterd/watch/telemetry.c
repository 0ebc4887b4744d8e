/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving telemetry. Invariants: a node tells of executors that it runs, and of no others; what it costs to
 * take a sample does not depend on how many there are. */
#include "masterd/watch/telemetry.h"

#include <math.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/wire/telemetry.h"
#include "masterd/core/manager.h"
#include "masterd/job/kept-series.h"
#include "masterd/watch/healing.h"
#include "masterd/watch/watch-parts.h"

/* The one whose attempt that is, if it runs on that node. */
static struct executor *executor_of(struct manager *m, const struct node *node,
                                    const struct executor_id *id) {
        struct executor *e = manager_attempt(m, id);

        return e && e->node == node && executor_state_holds(e->state) ? e : NULL;
}

static struct series_input input_of(const struct executor *e) {
        const struct telemetry_latest *l = &e->watch.telemetry->latest;

        return (struct series_input){ .before_usec = l->before_usec,
                                      .now_usec = l->now_usec,
                                      .before = l->before,
                                      .now = l->now,
                                      .cpu = (double)executor_role(e)->cpu_milli / 1000,
                                      .memory = executor_memory(e) };
}

/* Into the history of its role; one that leaves has none any more. */
static void remember(struct manager *m, struct executor *e, uint64_t now) {
        struct role *role = e->leaver.leaves ? NULL : e->job->roles + e->role;
        float values[_SERIES_MAX];
        struct series_input in;

        if (!role)
                return;
        if (!role->series && series_new(&m->watch->histories, role->spec->num > 1, &role->series) < 0)
                return;
        if (role->spec->num > 1)
                series_widen(role->series);
        in = input_of(e);
        series_derive(&in, values);
        series_add(role->series, now, values);
}

static int take(struct manager *m, struct executor *e, uint64_t boot, uint64_t now,
                const uint64_t values[static _TELEMETRY_MAX]) {
        struct telemetry *t = e->watch.telemetry;
        struct telemetry_latest *l;
        uint64_t gpu = values[TELEMETRY_GPU_BUSY_USEC];

        if (!t) {
                t = e->watch.telemetry = calloc(1, sizeof(*t));
                if (!t)
                        return -ENOMEM;
                t->gpu_busy_usec = TELEMETRY_UNKNOWN;
        }
        l = &t->latest;
        if (l->now_usec > 0 && boot < usec_add(l->now_usec, TELEMETRY_APART_USEC))
                return 0;
        if (gpu != TELEMETRY_UNKNOWN && t->gpu_busy_usec == TELEMETRY_UNKNOWN)
                t->gpu_busy_usec = gpu;
        else if (gpu != TELEMETRY_UNKNOWN && l->now[TELEMETRY_GPU_BUSY_USEC] != TELEMETRY_UNKNOWN)
                t->gpu_busy_usec =
                        usec_add(t->gpu_busy_usec, telemetry_growth(l->now[TELEMETRY_GPU_BUSY_USEC], gpu));
        l->before_usec = l->now_usec;
        memcpy(l->before, l->now, sizeof(l->before));
        l->now_usec = boot;
        l->received_boot = now;
        memcpy(l->now, values, sizeof(l->now));
        remember(m, e, now);
        healing_observe(m, e, now, values);
        return 0;
}

int telemetry_received(struct manager *m, struct node *node, sd_bus_message *message) {
        uint64_t boot, now = now_boot();
        struct telemetry_sample sample;
        unsigned n = 0;
        int r = sd_bus_message_read_basic(message, 't', &boot);

        if (r < 0)
                return r;
        if (boot == 0)
                return -EBADMSG;
        r = sd_bus_message_enter_container(message, 'a', TELEMETRY_SAMPLE_SIGNATURE);
        while (r >= 0 && (r = telemetry_sample_read(message, &sample)) > 0) {
                struct executor *e;
                if (++n > TELEMETRY_SAMPLES_MAX)
                        return -EBADMSG;
                if (!burst_admit(&node->bursts.samples, now, USEC_PER_SEC, TELEMETRY_NODE_MAX))
                        return 1;
                e = executor_of(m, node, &sample.id);
                if (e && take(m, e, boot, now, sample.values) < 0)
                        return log_oom();
        }
        return MIN(r, 0);
}

void telemetry_ended(struct executor *e) {
        free(e->watch.telemetry);
        e->watch.telemetry = NULL;
}

/* So many roles have the short range kept as well, which shows what came before the end. Elements of arrays,
 * of which there are thousands, have not. */
#define ROLES_IN_FULL 8u

/* What cannot be kept is not worth the job's end. */
static void keep_series(struct manager *m, const struct job *j, const struct role *role, uint64_t now) {
        bool coarse = j->spec->n_roles > ROLES_IN_FULL || j->element.array > 0;
        _cleanup_free_ uint8_t *points = NULL;
        size_t size = 0;

        if (!role->series || kept_series_write(role->series, now, coarse, &points, &size) < 0 || size == 0)
                return;
        store_put_series(m->store, &(struct series_record){ .job = j->number,
                                                            .role = role->spec->name,
                                                            .at_real = now_real(),
                                                            .points = { points, size } });
}

void telemetry_job_ended(struct manager *m, struct job *j) {
        uint64_t now = now_boot();

        for (size_t i = 0; i < j->spec->n_roles; i++) {
                keep_series(m, j, j->roles + i, now);
                series_free(j->roles[i].series);
                j->roles[i].series = NULL;
        }
}

const struct telemetry_latest *telemetry_of(const struct executor *e) {
        return e->watch.telemetry ? &e->watch.telemetry->latest : NULL;
}

bool telemetry_rates(const struct executor *e, float ret[static _SERIES_MAX]) {
        struct series_input in;

        if (!e->watch.telemetry) {
                for (size_t i = 0; i < _SERIES_MAX; i++)
                        ret[i] = NAN;
                return false;
        }
        in = input_of(e);
        series_derive(&in, ret);
        return true;
}

/* ---- totals ---- */

void telemetry_total_clear(struct telemetry_total *t) {
        *t = (struct telemetry_total){};
        for (size_t k = 0; k < _SERIES_MAX; k++)
                t->max[k] = NAN;
}

/* What the kernel holds it to, else what its role asks for; 0: neither. */
static double cpu_of(const struct executor *e) {
        uint64_t limit = e->watch.telemetry ? e->watch.telemetry->latest.now[TELEMETRY_CPU_LIMIT_USEC]
                                            : TELEMETRY_UNKNOWN;

        return limit != TELEMETRY_UNKNOWN ? (double)limit / USEC_PER_SEC
                                          : (double)executor_role(e)->cpu_milli / 1000;
}

static uint64_t memory_of(const struct executor *e) {
        uint64_t limit = e->watch.telemetry ? e->watch.telemetry->latest.now[TELEMETRY_MEMORY_LIMIT_BYTES]
                                            : TELEMETRY_UNKNOWN;

        return limit != TELEMETRY_UNKNOWN ? limit : executor_memory(e);
}

void telemetry_total_add(struct telemetry_total *t, const struct executor *e,
                         const float rates[static _SERIES_MAX]) {
        double cpu = cpu_of(e);
        uint64_t memory = memory_of(e);
        bool first = t->running == 0;

        t->running++;
        t->measured += e->watch.telemetry != NULL;
        t->gpus += executor_role(e)->gpus;
        t->cpu = cpu > 0 && (first || t->cpu > 0) ? t->cpu + cpu : 0;
        t->memory = memory > 0 && (first || t->memory > 0) ? t->memory + memory : 0;
        for (size_t k = 0; k < _SERIES_MAX; k++) {
                if (isnan(rates[k]))
                        continue;
                t->sum[k] += rates[k];
                t->n[k]++;
                if (isnan(t->max[k]) || rates[k] > t->max[k])
                        t->max[k] = rates[k];
        }
}
