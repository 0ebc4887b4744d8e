/* SPDX-License-Identifier: Apache-2.0 */
/* What the feeder says to agentd. Invariant: on a new connection it first says what it holds, so that none of
 * it is granted to somebody else, and then that it is ready for more. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "executor/feed/feed-internal.h"
#include "executor/read/kafka.h"

#define PROGRESS_APART (100 * USEC_PER_MSEC) /* reports of mere progress */
#define COUNTERS_APART USEC_PER_SEC
#define BATCH_MAX 1024u

void report_anew(struct feed *f) {
        f->announced = false;
        f->bye_sent = false;
        tasks_report_anew(&f->tasks);
}

/* What masterd is told that counts, the broker may know too: the group's offset. */
static void commit(struct feed *f, const struct task *t, const struct task_progress *p) {
#ifdef HAVE_KAFKA
        const struct input_source *source = f->input && t->grant.source < f->input->n_sources
                                                    ? f->input->sources + t->grant.source
                                                    : NULL;

        if (source && source->kind == SOURCE_KAFKA && p->acked > t->granted.position)
                (void)kafka_commit(source, t->grant.path, p->acked, p->state != TASK_RUNNING);
#endif
}

/* One report: what fits of the tasks that are to be reported. */
static int send_progress(struct feed *f, uint64_t now, uint32_t credits, struct hunger hunger) {
        struct feed_progress head = { .credits = credits,
                                      .flags = FEED_PROGRESS_HUNGRY,
                                      .hungry = (uint8_t)MIN(hunger.hungry, (uint32_t)UINT8_MAX),
                                      .unserved = (uint8_t)MIN(hunger.unserved, (uint32_t)UINT8_MAX) };
        uint8_t *array = f->packet + sizeof(head);
        struct task *batch[BATCH_MAX], *t;
        size_t n = 0, size = 0;
        int r;

        for (t = f->tasks.dirty; t && n < ELEMENTSOF(batch); t = t->dirty_next) {
                struct task_progress p = tasks_progress(&f->tasks, t);

                if (task_progress_write(&p, array, TASKS_WIRE_MAX, &size) < 0)
                        break; /* no room left */
                batch[n++] = t;
        }
        if (f->sync_due && (!t || n == 0)) { /* the number goes with the last of them */
                head.flags |= FEED_PROGRESS_SYNC;
                head.sync = f->sync;
        }
        head.counters = f->counters;
        memcpy(f->packet, &head, sizeof(head));
        r = session_send(&f->session, now, f->exited ? FEED_FINAL : FEED_PROGRESS, f->packet,
                         sizeof(head) + size);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                struct task_progress p = tasks_progress(&f->tasks, batch[i]);

                commit(f, batch[i], &p);
                tasks_reported(&f->tasks, batch[i], f->exited);
        }
        f->counters_told = f->counters;
        f->sync_due &= !(head.flags & FEED_PROGRESS_SYNC);
        return 0;
}

/* ---- what the trainer's checkpoint holds ---- */

/* Tasks that an earlier attempt had delivered, as far as the checkpoint says that the trainer goes on from:
 * they are this executor's, also where nobody else knows that any more. The master then grants them to it. */
struct claims {
        struct feed *feed;
        uint64_t now;
        size_t size;
};

static int send_claims(struct claims *c) {
        struct feed_progress head = { .counters = c->feed->counters };
        int r;

        if (c->size == 0)
                return 0;
        memcpy(c->feed->packet, &head, sizeof(head));
        r = session_send(&c->feed->session, c->now, FEED_PROGRESS, c->feed->packet, sizeof(head) + c->size);
        c->size = 0;
        return r;
}

static int claim(uint64_t task, void *userdata) {
        struct claims *c = userdata;
        const struct task_progress p = {
                .task = task, .end = TASK_TO_END, .state = TASK_RUNNING, .error = ""
        };
        uint8_t *array = c->feed->packet + sizeof(struct feed_progress);
        int r;

        if (tasks_find(&c->feed->tasks, task))
                return 0; /* reported as it is */
        r = task_progress_write(&p, array, TASKS_WIRE_MAX, &c->size);
        if (r != -ENOBUFS)
                return r;
        r = send_claims(c);
        return r < 0 ? r : task_progress_write(&p, array, TASKS_WIRE_MAX, &c->size);
}

