/* SPDX-License-Identifier: Apache-2.0 */
/* The turn of masterd's loop: scheduling, commit, effects. Invariant: no effect runs before what it stands on
 * is on disk. */
#include "masterd/core/manager.h"

#include "lib/base/clock.h"
#include "lib/base/exit.h"
#include "lib/base/log.h"
#include "lib/wire/errors.h"
#include "masterd/caller/reply.h"
#include "masterd/core/changes.h"
#include "masterd/core/space-parts.h"

#define DUE_USEC (5 * USEC_PER_MSEC)
#define CHANGES_MAX 65536u

struct effect {
        effect_fn run;
        void *data;
        struct effect *next;
};

struct batch {
        struct manager *manager;
        struct effect *effects, **effects_end;
};

struct pending {
        void (*schedule)(struct manager *m);
        sd_event_source *turn;                 /* runs at the end of a turn that asked for it */
        struct effect *effects, **effects_end; /* of the open batch */
        struct effect *due, **due_end;         /* of what is on disk, not run yet */
        sd_event_source *run_due;
        bool schedule_wanted, batch_open;
};

struct job *manager_job(struct manager *m, uint32_t number) {
        struct job *j;

        HASH_FIND(hh, m->jobs.by_number, &number, sizeof(number), j);
        return j;
}

struct executor *manager_attempt(struct manager *m, const struct executor_id *id) {
        struct job *j = manager_job(m, id->job);

        return j && sd_id128_equal(j->uid, id->job_uid) ? job_attempt(j, id->role, id->index, id->attempt)
                                                        : NULL;
}

int manager_attempt_of(struct manager *m, const struct node *node, const struct executor_id *id,
                       struct executor **ret, sd_bus_error *error) {
        struct executor *x = manager_attempt(m, id);

        if (!x || x->node != node)
                return sd_bus_error_setf(error, LINK_ERROR_UNKNOWN,
                                         "no such attempt of an executor runs there");
        *ret = x;
        return 0;
}

static void effects_free(struct effect *e) {
        while (e) {
                struct effect *next = e->next;
                free(e->data);
                free(e);
                e = next;
        }
}

/* Orders for thousands of hosts may be due at once: after DUE_USEC whoever waits has his turn, then the rest
 * follows in its order. */
