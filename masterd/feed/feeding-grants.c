/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds which task. Invariant: a task is granted only while no other executor may still hold it. Nothing
 * here looks at all executors or all tasks because of one report: those that want tasks are a list, and what
 * is under way is counted. */
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding-parts.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"
#include "masterd/node/node.h"

/* Tasks are made ahead of those that are wanted now: a block is granted when it is on disk and the rows of
 * its files have been read, and nobody should wait for that. So many, and what was granted in so small a part
 * of the last second. */
#define AHEAD BLOCK_TASKS
#define AHEAD_PART 16
#define WANTED_MAX (16 * BLOCK_TASKS)
/* Trainers may wait for each other: a DataLoader takes batches from its workers in turn, ranks meet in
 * collectives. So one that waits for data can keep another from reading the rest. When nothing has been read
 * for so long, those who wait are told that no more comes. */
#define STILL_USEC (30 * USEC_PER_SEC)
#define STILL_ALONE_USEC                                                                                     \
        (10 * USEC_PER_SEC) /* the same, where the one that waits holds all of the rest itself */
/* The same, where that one says that one of its processes waits while others have the rest, as at the end of
 * the data of each DataLoader with workers: nobody else reads anything that the others may be slow for. */
#define STILL_TOLD_USEC (2 * USEC_PER_SEC)

/* ---- counts ---- */

static bool unread(const struct task *t) {
        return t && t->place == TASK_LEASED && t->read < t->end;
}

struct task_before task_before(const struct job_data *d, const struct task *t) {
        return (struct task_before){ t->place == TASK_LEASED && t->holder != d ? t->holder : NULL,
                                     unread(t) };
}

void task_after(struct job_data *d, struct task_before before, const struct task *t) {
        struct executor *holder = t && t->place == TASK_LEASED && t->holder != d ? t->holder : NULL;

        d->n_unread += unread(t);
        d->n_unread -= before.unread;
        if (before.holder) {
                before.holder->feed.n_leases--;
                before.holder->feed.taker.n_unread -= before.unread;
        }
        if (holder) {
                holder->feed.n_leases++;
                holder->feed.taker.n_unread += unread(t);
        }
}

struct executor *feeding_holder(const struct job *j, const struct task *t) {
        return t->place == TASK_LEASED && t->holder != j->data ? t->holder : NULL;
}

struct task **feeding_leases_of(struct job *j, const struct task *t) {
        if (t->place != TASK_LEASED)
                return NULL;
        return t->holder == j->data ? &j->data->limbo : &((struct executor *)t->holder)->feed.leases;
}

void feeding_adopt(struct job *j, struct task *t, struct executor *e) {
        struct job_data *d = j->data;
        struct task_before before = task_before(d, t);

        if (t->place == TASK_LEASED)
                data_return(d->data, t, feeding_leases_of(j, t));
        data_adopt(d->data, t, e, &e->feed.leases, now_boot());
        task_after(d, before, t);
}

static void give_back(struct job_data *d, struct task **leases) {
        struct task *t;

        DL_FOREACH2 (*leases, t, lease_next)
                d->n_unread -= unread(t);
        data_return_all(d->data, leases);
}

void feeding_give_back(struct job *j, struct executor *e) {
        give_back(j->data, &e->feed.leases);
        e->feed.n_leases = e->feed.taker.n_unread = 0;
}

/* ---- who wants tasks ---- */

void feeding_set_credits(struct executor *e, const struct taker_word *w) {
        struct taker_word word = *w;

        word.open = e->feed.open && !e->feed.last;
        word.idle = e->feed.n_leases == 0;
        takers_say(&e->job->data->takers, &e->feed.taker, &word, now_boot());
}

void feeding_wants_nothing(struct executor *e) {
        takers_out(&e->job->data->takers, &e->feed.taker);
}

uint32_t feeding_waiting(const struct job *j) {
        struct taker *t;
        uint32_t n = 0;

        for (enum taker_list l = TAKER_STARVED; j->data && l < _TAKER_LIST_MAX; l++)
                DL_FOREACH (j->data->takers.lists[l], t)
                        n += executor_of_taker(t)->feed.n_leases == 0;
        return n;
}

/* ---- who holds tasks that we do not know of, because we came up after they were granted ---- */