static int claim_all(struct feed *f, uint64_t now) {
        struct claims c = { .feed = f, .now = now };
        int r = checkpoint_each(&f->checkpoint, claim, &c);

        return r < 0 ? r : send_claims(&c);
}

static int send_bye(struct feed *f, uint64_t now) {
        char text[64] = "";
        struct feed_bye bye = { .failed = f->status != 0 };

        if (WIFSIGNALED(f->status))
                snprintf(text, sizeof(text), "the trainer was killed by signal %d", WTERMSIG(f->status));
        else if (f->status != 0)
                snprintf(text, sizeof(text), "the trainer exited with status %d", WEXITSTATUS(f->status));
        bye.text_size = (uint32_t)strlen(text);
        memcpy(f->packet, &bye, sizeof(bye));
        memcpy(f->packet + sizeof(bye), text, bye.text_size);
        return session_send(&f->session, now, FEED_BYE, f->packet, sizeof(bye) + bye.text_size);
}

static int send_open(struct feed *f, uint64_t now, uint32_t credits) {
        struct feed_open open = { .credits = credits, .sources = (uint32_t)f->input->n_sources };
        size_t size = f->session.welcome.version < FEED_VERSION_SOURCES ? offsetof(struct feed_open, sources)
                                                                        : sizeof(open);
        int r = session_send(&f->session, now, FEED_OPEN, &open, size);

        if (r < 0)
                return r;
        f->announced = true;
        f->told = (struct told){ .credits = credits };
        return 0;
}

/* Whether there is something to be said now; else *ret_next: when. */
static bool is_due(struct feed *f, uint64_t now, uint32_t credits, struct hunger hunger, uint64_t *ret_next) {
        bool counted = memcmp(&f->counters, &f->counters_told, sizeof(f->counters)) != 0 ||
                       (told_has_changed(&f->told, hunger) && !f->exited);

        if (f->tasks.urgent || f->sync_due || told_is_news(&f->told, credits, hunger) ||
            (f->exited && f->tasks.dirty))
                return true;
        if (!f->tasks.dirty && !counted)
                return false;
        if (now >= f->next_report)
                return f->tasks.dirty || now >= f->next_report + COUNTERS_APART - PROGRESS_APART;
        *ret_next = f->next_report + (f->tasks.dirty ? 0 : COUNTERS_APART - PROGRESS_APART);
        return false;
}

int report_send(struct feed *f, uint64_t now, uint64_t *ret_next) {
        struct hunger hunger = {};
        uint32_t credits = 0;
        int r;

        *ret_next = USEC_INFINITY;
        if (f->session.state != SESSION_UP || f->child <= 0)
                return -ENOTCONN;
        if (!f->exited) {
                if (!f->tasks.last) /* else they wait for what others may leave behind */
                        hunger = f->delivery->hunger(f);
                credits = tasks_credits(&f->tasks, f->readers, hunger.unserved);
        }
        /* Under checkpoint it is the trainer's HELLO that says which tasks are its own. */
        if (!f->announced && f->ack == ACK_CHECKPOINT && !f->was_greeted && !f->exited)
                return 0;
        if (!f->announced) {
                if (!f->exited) {
                        r = claim_all(f, now);
                        if (r < 0)
                                return r;
                }
                while (f->tasks.dirty) {
                        r = send_progress(f, now, 0, hunger);
                        if (r < 0)
                                return r;
                }
                /* The last report waits at agentd for our end, and the master knows nothing of it: had we
                 * opened the feed, it would take the tasks for nobody's. */
                if (f->exited)
                        f->announced = true;
                else {
                        r = send_open(f, now, credits);
                        if (r < 0)
                                return r;
                }
        }
        if (is_due(f, now, credits, hunger, ret_next)) {
                do {
                        r = send_progress(f, now, credits, hunger);
                        if (r < 0)
                                return r;
                        f->told = (struct told){ credits, hunger };
                } while (f->tasks.dirty || f->sync_due);
                f->next_report = now + PROGRESS_APART;
        }
        if (f->exited && !f->bye_sent) {
                r = send_bye(f, now);
                if (r < 0)
                        return r;
                f->bye_sent = true;
        }
        return 0;
}
