/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of logs: each call is asked of the agent, read from what is kept, or waits, and is answered exactly
 * once. The agent has everything and comes first, except for the end of a log alone, which is what is kept; a
 * caller with a cursor of the kept part stays there, since the agent does not know that offset. */
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/caller/reply.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding.h"
#include "masterd/link/link.h"
#include "masterd/relay/logs-cursor.h"
#include "masterd/relay/logs-parts.h"
#include "masterd/relay/relay-parts.h"

#define CALLS_MAX 512u
#define CALLS_PER_CALLER_MAX 64u
#define WAIT_MAX (20 * USEC_PER_SEC)
#define ANSWER_USEC                                                                                          \
        (4 * USEC_PER_SEC) /* for the agent's answer after its wait: before the caller's own 25 s are over   \
                            */
#define LOOK_AGAIN_USEC USEC_PER_SEC
#define LAST_WORDS_USEC (1500 * USEC_PER_MSEC) /* longer than agents gather lines */
#define SETTLED_USEC (10 * USEC_PER_SEC)
#define BUSY_USEC (500 * USEC_PER_MSEC)
#define HOST_AGAIN_USEC (200 * USEC_PER_MSEC)

struct log_call {
        struct logs *logs;
        sd_bus_message *message;
        struct executor_id id;
        char node[65];
        struct log_cursor cursor, from; /* the latter: as it was called with */
        uint32_t looker;
        uint64_t tail;    /* of the kept part, tried first; 0: all */
        char *identifier; /* of which only the agent knows lines, or NULL */
        uint64_t begun_boot, deadline_boot;
        bool waited;                  /* for the last words */
        bool host_waits, host_waited; /* and before that for the host's second connection */
        sd_bus_slot *slot;
        sd_event_source *timer;
        struct log_call *prev, *next;
};

static void call_free(struct log_call *c) {
        DL_DELETE(c->logs->calls, c);
        sd_bus_slot_unref(c->slot);
        sd_event_source_disable_unref(c->timer);
        sd_bus_message_unref(c->message);
        free(c->identifier);
        free(c);
}

void log_calls_clear(struct logs *l) {
        struct log_call *c, *next;

        DL_FOREACH_SAFE (l->calls, c, next)
                call_free(c);
}

static bool attempt_ended(const struct log_call *c) {
        struct job *j = manager_job(c->logs->manager, c->id.job);
        const struct executor *e;

        if (!j || !sd_id128_equal(j->uid, c->id.job_uid) || job_state_ended(j->state))
                return true;
        e = job_attempt(j, c->id.role, c->id.index, c->id.attempt);
        if (!e) /* of a scan, the end is not known here, the job's is */
                return strcmp(c->id.role, SCAN_ROLE) != 0;
        return executor_state_ended(e->state) || e->state == EXECUTOR_PENDING;
}

static sd_bus *agent_bus(const struct log_call *c) {
        struct node *node = nodes_get(&c->logs->manager->nodes, c->node);

        return node && node->bulk ? peer_bus(node->bulk->peer) : NULL;
}

/* Its host will be asked: behind a start of masterd, or a cut, the agents come one by one, and their
 * connections for logs last. What it has is not gone meanwhile. */
static bool host_comes(const struct log_call *c) {
        const struct manager *m = c->logs->manager;
        struct node *node = nodes_get(&c->logs->manager->nodes, c->node);

        return node && !node->bulk && node->state != NODE_LOST && now_boot() - c->begun_boot < SETTLED_USEC &&
               (node->link || now_boot() - m->serving_boot < SETTLED_USEC);
}

/* Nothing will be added to what is kept of an attempt that has ended: its host is away, or had the time to
 * tell the last words. */
