/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what the thread works on (struct desk) is the thread's while busy is set, and the loop's else.
 */
#include "agentd/device/gpu-watch.h"

#include <stdio.h>
#include <string.h>

#include "agentd/device/gpu-health.h"
#include "agentd/device/nvml.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/worker.h"
#include "lib/wire/messages.h"

#define EVENTS_MAX 16u
/* How long the thread waits for events before it looks whether there is something else to do. */
#define WAIT_MSEC 1000u
/* Without a library or a driver: so many times the pace between two attempts. */
#define RARELY 12u
/* The library and the kernel's log tell of the same Xid. */
#define SAME_USEC (5 * USEC_PER_SEC)
/* For how long a host is said to have had an Xid that it gets over. */
#define NOTED_USEC (3600 * USEC_PER_SEC)

enum task {
        TASK_LOOK,
        TASK_WAIT
};

struct desk {
        char library[256];
        struct nvml *nvml;
        enum task task;
        int r;
        char why[192];
        struct gpu_state states[GPU_STATES_MAX];
        size_t n_states;
        struct nvml_event events[EVENTS_MAX];
        size_t n_events;
        struct gpu_watch *watch; /* the loop's business only */
};

/* What is remembered of a GPU between looks. */
struct memory {
        char uuid[96];
        struct gpu_health health;
        enum gpu_severity told;
        char text[GPU_HEALTH_TEXT_MAX];
        uint64_t busy_usec, xids, last_xid, last_xid_boot;
        bool seen, judged;
};

struct gpu_watch {
        sd_event *event;
        sd_event_source *timer;
        struct gpu_watch_options options;
        struct gpu_watch_ops ops;
        void *userdata;
        struct worker *worker;
        struct desk *desk;
        bool busy, hung, settled, look_due;
        bool answered; /* once */
        unsigned skip; /* looks to leave out */
        uint64_t busy_since, looked_boot;
        bool up, events; /* the library is there; it tells of events */
        char problem[192];
        struct gpu_state *states; /* the latest */
        size_t n_states;
        struct memory *memories;
        size_t n_memories;
};

/* ---- in the thread ---- */

static void run_look(struct desk *d) {
        d->r = d->nvml ? 0 : nvml_open(d->library, &d->nvml, d->why, sizeof(d->why));
        if (d->r < 0)
                return;
        d->r = nvml_read(d->nvml, d->states, d->n_states);
        if (d->r >= 0) {
                d->n_states = (size_t)d->r;
                return;
        }
        snprintf(d->why, sizeof(d->why), "NVML does not list the GPUs");
        nvml_close(TAKE_PTR(d->nvml)); /* the driver may have been exchanged: begin anew */
}

static void run_wait(struct desk *d) {
        d->n_events = 0;
        d->r = nvml_wait(d->nvml, WAIT_MSEC, &d->events[0]);
        while (d->r > 0 && ++d->n_events < EVENTS_MAX)
                d->r = nvml_wait(d->nvml, 0, &d->events[d->n_events]);
}

static void run_in_thread(void *data) {
        struct desk *d = data;

        if (d->task == TASK_LOOK)
                run_look(d);
        else
                run_wait(d);
}

static void desk_free(void *data) {
        struct desk *d = data;

        if (d)
                nvml_close(d->nvml);
        free(d);
}

/* ---- what was seen ---- */

static struct memory *remember_gpu(struct gpu_watch *w, const char *uuid) {
        struct memory *m;

        for (size_t i = 0; i < w->n_memories; i++)
                if (strcmp(w->memories[i].uuid, uuid) == 0)
                        return w->memories + i;
        if (w->n_memories == GPU_STATES_MAX)
                return NULL;
        m = w->memories + w->n_memories++;
        *m = (struct memory){};
        snprintf(m->uuid, sizeof(m->uuid), "%s", uuid);
        return m;
}

