/* SPDX-License-Identifier: Apache-2.0 */
/* What hung executors do: their threads are asked for, and of a gang that stands still the one is named that
 * does not wait where the others wait. Invariant: every answer finds its question, also when its verdict is
 * over by then. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/wire/capture.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/health/frames.h"
#include "masterd/link/orders.h"
#include "masterd/watch/healing-parts.h"

/* Of a larger gang so many are asked: who stands out among them is as good a hint. */
#define LOOK_MAX 256u
#define DETAIL_MAX 640u

_Static_assert((int)CAPTURE_OTHER == (int)WAIT_OTHER && (int)CAPTURE_FUTEX == (int)WAIT_FUTEX &&
                       (int)CAPTURE_STOPPED == (int)WAIT_STOPPED,
               "the engine's list of what threads wait in is the wire's");

struct look {
        struct looking *looking;
        uint32_t role, index;
        enum health_wait wait;
        char *detail; /* what its first thread does, or why that is not known */
        char *frame;  /* where its Python program is; NULL: not known, or none */
};

struct looking {
        struct manager *manager;
        uint32_t job;
        sd_id128_t job_uid;
        struct episode *episode; /* NULL: it is over */
        uint32_t n, n_open;
        struct look looks[];
};

static void looking_free(struct looking *l) {
        if (l->episode)
                l->episode->looking = NULL;
        for (uint32_t i = 0; i < l->n; i++) {
                free(l->looks[i].detail);
                free(l->looks[i].frame);
        }
        free(l);
}

void looking_abandon(struct episode *p) {
        if (p->looking)
                p->looking->episode = NULL;
        p->looking = NULL;
}

/* One line of what may be many. */
static void flatten(char *s) {
        for (; *s; s++)
                if (*s == '\n')
                        *s = ';';
}

static void describe(struct look *l, const struct capture_thread *t) {
        char buf[DETAIL_MAX];

        snprintf(buf, sizeof(buf), "%s (%" PRIu32 "): %s%s%s%s%.160s%s%.400s", t->name, t->pid,
                 capture_class_to_string(t->class), *t->call ? " in " : "", t->call,
                 t->stack && *t->stack ? ", kernel: " : "", t->stack ?: "",
                 t->python && *t->python ? ", python: " : "", t->python ?: "");
        flatten(buf);
        l->detail = strdup(buf);
}

/* What stands between systemd and the trainer says nothing about it. */
static bool is_ours(const struct capture_thread *t) {
        return strncmp(t->name, "primus-", strlen("primus-")) == 0;
}

size_t trainer_threads(const struct capture_thread *threads, size_t n,
                       const struct capture_thread *ret[static TRAINER_THREADS_MAX]) {
        bool own = false;
        size_t k = 0;

        for (size_t i = 0; i < n; i++)
                own |= !is_ours(threads + i);
        for (size_t i = 0; i < n && k < TRAINER_THREADS_MAX; i++)
                if (!own || !is_ours(threads + i))
                        ret[k++] = threads + i;
        return k;
}

static void note(struct look *l, const struct capture_thread *threads, size_t n) {
        const struct capture_thread *of[TRAINER_THREADS_MAX];
        enum health_wait waits[ELEMENTSOF(of)] = {};
        bool mains[ELEMENTSOF(of)] = {};
        char frame[FRAME_MAX];
        size_t k = trainer_threads(threads, n, of);

        for (size_t i = 0; i < k; i++) {
                waits[i] = (enum health_wait)of[i]->class;
                mains[i] = of[i]->pid == of[i]->tid;
        }
        l->wait = health_wait_of(waits, mains, k);
        for (size_t i = 0; i < k && !l->detail; i++)
                if (mains[i] && waits[i] == l->wait)
                        describe(l, of[i]);
        /* Of several programs, the one that was there first: it made the others, and waits for them. */
        for (size_t i = 0; i < k && !l->frame; i++)
                if (of[i]->python && frame_innermost(of[i]->python, frame))
                        l->frame = strdup(frame);
}

static void tell_one(struct manager *m, struct job *j, const struct look *l) {
        const struct executor *e = l->role < j->spec->n_roles && l->index < j->roles[l->role].spec->num
                                           ? j->roles[l->role].executors[l->index]
                                           : NULL;

        if (e)
                record_event(m, j, "threads", e, "%s", l->detail ?: "nothing is known of its threads");
}