static bool settled(const struct log_call *c) {
        const struct followed *f = followed_find(c->logs, &c->id);
        struct job *j = manager_job(c->logs->manager, c->id.job);
        const struct executor *e = j ? job_attempt(j, c->id.role, c->id.index, c->id.attempt) : NULL;

        if (host_comes(c))
                return false;
        if (c->waited || !agent_bus(c))
                return true;
        if (c->host_waited)
                return false; /* it has only just come */
        if (f && now_boot() - f->last_boot < SETTLED_USEC)
                return false;
        return !e || usec_sub(now_real(), e->ended_real) > SETTLED_USEC;
}

static uint64_t remaining(const struct log_call *c) {
        return usec_sub(c->deadline_boot, now_boot());
}

/* ---- answers ---- */

static bool may_look(const struct log_call *c) {
        struct manager *m = c->logs->manager;
        const struct job *j = c->looker == LOOKER_NONE ? NULL : manager_job(m, c->id.job);

        return !j || m->up->may_look(m, c->looker, j);
}

/* Who may not look any more, or of whom that is not known any more, has to ask again. */
static void answer(struct log_call *c, const void *data, size_t size, bool end) {
        bool looks = may_look(c);
        sd_bus_message *reply = NULL;
        char next[LOG_CURSOR_MAX];
        size_t n = log_cursor_format(looks ? &c->cursor : &c->from, next);
        int r = sd_bus_message_new_method_return(c->message, &reply);

        if (!looks) {
                size = 0;
                end = false;
        }
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', data, size);
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', next, n);
        if (r >= 0)
                r = sd_bus_message_append(reply, "b", end);
        if (r >= 0)
                (void)reply_send(reply); /* a caller that is gone is no fault of ours */
        else
                (void)reply_failed(c->message, r, NULL);
        sd_bus_message_unref(reply);
        call_free(c);
}

static void answer_gone(struct log_call *c) {
        const struct node *node = nodes_get(&c->logs->manager->nodes, c->node);

        if (node && !node->bulk) /* of the cluster, and away */
                (void)reply_errorf(c->message, LINK_ERROR_NOT_FOUND,
                                   "the log of %s/%u, attempt %u, cannot be read now: %s, which has it, is "
                                   "not connected, and nothing of it was kept here",
                                   c->id.role, c->id.index, c->id.attempt, c->node);
        else
                (void)reply_errorf(c->message, LINK_ERROR_NOT_FOUND,
                                   "the log of %s/%u, attempt %u, is gone: %s does not have it (any more), "
                                   "and nothing of it was kept",
                                   c->id.role, c->id.index, c->id.attempt, c->node[0] ? c->node : "its host");
        call_free(c);
}

/* What is kept is text alone. */
static void answer_unnamed(struct log_call *c) {
        (void)reply_errorf(
                c->message, LINK_ERROR_NOT_FOUND,
                "which lines of %s/%u, attempt %u, are of %s its host alone knows: %s is not connected",
                c->id.role, c->id.index, c->id.attempt, c->identifier, c->node[0] ? c->node : "it");
        call_free(c);
}

static void step(struct log_call *c);

static int on_again(sd_event_source *s, uint64_t usec, void *userdata) {
        struct log_call *c = userdata;

        c->timer = sd_event_source_disable_unref(c->timer);
        if (c->host_waits)
                c->host_waits = false;
        else
                c->waited = true;
        step(c);
        return 0;
}

/* False: it will not. */
static bool again_in(struct log_call *c, uint64_t delay) {
        return sd_event_add_time_relative(c->logs->manager->event, &c->timer, CLOCK_BOOTTIME, delay,
                                          USEC_PER_MSEC, on_again, c) >= 0;
}

/* There is nothing new: end where nothing will come, look again while the caller waits, or say so. */
static void nothing(struct log_call *c) {
        bool ended = attempt_ended(c);
        uint64_t delay;

        if (ended && settled(c)) {
                answer(c, NULL, 0, true);
                return;
        }
        c->host_waits = ended && host_comes(c);
        c->host_waited |= c->host_waits;
        /* The last words of one that has just ended may be on their way. */
        delay = c->host_waits ? HOST_AGAIN_USEC
                : ended       ? LAST_WORDS_USEC
                              : MIN(remaining(c), LOOK_AGAIN_USEC);
        if (delay == 0 || !again_in(c, delay))
                answer(c, NULL, 0, false);
}