static void tell_condition(struct gpu_watch *w, const char *subject, enum gpu_severity severity,
                           const char *text, uint64_t for_usec) {
        if (w->ops.condition)
                w->ops.condition(subject, severity, text, for_usec, w->userdata);
}

static void describe_gpu(const struct gpu_state *s, char *buf, size_t size) {
        snprintf(buf, size, "GPU %u (%s, %s)", s->index, s->model, s->pci);
}

static void count_state(struct gpu_watch *w, struct gpu_state *s, uint64_t elapsed) {
        struct memory *m = remember_gpu(w, s->uuid);

        if (!m)
                return;
        m->seen = true;
        if (s->values[GPU_UTILIZATION] != GPU_UNKNOWN)
                m->busy_usec += elapsed / 1000 * s->values[GPU_UTILIZATION];
        s->values[GPU_BUSY_USEC] = s->values[GPU_UTILIZATION] == GPU_UNKNOWN ? GPU_UNKNOWN : m->busy_usec;
        s->values[GPU_XIDS] = m->xids;
        s->values[GPU_LAST_XID] = m->last_xid;
}

static void judge_gpu(struct gpu_watch *w, const struct gpu_state *s) {
        char verdict[GPU_HEALTH_TEXT_MAX], name[160], text[sizeof(verdict) + sizeof(name) + 2];
        struct memory *m = remember_gpu(w, s->uuid);
        enum gpu_severity severity;

        if (!m || s->mig[0]) /* a part is as well as its GPU */
                return;
        severity = gpu_health_judge(&m->health, s, verdict);
        /* The first verdict is told if it is a good one, too: an agent before this one may have told another.
         */
        if (m->judged && severity == m->told && strcmp(verdict, m->text) == 0)
                return;
        m->judged = true;
        m->told = severity;
        memcpy(m->text, verdict, sizeof(m->text));
        describe_gpu(s, name, sizeof(name));
        snprintf(text, sizeof(text), "%s: %s", name, verdict);
        tell_condition(w, s->uuid, severity, severity == GPU_FINE ? "" : text, 0);
}

/* Whether these are the same things to schedule. */
static bool same_inventory(const struct gpu_state *a, size_t n_a, const struct gpu_state *b, size_t n_b) {
        for (size_t i = 0; n_a == n_b && i < n_a; i++)
                if (strcmp(a[i].uuid, b[i].uuid) != 0 || strcmp(a[i].mig, b[i].mig) != 0 ||
                    a[i].cut != b[i].cut || a[i].links != b[i].links ||
                    a[i].values[GPU_MEMORY_TOTAL] != b[i].values[GPU_MEMORY_TOTAL])
                        return false;
        return n_a == n_b;
}

static void tell_inventory(struct gpu_watch *w, bool news) {
        if (w->settled && !news)
                return;
        w->settled = true;
        if (w->ops.inventory)
                w->ops.inventory(w->userdata);
}

static int take_states(struct gpu_watch *w) {
        const struct desk *d = w->desk;
        uint64_t now = now_boot(), elapsed = w->looked_boot > 0 ? usec_sub(now, w->looked_boot) : 0;
        struct gpu_state *states = reallocarray(NULL, d->n_states + 1, sizeof(*states));
        bool news;

        if (!states)
                return -ENOMEM;
        memcpy(states, d->states, d->n_states * sizeof(*states));
        news = !same_inventory(w->states, w->n_states, states, d->n_states);
        free(w->states);
        w->states = states;
        w->n_states = d->n_states;
        w->looked_boot = now;
        for (size_t i = 0; i < w->n_memories; i++)
                w->memories[i].seen = false;
        for (size_t i = 0; i < w->n_states; i++)
                count_state(w, states + i, elapsed);
        /* Those that are gone: parts that were put together again, a GPU that was taken out. */
        for (size_t i = 0; i < w->n_memories;)
                if (w->memories[i].seen)
                        i++;
                else {
                        if (w->memories[i].told != GPU_FINE)
                                tell_condition(w, w->memories[i].uuid, GPU_FINE, "", 0);
                        w->memories[i] = w->memories[--w->n_memories];
                }
        tell_inventory(w, news);
        for (size_t i = 0; i < w->n_states; i++)
                judge_gpu(w, w->states + i);
        return 0;
}

