/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that wait for others. Invariants: that a dependency holds is recorded with the end it follows from, so
 * one that is not recorded is of a job that is active, or can never hold; a job's end costs as much as there
 * are jobs that wait for it; a chain of any length is ended in a loop, not by recursion. */
#include "masterd/life/depend.h"

#include <string.h>
#include <uthash.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "lib/base/when.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/job/array.h"
#include "masterd/job/dependency.h"
#include "masterd/job/suspend.h"
#include "masterd/life/life-parts.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/suspension.h"
#include "masterd/queue/queueing.h"

/* What is waited for: a job, or an element of an array, which may not be made yet. */
struct awaited {
        uint32_t number, index; /* AFTER_WHOLE */
};

/* Those that wait for one of them. */
struct dependents {
        struct awaited key;
        uint32_t *waiting; /* numbers */
        size_t n;
        UT_hash_handle hh;
};

static bool met(const struct job *j, uint32_t i) {
        return j->depend.met & (UINT64_C(1) << i);
}

static bool all_met(const struct job *j) {
        for (uint32_t i = 0; i < j->depend.n_after; i++)
                if (!met(j, i))
                        return false;
        return true;
}

bool depend_holds_back(const struct job *j) {
        return j->state == JOB_QUEUED && j->started_real == 0 && (j->depend.begin_timer || !all_met(j));
}

int depend_prepare(struct job *j) {
        const struct array_spec *spec = &j->spec->array;
        struct after_entry *after;
        int r = 0;

        if (spec->begin)
                r = when_parse_absolute(spec->begin, &j->depend.begin_real);
        if (r < 0 || spec->n_after == 0)
                return r;
        after = calloc(spec->n_after, sizeof(*after));
        if (!after)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < spec->n_after && i < AFTER_MAX; i++)
                r = after_parse(spec->after[i], after + i);
        if (r < 0) {
                free(after);
                return r;
        }
        j->depend.after = after;
        j->depend.n_after = (uint32_t)MIN(spec->n_after, (size_t)AFTER_MAX);
        return 0;
}

/* ---- the table ---- */

static struct dependents *find(struct manager *m, struct awaited key) {
        struct dependents *d;

        HASH_FIND(hh, m->life->dependents, &key, sizeof(key), d);
        return d;
}

static struct awaited awaited_of(const struct after_entry *e) {
        return (struct awaited){ e->job, e->index };
}

static struct awaited whole(const struct job *j) {
        return (struct awaited){ j->number, AFTER_WHOLE };
}

static struct awaited element(const struct job *j) {
        return (struct awaited){ j->element.array, j->element.index };
}

static void drop(struct manager *m, struct dependents *d) {
        HASH_DEL(m->life->dependents, d);
        free(d->waiting);
        free(d);
}

static int add(struct manager *m, struct awaited key, uint32_t waiting) {
        struct dependents *d = find(m, key);
        uint32_t *bigger;

        if (!d) {
                d = calloc(1, sizeof(*d));
                if (!d)
                        return -ENOMEM;
                d->key = key;
                HASH_ADD(hh, m->life->dependents, key, sizeof(d->key), d);
        }
        for (size_t i = 0; i < d->n; i++)
                if (d->waiting[i] == waiting)
                        return 0;
        if ((d->n & (d->n - 1)) == 0) { /* a power of two: it is full */
                bigger = reallocarray(d->waiting, MAX(d->n * 2, (size_t)1), sizeof(*bigger));
                if (!bigger) {
                        if (d->n == 0)
                                drop(m, d);
                        return -ENOMEM;
                }
                d->waiting = bigger;
        }
        d->waiting[d->n++] = waiting;
        return 0;
}

static void forget(struct manager *m, struct job *j) {
        j->depend.begin_timer = sd_event_source_disable_unref(j->depend.begin_timer);
        for (uint32_t i = 0; i < j->depend.n_after; i++) {
                struct dependents *d = find(m, awaited_of(j->depend.after + i));
                for (size_t k = 0; d && k < d->n; k++)
                        if (d->waiting[k] == j->number) {
                                memmove(d->waiting + k, d->waiting + k + 1,
                                        (d->n - k - 1) * sizeof(*d->waiting));
                                if (--d->n == 0)
                                        drop(m, d);
                                break;
                        }
        }
}

uint32_t depend_waiting(struct manager *m, uint32_t number) {
        struct job *j, *next;
        uint32_t found = 0;

        HASH_ITER (hh, m->jobs.by_number, j, next)
                for (uint32_t i = 0; i < j->depend.n_after && depend_holds_back(j); i++)
                        if (j->depend.after[i].job == number && (found == 0 || j->number < found))
                                found = j->number;
        return found;
}

