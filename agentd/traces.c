/* SPDX-License-Identifier: Apache-2.0 */
/* Traces under way. Invariant: programs of a kind are in the kernel if and only if a trace of that kind has a
 * lease that is not over. */
#include "agentd/traces.h"

#include <malloc.h>
#include <string.h>
#include <utlist.h>

#include "agentd/probe/latency.h"
#include "agentd/unit-group.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/unitname.h"

#define LEASE_MAX_USEC (10 * USEC_PER_SEC)
/* In a row; then the executor is left alone for a moment, so that nobody traces it for ever. */
#define TRACE_MAX_USEC (605 * USEC_PER_SEC)
#define REST_USEC (60 * USEC_PER_SEC)

struct trace {
        enum latency_kind kind;
        struct executor_id id;
        uint32_t uid;
        uint64_t cgroup_id;
        uint64_t since_boot, until_boot;
        bool resting; /* it was on for too long; until_boot: may be again */
        struct trace *next, *prev;
};

struct traces {
        sd_event *event;
        struct units *units;
        sd_event_source *timer;
        struct latency *latencies[_LATENCY_KIND_MAX];
        unsigned n[_LATENCY_KIND_MAX]; /* that count */
        struct trace *list;
};

int traces_new(sd_event *event, struct units *units, struct traces **ret) {
        struct traces *t = calloc(1, sizeof(*t));

        if (!t)
                return -ENOMEM;
        t->event = sd_event_ref(event);
        t->units = units;
        *ret = t;
        return 0;
}

/* It does not count any more; the last one takes the programs along. */
static void stop(struct traces *t, struct trace *x) {
        if (x->resting)
                return;
        latency_remove(t->latencies[x->kind], x->cgroup_id);
        if (--t->n[x->kind] > 0)
                return;
        latency_free(t->latencies[x->kind]);
        t->latencies[x->kind] = NULL;
        (void)malloc_trim(0); /* the kernel's types were read to load them: some MB */
        log_info("Nobody traces %s any more; its programs are out of the kernel",
                 latency_kind_to_string(x->kind));
}

static void trace_free(struct traces *t, struct trace *x) {
        stop(t, x);
        DL_DELETE(t->list, x);
        free(x);
}

void traces_free(struct traces *t) {
        if (!t)
                return;
        while (t->list)
                trace_free(t, t->list);
        sd_event_source_disable_unref(t->timer);
        sd_event_unref(t->event);
        free(t);
}

void traces_ended(struct traces *t, const struct executor_id *id) {
        struct trace *x, *next;

        DL_FOREACH_SAFE (t->list, x, next)
                if (executor_id_equal(&x->id, id))
                        trace_free(t, x);
}

/* ---- leases ---- */

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata);