/* ---- Xids ---- */

static const struct gpu_state *find_gpu(const struct gpu_watch *w, const char *uuid, const char *pci) {
        for (size_t i = 0; i < w->n_states; i++)
                if (!w->states[i].mig[0] &&
                    (uuid ? strcmp(w->states[i].uuid, uuid) == 0 : strcmp(w->states[i].pci, pci) == 0))
                        return w->states + i;
        return NULL;
}

static void tell_fault(struct gpu_watch *w, const struct gpu_state *s, const char *pci, uint32_t instance,
                       const char *text) {
        char *uuids[GPU_STATES_MAX + 1];
        size_t n = 0;

        if (!w->ops.fault)
                return;
        for (size_t i = 0; s && i < w->n_states; i++) {
                struct gpu_state *x = w->states + i;
                if (x == s ||
                    (strcmp(x->parent, s->uuid) == 0 && (instance == UINT32_MAX || x->instance == instance)))
                        uuids[n++] = x->uuid;
        }
        uuids[n] = NULL;
        w->ops.fault(uuids, pci, text, w->userdata);
}

/* s NULL: the library does not know the GPU. */
static void on_xid(struct gpu_watch *w, const struct gpu_state *s, const char *pci, uint32_t number,
                   uint32_t instance) {
        const struct xid *x = xid_find(number);
        struct memory *m = s ? remember_gpu(w, s->uuid) : NULL;
        enum gpu_severity severity = xid_severity(x);
        char name[160], text[384], subject[128];
        uint64_t now = now_boot();

        if (m && m->last_xid == number && usec_sub(now, m->last_xid_boot) < SAME_USEC)
                return;
        if (m) {
                m->last_xid = number;
                m->last_xid_boot = now;
                m->xids++;
        }
        if (s)
                describe_gpu(s, name, sizeof(name));
        else
                snprintf(name, sizeof(name), "GPU at %s", pci);
        snprintf(text, sizeof(text), "%s: Xid %u, %s: %s", name, number, x->text, xid_advice(x));
        if (severity == GPU_FINE || !w->ops.condition) /* a condition is logged where it is told */
                log_notice("%s", text);
        snprintf(subject, sizeof(subject), "%s Xid %u", s ? s->uuid : pci, number);
        if (severity != GPU_FINE)
                tell_condition(w, subject, severity, text,
                               severity == GPU_DRAIN ? USEC_INFINITY : NOTED_USEC);
        if (x->action != XID_IGNORE)
                tell_fault(w, s, pci, instance, text);
        if (severity == GPU_DRAIN)
                w->look_due = true;
}

void gpu_watch_kmsg(struct gpu_watch *w, const char *line) {
        struct xid_line x;

        if (xid_parse_line(line, &x))
                on_xid(w, find_gpu(w, NULL, x.pci), x.pci, x.xid, UINT32_MAX);
}

/* ---- the round ---- */

static void look_done(void *data);

static void submit(struct gpu_watch *w, enum task task) {
        w->desk->task = task;
        w->busy = true;
        w->busy_since = now_boot();
        if (task == TASK_LOOK)
                w->look_due = false;
        if (worker_submit(w->worker, run_in_thread, look_done, w->desk) < 0)
                w->busy = false; /* again with the next tick */
}