void feeding_unknown(struct executor *e) {
        struct job_data *d = e->job->data;

        if (!d || e->feed.leases_unknown || executor_role(e)->input_policy != INPUT_STREAMING)
                return;
        e->feed.leases_unknown = true;
        d->n_unknown++;
}

void feeding_between(struct executor *e) {
        struct job_data *d = e->job->data;

        if (d && d->input->ack == ACK_CHECKPOINT)
                feeding_unknown(e);
}

void feeding_known(struct executor *e) {
        struct job_data *d = e->job->data;

        if (!e->feed.leases_unknown)
                return;
        e->feed.leases_unknown = false;
        if (--d->n_unknown > 0 || !d->in_limbo)
                return;
        give_back(d, &d->limbo);
        d->in_limbo = false;
}

/* Executors on LOST hosts may be waited for until somebody declares these dead. They hold no more than tasks
 * that were made before this master came up, and all others may be granted. */
static int enter_limbo(struct job_data *d) {
        struct task *t = NULL;
        uint64_t id = 0;

        while ((t = data_next_task(d->data, id))) {
                id = t->id;
                if (t->place != TASK_PENDING)
                        continue;
                struct task_before before = task_before(d, t);
                data_adopt(d->data, t, d, &d->limbo, now_boot());
                task_after(d, before, t);
        }
        d->in_limbo = true;
        return 0;
}

/* A feeder that connects anew first reports what it holds and then says that it is open. */
static bool must_wait(struct job *j) {
        struct job_data *d = j->data;
        const struct executor *e;

        if (d->n_unknown == 0 || d->in_limbo)
                return false;
        for (uint32_t i = 0; i < j->n_executors; i++) {
                uint32_t k = (d->unknown + i) % j->n_executors;
                e = j->executors[k];
                /* One that is between two attempts says it when it is up: limbo is for that. */
                if (e->feed.leases_unknown && executor_state_holds(e->state) && e->node &&
                    e->node->state != NODE_LOST) {
                        d->unknown = k;
                        return true;
                }
        }
        DL_FOREACH2 (j->leavers.list, e, leaver.next)
                if (e->feed.leases_unknown && executor_state_holds(e->state) && e->node &&
                    e->node->state != NODE_LOST)
                        return true;
        enter_limbo(d);
        return false;
}

/* ---- messages ---- */

static int send_batch(struct executor *e, const uint8_t *grants, size_t size, bool last) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct grant_batch batch = { .grants = grants, .size = size, .last = last };

        TRY(feeding_message(e, "Grant", &message));
        TRY(grant_batch_append(message, &batch));
        return sd_bus_send(NULL, message, NULL);
}

static int append_grant(const struct task *t, uint8_t buf[static TASKS_WIRE_MAX], size_t *used) {
        struct task_grant g;

        data_grant(t, &g);
        return task_grant_write(&g, buf, TASKS_WIRE_MAX, used);
}

void feeding_grant_again(struct executor *e) {
        uint8_t buf[TASKS_WIRE_MAX];
        size_t used = 0;
        struct task *t;

        DL_FOREACH2 (e->feed.leases, t, lease_next) {
                /* It has told of this one: it has it. There may be a million under input.ack exit. One of
                 * which nothing is read may only be claimed (checkpoint). */
                if ((t->told == feeding_told(e) && t->read != t->read_before) ||
                    append_grant(t, buf, &used) >= 0)
                        continue;
                if (send_batch(e, buf, used, false) < 0)
                        return;
                used = 0;
                (void)append_grant(t, buf, &used);
        }
        if (used > 0)
                (void)send_batch(e, buf, used, false);
}

/* ---- granting ---- */

/* Up to n tasks, in one message. How many; 0: there is none; or the error with which sending failed. */
static int grant_some(struct job_data *d, struct executor *e, uint32_t n, uint64_t now) {
        struct task *given[TAKERS_CREDITS_MAX];
        uint8_t buf[TASKS_WIRE_MAX];
        size_t used = 0;
        uint32_t k = 0;
        int r = 0;

        while (k < n && (given[k] = data_lease(d->data, e, &e->feed.leases, now))) {
                if (append_grant(given[k], buf, &used) < 0) {
                        data_return(d->data, given[k], &e->feed.leases);
                        break;
                }
                task_after(d, (struct task_before){}, given[k]);
                k++;
        }
        if (k == 0)
                return 0;
        r = send_batch(e, buf, used, false);
        for (; r < 0 && k > 0; k--) {
                struct task *t = given[k - 1];
                struct task_before before = task_before(d, t);
                data_return(d->data, t, &e->feed.leases);
                task_after(d, before, t);
        }
        return r < 0 ? r : (int)k;
}

