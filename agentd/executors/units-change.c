/* SPDX-License-Identifier: Apache-2.0 */
/* What changes for executors that run: their limits, and who their peers are. Invariant: a memory limit is
 * never set below what is used, which would be the end of the executor. */
#include <inttypes.h>
#include <string.h>

#include "agentd/executors/units-internal.h"
#include "lib/base/format.h"
#include "lib/base/try.h"

/* ---- limits ---- */

struct limiting {
        struct units *units;
        char unit[UNIT_NAME_MAX];
        struct unit_limits limits;
        limits_handler handler;
        void *userdata;
        struct limiting *next, *prev;
};

static void limiting_free(struct limiting *l) {
        DL_DELETE(l->units->limiting, l);
        free(l);
}

void limitings_free(struct units *u) {
        while (u->limiting)
                limiting_free(u->limiting);
}

static void answer_limit(struct limiting *l, const char *error, const char *text) {
        l->handler(error, text, l->userdata);
        limiting_free(l);
}

static void on_set(sd_bus_message *reply, void *userdata) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);

        answer_limit(userdata, error ? LINK_ERROR_REFUSED : NULL, error ? error->message : NULL);
}

/* Whether any of the slice's limits is to be wider than the slice was told. */
static bool grows(const struct job *j) {
        const struct slice_limits *now = &j->limits, *told = &j->told;

        return j->told_known &&
               ((told->memory_max > 0 && (now->memory_max == 0 || now->memory_max > told->memory_max)) ||
                (told->cpu_usec_per_sec > 0 &&
                 (now->cpu_usec_per_sec == 0 || now->cpu_usec_per_sec > told->cpu_usec_per_sec)) ||
                (told->tasks_max > 0 && (now->tasks_max == 0 || now->tasks_max > told->tasks_max)));
}

static int set(struct limiting *l, struct executor *e) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const struct unit_limits *x = &l->limits;
        struct units *u = l->units;
        struct slice_limits *job = &e->job->limits;
        bool more;
        int r;

        job->memory_max = x->job.memory_max;
        if (x->has_more)
                *job = x->job;
        more = grows(e->job);
        /* The slice first where it grows, last where it shrinks. */
        if (more && e->job->sliced && (r = job_make_slice(e->job)) < 0)
                return r;
        TRY(starter_message(u->systemd, "SetLimits", &m));
        TRY(sd_bus_message_append(m, "s", l->unit));
        TRY(unit_limits_append(m, x));
        TRY(systemd_call(u->systemd, m, false, on_set, l));
        return !more && e->job->sliced ? job_make_slice(e->job) : 0;
}

static void on_memory(sd_bus_message *reply, void *userdata) {
        struct limiting *l = userdata;
        struct executor *e = executor_find_unit(l->units, l->unit);
        char used[FORMAT_SIZE_MAX], limit[FORMAT_SIZE_MAX], text[256];
        uint64_t bytes = 0;
        int r;

        if (!e || e->state >= EXECUTOR_STOPPING) {
                answer_limit(l, LINK_ERROR_UNKNOWN, "it has ended");
                return;
        }
        /* UINT64_MAX: without a controller nobody counts. */
        if (sd_bus_message_is_method_error(reply, NULL) ||
            sd_bus_message_read(reply, "v", "t", &bytes) <= 0 || bytes == UINT64_MAX)
                bytes = 0;
        if (l->limits.memory_max > 0 && bytes > l->limits.memory_max) {
                snprintf(text, sizeof(text), "%s/%u on %s uses %s now, more than %s", e->id.role, e->id.index,
                         l->units->options.node, format_size(bytes, used, sizeof(used)),
                         format_size(l->limits.memory_max, limit, sizeof(limit)));
                answer_limit(l, LINK_ERROR_REFUSED, text);
                return;
        }
        if (l->limits.check) {
                answer_limit(l, NULL, NULL);
                return;
        }
        r = set(l, e);
        if (r < 0)
                answer_limit(l, LINK_ERROR_REFUSED, strerror(-r));
}

int units_set_limits(struct units *u, const struct executor_id *id, const struct unit_limits *limits,
                     limits_handler handler, void *userdata) {
        struct executor *e = executor_find(u, id);
        _cleanup_free_ char *path = NULL;
        struct limiting *l;
        int r;

        if (!e || !e->submitted || e->state >= EXECUTOR_STOPPING)
                return -ENOENT;
        r = sd_bus_path_encode("/org/freedesktop/systemd1/unit", e->unit, &path);
        if (r < 0)
                return r;
        l = calloc(1, sizeof(*l));
        if (!l)
                return -ENOMEM;
        *l = (struct limiting){ .units = u, .limits = *limits, .handler = handler, .userdata = userdata };
        snprintf(l->unit, sizeof(l->unit), "%s", e->unit);
        DL_APPEND(u->limiting, l);
        r = systemd_get(u->systemd, path, "Service", "MemoryCurrent", on_memory, l);
        if (r < 0)
                limiting_free(l);
        return r;
}

/* ---- rendezvous ---- */

int units_set_rendezvous(struct units *u, const struct executor_id *id,
                         const struct rendezvous_order *order) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct executor *e = executor_find(u, id);

        if (!e || e->state >= EXECUTOR_STOPPING)
                return -ENOENT;
        if (order->epoch <= e->epoch)
                return 0; /* said again */
        TRY(starter_message(u->systemd, "SetRendezvous", &m));
        TRY(sd_bus_message_append(m, "s", e->unit));
        TRY(rendezvous_order_append(m, order));
        TRY(starter_send(u->systemd, m));
        e->epoch = order->epoch;
        log_executor(e, LOG_INFO, "%s: rendezvous epoch %" PRIu64, e->unit, order->epoch);
        return order->signal > 0 && e->state == EXECUTOR_RUNNING ? units_signal(u, id, (int)order->signal)
                                                                 : 0;
}

int units_append_epochs(struct units *u, sd_bus_message *m) {
        struct executor *e, *next;
        int r;

        TRY(sd_bus_message_open_container(m, 'e', "sv"));
        TRY(sd_bus_message_append(m, "s", "epochs"));
        TRY(sd_bus_message_open_container(m, 'v', "at"));
        TRY(sd_bus_message_open_container(m, 'a', "t"));
        HASH_ITER (hh, u->executors, e, next)
                if (e->state <= EXECUTOR_ENDING && (r = sd_bus_message_append(m, "t", e->epoch)) < 0)
                        return r;
        TRY(sd_bus_message_close_container(m));
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_close_container(m);
}