static int arm(struct traces *t) {
        uint64_t first = UINT64_MAX;
        struct trace *x;
        int r;

        DL_FOREACH (t->list, x)
                first = MIN(first, x->until_boot);
        if (first == UINT64_MAX)
                return 0;
        if (!t->timer)
                return sd_event_add_time(t->event, &t->timer, CLOCK_BOOTTIME, first, 50 * USEC_PER_MSEC,
                                         on_timer, t);
        r = sd_event_source_set_time(t->timer, first);
        return r < 0 ? r : sd_event_source_set_enabled(t->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        struct traces *t = userdata;
        uint64_t now = now_boot();
        struct trace *x, *next;

        DL_FOREACH_SAFE (t->list, x, next)
                if (x->until_boot <= now)
                        trace_free(t, x);
        return arm(t);
}

/* ---- the order ---- */

struct order {
        enum latency_kind kind;
        uint64_t lease_usec;
        const char *text; /* of the kind */
};

static int read_order(sd_bus_message *call, struct order *ret) {
        struct order o;
        int r = sd_bus_message_read(call, "st", &o.text, &o.lease_usec);

        if (r <= 0 || link_skip_extra(call) < 0)
                return -EBADMSG;
        o.lease_usec = MIN(o.lease_usec, LEASE_MAX_USEC);
        o.kind = latency_kind_from_string(o.text);
        *ret = o;
        return 0;
}

static struct trace *find(struct traces *t, enum latency_kind kind, const struct executor_id *id) {
        struct trace *x;

        DL_FOREACH (t->list, x)
                if (x->kind == kind && executor_id_equal(&x->id, id))
                        return x;
        return NULL;
}

/* The first of its kind brings the programs. */
static int count(struct traces *t, enum latency_kind kind, const struct unit_group *g, sd_bus_error *error) {
        char why[LATENCY_WHY_MAX] = "";
        int r;

        if (!t->latencies[kind]) {
                r = latency_new(kind, g->slice, why, &t->latencies[kind]);
                if (r < 0)
                        return sd_bus_error_setf(error, LINK_ERROR_REFUSED, "this host cannot trace %s: %s",
                                                 latency_kind_to_string(kind), *why ? why : strerror(-r));
                log_info("Tracing %s: its programs are in the kernel", latency_kind_to_string(kind));
        }
        r = latency_add(t->latencies[kind], g->unit);
        if (r >= 0) {
                t->n[kind]++;
                return 0;
        }
        if (t->n[kind] == 0) {
                latency_free(t->latencies[kind]);
                t->latencies[kind] = NULL;
        }
        return r == -E2BIG
                       ? sd_bus_error_setf(error, LINK_ERROR_BUSY,
                                           "%u executors of this host are traced already", TRACE_UNITS_MAX)
                       : r;
}

/* How many executors of a user count; those that rest have no slot. */
static unsigned share(const struct traces *t, enum latency_kind kind, uint32_t uid) {
        unsigned n = 0;
        struct trace *x;

        DL_FOREACH (t->list, x)
                n += x->kind == kind && x->uid == uid && !x->resting;
        return n;
}

static int begin(struct traces *t, enum latency_kind kind, const struct executor_id *id, struct trace **ret,
                 sd_bus_error *error) {
        struct unit_facts facts;
        struct unit_group g;
        struct trace *x;
        char unit[UNIT_NAME_MAX];
        int r;

        executor_unit_name(id->job, id->role, id->index, id->attempt, unit);
        if ((r = units_find(t->units, unit, &facts)) >= 0)
                r = unit_group_find(id, &g);
        if (r < 0)
                return sd_bus_error_set(error, LINK_ERROR_UNKNOWN,
                                        "this host has no control group of it (cgroup v2)");
        if (share(t, kind, facts.uid) >= TRACE_USER_MAX)
                return sd_bus_error_setf(error, LINK_ERROR_BUSY,
                                         "%u executors of this user are traced on this host already",
                                         TRACE_USER_MAX);
        x = calloc(1, sizeof(*x));
        if (!x)
                return -ENOMEM;
        r = count(t, kind, &g, error);
        if (r < 0) {
                free(x);
                return r;
        }
        *x = (struct trace){
                .kind = kind, .id = *id, .uid = facts.uid, .cgroup_id = g.unit, .since_boot = now_boot()
        };
        DL_APPEND(t->list, x);
        *ret = x;
        return 0;
}

static int append_histogram(sd_bus_message *m, const char *name, const struct trace_histogram *h) {
        int r;

        if ((r = sd_bus_message_open_container(m, 'r', "stttat")) < 0 ||
            (r = sd_bus_message_append(m, "sttt", name, h->count, h->sum_ns, h->bytes)) < 0 ||
            (r = sd_bus_message_append_array(m, 't', h->buckets, sizeof(h->buckets))) < 0)
                return r;
        return sd_bus_message_close_container(m);
}

static int answer(struct traces *t, const struct trace *x, sd_bus_message *call) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct latency *l = t->latencies[x->kind];
        struct trace_unit all;
        const char *name;
        int r;

        if ((r = latency_read(l, x->cgroup_id, &all)) < 0 ||
            (r = sd_bus_message_new_method_return(call, &m)) < 0 ||
            (r = sd_bus_message_append(m, "t", now_boot() - x->since_boot)) < 0 ||
            (r = sd_bus_message_open_container(m, 'a', "(stttat)")) < 0)
                return r;
        for (unsigned i = 0; i < _TRACE_CLASS_MAX && r >= 0; i++)
                if ((name = latency_class_name(x->kind, i)))
                        r = append_histogram(m, name, &all.classes[i]);
        if (r < 0 || (r = sd_bus_message_close_container(m)) < 0 ||
            (r = sd_bus_message_append(m, "a{sv}", 1, "missed", "t", latency_missed(l))) < 0)
                return r;
        r = sd_bus_send(NULL, m, NULL);
        return r < 0 ? r : 1;
}

/* Counting for long enough; true: it rests now. */
static bool rests(struct traces *t, struct trace *x, uint64_t now) {
        if (!x->resting && now > x->since_boot + TRACE_MAX_USEC) {
                stop(t, x);
                x->resting = true;
                x->until_boot = now + REST_USEC;
                (void)arm(t);
        }
        return x->resting;
}

int traces_order(struct traces *t, const struct executor_id *id, sd_bus_message *call, sd_bus_error *error) {
        uint64_t now = now_boot();
        struct order o;
        struct trace *x;
        int r = read_order(call, &o);

        if (r < 0)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "the message is not within the bounds of the protocol");
        if (o.kind < 0)
                return sd_bus_error_set(error, LINK_ERROR_REFUSED,
                                        "this host's agent knows no trace of that name");
        x = find(t, o.kind, id);
        if (!x && (r = begin(t, o.kind, id, &x, error)) < 0)
                return r;
        if (rests(t, x, now))
                return sd_bus_error_set(error, LINK_ERROR_BUSY,
                                        "it has been traced for 10 minutes; it can be again in a minute");
        x->until_boot = MAX(x->until_boot, now + o.lease_usec);
        r = answer(t, x, call);
        if (x->until_boot <= now)
                trace_free(t, x);
        (void)arm(t);
        return r;
}