/* The gang in a sentence, and two of them in detail: the odd one, and one of the others. */
static void tell_all(struct manager *m, struct job *j, struct looking *l) {
        size_t counts[_WAIT_MAX] = {}, used = 0, other = 0;
        enum health_wait waits[LOOK_MAX], usual = WAIT_UNKNOWN;
        char text[256] = "", places[512];
        const char *frames[LOOK_MAX];
        bool by_frame = false;
        int odd;

        for (uint32_t i = 0; i < l->n; i++) {
                counts[waits[i] = l->looks[i].wait]++;
                frames[i] = l->looks[i].frame;
        }
        for (size_t w = 0; w < _WAIT_MAX; w++)
                if (counts[w] > 0 && used < sizeof(text))
                        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%zu %s",
                                                 used ? ", " : "", counts[w],
                                                 health_wait_to_string((enum health_wait)w));
        if (counts[WAIT_UNKNOWN] == l->n)
                return; /* what its samples say is all there is */
        odd = health_odd_one(waits, l->n, &usual);
        for (other = 0; odd >= 0 && other < l->n && waits[other] != usual;)
                other++;
        if (odd < 0) {
                /* To the kernel they all wait alike; to their programs perhaps not. */
                odd = frames_odd_one(frames, l->n, &other);
                by_frame = odd >= 0;
        }
        frames_text(frames, l->n, places, sizeof(places));
        if (odd >= 0) {
                const struct look *o = l->looks + odd;

                l->episode->suspect_role = o->role;
                l->episode->suspect = o->index;
        }
        record_event(m, j, "odd-one", healing_executor(j, l->episode), "where they wait: %s%s%s; %s", text,
                     *places ? "; in Python: " : "", places,
                     odd < 0    ? "nobody stands out"
                     : by_frame ? "this one is elsewhere in its program than all the others"
                                : "this one does not wait where the others wait");
        if (odd >= 0 && other < l->n)
                tell_one(m, j, l->looks + other);
        tell_one(m, j, l->looks + MAX(odd, 0));
}

static void done(struct looking *l) {
        struct manager *m = l->manager;
        struct job *j = manager_job(m, l->job);
        struct episode *p = l->episode;

        if (!p || !j || !sd_id128_equal(j->uid, l->job_uid)) {
                looking_free(l);
                return;
        }
        if (p->role == EPISODE_ALL)
                tell_all(m, j, l);
        else
                tell_one(m, j, l->looks);
        looking_free(l);
        healing_act(m, j, p);
}

static void on_captured(struct manager *m, struct executor *e, const struct capture_thread *threads, size_t n,
                        const char *error, void *userdata) {
        struct look *l = userdata;

        if (error || !e)
                l->detail = strdup(error ?: "its attempt is over");
        else
                note(l, threads, n);
        if (--l->looking->n_open == 0)
                done(l->looking);
}

static void ask(struct manager *m, struct looking *l, struct executor *e) {
        struct look *k = l->looks + l->n++;

        *k = (struct look){ .looking = l, .role = e->role, .index = e->index, .wait = WAIT_UNKNOWN };
        l->n_open++;
        if (orders_capture(m, e, CAPTURE_PYTHON, on_captured, k) < 0) {
                k->detail = strdup("its host is not connected");
                l->n_open--;
        }
}

void healing_look(struct manager *m, struct job *j, struct episode *p) {
        struct executor *e = healing_executor(j, p);
        uint32_t n = p->role == EPISODE_ALL ? MIN(j->n_executors, LOOK_MAX) : 1;
        struct looking *l;

        if (p->looking)
                return;
        l = calloc(1, sizeof(*l) + n * sizeof(*l->looks));
        if (!l) {
                (void)log_oom();
                healing_act(m, j, p);
                return;
        }
        *l = (struct looking){ .manager = m, .job = j->number, .job_uid = j->uid, .episode = p };
        p->looking = l;
        /* Held open until all are asked. */
        l->n_open = 1;
        if (p->role == EPISODE_ALL) {
                for (uint32_t i = 0; i < j->n_executors && l->n < n; i++)
                        if (healing_counts(m, j->executors[i], p->kind))
                                ask(m, l, j->executors[i]);
        } else if (e)
                ask(m, l, e);
        if (--l->n_open == 0)
                done(l);
}
