/* SPDX-License-Identifier: Apache-2.0 */
/* Accounting. Invariants: of a job whose usage is known in memory the store has the same rows, or will have
 * when the open batch is on disk; an attempt is counted once, in the batch that records its end. */
#include "masterd/life/usage.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/job/held.h"
#include "masterd/job/sample.h"

#define ROWS_MAX 1000000u
#define ROLE_NAME_MAX 33u
#define DAYS_MAX 36525u /* of one attempt; more is a clock that is wrong */

#define PROCESSORS_MAX 8192u /* of a host */

/* One day of one role. */
struct day {
        uint32_t day;
        char role[ROLE_NAME_MAX]; /* its position may change while the job runs */
        uint64_t cpu_held, cpu_used, memory_held, gpu_held, attempts, unmeasured, gpu_used, gpu_measured;
};

struct usage {
        size_t n, allocated;
        struct day days[];
};

/* Elements count under the number of their array. */
static struct job *root_of(struct manager *m, struct job *j) {
        struct job *array = j->element.array > 0 ? manager_job(m, j->element.array) : NULL;

        return array ? array : j;
}

static struct day *day_get(struct job *j, uint32_t day, const char *role) {
        struct usage *u = j->usage;

        /* The latest first: that is the one that is wanted nearly always. */
        for (size_t i = u ? u->n : 0; i > 0; i--)
                if (u->days[i - 1].day == day && strcmp(u->days[i - 1].role, role) == 0)
                        return u->days + i - 1;
        if (!u || u->n == u->allocated) {
                size_t n = u ? u->n : 0, allocated = n ? n * 2 : 4;
                u = realloc(u, sizeof(*u) + allocated * sizeof(u->days[0]));
                if (!u)
                        return NULL;
                u->n = n;
                u->allocated = allocated;
                j->usage = u;
        }
        u->days[u->n] = (struct day){ .day = day };
        snprintf(u->days[u->n].role, sizeof(u->days[0].role), "%s", role);
        return u->days + u->n++;
}

static struct usage_record record_of(const struct job *j, const struct day *d) {
        return (struct usage_record){ .day = d->day,
                                      .owner = j->owner,
                                      .pool = j->spec->queue,
                                      .job = j->number,
                                      .role = d->role,
                                      .cpu_held = d->cpu_held,
                                      .cpu_used = d->cpu_used,
                                      .memory_held = d->memory_held,
                                      .gpu_held = d->gpu_held,
                                      .attempts = d->attempts,
                                      .unmeasured = d->unmeasured,
                                      .gpu_used = d->gpu_used,
                                      .gpu_measured = d->gpu_measured };
}

static struct holding holding_of(const struct executor *e) {
        const struct role_spec *spec = executor_role(e);

        return (struct holding){ spec->cpu_milli, executor_memory(e), spec->gpus };
}

/* What a host says that an attempt used, but not more than so many processors or GPUs have in its time and an
 * hour: the sums are to stay within what the store can add up, whatever a host says. */
static uint64_t plausible(const struct executor *e, uint64_t used, uint64_t units) {
        uint64_t most, time = usec_add(usec_sub(e->ended_real, e->placed_real), 3600 * USEC_PER_SEC);

        if (__builtin_mul_overflow(time, units, &most))
                most = UINT64_MAX;
        return MIN(used, MIN(most, UINT64_C(1) << 53));
}

/* As its agent measured it last, which was some seconds before the end. */
static void count_gpus(struct day *d, const struct executor *e) {
        uint64_t used = sample_gpu_used(e);

        if (used == TELEMETRY_UNKNOWN || executor_role(e)->gpus == 0)
                return;
        d->gpu_measured++;
        d->gpu_used += plausible(e, used, executor_role(e)->gpus);
}

void usage_count(struct manager *m, const struct executor *e) {
        struct holding h = holding_of(e);
        struct job *j = root_of(m, e->job);
        uint64_t from = e->placed_real, to = MAX(e->ended_real, e->placed_real);
        uint32_t last = MIN(day_of_time(to), day_of_time(from) + DAYS_MAX);

        if (e->attempt == 0 || from == 0)
                return;
        for (uint32_t day = day_of_time(from); day <= last; day++) {
                struct held held = held_on_day(&h, from, to, day);
                struct day *d = day_get(j, day, executor_role(e)->name);
                struct usage_record record;
                if (!d) {
                        /* It would be missing for good: begin again from what is stored. */
                        (void)sd_event_exit(m->event, log_oom());
                        return;
                }
                d->cpu_held += held.cpu;
                d->memory_held += held.memory;
                d->gpu_held += held.gpu;
                if (day == last) {
                        d->attempts++;
                        if (e->end.cpu_usec == UINT64_MAX)
                                d->unmeasured++;
                        else
                                d->cpu_used += plausible(e, e->end.cpu_usec, PROCESSORS_MAX);
                        count_gpus(d, e);
                }
                record = record_of(j, d);
                store_put_usage(m->store, &record);
        }
        manager_touch(m);
}

int usage_loaded(struct job *j, const struct usage_record *r) {
        struct day *d = day_get(j, r->day, r->role);

        if (!d)
                return -ENOMEM;
        d->cpu_held = r->cpu_held;
        d->cpu_used = r->cpu_used;
        d->memory_held = r->memory_held;
        d->gpu_held = r->gpu_held;
        d->attempts = r->attempts;
        d->unmeasured = r->unmeasured;
        d->gpu_used = r->gpu_used;
        d->gpu_measured = r->gpu_measured;
        return 0;
}

/* ---- adding up ---- */