static int run_due(sd_event_source *s, void *userdata) {
        struct manager *m = userdata;
        struct pending *p = m->pending;
        uint64_t end = now_boot() + DUE_USEC;

        while (p->due && (now_boot() < end || sd_event_get_state(m->event) == SD_EVENT_FINISHED)) {
                struct effect *e = p->due;
                p->due = e->next;
                if (!p->due)
                        p->due_end = &p->due;
                e->run(m, e->data); /* takes its data over */
                free(e);
        }
        return sd_event_source_set_enabled(s, p->due ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void on_durable(void *userdata, int error) {
        struct batch *batch = userdata;
        struct manager *m = batch->manager;
        struct pending *p = m->pending;

        if (error < 0) {
                /* Memory is ahead of the disk: begin again from what is stored. */
                log_full(LOG_CRIT, error, NULL,
                         "The store in %s failed; exiting to start again from what is on disk",
                         m->conf.state_directory);
                (void)sd_event_exit(m->event, error);
                effects_free(batch->effects);
        } else if (batch->effects) {
                *p->due_end = batch->effects;
                p->due_end = batch->effects_end;
                (void)run_due(p->run_due, m);
        }
        free(batch);
}

static int on_turn(sd_event_source *s, void *userdata) {
        struct manager *m = userdata;
        struct pending *p = m->pending;
        struct batch *batch;
        int r;

        (void)sd_event_source_set_enabled(s, SD_EVENT_OFF);
        if (p->schedule_wanted && m->serving_boot > 0) {
                p->schedule_wanted = false;
                p->schedule(m);
        }
        if (!p->batch_open)
                return 0;
        p->batch_open = false;
        batch = malloc(sizeof(*batch));
        if (!batch)
                return sd_event_exit(m->event, log_oom()); /* what is on disk stays right */
        *batch = (struct batch){ m, p->effects, p->effects_end };
        p->effects = NULL;
        p->effects_end = &p->effects;
        r = store_commit(m->store, on_durable, batch);
        if (r < 0) {
                on_durable(batch, r);
                return 0;
        }
        return 0;
}

static void want_turn(struct pending *p) {
        if (p->turn)
                (void)sd_event_source_set_enabled(p->turn, SD_EVENT_ONESHOT);
}

void manager_touch(struct manager *m) {
        m->pending->batch_open = true;
        want_turn(m->pending);
}

void manager_schedule(struct manager *m) {
        m->pending->schedule_wanted = true;
        want_turn(m->pending);
}

bool manager_batch_open(const struct manager *m) {
        return m->pending->batch_open;
}

bool manager_turn_waits(const struct manager *m) {
        int armed = 0;

        return m->pending->batch_open ||
               (sd_event_source_get_enabled(m->pending->turn, &armed) >= 0 && armed);
}

int manager_effect(struct manager *m, effect_fn run, void *data) {
        struct effect *e = calloc(1, sizeof(*e));

        if (!e) {
                free(data);
                /* An effect that is dropped would leave memory and the world apart. */
                (void)sd_event_exit(m->event, log_oom());
                return -ENOMEM;
        }
        *e = (struct effect){ run, data, NULL };
        *m->pending->effects_end = e;
        m->pending->effects_end = &e->next;
        manager_touch(m);
        return 0;
}

struct reply {
        sd_bus_message *message;
};

static void send_reply(struct manager *m, void *data) {
        struct reply *r = data;

        (void)reply_send(r->message); /* a caller that is gone is no fault of ours */
        sd_bus_message_unref(r->message);
        free(r);
}

int manager_reply_later(struct manager *m, sd_bus_message *reply) {
        struct reply *r = malloc(sizeof(*r));

        if (!r) {
                sd_bus_message_unref(reply);
                return -ENOMEM;
        }
        r->message = reply;
        return manager_effect(m, send_reply, r);
}

int manager_answer_later(struct manager *m, sd_bus_message *call, const char *types, ...) {
        sd_bus_message *reply = NULL;
        va_list ap;
        int r = sd_bus_message_new_method_return(call, &reply);

        if (r < 0)
                return r;
        va_start(ap, types);
        r = sd_bus_message_appendv(reply, types, ap);
        va_end(ap);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        return manager_reply_later(m, reply);
}

static int add_turn(sd_event *event, sd_event_source **ret, sd_event_handler_t run, struct manager *m) {
        int r = sd_event_add_defer(event, ret, run, m);

        return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

int manager_new(void (*schedule)(struct manager *m), struct manager **ret) {
        struct manager *m = calloc(1, sizeof(*m));
        struct pending *p;
        int r;

        if (!m)
                return log_oom();
        p = m->pending = calloc(1, sizeof(*m->pending));
        m->space = calloc(1, sizeof(*m->space));
        m->changes = changes_new(CHANGES_MAX);
        if (!p || !m->space || !m->changes) {
                manager_free(m);
                return log_oom();
        }
        p->schedule = schedule;
        p->effects_end = &p->effects;
        p->due_end = &p->due;
        r = conf_read(&m->conf, NULL);
        if (r < 0) {
                manager_free(m);
                return exit_person(r); /* logged, with file and line */
        }
        r = sd_event_default(&m->event);
        /* The turn has the priority of everybody else: it runs behind what was pending before it, and is
         * never starved. */
        if (r >= 0)
                r = add_turn(m->event, &p->turn, on_turn, m);
        if (r >= 0)
                r = add_turn(m->event, &p->run_due, run_due, m);
        if (r < 0) {
                manager_free(m);
                return log_error_errno(r, "Cannot make the event loop");
        }
        *ret = m;
        return 0;
}

static void pending_free(struct pending *p) {
        if (!p)
                return;
        effects_free(p->effects);
        effects_free(p->due);
        sd_event_source_disable_unref(p->turn);
        sd_event_source_disable_unref(p->run_due);
        free(p);
}

void manager_free(struct manager *m) {
        if (!m)
                return;
        nodes_clear(&m->nodes);
        pending_free(m->pending);
        free(m->space);
        changes_free(m->changes);
        sd_event_unref(m->event);
        conf_done(&m->conf);
        free(m);
}
