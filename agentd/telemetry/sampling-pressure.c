/* SPDX-License-Identifier: Apache-2.0 */
/* Lack of memory and I/O, and whether it can be watched at all. Invariant: of each kind a unit has one
 * message to masterd and one line in the journal in TELL_USEC, the first at once; what comes between is added
 * up and told with the next. */
#include "agentd/telemetry/sampling-pressure.h"

#include <string.h>
#include <uthash.h>

#include "agentd/cgroup/pressure.h"
#include "agentd/core/manager.h"
#include "agentd/link/link.h"
#include "agentd/observe/observer.h"
#include "agentd/telemetry/sampling.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define TELL_USEC (10 * USEC_PER_SEC)

struct watched {
        struct sampling_pressure *pressures;
        char unit[UNIT_NAME_MAX];
        struct executor_id id;
        struct pressure *pressure;
        struct {
                uint64_t told_boot, amount; /* amount: not told yet */
        } kinds[_PRESSURE_KIND_MAX];
        UT_hash_handle hh;
};

struct sampling_pressure {
        struct manager *manager;
        struct watched *watched;
        bool said; /* that pressure cannot be watched here */
};

static void tell_pressure(struct watched *w, enum pressure_kind kind, uint64_t amount) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct manager *m = w->pressures->manager;
        int r;

        if (link_queued(m->link) > LINK_QUEUE_CAUTIOUS)
                return; /* as samples */
        r = link_message(m->link, false, "Pressure", &message);
        if (r == -ENOTCONN)
                return;
        if (r < 0 || (r = executor_id_append(message, &w->id)) < 0 ||
            (r = sd_bus_message_append(message, "st", pressure_kind_to_string(kind), amount)) < 0 ||
            (r = link_append_extra_empty(message)) < 0 || (r = link_send(m->link, message)) < 0)
                log_full(LOG_DEBUG, r, NULL, "Cannot tell masterd of an executor's pressure");
}

static void write_line(const struct watched *w, enum pressure_kind kind, uint64_t amount) {
        const struct log_fields fields = { .job = w->id.job, .unit = w->unit, .role = w->id.role };
        static const char *const texts[_PRESSURE_KIND_MAX] = {
                [PRESSURE_MEMORY_HIGH] = "was held back at its memory limit",
                [PRESSURE_MEMORY_MAX] = "ran into its memory limit",
                [PRESSURE_OOM] = "lost processes for lack of memory",
        };

        if (kind == PRESSURE_MEMORY || kind == PRESSURE_IO)
                log_full(LOG_INFO, 0, &fields, "%s stood still for %llu ms for lack of %s", w->unit,
                         (unsigned long long)(amount / USEC_PER_MSEC),
                         kind == PRESSURE_IO ? "disk bandwidth" : "memory");
        else
                log_full(kind == PRESSURE_OOM ? LOG_WARNING : LOG_INFO, 0, &fields, "%s %s (%llu times)",
                         w->unit, texts[kind], (unsigned long long)amount);
}

static void on_pressure(enum pressure_kind kind, uint64_t amount, void *userdata) {
        struct watched *w = userdata;
        uint64_t now = now_boot();

        w->kinds[kind].amount += amount;
        if (w->kinds[kind].told_boot > 0 && now - w->kinds[kind].told_boot < TELL_USEC)
                return;
        write_line(w, kind, w->kinds[kind].amount);
        tell_pressure(w, kind, w->kinds[kind].amount);
        sampling_push(w->pressures->manager->sampling, w->unit);
        w->kinds[kind].told_boot = now;
        w->kinds[kind].amount = 0;
}

/* Asked of the starter, who alone may write a unit's files. */
struct asked {
        struct sampling_pressure *pressures;
        enum pressure_kind kind;
        char unit[UNIT_NAME_MAX];
};

static void say_failure(struct sampling_pressure *p, int r) {
        /* -ENODEV, -ENOENT: it ended a moment ago, or the kernel has no such thing. */
        if (p->said || r == -ENODEV || r == -ENOENT)
                return;
        p->said = true;
        log_full(LOG_NOTICE, r, NULL,
                 "The kernel does not tell of executors' lack of memory and I/O as it happens");
}

static void on_file(int r, const char *error, int fd, void *userdata) {
        const struct asked *a = userdata;
        struct watched *w;

        HASH_FIND_STR(a->pressures->watched, a->unit, w);
        if (r >= 0 && w)
                r = pressure_watch(w->pressure, a->kind, fd);
        else
                close_fd(fd);
        if (r < 0)
                say_failure(a->pressures, r);
}

static void ask_pressure(struct watched *w, enum pressure_kind kind, const char *file) {
        struct asked *a = calloc(1, sizeof(*a));

        if (!a) {
                log_oom();
                return;
        }
        a->pressures = w->pressures;
        a->kind = kind;
        memcpy(a->unit, w->unit, sizeof(a->unit));
        (void)observer_open(w->pressures->manager->observer, w->unit, file, on_file, a, free, NULL);
}

void sampling_pressure_watch(struct sampling_pressure *p, const struct sampled *unit) {
        const struct settings *s = &p->manager->settings;
        const struct pressure_options options = { .window_usec = s->pressure_window_usec,
                                                  .memory_usec = s->memory_pressure_usec,
                                                  .io_usec = s->io_pressure_usec };
        struct watched *w;
        int r;

        HASH_FIND_STR(p->watched, unit->unit, w);
        if (w)
                return;
        w = calloc(1, sizeof(*w));
        if (!w || pressure_new(p->manager->event, &options, on_pressure, w, &w->pressure) < 0) {
                log_oom();
                free(w);
                return;
        }
        w->pressures = p;
        w->id = *unit->id;
        snprintf(w->unit, sizeof(w->unit), "%s", unit->unit);
        HASH_ADD_STR(p->watched, unit, w);
        r = pressure_watch_events(w->pressure, cgroup_fd(unit->cgroup));
        if (r < 0)
                say_failure(p, r);
        if (pressure_wanted(&options, PRESSURE_MEMORY))
                ask_pressure(w, PRESSURE_MEMORY, OBSERVE_FILE_MEMORY_PRESSURE);
        if (pressure_wanted(&options, PRESSURE_IO))
                ask_pressure(w, PRESSURE_IO, OBSERVE_FILE_IO_PRESSURE);
}

static void watched_free(struct sampling_pressure *p, struct watched *w) {
        HASH_DEL(p->watched, w);
        pressure_free(w->pressure);
        free(w);
}

void sampling_pressure_forget(struct sampling_pressure *p, const struct sampled *unit) {
        struct watched *w;

        HASH_FIND_STR(p->watched, unit->unit, w);
        if (w)
                watched_free(p, w);
}

int sampling_pressure_new(struct manager *m, struct sampling_pressure **ret) {
        struct sampling_pressure *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        p->manager = m;
        *ret = p;
        return 0;
}

void sampling_pressure_free(struct sampling_pressure *p) {
        struct watched *w, *next;

        if (!p)
                return;
        HASH_ITER (hh, p->watched, w, next)
                watched_free(p, w);
        free(p);
}