/* ---- the kept part ---- */

static void on_kept(struct log_task *t, void *userdata) {
        struct log_call *c = userdata;
        bool ended = attempt_ended(c);
        size_t size = t->size;

        if (c->tail > 0 && size == 0) {
                c->tail = 0; /* nothing is kept yet: from the start, then */
                step(c);
                return;
        }
        if (t->result < 0) {
                if (t->result != -ENOENT)
                        log_full(LOG_WARNING, t->result,
                                 &(struct log_fields){ .job = c->id.job, .role = c->id.role },
                                 "Cannot read the kept log of job %u, %s/%u", c->id.job, c->id.role,
                                 c->id.index);
                if (ended && host_comes(c))
                        nothing(c);
                else if (ended && c->cursor.kind != LOG_CURSOR_AGENT)
                        answer_gone(c);
                else if (ended)
                        answer(c, NULL, 0, true);
                else
                        nothing(c);
                return;
        }
        if (!ended && size > 0) {
                /* Whole lines, except one that fills everything. */
                const char *nl = memrchr(t->data, '\n', size);
                if (nl)
                        size = (size_t)(nl + 1 - t->data);
                else if (size < LOG_KEPT_MAX)
                        size = 0;
        }
        if (size == 0) {
                nothing(c);
                return;
        }
        c->cursor.kind = LOG_CURSOR_KEPT;
        c->cursor.offset = t->offset + size;
        answer(c, t->data, size, ended && settled(c));
}

static void read_kept(struct log_call *c) {
        struct log_task *t;

        if (c->identifier) {
                answer_unnamed(c);
                return;
        }
        t = log_task_new(LOG_TASK_READ, &c->id);
        if (!t) {
                (void)reply_failed(c->message, -ENOMEM, NULL);
                call_free(c);
                return;
        }
        t->offset = c->cursor.offset;
        t->tail = c->tail;
        t->done = on_kept;
        t->userdata = c;
        log_worker_push(c->logs->worker, t);
}

/* ---- the agent ---- */

static int on_busy(sd_event_source *s, uint64_t usec, void *userdata) {
        answer(userdata, NULL, 0, false);
        return 0;
}

static int on_agent(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct log_call *c = userdata;
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        const void *data = NULL, *cursor = NULL;
        size_t size = 0, cursor_size = 0;
        int end = false, r;

        c->slot = sd_bus_slot_unref(c->slot);
        if (failure && strcmp(failure->name, LINK_ERROR_BUSY) == 0) {
                if (sd_event_add_time_relative(c->logs->manager->event, &c->timer, CLOCK_BOOTTIME, BUSY_USEC,
                                               USEC_PER_MSEC, on_busy, c) < 0)
                        answer(c, NULL, 0, false);
                return 0;
        }
        if (failure &&
            (!agent_bus(c) || (sd_bus_error_has_name(failure, SD_BUS_ERROR_NO_REPLY) && remaining(c) > 0))) {
                step(c); /* it was cut off, and may be back */
                return 0;
        }
        if (failure) {
                read_kept(c);
                return 0;
        }
        r = link_read_bytes(reply, LINK_CHUNK_MAX, &data, &size);
        if (r > 0)
                r = link_read_bytes(reply, LOG_CURSOR_AGENT_MAX, &cursor, &cursor_size);
        if (r > 0)
                r = sd_bus_message_read_basic(reply, 'b', &end);
        if (r > 0)
                r = log_cursor_advance(&c->cursor, size, cursor, cursor_size);
        if (r < 0)
                log_full(LOG_WARNING, r, &(struct log_fields){ .job = c->id.job, .node = c->node },
                         "Unusable answer about a log from %s", c->node);
        if (r < 0)
                read_kept(c);
        else
                answer(c, data, size, end);
        return 0;
}

