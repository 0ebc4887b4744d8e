/* SPDX-License-Identifier: Apache-2.0 */
/* Traces under way. Invariant: the starter is asked for the programs of a kind while a trace of that kind has
 * a lease that is not over, and told when none has any more. */
#include "agentd/relay/traces.h"

#include <string.h>
#include <utlist.h>

#include "agentd/probe/latency.h"
#include "agentd/relay/unit-group.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"

#define LEASE_MAX_USEC (10 * USEC_PER_SEC)
/* In a row; then the executor is left alone for a moment, so that nobody traces it for ever. */
#define TRACE_MAX_USEC (605 * USEC_PER_SEC)
#define REST_USEC (60 * USEC_PER_SEC)
/* Orders that wait for the starter to bring the programs. */
#define WAITING_MAX 64u

struct trace {
        enum observe_trace kind;
        struct executor_id id;
        uint32_t uid;
        uint64_t cgroup_id;
        uint64_t since_boot, until_boot;
        bool resting; /* it was on for too long; until_boot: may be again */
        struct trace *next, *prev;
};

struct waiting {
        struct executor_id id;
        uint64_t lease_usec;
        sd_bus_message *call;
        struct waiting *next, *prev;
};

/* One for each kind. */
struct kind {
        struct traces *traces;
        enum observe_trace which;
        struct latency *latency; /* NULL: the programs are not there */
        unsigned n;              /* that count */
        sd_bus_slot *asked;      /* the starter, for the programs or to keep them */
        uint64_t renewed_boot;
        struct waiting *waiting;
        unsigned n_waiting;
};

struct traces {
        sd_event *event;
        struct units *units;
        struct observer *observer;
        sd_event_source *timer;
        struct kind kinds[_OBSERVE_TRACE_MAX];
        struct trace *list;
};

int traces_new(sd_event *event, struct units *units, struct observer *observer, struct traces **ret) {
        struct traces *t = calloc(1, sizeof(*t));

        if (!t)
                return -ENOMEM;
        t->event = sd_event_ref(event);
        t->units = units;
        t->observer = observer;
        for (int k = 0; k < _OBSERVE_TRACE_MAX; k++)
                t->kinds[k] = (struct kind){ .traces = t, .which = (enum observe_trace)k };
        *ret = t;
        return 0;
}

static void drop_kind(struct kind *k) {
        k->asked = sd_bus_slot_unref(k->asked);
        latency_free(k->latency);
        k->latency = NULL;
        observer_untrace(k->traces->observer, k->which);
}

/* It does not count any more; the last one takes the programs along. */
static void stop_trace(struct traces *t, struct trace *x) {
        struct kind *k = &t->kinds[x->kind];

        if (x->resting)
                return;
        latency_remove(k->latency, x->cgroup_id);
        if (--k->n > 0)
                return;
        drop_kind(k);
        log_info("Nobody traces %s any more; its programs are out of the kernel",
                 observe_trace_to_string(x->kind));
}

static void trace_free(struct traces *t, struct trace *x) {
        stop_trace(t, x);
        DL_DELETE(t->list, x);
        free(x);
}

static void waiting_free(struct kind *k, struct waiting *w) {
        DL_DELETE(k->waiting, w);
        k->n_waiting--;
        sd_bus_message_unref(w->call);
        free(w);
}

void traces_free(struct traces *t) {
        if (!t)
                return;
        for (int k = 0; k < _OBSERVE_TRACE_MAX; k++) {
                while (t->kinds[k].waiting)
                        waiting_free(&t->kinds[k], t->kinds[k].waiting);
                sd_bus_slot_unref(t->kinds[k].asked);
        }
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

static int arm_timer(struct traces *t) {
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
        return arm_timer(t);
}

/* ---- the order ---- */

struct order {
        enum observe_trace kind;
        uint64_t lease_usec;
};

static int read_order(sd_bus_message *call, struct order *ret) {
        const char *text;
        struct order o;
        int r = sd_bus_message_read(call, "st", &text, &o.lease_usec);

        if (r <= 0 || link_skip_extra(call) < 0)
                return -EBADMSG;
        o.lease_usec = MIN(o.lease_usec, LEASE_MAX_USEC);
        o.kind = observe_trace_from_string(text);
        *ret = o;
        return 0;
}

static struct trace *find_trace(struct traces *t, enum observe_trace kind, const struct executor_id *id) {
        struct trace *x;

        DL_FOREACH (t->list, x)
                if (x->kind == kind && executor_id_equal(&x->id, id))
                        return x;
        return NULL;
}

static int count_executors(struct kind *k, const struct unit_group *g, sd_bus_error *error) {
        int r = latency_add(k->latency, g->unit);

        if (r >= 0) {
                k->n++;
                return 0;
        }
        if (k->n == 0)
                drop_kind(k);
        return r == -E2BIG
                       ? sd_bus_error_setf(error, LINK_ERROR_BUSY,
                                           "%u executors of this host are traced already", TRACE_UNITS_MAX)
                       : r;
}

/* How many executors of a user count; those that rest have no slot. */
static unsigned share_of_user(const struct traces *t, enum observe_trace kind, uint32_t uid) {
        unsigned n = 0;
        struct trace *x;

        DL_FOREACH (t->list, x)
                n += x->kind == kind && x->uid == uid && !x->resting;
        return n;
}

static int begin_trace(struct traces *t, enum observe_trace kind, const struct executor_id *id,
                       struct trace **ret, sd_bus_error *error) {
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
        if (share_of_user(t, kind, facts.uid) >= TRACE_USER_MAX)
                return sd_bus_error_setf(error, LINK_ERROR_BUSY,
                                         "%u executors of this user are traced on this host already",
                                         TRACE_USER_MAX);
        x = calloc(1, sizeof(*x));
        if (!x)
                return -ENOMEM;
        r = count_executors(&t->kinds[kind], &g, error);
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
        TRY(sd_bus_message_open_container(m, 'r', "stttat"));
        TRY(sd_bus_message_append(m, "sttt", name, h->count, h->sum_ns, h->bytes));
        TRY(sd_bus_message_append_array(m, 't', h->buckets, sizeof(h->buckets)));
        return sd_bus_message_close_container(m);
}

static int answer_trace(struct traces *t, const struct trace *x, sd_bus_message *call) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct latency *l = t->kinds[x->kind].latency;
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
                stop_trace(t, x);
                x->resting = true;
                x->until_boot = now + REST_USEC;
                (void)arm_timer(t);
        }
        return x->resting;
}