static void looked(struct gpu_watch *w) {
        struct desk *d = w->desk;

        if (d->r < 0) {
                bool was_up = w->up;
                w->up = w->events = false;
                w->skip = RARELY;
                if (strcmp(w->problem, d->why) != 0)
                        log_full(was_up ? LOG_WARNING : LOG_DEBUG, 0, NULL,
                                 "NVIDIA's GPUs cannot be asked: %s", d->why);
                memcpy(w->problem, d->why, sizeof(w->problem));
                tell_inventory(w, false);
                return;
        }
        if (!w->up)
                log_info("NVIDIA's management library is there; GPUs and parts of GPUs: %zu", d->n_states);
        w->problem[0] = 0;
        w->up = true;
        if (!w->n_states)
                w->events = true; /* until it says that it has none */
        if (take_states(w) < 0)
                log_oom();
        else if (w->ops.looked)
                w->ops.looked(w->userdata);
}

static void waited(struct gpu_watch *w) {
        const struct desk *d = w->desk;

        w->events = d->r >= 0;
        for (size_t i = 0; i < d->n_events; i++) {
                const struct nvml_event *e = d->events + i;
                const struct gpu_state *s = find_gpu(w, e->uuid, NULL);
                on_xid(w, s, s ? s->pci : "an unknown address", e->xid, e->instance);
        }
}

static void look_done(void *data) {
        struct desk *d = data;
        struct gpu_watch *w = d->watch;

        w->busy = false;
        if (w->hung)
                log_notice("NVIDIA's management library answers again");
        /* With the first answer as well: an agent before this one may have given up. */
        if (w->hung || !w->answered)
                tell_condition(w, "nvml", GPU_FINE, "", 0);
        w->hung = false;
        w->answered = true;
        if (d->task == TASK_LOOK)
                looked(w);
        else
                waited(w);
        if (w->look_due)
                submit(w, TASK_LOOK);
        else if (w->up && w->events)
                submit(w, TASK_WAIT);
}

static void give_up(struct gpu_watch *w) {
        char text[256];

        w->hung = true;
        snprintf(text, sizeof(text),
                 "NVIDIA's management library has not answered for %llu s: a GPU or its driver hangs",
                 (unsigned long long)(usec_sub(now_boot(), w->busy_since) / USEC_PER_SEC));
        snprintf(w->problem, sizeof(w->problem), "%.*s", (int)sizeof(w->problem) - 1, text);
        tell_condition(w, "nvml", GPU_DRAIN, text, 0);
        tell_inventory(w, false);
}

static uint64_t patience(const struct gpu_watch *w) {
        return w->options.hang_usec + (w->desk->task == TASK_WAIT ? WAIT_MSEC * USEC_PER_MSEC : 0);
}

static int on_time(sd_event_source *s, uint64_t usec, void *userdata) {
        struct gpu_watch *w = userdata;

        (void)sd_event_source_set_time_relative(s, MIN(w->options.look_usec, w->options.hang_usec));
        (void)sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        if (w->busy && !w->hung && usec_sub(now_boot(), w->busy_since) >= patience(w))
                give_up(w);
        if (w->hung)
                return 0;
        if (!w->up && w->skip > 0) {
                w->skip--;
                return 0;
        }
        w->look_due = true;
        if (!w->busy)
                submit(w, TASK_LOOK);
        return 0;
}

/* ---- who asks ---- */

bool gpu_watch_settled(const struct gpu_watch *w) {
        return w->settled;
}

size_t gpu_watch_devices(const struct gpu_watch *w, const struct gpu_state **ret) {
        *ret = w->states;
        return w->n_states;
}

const char *gpu_watch_problem(const struct gpu_watch *w) {
        return w->problem;
}

static void add_known(uint64_t *sum, uint64_t value) {
        if (value != GPU_UNKNOWN)
                *sum = *sum == TELEMETRY_UNKNOWN ? value : *sum + value;
}

bool gpu_listed(const char *uuids, const char *uuid) {
        size_t l = strlen(uuid);

        for (const char *p = l > 0 ? strstr(uuids, uuid) : NULL; p; p = strstr(p + 1, uuid))
                if ((p == uuids || p[-1] == ' ') && (p[l] == 0 || p[l] == ' '))
                        return true;
        return false;
}

