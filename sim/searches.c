/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/searches.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "sim/random.h"

struct one {
        size_t job; /* of the trace */
        struct search *search;
        uint64_t results, stopped;
        double trained; /* units */
        uint64_t ended;
};

struct searches {
        const struct trace *trace;
        struct world *world;
        struct one *list;
        size_t n;
};

static const struct search_settings *settings_of(const struct searches *s, const struct one *o) {
        return &s->trace->jobs[o->job].search.settings;
}

/* Work of a trial that has trained so many units. */
static uint64_t work_of(const struct searches *s, const struct one *o, uint64_t units) {
        return (uint64_t)((double)s->trace->jobs[o->job].job.runtime *
                          ((double)units / (double)settings_of(s, o)->max_time));
}

/* Units behind which a trial reports next: its bracket's next rung. */
static uint64_t next_units(const struct searches *s, const struct one *o, uint32_t trial) {
        const struct search_settings *is = settings_of(s, o);
        struct search_bracket brackets[SEARCH_BRACKETS_MAX];
        struct search_trial t;

        if (!search_trial(o->search, trial, &t) || !search_has_rungs(is->method))
                return is->max_time;
        (void)search_plans(o->search, brackets);
        for (uint32_t rung = 0; rung < brackets[t.bracket].n_rungs; rung++) {
                uint64_t units = search_units(is, brackets[t.bracket].n_rungs, rung);
                if (!t.reported || units > t.time)
                        return units;
        }
        return is->max_time;
}

/* A loss that falls towards what the trial is worth, the same one whenever it is asked for. */
static double made_up_loss(const struct searches *s, const struct one *o, uint32_t trial, uint64_t units) {
        const struct trace_search *is = &s->trace->jobs[o->job].search;
        uint64_t draw = is->seed + trial * UINT64_C(0x9e3779b97f4a7c15);
        double end = random_unit(&draw), speed = 1 + 9 * random_unit(&draw),
               noise = 0.1 * (random_unit(&draw) - 0.5);

        return end + (1 + noise - end) * exp(-speed * (double)units / (double)is->settings.max_time);
}

static int make_trials(struct searches *s, size_t index, uint64_t at) {
        struct one *o = s->list + index;
        uint32_t trial;

        while (search_wants(o->search)) {
                struct world_job j = s->trace->jobs[o->job].job;

                TRY(search_created(o->search, &trial));
                j.submitted = at;
                j.origin = o->job;
                j.search = (uint32_t)index + 1;
                j.trial = trial;
                j.mark = work_of(s, o, next_units(s, o, trial));
                TRY(world_add_job(s->world, &j, NULL));
        }
        return 0;
}

/* For world.reached. */
static uint64_t report_result(void *userdata, size_t job) {
        struct searches *s = userdata;
        const struct world_job *j = s->world->jobs + job;
        struct one *o = s->list + j->search - 1;
        uint64_t units = next_units(s, o, j->trial);
        struct search_reason why;
        int verdict;

        verdict = search_validated(o->search, j->trial, units, made_up_loss(s, o, j->trial, units), &why);
        o->results++;
        if (verdict < 0)
                s->world->error = verdict;
        if (verdict == SEARCH_GOES_ON && units < settings_of(s, o)->max_time)
                return work_of(s, o, next_units(s, o, j->trial));
        o->trained += (double)units;
        o->stopped += units < settings_of(s, o)->max_time;
        return 0;
}

/* For world.finished. */
static void end_trial(void *userdata, size_t job) {
        struct searches *s = userdata;
        const struct world_job *j = s->world->jobs + job;
        struct one *o;
        int r;

        if (!j->search)
                return;
        o = s->list + j->search - 1;
        o->ended = s->world->now;
        r = search_exited(o->search, j->trial, j->over_limit ? SEARCH_FAILED : SEARCH_SUCCEEDED);
        if (r >= 0 || r == -ENOENT)
                r = make_trials(s, (size_t)(o - s->list), s->world->now);
        if (r < 0)
                s->world->error = r;
}

int searches_begin(const struct trace *t, struct world *w, struct searches **ret) {
        struct searches *s = calloc(1, sizeof(*s));
        int r = 0;

        if (!s)
                return -ENOMEM;
        *ret = s;
        s->trace = t;
        s->world = w;
        s->list = calloc(t->n_jobs + 1, sizeof(*s->list));
        if (!s->list)
                return -ENOMEM;
        w->reached = report_result;
        w->finished = end_trial;
        w->searches = s;
        for (size_t i = 0; i < t->n_jobs && r == 0; i++)
                if (trace_is_search(t->jobs + i)) {
                        s->list[s->n].job = i;
                        r = search_new(&t->jobs[i].search.settings, &s->list[s->n].search);
                        if (r == 0)
                                r = make_trials(s, s->n++, t->jobs[i].job.submitted);
                }
        return r;
}

struct searches *searches_free(struct searches *s) {
        for (size_t i = 0; s && i < s->n; i++)
                search_free(s->list[i].search);
        if (s)
                free(s->list);
        free(s);
        return NULL;
}

static json_t *numbers_of(const struct searches *s, const struct one *o) {
        const struct trace_job *job = s->trace->jobs + o->job;
        uint32_t n = search_n_trials(o->search), best;
        struct search_trial trial;
        json_t *is = json_pack("{s:s,s:s,s:I,s:I,s:I,s:f,s:f,s:b}", "name", job->name, "method",
                               search_method_to_string(job->search.settings.method), "trials", (json_int_t)n,
                               "results", (json_int_t)o->results, "stopped_early", (json_int_t)o->stopped,
                               "trained", o->trained / ((double)n * (double)job->search.settings.max_time),
                               "took", (double)(o->ended - MIN(job->job.submitted, o->ended)) / 1e6, "over",
                               search_over(o->search));

        if (is && search_best(o->search, &best) && search_trial(o->search, best, &trial) &&
            (json_object_set_new(is, "best_trial", json_integer(best)) < 0 ||
             json_object_set_new(is, "best", json_real(trial.best)) < 0)) {
                json_decref(is);
                return NULL;
        }
        return is;
}

json_t *searches_numbers(const struct searches *s) {
        json_t *list = json_array();

        for (size_t i = 0; list && i < s->n; i++)
                if (json_array_append_new(list, numbers_of(s, s->list + i)) < 0) {
                        json_decref(list);
                        return NULL;
                }
        return list;
}
