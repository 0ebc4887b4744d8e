/* SPDX-License-Identifier: Apache-2.0 */
/* The imagined cluster. Invariant: what is held in the scheduler is what jobs in the states RUNNING and
 * LEAVING have in .places. */
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/try.h"

enum world_event_kind {
        EVENT_MARK, /* of what happens at the same time, what a job says comes first, and then ends */
        EVENT_END,
        EVENT_GONE,
        EVENT_HOST_DOWN,
        EVENT_HOST_UP,
        EVENT_SUBMIT,
};

struct world_event {
        uint64_t at, sequence;
        enum world_event_kind kind;
        uint32_t run; /* of the job, for which it was meant */
        size_t subject;
};

#define EPOCH                                                                                                \
        UINT64_C(1000000) /* the policy's time of the world's 0, for 0 says there that a job does not run */

/* ---- events ---- */

static bool sooner(const struct world_event *a, const struct world_event *b) {
        if (a->at != b->at)
                return a->at < b->at;
        return a->kind != b->kind ? a->kind < b->kind : a->sequence < b->sequence;
}

static int push(struct world *w, uint64_t at, enum world_event_kind kind, size_t subject, uint32_t run) {
        struct world_event e = { at, w->sequence++, kind, run, subject }, *bigger;
        size_t i = w->n_events;

        if (at == UINT64_MAX)
                return 0;
        if (i == w->events_allocated) {
                size_t m = i ? i * 2 : 64;
                bigger = reallocarray(w->events, m, sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                w->events = bigger;
                w->events_allocated = m;
        }
        for (; i > 0 && sooner(&e, w->events + (i - 1) / 2); i = (i - 1) / 2)
                w->events[i] = w->events[(i - 1) / 2];
        w->events[i] = e;
        w->n_events++;
        return 0;
}

static struct world_event pop(struct world *w) {
        struct world_event top = w->events[0], last = w->events[--w->n_events];
        size_t i = 0;

        for (size_t child; (child = 2 * i + 1) < w->n_events; i = child) {
                child += child + 1 < w->n_events && sooner(w->events + child + 1, w->events + child);
                if (!sooner(w->events + child, &last))
                        break;
                w->events[i] = w->events[child];
        }
        w->events[i] = last;
        return top;
}

/* ---- jobs ---- */

static struct policy_amount amount_of(const struct sched_hold *h) {
        return (struct policy_amount){ h->cpu_milli, h->memory, (uint32_t)__builtin_popcountll(h->gpus) };
}

static void count_held(struct world *w, const struct policy_amount *a, bool more) {
        w->held.cpu_milli += more ? a->cpu_milli : -a->cpu_milli;
        w->held.memory += more ? a->memory : -a->memory;
        w->held.gpus += more ? a->gpus : -a->gpus;
}

/* Work that is safe when a run ends now. */
static uint64_t kept_work(const struct world *w, const struct world_job *j) {
        uint64_t ran = w->now - j->started;

        return j->savepoint > 0 ? ran / j->savepoint * j->savepoint : 0;
}

static void give_back(struct world *w, size_t index) {
        struct world_job *j = w->jobs + index;

        for (size_t i = 0; i < j->places.n; i++) {
                const struct sched_hold *h = &j->places.items[i].hold;
                struct policy_amount a = amount_of(h);
                if (w->segment)
                        w->segment(w->userdata, index, h, j->started, w->now);
                sched_release(w->sched, h);
                policy_held(w->policy, index, &a, -1, w->now + EPOCH);
                count_held(w, &a, false);
        }
        sched_placement_done(&j->places);
        policy_job_runs(w->policy, index, 0);
}

static void finish_job(struct world *w, size_t index, bool over_limit) {
        struct world_job *j = w->jobs + index;

        give_back(w, index);
        policy_job_remove(w->policy, index);
        j->state = WORLD_DONE;
        j->ended = w->now;
        j->over_limit = over_limit;
        w->last_end = w->now;
        w->n_done++;
        if (w->finished)
                w->finished(w->searches, index); /* j may lie elsewhere after that */
}

/* Its next mark, in this run. */
static int push_mark(struct world *w, size_t index) {
        const struct world_job *j = w->jobs + index;

        return j->mark > 0 ? push(w, j->started + usec_sub(j->mark, j->done), EVENT_MARK, index, j->runs) : 0;
}

/* What comes of a run that begins now. */
static int push_run(struct world *w, size_t index) {
        struct world_job *j = w->jobs + index;
        uint64_t left = usec_sub(j->runtime, j->done);

        j->started = w->now;
        j->runs++;
        TRY(push(w, w->now + MIN(left, j->limit), EVENT_END, index, j->runs));
        return push_mark(w, index);
}

static int reach_mark(struct world *w, size_t index) {
        uint64_t next = w->reached(w->searches, index);

        if (next == 0) {
                finish_job(w, index, false);
                return 0;
        }
        w->jobs[index].mark = next;
        return push_mark(w, index);
}

/* Its run was ended from outside: it waits again, with the work that was kept. */
static int wait_again(struct world *w, size_t index) {
        struct world_job *j = w->jobs + index;
        uint64_t kept = kept_work(w, j);

        j->lost += (w->now - j->started - kept) * j->places.n;
        j->done += kept;
        give_back(w, index);
        j->state = WORLD_WAITING;
        return policy_job_wants(w->policy, index);
}

static int submit(struct world *w, size_t index) {
        struct world_job *j = w->jobs + index;
        struct policy_job job = { .id = index,
                                  .pool = j->pool,
                                  .user = j->user,
                                  .priority = j->priority,
                                  .submitted = j->submitted + EPOCH,
                                  .duration_usec = j->limit,
                                  .preemptible = j->preemptible };

        j->state = WORLD_WAITING;
        return policy_job_add(w->policy, &job);
}

static int host_down(struct world *w, uint32_t slot, bool down) {
        struct sched_usage u;
        int r = sched_node_usage(w->sched, slot, &u);

        if (r < 0 || w->host_down[slot] == down)
                return r;
        w->host_down[slot] = down;
        sched_node_set_usable(w->sched, slot, !down);
        w->capacity.cpu_milli += down ? -(uint64_t)u.capacity.cpu_milli : u.capacity.cpu_milli;
        w->capacity.gpus += down ? -u.capacity.gpus : u.capacity.gpus;
        for (size_t i = 0; i < w->n_jobs && down; i++) {
                struct world_job *j = w->jobs + i;
                bool hit = false;
                for (size_t k = 0; k < j->places.n && !hit; k++)
                        hit = j->places.items[k].hold.slot == slot;
                if (!hit)
                        continue;
                j->failed++;
                r = wait_again(w, i);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int handle(struct world *w, const struct world_event *e) {
        struct world_job *j =
                e->kind == EVENT_HOST_DOWN || e->kind == EVENT_HOST_UP ? NULL : w->jobs + e->subject;

        if (j && e->run != j->runs) /* of a run that is over */
                return 0;
        switch (e->kind) {
        case EVENT_SUBMIT:
                return submit(w, e->subject);
        case EVENT_MARK:
                return j->state == WORLD_RUNNING || j->state == WORLD_LEAVING ? reach_mark(w, e->subject) : 0;
        case EVENT_END:
                if (j->state == WORLD_RUNNING || j->state == WORLD_LEAVING)
                        finish_job(w, e->subject, j->done + (w->now - j->started) < j->runtime);
                return 0;
        case EVENT_GONE:
                return j->state == WORLD_LEAVING ? wait_again(w, e->subject) : 0;
        case EVENT_HOST_DOWN:
        case EVENT_HOST_UP:
                return host_down(w, (uint32_t)e->subject, e->kind == EVENT_HOST_DOWN);
        }
        return 0;
}

/* ---- what the policy asks ---- */

static int gang(void *userdata, uint64_t id, struct sched_gang *ret) {
        struct world *w = userdata;
        const struct world_job *j = w->jobs + id;

        *ret = (struct sched_gang){ .shapes = j->shapes,
                                    .n_shapes = j->n_shapes,
                                    .topology = j->topology,
                                    .level = j->level,
                                    .whole_hosts = j->whole_hosts ? id + 1 : 0 };
        return j->state != WORLD_WAITING;
}

static void holds(void *userdata, uint64_t id, void (*each)(void *arg, const struct sched_hold *h),
                  void *arg) {
        struct world *w = userdata;

        for (size_t i = 0; i < w->jobs[id].places.n; i++)
                each(arg, &w->jobs[id].places.items[i].hold);
}

static void placed(void *userdata, uint64_t id, const struct sched_placement *p) {
        struct world *w = userdata;
        struct world_job *j = w->jobs + id;
        int r = sched_placement_copy(p, &j->places);

        if (r >= 0)
                r = push_run(w, id);
        j->state = WORLD_RUNNING;
        if (r < 0)
                w->error = r;
        if (j->first_started == UINT64_MAX) {
                j->first_started = w->now;
                j->backfilled = policy_passed_over(w->policy) > 0;
        }
        for (size_t i = 0; i < p->n; i++) {
                struct policy_amount a = amount_of(&p->items[i].hold);
                policy_held(w->policy, id, &a, 1, w->now + EPOCH);
                count_held(w, &a, true);
        }
        policy_job_runs(w->policy, id, w->now + EPOCH);
}

static void preempt(void *userdata, uint64_t victim, uint64_t by_id) {
        struct world *w = userdata;
        struct world_job *j = w->jobs + victim;
        int r;

        if (w->preempt)
                w->preempt(w->userdata, victim, by_id);
        j->state = WORLD_LEAVING;
        j->preempted++;
        policy_job_leaving(w->policy, victim, w->now + w->grace + EPOCH);
        r = push(w, w->now + w->grace, EVENT_GONE, victim, j->runs);
        if (r < 0)
                w->error = r;
}

static uint64_t cost(void *userdata, uint64_t id, uint64_t now) {
        const struct world *w = userdata;
        const struct world_job *j = w->jobs + id;

        return (now - EPOCH - j->started - kept_work(w, j)) * j->places.n;
}

static void waits(void *userdata, uint64_t id, const struct policy_why *why) {
        struct world *w = userdata;
        struct world_job *j = w->jobs + id;

        j->why = *why;
        if (j->first_promise == UINT64_MAX && why->starts_by != UINT64_MAX)
                j->first_promise = why->starts_by - EPOCH;
}

static const struct policy_ops ops = { gang, holds, placed, preempt, cost, waits };

int world_init(struct world *w, const struct policy_conf *conf, uint64_t grace) {
        int r;

        *w = (struct world){ .grace = grace, .wake = UINT64_MAX };
        r = sched_new(&w->sched);
        return r < 0 ? r : policy_new(w->sched, conf, &ops, w, &w->policy);
}

void world_done(struct world *w) {
        for (size_t i = 0; i < w->n_jobs; i++)
                sched_placement_done(&w->jobs[i].places);
        free(w->jobs);
        free(w->events);
        free(w->host_down);
        policy_free(w->policy);
        sched_free(w->sched);
        *w = (struct world){};
}

int world_add_host(struct world *w, const struct sched_capacity *c, uint32_t *ret_slot) {
        uint32_t slot;
        bool *bigger;
        int r;

        bigger = reallocarray(w->host_down, w->n_hosts + 1, sizeof(*bigger));
        if (!bigger)
                return -ENOMEM;
        w->host_down = bigger;
        r = sched_node_add(w->sched, c, &slot);
        if (r < 0)
                return r;
        w->host_down[w->n_hosts++] = false; /* none is ever removed, so slots are counted up */
        w->capacity.cpu_milli += c->cpu_milli;
        w->capacity.memory += c->memory;
        w->capacity.gpus += c->gpus;
        w->all.cpu_milli += c->cpu_milli;
        w->all.memory += c->memory;
        w->all.gpus += c->gpus;
        if (ret_slot)
                *ret_slot = slot;
        return 0;
}

int world_add_job(struct world *w, const struct world_job *job, size_t *ret) {
        size_t allocated = w->n_jobs < 64 ? 64 : w->n_jobs;
        struct world_job *bigger, *j;
        int r;

        if (job->n_shapes == 0 || job->n_shapes > WORLD_SHAPES_MAX || job->runtime == 0 || job->limit == 0)
                return -EINVAL;
        if (w->n_jobs == 0 || (w->n_jobs >= 64 && (w->n_jobs & (w->n_jobs - 1)) == 0)) { /* doubled */
                bigger = reallocarray(w->jobs, w->n_jobs + allocated, sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                w->jobs = bigger;
        }
        j = w->jobs + w->n_jobs;
        *j = (struct world_job){ .pool = job->pool,
                                 .user = job->user,
                                 .priority = job->priority,
                                 .preemptible = job->preemptible,
                                 .submitted = job->submitted,
                                 .runtime = job->runtime,
                                 .limit = job->limit,
                                 .savepoint = job->savepoint,
                                 .n_shapes = job->n_shapes,
                                 .topology = job->topology,
                                 .level = job->level,
                                 .whole_hosts = job->whole_hosts,
                                 .origin = job->origin,
                                 .search = job->search,
                                 .trial = job->trial,
                                 .mark = job->mark,
                                 .first_started = UINT64_MAX,
                                 .first_promise = UINT64_MAX };
        memcpy(j->shapes, job->shapes, sizeof(j->shapes));
        r = push(w, j->submitted, EVENT_SUBMIT, w->n_jobs, 0);
        if (r < 0)
                return r;
        if (ret)
                *ret = w->n_jobs;
        w->n_jobs++;
        return 0;
}

int world_fail_host(struct world *w, uint32_t slot, uint64_t from, uint64_t to) {
        int r;

        if (slot >= w->n_hosts || to <= from)
                return -EINVAL;
        r = push(w, from, EVENT_HOST_DOWN, slot, 0);
        return r < 0 ? r : push(w, to, EVENT_HOST_UP, slot, 0);
}

static void advance_world(struct world *w, uint64_t to) {
        double t = (double)(to - w->now);

        if (w->n_done == w->n_jobs) /* what is idle then is nobody's loss */
                t = 0;
        w->cpu_time += t * (double)w->held.cpu_milli;
        w->cpu_capacity += t * (double)w->capacity.cpu_milli;
        w->gpu_time += t * w->held.gpus;
        w->gpu_capacity += t * w->capacity.gpus;
        w->now = to;
}

int world_run(struct world *w, uint64_t until) {
        while (w->error >= 0) {
                uint64_t event = w->n_events > 0 ? w->events[0].at : UINT64_MAX, at = MIN(event, w->wake);
                int r = 0;
                if (at == UINT64_MAX || at > until || (event == UINT64_MAX && w->n_done == w->n_jobs))
                        return 0;
                advance_world(w, at);
                while (r >= 0 && w->n_events > 0 && w->events[0].at <= w->now) {
                        struct world_event e = pop(w);
                        r = handle(w, &e);
                }
                if (r >= 0)
                        r = policy_run(w->policy, w->now + EPOCH, &w->wake);
                w->wake -= w->wake != UINT64_MAX ? EPOCH : 0;
                if (r < 0)
                        return r;
                w->passes++;
                if (w->pass)
                        w->pass(w->userdata);
        }
        return w->error;
}

void world_cut(struct world *w) {
        for (size_t i = 0; i < w->n_jobs && w->segment; i++)
                for (size_t k = 0; k < w->jobs[i].places.n; k++) {
                        w->segment(w->userdata, i, &w->jobs[i].places.items[k].hold, w->jobs[i].started,
                                   w->now);
                        w->last_end = w->now;
                }
}
