/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: searches. The key "search" of GetStatus, ListTrials and ReplaySearch. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/job/array.h"
#include "masterd/life/searches.h"

#define ROWS_MAX 1000u /* of one answer, */
#define BYTES_MAX                                                                                            \
        (1u << 20) /* and of what their trials were given; then the caller asks for those behind it */

/* ---- GetStatus, TrySubmit ---- */

static int append_rungs(sd_bus_message *reply, const struct trials *t) {
        struct search_bracket b[SEARCH_BRACKETS_MAX];
        size_t n = search_plans(t->search, b);

        TRY(reply_open_array(reply, "rungs", "a(uutuu)"));
        for (uint32_t i = 0; i < n; i++) {
                uint32_t expected[SEARCH_RUNGS_MAX];

                search_expect(&t->settings, b + i, expected);
                for (uint32_t k = 0; k < b[i].n_rungs; k++)
                        TRY(sd_bus_message_append(reply, "(uutuu)", i, k,
                                                  search_units(&t->settings, b[i].n_rungs, k), expected[k],
                                                  search_rung_count(t->search, i, k)));
        }
        return reply_close_array(reply);
}

static int append_best(sd_bus_message *reply, const struct trials *t) {
        struct search_trial best;
        uint32_t trial;

        if (!search_best(t->search, &trial) || !search_trial(t->search, trial, &best))
                return 0;
        return sd_bus_message_append(reply, "{sv}{sv}{sv}", "best", "u", trial, "bestMetric", "d", best.best,
                                     "bestStep", "t", best.best_time);
}

int api_append_search(sd_bus_message *reply, const struct job *j) {
        const struct trials *t = j->array ? j->array->trials : NULL;
        const struct search_spec *s = &j->spec->search;

        if (!t)
                return 0;
        TRY(reply_open_array(reply, "search", "a{sv}"));
        TRY(sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}", "method", "s",
                                  search_method_to_string(t->settings.method), "metric", "s", s->metric ?: "",
                                  "smaller", "b", (int)s->smaller, "trials", "u", t->settings.max_trials,
                                  "made", "u", search_n_trials(t->search), "invalid", "u",
                                  search_n_invalid(t->search)));
        TRY(append_best(reply, t));
        TRY(append_rungs(reply, t));
        return reply_close_array(reply);
}

/* ---- ListTrials ---- */

static int append_row(sd_bus_message *reply, const struct array *a, uint32_t n, size_t *bytes) {
        _cleanup_free_ char *given = NULL;
        struct search_trial s = { .last = NAN, .best = NAN };
        const char *state;

        TRY(trials_given(a->trials, n, &given));
        (void)search_trial(a->trials->search, n, &s);
        state = s.state == SEARCH_TRIAL_RUNS &&
                                (a->states[n] == ELEMENT_WAITS || a->states[n] == ELEMENT_UNMADE)
                        ? "waits"
                        : search_trial_state_to_string(s.state);
        *bytes += strlen(given);
        return sd_bus_message_append(reply, "(uusuutddtsa{sv})", n, a->jobs[n], state, s.bracket, s.rung,
                                     s.time, s.last, s.best, s.best_time, given, 0);
}

int api_list_trials(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct job *j = api_job_or_error(userdata, call, error);
        sd_bus_message *reply = NULL;
        size_t bytes = 0;
        uint32_t from;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read(call, "u", &from);
        if (r < 0)
                return r;
        if (!j->array || !j->array->trials)
                return sd_bus_error_setf(error, ERROR_REFUSED, "Job %u is no search", j->number);
        r = reply_list_new(call, "uusuutddtsa{sv}", &reply);
        for (uint32_t n = from; r >= 0 && n < j->array->range.n && n - from < ROWS_MAX && bytes < BYTES_MAX;
             n++)
                r = append_row(reply, j->array, n, &bytes);
        return reply_list_send(reply, r);
}

/* ---- ReplaySearch ---- */

static void on_replayed(void *userdata, int error, uint64_t events, uint64_t differs) {
        sd_bus_message *call = userdata;

        if (error < 0)
                (void)reply_failed(call, error, NULL);
        else
                (void)reply_return(call, "tt", events, differs);
        sd_bus_message_unref(call);
}

int api_replay_search(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        int r;

        if (!j)
                return API_JOB_GONE;
        if (!j->array || !j->array->trials)
                return sd_bus_error_setf(error, ERROR_REFUSED, "Job %u is no search", j->number);
        r = searches_replay(m, j, on_replayed, sd_bus_message_ref(call));
        if (r < 0)
                sd_bus_message_unref(call);
        return r;
}