void depend_free(struct manager *m) {
        struct dependents *d, *next;

        HASH_ITER (hh, m->life->dependents, d, next)
                drop(m, d);
}

/* ---- what is said ---- */

#define NAMED_MAX 3u

static const char *state_text(struct manager *m, const struct job *j, uint32_t index) {
        uint32_t position;

        if (index != AFTER_WHOLE && j->array && array_find(j->array, index, &position) >= 0) {
                const struct job *e = manager_job(m, j->array->jobs[position]);
                if (j->array->states[position] == ELEMENT_UNMADE || !e)
                        return "not begun";
                j = e;
        }
        return job_state_to_string(j->state);
}

char *depend_text(struct manager *m, const struct job *j, bool begins, char *buf, size_t size) {
        char time[FORMAT_TIME_MAX], name[AFTER_NAME_MAX];
        size_t l = 0;
        uint32_t n = 0, more = 0;

        buf[0] = 0;
        for (uint32_t i = 0; i < j->depend.n_after; i++) {
                struct job *other = met(j, i) ? NULL : manager_job(m, j->depend.after[i].job);
                if (!other)
                        continue;
                if (n++ >= NAMED_MAX) {
                        more++;
                        continue;
                }
                l += (size_t)snprintf(buf + l, size - l, "%s job %s (%s)", n == 1 ? "after" : ",",
                                      after_name(j->depend.after + i, name),
                                      state_text(m, other, j->depend.after[i].index));
        }
        if (more > 0)
                l += (size_t)snprintf(buf + l, size - l, " and %u more", more);
        if (begins)
                snprintf(buf + l, size - l, "%sbegins at %s", l > 0 ? "; " : "",
                         format_time(j->depend.begin_real, time, sizeof(time)));
        return buf;
}

static void say_reason(struct manager *m, struct job *j) {
        char text[DEPEND_TEXT_MAX];

        (void)depend_text(m, j, j->depend.begin_timer, text, sizeof(text));
        if (job_held_back(j) || (j->reason && strcmp(j->reason, text) == 0))
                return;
        (void)text_set(&j->reason, *text ? "%s" : NULL, text);
        lifecycle_job_changed(m, j);
}

/* What it waits for has changed. */
static void review(struct manager *m, struct job *j) {
        if (j->state != JOB_QUEUED || j->started_real > 0)
                return;
        say_reason(m, j);
        if (depend_holds_back(j))
                return;
        record_event(m, j, "released", NULL, "waits for its place from now on");
        placement_enqueue(m, j);
}

/* ---- ends ---- */

/* One that waited for what is in that state. */
static void judge(struct manager *m, struct job *j, struct awaited key, enum job_state state) {
        char text[DEPENDENCY_TEXT_MAX], name[AFTER_NAME_MAX];

        for (uint32_t i = 0; i < j->depend.n_after; i++) {
                const struct after_entry *e = j->depend.after + i;
                if (e->job != key.number || e->index != key.index || met(j, i))
                        continue;
                switch (dependency_judge(e->condition, state)) {
                case DEPENDENCY_WAITS:
                        break;
                case DEPENDENCY_HOLDS:
                        j->depend.met |= UINT64_C(1) << i;
                        (void)after_name(e, name);
                        record_event(m, j, "dependency", NULL, "job %s %s (after %s:%s)", name,
                                     job_state_to_string(state), name,
                                     after_condition_to_string(e->condition));
                        /* Also when its reason stays as it is: that it holds has to be on disk. */
                        record_job(m, j, false);
                        break;
                case DEPENDENCY_NEVER:
                        lifecycle_stop_job(m, j, JOB_EVENT_KILLED,
                                           dependency_never_text(e, state, text, sizeof(text)));
                        return;
                }
        }
}

/* How that element stands: false where it has not ended. One that an array which is over has never made is
 * one that was killed. */
static bool element_ended(const struct job *array, uint32_t index, enum job_state *ret) {
        uint32_t position;
        int r = array_find(array->array, index, &position);
        enum element_state s = r >= 0 ? array->array->states[position] : ELEMENT_KILLED;

        if (s == ELEMENT_SUCCEEDED)
                *ret = JOB_SUCCEEDED;
        else if (s == ELEMENT_FAILED)
                *ret = JOB_FAILED;
        else if (s == ELEMENT_KILLED || job_state_ended(array->state))
                *ret = JOB_KILLED;
        else
                return false;
        return true;
}

