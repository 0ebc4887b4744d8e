/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the threads of gangs that go in step, so that the one is found that sleeps or waits for storage
 * while the others wait for it (masterd/health/apart.c). Invariant: a host answers at most PER_HOST of these
 * at a time, whosever they are, so that its places for captures are there for people. */
#include "lib/base/clock.h"
#include "lib/wire/capture.h"
#include "masterd/core/manager.h"
#include "masterd/health/frames.h"
#include "masterd/link/orders.h"
#include "masterd/watch/healing-parts.h"
#include "masterd/watch/watch-parts.h"

#define PER_HOST 2u
/* Of a job, at a time, and of all of them. */
#define PEEKS_MAX 32u
#define PEEKS_OF_ALL 256u
/* However short the rule is: as often as is judged. A rule of 80 s or more has its looks less often. */
#define EVERY_LEAST (2 * USEC_PER_SEC)

static void on_peeked(struct manager *m, struct executor *e, const struct capture_thread *threads, size_t n,
                      const char *error, void *userdata) {
        const struct capture_thread *of[TRAINER_THREADS_MAX];
        enum health_wait waits[TRAINER_THREADS_MAX];
        bool mains[TRAINER_THREADS_MAX];
        char frame[FRAME_MAX];
        const char *place = NULL;
        size_t k;

        if (!e)
                return; /* its attempt is over, and what was asked with it */
        e->watch.peeking = 0;
        if (error || !e->job->health || e->state != EXECUTOR_RUNNING)
                return;
        k = trainer_threads(threads, n, of);
        for (size_t i = 0; i < k; i++) {
                waits[i] = (enum health_wait)of[i]->class;
                mains[i] = of[i]->pid == of[i]->tid;
                if (!place && of[i]->python && frame_innermost(of[i]->python, frame))
                        place = frame;
        }
        health_look(e->job->health->gang, e->role, e->index, waits, mains, k, place);
}

static bool is_asked(const struct executor *e) {
        return e->watch.peeking && e->watch.peeking == e->attempt;
}

static bool is_free(const struct node *node) {
        size_t same = 0;

        for (const struct executor *e = node->executors; e; e = e->node_next)
                same += is_asked(e);
        return same < PER_HOST;
}

static size_t count_asked(const struct job *j) {
        size_t n = 0;

        /* Those that are still being asked hold their places. */
        for (uint32_t i = 0; j->health && i < j->n_executors; i++)
                n += is_asked(j->executors[i]);
        return n;
}

/* Returns how many it has asked. */
static size_t peek(struct manager *m, struct job *j, size_t most, uint64_t now_usec) {
        size_t n = 0;

        most = MIN(most, sub_sat(PEEKS_MAX, count_asked(j)));
        for (uint32_t i = 0; i < j->n_executors && n < most; i++) {
                struct executor *e = j->executors[(j->health->peeked + i) % j->n_executors];
                uint64_t every = 0;
                enum health_looked what;

                if (e->watch.peeking == e->attempt || !e->node || !healing_counts(m, e, VERDICT_STRAGGLER))
                        continue;
                what = health_wants_look(j->health->gang, e->role, e->index, now_usec, &every);
                if (what == LOOK_NONE || usec_sub(now_usec, e->watch.peeked_usec) < MAX(every, EVERY_LEAST) ||
                    !is_free(e->node))
                        continue;
                if (orders_capture(m, e, what == LOOK_PLACE ? CAPTURE_PYTHON : 0, on_peeked, NULL) < 0)
                        continue;
                e->watch.peeking = e->attempt;
                e->watch.peeked_usec = now_usec;
                n++;
        }
        /* With more than can be asked at once, others come first the next time. */
        j->health->peeked = j->n_executors > 0 ? (j->health->peeked + PEEKS_MAX) % j->n_executors : 0;
        return n;
}

void healing_peek(struct manager *m, uint64_t now_usec) {
        struct job *first = manager_job(m, m->watch->peek_first) ?: m->jobs.by_number, *j;
        size_t most = PEEKS_OF_ALL;

        for (j = m->jobs.by_number; j; j = j->hh.next)
                most -= MIN(most, count_asked(j));
        j = first;
        while (j && most > 0) {
                if (j->health && !j->health->paused && !job_state_ended(j->state))
                        most -= peek(m, j, most, now_usec);
                j = j->hh.next ?: m->jobs.by_number;
                if (j == first)
                        break;
        }
        m->watch->peek_first = j ? j->number : 0; /* whoever has had no turn is the first the next time */
}