/* ---- the starter ---- */

static int carry_out(struct traces *t, const struct executor_id *id, const struct order *o,
                     sd_bus_message *call, sd_bus_error *error) {
        uint64_t now = now_boot();
        struct trace *x = find_trace(t, o->kind, id);
        int r;

        if (!x && (r = begin_trace(t, o->kind, id, &x, error)) < 0)
                return r;
        if (rests(t, x, now))
                return sd_bus_error_set(error, LINK_ERROR_BUSY,
                                        "it has been traced for 10 minutes; it can be again in a minute");
        x->until_boot = MAX(x->until_boot, now + o->lease_usec);
        r = answer_trace(t, x, call);
        if (x->until_boot <= now)
                trace_free(t, x);
        (void)arm_timer(t);
        return r;
}

/* They came, or they do not: whoever waits is told. */
static void serve(struct kind *k, const char *why) {
        while (k->waiting) {
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
                struct waiting *w = k->waiting;
                const struct order o = { .kind = k->which, .lease_usec = w->lease_usec };
                int r = 0;

                if (why)
                        r = sd_bus_error_setf(&error, LINK_ERROR_REFUSED, "this host cannot trace %s: %s",
                                              observe_trace_to_string(k->which), why);
                if (r >= 0 && k->latency)
                        r = carry_out(k->traces, &w->id, &o, w->call, &error);
                else if (r >= 0) /* the one before could not be counted and took them along */
                        r = sd_bus_error_set(&error, LINK_ERROR_BUSY, "it cannot be traced now; try again");
                if (r < 0)
                        (void)sd_bus_reply_method_errno(w->call, r, &error);
                waiting_free(k, w);
        }
        if (k->latency && k->n == 0)
                drop_kind(k); /* who asked has not stayed */
}

static void on_programs(int r, const char *error, int settings, int latencies, void *userdata) {
        struct kind *k = userdata;

        k->asked = sd_bus_slot_unref(k->asked);
        if (k->latency) { /* kept */
                close_fd(settings);
                close_fd(latencies);
                return;
        }
        if (r >= 0)
                r = latency_new(settings, latencies, &k->latency);
        if (r < 0) {
                serve(k, error ?: strerror(-r));
                if (!error)
                        observer_untrace(k->traces->observer, k->which);
                return;
        }
        log_info("Tracing %s: its programs are in the kernel", observe_trace_to_string(k->which));
        serve(k, NULL);
}

static int ask_starter(struct kind *k) {
        if (k->asked)
                return 0;
        k->renewed_boot = now_boot();
        return observer_trace(k->traces->observer, k->which, on_programs, k, &k->asked);
}

/* The first of its kind waits for the programs. */
static int wait_for_programs(struct kind *k, const struct executor_id *id, const struct order *o,
                             sd_bus_message *call, sd_bus_error *error) {
        struct waiting *w;
        int r;

        if (k->n_waiting == WAITING_MAX)
                return sd_bus_error_set(error, LINK_ERROR_BUSY,
                                        "too many wait to trace executors of this host");
        if ((r = ask_starter(k)) < 0)
                return r;
        w = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;
        *w = (struct waiting){ .id = *id, .lease_usec = o->lease_usec, .call = sd_bus_message_ref(call) };
        DL_APPEND(k->waiting, w);
        k->n_waiting++;
        return 1;
}

int traces_order(struct traces *t, const struct executor_id *id, sd_bus_message *call, sd_bus_error *error) {
        struct order o;
        struct kind *k;
        int r = read_order(call, &o);

        if (r < 0)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "the message is not within the bounds of the protocol");
        if (o.kind < 0)
                return sd_bus_error_set(error, LINK_ERROR_REFUSED,
                                        "this host's agent knows no trace of that name");
        k = &t->kinds[o.kind];
        if (!k->latency)
                return wait_for_programs(k, id, &o, call, error);
        if (now_boot() > k->renewed_boot + OBSERVE_TRACE_LEASE_USEC / 3)
                (void)ask_starter(k);
        return carry_out(t, id, &o, call, error);
}