static void settle_key(struct manager *m, struct awaited key, enum job_state state) {
        struct dependents *d = find(m, key);

        if (!d)
                return;
        HASH_DEL(m->life->dependents, d);
        for (size_t i = 0; i < d->n; i++) {
                struct job *waiting = manager_job(m, d->waiting[i]);
                if (!waiting || job_state_ended(waiting->state))
                        continue;
                judge(m, waiting, key, state);
                review(m, waiting);
        }
        free(d->waiting);
        free(d);
}

static void settle(struct manager *m, struct job *j) {
        enum job_state state;

        settle_key(m, whole(j), j->state);
        if (j->element.array > 0)
                settle_key(m, element(j), j->state);
        /* Elements that were never made have no end of their own. */
        for (uint32_t i = 0; j->array && m->life->dependents && i < j->array->range.n; i++)
                if (element_ended(j, j->array->range.indices[i], &state))
                        settle_key(m, (struct awaited){ j->number, j->array->range.indices[i] }, state);
}

void depend_job_ended(struct manager *m, struct job *j) {
        bool first = !m->life->settling;

        forget(m, j);
        if (first)
                m->life->settling_end = &m->life->settling;
        j->depend.settle_next = NULL;
        *m->life->settling_end = j;
        m->life->settling_end = &j->depend.settle_next;
        if (!first)
                return; /* whoever is first goes on to it */
        while (m->life->settling) {
                /* It stays in the list meanwhile, or the next would think itself the first. */
                settle(m, m->life->settling);
                m->life->settling = m->life->settling->depend.settle_next;
        }
}

static void say_reasons(struct manager *m, struct awaited key) {
        struct dependents *d = find(m, key);

        for (size_t i = 0; d && i < d->n; i++) {
                struct job *waiting = manager_job(m, d->waiting[i]);
                if (waiting && waiting->state == JOB_QUEUED)
                        say_reason(m, waiting);
        }
}

void depend_job_changed(struct manager *m, struct job *j) {
        if (job_state_ended(j->state))
                return;
        say_reasons(m, whole(j));
        if (j->element.array > 0)
                say_reasons(m, element(j));
}

/* ---- begin ---- */

static int on_begin(sd_event_source *s, uint64_t usec, void *userdata) {
        struct job *j = userdata;

        j->depend.begin_timer = sd_event_source_disable_unref(j->depend.begin_timer);
        review(j->manager, j);
        return 0;
}

static bool ended(const struct job *j, uint32_t index, enum job_state *ret) {
        if (index != AFTER_WHOLE && j->array)
                return element_ended(j, index, ret);
        *ret = j->state;
        return job_state_ended(j->state);
}

char *depend_foresee(struct manager *m, struct job *j, char *buf, size_t size, bool *ret_never) {
        *ret_never = false;
        for (uint32_t i = 0; i < j->depend.n_after; i++) {
                const struct after_entry *e = j->depend.after + i;
                const struct job *other = met(j, i) ? NULL : manager_job(m, e->job);
                enum dependency says = met(j, i) || other ? DEPENDENCY_WAITS : DEPENDENCY_NEVER;
                enum job_state state = JOB_KILLED;

                if (other && ended(other, e->index, &state))
                        says = dependency_judge(e->condition, state);
                if (says == DEPENDENCY_HOLDS)
                        j->depend.met |= UINT64_C(1) << i;
                if (says != DEPENDENCY_NEVER)
                        continue;
                *ret_never = true;
                if (other)
                        return dependency_never_text(e, state, buf, size);
                snprintf(buf, size, "%s", j->reason ?: "a job that it is to wait for is not known");
                return buf;
        }
        return depend_text(m, j, j->depend.begin_real > now_real(), buf, size);
}

void depend_watch(struct manager *m, struct job *j) {
        char text[128];
        int r = 0;

        if (j->state != JOB_QUEUED || j->started_real > 0)
                return;
        /* By the wall clock, and right when that is set: the kernel compares with what it shows. */
        if (j->depend.begin_real > now_real() && !j->depend.begin_timer)
                r = sd_event_add_time(m->event, &j->depend.begin_timer, CLOCK_REALTIME, j->depend.begin_real,
                                      USEC_PER_MSEC, on_begin, j);
        for (uint32_t i = 0; r >= 0 && i < j->depend.n_after && !job_state_ended(j->state); i++) {
                struct job *other = met(j, i) ? NULL : manager_job(m, j->depend.after[i].job);
                struct awaited key = awaited_of(j->depend.after + i);
                enum job_state state;
                if (met(j, i))
                        continue;
                if (other && ended(other, key.index, &state)) {
                        judge(m, j, key, state);
                        continue;
                }
                if (other) {
                        r = add(m, key, j->number);
                        continue;
                }
                /* depend_ask() has left its word; else it was forgotten between two starts of this program.
                 */
                snprintf(text, sizeof(text), "%s",
                         j->reason ? j->reason : "a job that it was to wait for is not known any more");
                lifecycle_stop_job(m, j, JOB_EVENT_KILLED, text);
        }
        if (r < 0)
                lifecycle_stop_job(m, j, JOB_EVENT_FAILED, "cannot wait for other jobs: out of memory");
        if (!job_state_ended(j->state) && depend_holds_back(j))
                say_reason(m, j);
}