/* Executors that are up, or will be in a moment. */
static uint32_t n_fed(const struct job *j) {
        uint32_t n = 0;

        for (size_t i = 0; i < j->spec->n_roles; i++)
                if (j->spec->roles[i].input_policy == INPUT_STREAMING)
                        n += j->roles[i].n_state[EXECUTOR_PLACED] + j->roles[i].n_state[EXECUTOR_STARTING] +
                             j->roles[i].n_state[EXECUTOR_RUNNING];
        return n;
}

static void grant_all(struct job *j) {
        struct job_data *d = j->data;
        struct takers_turn turn;
        struct data_totals totals;
        struct taker *t;
        uint32_t wanted;

        data_totals(d->data, &totals);
        turn = takers_begin(totals.pending, n_fed(j), now_boot());
        while ((t = takers_next(&d->takers, &turn, &wanted))) {
                struct executor *e = executor_of_taker(t);
                int n = feeding_tell_sources(e) ? grant_some(d, e, wanted, turn.now) : -ENOBUFS;

                if (n == 0)
                        return;
                if (n < 0) { /* it says anew what it wants when its host is back */
                        takers_out(&d->takers, t);
                        continue;
                }
                takers_gave(&d->takers, &turn, t, (uint32_t)n);
                d->n_granted += (uint64_t)n;
        }
}

/* End of file may be promised when nothing is left that could still come back from a holder before it is
 * read: a task that was read to its end is only waiting for its acknowledgement, which for most modes comes
 * with the trainer's exit. */
static bool promise_end_to(struct executor *e) {
        if (!e->feed.open || e->feed.last || send_batch(e, NULL, 0, true) < 0)
                return false;
        e->feed.last = true;
        e->job->data->n_to_tell--;
        feeding_wants_nothing(e);
        return true;
}

static void promise_end(struct job *j) {
        for (uint32_t i = 0; j->data->n_to_tell > 0 && i < j->n_executors; i++)
                (void)promise_end_to(j->executors[i]);
}

/* Whether somebody holds tasks on a host that cannot be reached: nothing is heard of what is read there, and
 * others may have to read it instead. */
static bool holder_is_away(const struct job *j) {
        const struct executor *e;

        JOB_FOREACH (j, e) {
                if (e->feed.leases_unknown ||
                    (e->feed.taker.n_unread > 0 && (!e->node || e->node->state != NODE_READY)))
                        return true;
        }
        return false;
}

/* Nothing is left but what is held. Returns when to look again. */
static uint64_t look_for_standstill(struct manager *m, struct job *j, uint64_t now) {
        struct job_data *d = j->data;
        struct data_totals totals;
        struct taker *t, *next;
        uint64_t again = UINT64_MAX;

        data_totals(d->data, &totals);
        if (d->still_since == 0 || d->still_read != totals.read) {
                d->still_since = now;
                d->still_read = totals.read;
        }
        if (now < usec_add(d->still_since, STILL_TOLD_USEC))
                return usec_add(d->still_since, STILL_TOLD_USEC);
        if (holder_is_away(j)) {
                d->still_since = now;
                return usec_add(now, STILL_ALONE_USEC);
        }
        for (enum taker_list l = TAKER_STARVED; l < _TAKER_LIST_MAX; l++)
                DL_FOREACH_SAFE (d->takers.lists[l], t, next) {
                        bool alone = t->n_unread == d->n_unread;
                        uint64_t due = usec_add(d->still_since, !alone      ? STILL_USEC
                                                                : t->speaks ? STILL_TOLD_USEC
                                                                            : STILL_ALONE_USEC);

                        if (t->speaks && t->hungry == 0)
                                continue; /* nobody waits there */
                        if (now < due)
                                again = MIN(again, due);
                        else if (promise_end_to(executor_of_taker(t)))
                                record_event(m, j, "data-still", executor_of_taker(t),
                                             "waits for data, nothing has been read for %u s, and nothing is "
                                             "left but what is held already: it is told that no more comes",
                                             (unsigned)((now - d->still_since) / USEC_PER_SEC));
                }
        return again;
}