const struct gpu_process *gpu_stray(const struct gpu_state *s, uint32_t min_uid) {
        for (size_t i = 0; i < s->n_processes; i++) {
                const struct gpu_process *p = s->processes + i;
                if (!*p->unit && p->uid != UINT32_MAX && p->uid >= min_uid)
                        return p;
        }
        return NULL;
}

void gpu_watch_fill(const struct gpu_watch *w, const char *uuids, const char *unit,
                    uint64_t values[static _TELEMETRY_MAX]) {
        uint64_t utilization = TELEMETRY_UNKNOWN, measured = 0, used = TELEMETRY_UNKNOWN,
                 own = TELEMETRY_UNKNOWN, gpus = 0;

        for (size_t i = 0; i < w->n_states; i++) {
                const struct gpu_state *s = w->states + i;
                for (size_t k = 0; unit && k < s->n_processes; k++)
                        if (strcmp(s->processes[k].unit, unit) == 0)
                                add_known(&own, s->processes[k].memory);
                if (!uuids || !gpu_listed(uuids, s->uuid))
                        continue;
                gpus++;
                measured += s->values[GPU_UTILIZATION] != GPU_UNKNOWN;
                add_known(&utilization, s->values[GPU_UTILIZATION]);
                add_known(&used, s->values[GPU_MEMORY_USED]);
                add_known(&values[TELEMETRY_GPU_POWER_MILLIWATTS], s->values[GPU_POWER_MILLIWATTS]);
                add_known(&values[TELEMETRY_GPU_BUSY_USEC], s->values[GPU_BUSY_USEC]);
        }
        if (uuids && *uuids)
                values[TELEMETRY_GPUS] = gpus;
        if (measured > 0)
                values[TELEMETRY_GPU_UTILIZATION] = utilization / measured;
        /* What its own processes have, where the driver says that; else all that is used on its GPUs. */
        values[TELEMETRY_GPU_MEMORY_BYTES] = own != TELEMETRY_UNKNOWN ? own : used;
}

/* ---- life ---- */

int gpu_watch_new(sd_event *event, const struct gpu_watch_options *options, const struct gpu_watch_ops *ops,
                  void *userdata, struct gpu_watch **ret) {
        _cleanup_(gpu_watch_free_p) struct gpu_watch *w = calloc(1, sizeof(*w));
        int r;

        if (!w)
                return -ENOMEM;
        w->event = sd_event_ref(event);
        w->options = *options;
        w->ops = *ops;
        w->userdata = userdata;
        w->desk = calloc(1, sizeof(*w->desk));
        w->memories = calloc(GPU_STATES_MAX, sizeof(*w->memories));
        if (!w->desk || !w->memories)
                return -ENOMEM;
        w->desk->watch = w;
        snprintf(w->desk->library, sizeof(w->desk->library), "%s", options->library);
        if ((r = worker_new_deep(event, &w->worker)) < 0 ||
            (r = sd_event_add_time_relative(event, &w->timer, CLOCK_BOOTTIME,
                                            MIN(options->look_usec, options->hang_usec), 0, on_time, w)) < 0)
                return r;
        submit(w, TASK_LOOK);
        *ret = TAKE_PTR(w);
        return 0;
}

void gpu_watch_free(struct gpu_watch *w) {
        if (!w)
                return;
        sd_event_source_disable_unref(w->timer);
        if (w->hung || (w->busy && usec_sub(now_boot(), w->busy_since) > 2 * USEC_PER_SEC))
                worker_abandon(w->worker, desk_free, w->desk);
        else {
                worker_free(w->worker);
                desk_free(w->desk);
        }
        free(w->states);
        free(w->memories);
        sd_event_unref(w->event);
        free(w);
}
