/* SPDX-License-Identifier: Apache-2.0 */
/* The turn of masterd's loop: scheduling, commit, effects. Invariant: no effect runs before what it stands on
 * is on disk. */
#include "masterd/core/manager.h"

#include "lib/base/clock.h"
#include "lib/base/exit.h"
#include "lib/base/log.h"
#include "masterd/caller/reply.h"

#define DUE_USEC (5 * USEC_PER_MSEC)

struct effect {
        effect_fn run;
        void *data;
        struct effect *next;
};

struct batch {
        struct manager *manager;
        struct effect *effects, **effects_end;
};

struct job *manager_job(struct manager *m, uint32_t number) {
        struct job *j;

        HASH_FIND(hh, m->jobs, &number, sizeof(number), j);
        return j;
}

struct executor *manager_attempt(struct manager *m, const struct executor_id *id) {
        struct job *j = manager_job(m, id->job);

        return j && sd_id128_equal(j->uid, id->job_uid) ? job_attempt(j, id->role, id->index, id->attempt)
                                                        : NULL;
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
        uint64_t end = now_boot() + DUE_USEC;

        while (m->due && (now_boot() < end || sd_event_get_state(m->event) == SD_EVENT_FINISHED)) {
                struct effect *e = m->due;
                m->due = e->next;
                if (!m->due)
                        m->due_end = &m->due;
                e->run(m, e->data); /* takes its data over */
                free(e);
        }
        return sd_event_source_set_enabled(s, m->due ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void on_durable(void *userdata, int error) {
        struct batch *batch = userdata;
        struct manager *m = batch->manager;

        if (error < 0) {
                /* Memory is ahead of the disk: begin again from what is stored. */
                log_full(LOG_CRIT, error, NULL,
                         "The store in %s failed; exiting to start again from what is on disk",
                         m->conf.state_directory);
                (void)sd_event_exit(m->event, error);
                effects_free(batch->effects);
        } else if (batch->effects) {
                *m->due_end = batch->effects;
                m->due_end = batch->effects_end;
                (void)run_due(m->run_due, m);
        }
        free(batch);
}

static int on_turn(sd_event_source *s, void *userdata) {
        struct manager *m = userdata;
        struct batch *batch;
        int r;

        (void)sd_event_source_set_enabled(s, SD_EVENT_OFF);
        if (m->schedule_wanted && m->serving) {
                m->schedule_wanted = false;
                m->schedule(m);
        }
        if (!m->batch_open)
                return 0;
        m->batch_open = false;
        batch = malloc(sizeof(*batch));
        if (!batch)
                return sd_event_exit(m->event, log_oom()); /* what is on disk stays right */
        *batch = (struct batch){ m, m->effects, m->effects_end };
        m->effects = NULL;
        m->effects_end = &m->effects;
        r = store_commit(m->store, on_durable, batch);
        if (r < 0) {
                on_durable(batch, r);
                return 0;
        }
        return 0;
}

static void want_turn(struct manager *m) {
        if (m->turn)
                (void)sd_event_source_set_enabled(m->turn, SD_EVENT_ONESHOT);
}

void manager_touch(struct manager *m) {
        m->batch_open = true;
        want_turn(m);
}

void manager_schedule(struct manager *m) {
        m->schedule_wanted = true;
        want_turn(m);
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
        *m->effects_end = e;
        m->effects_end = &e->next;
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

int manager_new(void (*schedule)(struct manager *m), struct manager **ret) {
        struct manager *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return log_oom();
        m->schedule = schedule;
        m->effects_end = &m->effects;
        m->due_end = &m->due;
        /* The turn has the priority of everybody else: it runs behind what was pending before it, and is
         * never starved. */
        r = conf_read(&m->conf, NULL);
        if (r < 0) {
                manager_free(m);
                return exit_person(r); /* logged, with file and line */
        }
        r = sd_event_default(&m->event);
        if (r >= 0)
                r = sd_event_add_defer(m->event, &m->turn, on_turn, m);
        if (r >= 0)
                r = sd_event_source_set_enabled(m->turn, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(m->event, &m->run_due, run_due, m);
        if (r >= 0)
                r = sd_event_source_set_enabled(m->run_due, SD_EVENT_OFF);
        if (r < 0) {
                manager_free(m);
                return log_error_errno(r, "Cannot make the event loop");
        }
        *ret = m;
        return 0;
}

void manager_free(struct manager *m) {
        if (!m)
                return;
        nodes_clear(&m->nodes);
        effects_free(m->effects);
        effects_free(m->due);
        sd_event_source_disable_unref(m->turn);
        sd_event_source_disable_unref(m->run_due);
        sd_event_source_disable_unref(m->live_timer);
        sd_event_source_disable_unref(m->prune_timer);
        sd_event_source_disable_unref(m->renew_timer);
        sd_event_unref(m->event);
        conf_done(&m->conf);
        free(m);
}