struct asked {
        struct manager *manager;
        struct usage_question question;
        usage_answer_t answer;
        void *userdata;
        struct usage_row *rows;
        size_t n, allocated;
};

/* What is not asked for is the same for all. */
static int add(struct asked *a, const struct usage_record *r, uint64_t running) {
        const struct usage_question *q = &a->question;
        struct usage_row row = { *r, running };

        if (r->day < q->first || r->day > q->last || (q->owner != UINT32_MAX && r->owner != q->owner))
                return 0;
        if (!(q->by & USAGE_DAY))
                row.sum.day = 0;
        if (!(q->by & USAGE_USER))
                row.sum.owner = 0;
        if (!(q->by & USAGE_POOL))
                row.sum.pool = "";
        if (!(q->by & USAGE_JOB))
                row.sum.job = 0;
        if (!(q->by & USAGE_ROLE))
                row.sum.role = "";
        if (a->n == a->allocated) {
                size_t n = a->allocated ? a->allocated * 2 : 64;
                struct usage_row *bigger =
                        a->n >= ROWS_MAX ? NULL : reallocarray(a->rows, n, sizeof(*bigger));
                if (!bigger)
                        return a->n >= ROWS_MAX ? -E2BIG : -ENOMEM;
                a->rows = bigger;
                a->allocated = n;
        }
        a->rows[a->n++] = row;
        return 0;
}

static int add_running(struct asked *a, const struct job *root, const struct executor *e, uint64_t now) {
        struct holding h = holding_of(e);
        uint64_t to = MAX(now, e->placed_real);
        uint32_t last = MIN(day_of_time(to), day_of_time(e->placed_real) + DAYS_MAX);
        int r = 0;

        for (uint32_t day = day_of_time(e->placed_real); r >= 0 && day <= last; day++) {
                struct held held = held_on_day(&h, e->placed_real, to, day);
                struct usage_record record = { .day = day,
                                               .owner = root->owner,
                                               .pool = root->spec->queue,
                                               .job = root->number,
                                               .role = executor_role(e)->name,
                                               .cpu_held = held.cpu,
                                               .memory_held = held.memory,
                                               .gpu_held = held.gpu };
                r = add(a, &record, day == last);
        }
        return r;
}

/* Of jobs in memory memory knows best: the store was asked a moment ago. */
static int add_memory(struct asked *a) {
        struct manager *m = a->manager;
        uint64_t now = now_real();
        const struct executor *e;
        struct job *j, *next;
        int r = 0;

        HASH_ITER (hh, m->jobs.by_number, j, next) {
                for (size_t i = 0; r >= 0 && j->usage_known && j->usage && i < j->usage->n; i++) {
                        struct usage_record record = record_of(j, j->usage->days + i);
                        r = add(a, &record, 0);
                }
                if (!job_state_ended(j->state))
                        JOB_FOREACH (j, e)
                                if (r >= 0 && executor_state_holds(e->state))
                                        r = add_running(a, root_of(m, j), e, now);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int compare_keys(const void *x, const void *y) {
        const struct usage_record *a = &((const struct usage_row *)x)->sum,
                                  *b = &((const struct usage_row *)y)->sum;
        int r;

        if (a->day != b->day)
                return a->day < b->day ? -1 : 1;
        r = strcmp(a->pool, b->pool);
        if (r != 0)
                return r;
        if (a->owner != b->owner)
                return a->owner < b->owner ? -1 : 1;
        if (a->job != b->job)
                return a->job < b->job ? -1 : 1;
        return strcmp(a->role, b->role);
}

static void merge(struct asked *a) {
        size_t n = 0;

        if (a->n == 0)
                return;
        qsort(a->rows, a->n, sizeof(*a->rows), compare_keys);
        for (size_t i = 1; i < a->n; i++) {
                struct usage_row *to = a->rows + n, *from = a->rows + i;
                if (compare_keys(to, from) != 0) {
                        a->rows[++n] = *from;
                        continue;
                }
                to->sum.cpu_held += from->sum.cpu_held;
                to->sum.cpu_used += from->sum.cpu_used;
                to->sum.memory_held += from->sum.memory_held;
                to->sum.gpu_held += from->sum.gpu_held;
                to->sum.attempts += from->sum.attempts;
                to->sum.unmeasured += from->sum.unmeasured;
                to->sum.gpu_used += from->sum.gpu_used;
                to->sum.gpu_measured += from->sum.gpu_measured;
                to->running += from->running;
        }
        a->n = n + 1;
}

static void on_stored(void *userdata, int error, const struct usage_record *rows, size_t n) {
        struct asked *a = userdata;

        for (size_t i = 0; error >= 0 && i < n; i++) {
                const struct job *j = rows[i].job > 0 ? manager_job(a->manager, rows[i].job) : NULL;
                if (!j || !j->usage_known)
                        error = add(a, rows + i, 0);
        }
        if (error >= 0)
                error = add_memory(a);
        if (error >= 0)
                merge(a);
        a->answer(a->userdata, MIN(error, 0), a->rows, error < 0 ? 0 : a->n);
        free(a->rows);
        free(a);
}

int usage_ask(struct manager *m, const struct usage_question *q, usage_answer_t answer, void *userdata) {
        struct asked *a = calloc(1, sizeof(*a));
        int r;

        if (!a)
                return -ENOMEM;
        *a = (struct asked){ .manager = m, .question = *q, .answer = answer, .userdata = userdata };
        r = store_query_usage(m->store, q->first, q->last, q->owner, on_stored, a);
        if (r < 0)
                free(a);
        return r;
}