static int on_wake(sd_event_source *s, uint64_t usec, void *userdata) {
        struct job *j = userdata;

        j->data->wake_usec = 0;
        feeding_run(j->manager, j);
        return 0;
}

static void wake_at(struct job *j, uint64_t usec) {
        struct job_data *d = j->data;
        int r;

        if (d->wake_usec > 0 && d->wake_usec <= usec)
                return;
        if (!d->wake_timer)
                r = sd_event_add_time(j->manager->event, &d->wake_timer, CLOCK_BOOTTIME, usec,
                                      10 * USEC_PER_MSEC, on_wake, j);
        else {
                r = sd_event_source_set_time(d->wake_timer, usec);
                if (r >= 0)
                        r = sd_event_source_set_enabled(d->wake_timer, SD_EVENT_ONESHOT);
        }
        if (r >= 0)
                d->wake_usec = usec;
}

static uint32_t wanted_of(struct job_data *d) {
        uint64_t now = now_boot();

        if (now >= usec_add(d->granted_since, USEC_PER_SEC)) {
                d->ahead = d->n_granted / AHEAD_PART * USEC_PER_SEC / (now - d->granted_since);
                d->n_granted = 0;
                d->granted_since = now;
        }
        return (uint32_t)MIN(d->takers.credits + AHEAD + MAX(d->ahead, d->n_granted / AHEAD_PART),
                             (uint64_t)WANTED_MAX);
}

/* When all data is read, executors have so long to end; then the job has succeeded, also where the last of it
 * would be acknowledged by their end alone. The time begins anew with a new masterd. */
static void bound_end(struct manager *m, struct job *j) {
        char limit[FORMAT_DURATION_MAX], text[FEEDING_SHORT_MAX];
        struct job_data *d = j->data;
        uint64_t now = now_boot(), due;

        if (j->spec->end_wait_usec == 0)
                return;
        if (d->read_boot == 0)
                d->read_boot = now;
        due = usec_add(d->read_boot, j->spec->end_wait_usec);
        if (now < due) {
                wake_at(j, due);
                return;
        }
        if (feeding_short(j, text, sizeof(text))) {
                m->up->job_stop(m, j, JOB_EVENT_FAILED, text);
                return;
        }
        snprintf(text, sizeof(text),
                 "all data is read; what had not ended %s later was stopped (gracefulShutdownTimeWaitSec)",
                 format_duration(j->spec->end_wait_usec, limit, sizeof(limit)));
        m->up->job_stop(m, j, JOB_EVENT_SUCCEEDED, text);
}

static void all_is_read(struct manager *m, struct job *j) {
        promise_end(j);
        bound_end(m, j);
}

static void run(struct manager *m, struct job *j) {
        struct job_data *d = j->data;
        uint64_t due;
        int r;

        if ((j->state != JOB_STARTING && j->state != JOB_RUNNING) || m->serving_boot == 0) {
                d->still_since = 0;
                return;
        }
        if (feeding_check(m, j)) {
                if (d->finished)
                        all_is_read(m, j);
                return;
        }
        if (must_wait(j))
                return;
        r = data_prepare(d->data, wanted_of(d));
        if (r == DATA_MISSING)
                feeding_ask_files(m, j);
        else if (r < 0) /* memory: the next report is another chance */
                log_full(LOG_ERR, r, &(struct log_fields){ .job = j->number }, "Cannot make tasks of job %u",
                         j->number);
        grant_all(j);
        feeding_flush_soon(m, j);
        if (!data_exhausted(d->data) || d->n_unread > 0)
                d->read_boot = 0;
        if (data_exhausted(d->data)) {
                uint64_t now = now_boot();

                if (d->n_unread == 0) {
                        all_is_read(m, j);
                        return;
                }
                if (takers_any(&d->takers)) {
                        due = look_for_standstill(m, j, now);
                        if (takers_any(&d->takers))
                                wake_at(j, MIN(due, usec_add(now, feeding_trim(m, j))));
                }
        } else if (takers_any(&d->takers)) {
                due = MIN(data_next_due(d->data), takers_due(&d->takers));
                if (due != UINT64_MAX)
                        wake_at(j, due);
        }
}

void feeding_run(struct manager *m, struct job *j) {
        uint64_t due;

        if (!j->data)
                return;
        run(m, j);
        due = feeding_look_for_starved(m, j, now_boot());
        if (due != UINT64_MAX)
                wake_at(j, due);
}