/* ---- looking up ---- */

struct question {
        struct manager *manager;
        struct job *job;
        uint64_t told; /* a bit for each entry that the store has told of */
        uint32_t at;   /* the one that it is asked for */
        depend_done_t done;
        void *userdata;
};

static int ask_next(struct question *q);

static void answer(struct question *q, int error, const struct after_entry *unknown) {
        char name[AFTER_NAME_MAX];

        q->done(q->userdata, error, unknown ? after_name(unknown, name) : NULL);
        free(q);
}

/* What the store tells of the entry that it was asked for. */
static void told(struct question *q, enum job_state state) {
        struct job *j = q->job;
        const struct after_entry *e = j->depend.after + q->at;
        char text[DEPENDENCY_TEXT_MAX];
        int r = 0;

        q->told |= UINT64_C(1) << q->at;
        switch (dependency_judge(e->condition, state)) {
        case DEPENDENCY_WAITS: /* has just come into memory */
                break;
        case DEPENDENCY_HOLDS:
                j->depend.met |= UINT64_C(1) << q->at;
                break;
        case DEPENDENCY_NEVER:
                if (!j->reason)
                        r = text_set(&j->reason, "%s", dependency_never_text(e, state, text, sizeof(text)));
                break;
        }
        if (r >= 0)
                r = ask_next(q);
        if (r < 0)
                answer(q, r, NULL);
}

static void on_job(void *userdata, int error, const struct job_record *jobs, size_t n) {
        struct question *q = userdata;
        const struct after_entry *e = q->job->depend.after + q->at;

        if (error < 0)
                answer(q, error, NULL);
        else if (n == 0 || jobs[0].number != e->job)
                answer(q, 0, e);
        else
                told(q, (enum job_state)jobs[0].state);
}

/* Its latest run comes first. One that an array which is over has not made is not there. */
static void on_element(void *userdata, int error, const struct element_record *elements, size_t n) {
        struct question *q = userdata;

        if (error < 0)
                answer(q, error, NULL);
        else if (n == 0)
                answer(q, 0, q->job->depend.after + q->at);
        else
                told(q, (enum job_state)elements[0].state);
}

static bool has(const struct job *j, const struct after_entry *e) {
        uint32_t position;

        return e->index == AFTER_WHOLE || (j->array && array_find(j->array, e->index, &position) >= 0);
}

/* Begins from the front each time: a job that was in memory may have left it while the store was asked. */
static int ask_next(struct question *q) {
        const struct job *j = q->job;

        for (q->at = 0; q->at < j->depend.n_after; q->at++) {
                const struct after_entry *e = j->depend.after + q->at;
                const struct job *other = manager_job(q->manager, e->job);
                if (met(j, q->at) || q->told & (UINT64_C(1) << q->at))
                        continue;
                if (other && !has(other, e)) {
                        answer(q, 0, e);
                        return 0;
                }
                if (other)
                        continue;
                if (e->index != AFTER_WHOLE)
                        return store_query_elements(q->manager->store, e->job, e->index, on_element, q);
                return store_query_jobs(q->manager->store,
                                        &(struct store_job_filter){ .all = true,
                                                                    .elements = true,
                                                                    .state = -1,
                                                                    .before = e->job + 1, /* 0: no bound */
                                                                    .limit = 1 },
                                        on_job, q);
        }
        answer(q, 0, NULL);
        return 0;
}

int depend_ask(struct manager *m, struct job *j, depend_done_t done, void *userdata) {
        struct question *q;
        int r;

        if (j->depend.n_after == 0) {
                done(userdata, 0, NULL);
                return 0;
        }
        q = malloc(sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = (struct question){ .manager = m, .job = j, .done = done, .userdata = userdata };
        r = ask_next(q);
        if (r < 0)
                free(q);
        return r;
}