static int ask_agent(struct log_call *c) {
        sd_bus *bus = agent_bus(c);
        sd_bus_message *m = NULL;
        uint64_t wait = remaining(c);
        int r;

        if (!bus)
                return -ENOTCONN;
        r = sd_bus_message_new_method_call(bus, &m, NULL, LINK_PATH, LINK_INTERFACE, "ReadLog");
        if (r >= 0)
                r = executor_id_append(m, &c->id);
        if (r >= 0)
                r = sd_bus_message_append_array(m, 'y', c->cursor.agent, c->cursor.size);
        if (r >= 0)
                r = sd_bus_message_append(m, "ut", LINK_CHUNK_MAX, wait);
        if (r >= 0)
                r = c->identifier ? sd_bus_message_append(m, "a{sv}", 1, "identifier", "s", c->identifier)
                                  : link_append_extra_empty(m);
        if (r >= 0)
                r = sd_bus_call_async(bus, &c->slot, m, on_agent, c, wait + ANSWER_USEC);
        sd_bus_message_unref(m);
        return r;
}

/* Who is once given what is kept stays there, and that has an end: rather wait until the host is back. */
static void step(struct log_call *c) {
        bool of_agent = c->cursor.kind != LOG_CURSOR_KEPT && c->tail == 0;

        if (of_agent && ask_agent(c) >= 0)
                return;
        if (of_agent && host_comes(c) && again_in(c, HOST_AGAIN_USEC)) {
                c->host_waits = c->host_waited = true;
                return;
        }
        read_kept(c);
}

/* ---- calls ---- */

/* Whether another call of this caller may wait. */
static bool room_for(struct logs *l, sd_bus_message *message) {
        const char *sender = sd_bus_message_get_sender(message);
        unsigned all = 0, own = 0;
        struct log_call *c;

        DL_FOREACH (l->calls, c) {
                const char *other = sd_bus_message_get_sender(c->message);
                all++;
                if (strcmp(sender ? sender : "", other ? other : "") == 0)
                        own++;
        }
        return all < CALLS_MAX && own < CALLS_PER_CALLER_MAX;
}

int logs_read(struct manager *m, const struct job *j, struct node *node, const struct executor_id *id,
              const struct log_wish *wish, sd_bus_message *call) {
        const struct followed *f;
        struct log_call *c;

        if (!room_for(m->relay->logs, call))
                return reply_errorf(
                        call, LINK_ERROR_BUSY,
                        "too many readers of logs wait already (%u, %u of one caller): try again in a moment",
                        CALLS_MAX, CALLS_PER_CALLER_MAX);
        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        if (wish->identifier && !(c->identifier = strdup(wish->identifier))) {
                free(c);
                return -ENOMEM;
        }
        if (log_cursor_parse(wish->cursor, wish->cursor_size, &c->cursor) < 0) {
                free(c->identifier);
                free(c);
                return reply_errorf(
                        call, SD_BUS_ERROR_INVALID_ARGS,
                        "cursor: not one that ReadLog has returned; pass an empty one to begin at the start");
        }
        c->from = c->cursor;
        c->looker = wish->looker;
        c->logs = m->relay->logs;
        c->message = sd_bus_message_ref(call);
        c->id = *id;
        c->id.job_uid = j->uid;
        if (c->cursor.kind == LOG_CURSOR_START && wish->tail != UINT64_MAX)
                c->tail = MIN(wish->tail, (uint64_t)LOG_KEPT_MAX);
        c->begun_boot = now_boot();
        c->deadline_boot = c->begun_boot + MIN(wish->wait_usec, WAIT_MAX);
        /* An earlier attempt was perhaps elsewhere. */
        f = followed_find(m->relay->logs, &c->id);
        if (f)
                snprintf(c->node, sizeof(c->node), "%s", f->node);
        else if (node)
                snprintf(c->node, sizeof(c->node), "%s", node->name);
        DL_APPEND(m->relay->logs->calls, c);
        step(c);
        return 1;
}
