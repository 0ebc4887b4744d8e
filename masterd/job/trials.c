/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/trials.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/grow.h"
#include "lib/base/heap.h"
#include "lib/base/try.h"

static void json_unref_p(json_t **v) {
        json_decref(*v);
}

static int read_given(const struct search_spec *spec, struct space **ret) {
        const char *text = spec->points ?: spec->space;
        _cleanup_(json_unref_p) json_t *j = text ? json_loads(text, 0, NULL) : NULL;
        char why[SPACE_WHY_MAX];

        if (!text && spec->searcher)
                return 0;
        if (!j)
                return -EINVAL;
        return spec->points ? space_of_list(j, ret) : space_read(j, spec->method == SEARCH_GRID, ret, why);
}

int trials_new(const struct search_spec *spec, struct trials **ret) {
        _cleanup_(trials_free_p) struct trials *t = calloc(1, sizeof(*t));

        if (!t)
                return -ENOMEM;
        t->seed = spec->seed;
        TRY(search_spec_settings(spec, &t->settings));
        TRY(read_given(spec, &t->space));
        TRY(search_new(&t->settings, &t->search));
        *ret = TAKE_PTR(t);
        return 0;
}

size_t trials_bytes(const struct trials *t) {
        size_t said = t->settings.searcher
                              ? t->given_bytes + 2 * (t->n_events * sizeof(*t->notes) +
                                                      t->n_given * (sizeof(*t->given) + heap_of(0)))
                              : 0;

        return heap_of(sizeof(*t)) + search_bytes(t->search) + (t->space ? space_bytes(t->space) : 0) + said;
}

size_t trials_given_max(const struct trials *t) {
        return t->settings.searcher ? TRIAL_GIVEN_MAX : space_given_max(t->space);
}

struct trials *trials_free(struct trials *t) {
        if (!t)
                return NULL;
        search_free(t->search);
        if (t->space)
                space_free(t->space);
        for (uint32_t i = 0; i < t->n_given; i++)
                free(t->given[i]);
        free(t->given);
        free(t->notes);
        free(t);
        return NULL;
}

/* ---- what a searcher says, and is told ---- */

static int create_given(struct trials *t, struct trial_event *e) {
        size_t n = e->given ? strlen(e->given) : 0;
        char *copy;
        int r;

        if (n == 0)
                return -EINVAL;
        if (n > TRIAL_GIVEN_MAX || n > TRIALS_GIVEN_MAX - t->given_bytes)
                return -E2BIG;
        TRY(ARRAY_DOUBLE(t->given, t->n_given));
        copy = strdup(e->given);
        r = copy ? search_created(t->search, &e->trial) : -ENOMEM;
        if (r < 0) {
                free(copy);
                return r;
        }
        t->given[t->n_given++] = copy;
        t->given_bytes += n + 1;
        return 0;
}

static void note_event(struct trials *t, const struct trial_event *e, int verdict) {
        t->notes[t->n_events] = (struct trial_note){
                .kind = (uint8_t)e->kind,
                .exit = (uint8_t)e->exit,
                .verdict = (uint8_t)verdict,
                .trial = e->trial,
                .time = e->time,
                .metric = e->metric,
        };
        t->failed |= e->kind == TRIAL_CLOSED && e->exit != SEARCH_SUCCEEDED;
}

/* ---- events ---- */

size_t trials_growth(const struct trials *t, uint32_t max_trials) {
        return max_trials > t->settings.max_trials
                       ? (size_t)(max_trials - t->settings.max_trials) * search_trial_bytes()
                       : 0;
}

int trials_follow(struct trials *t, struct trial_event *e, struct search_reason *ret_reason) {
        int r = -EINVAL;

        *ret_reason = (struct search_reason){ 0 };
        if (t->settings.searcher)
                TRY(ARRAY_DOUBLE(t->notes, t->n_events));
        switch (e->kind) {
        case TRIAL_CREATED:
                r = t->settings.searcher ? create_given(t, e) : search_created(t->search, &e->trial);
                break;
        case TRIAL_VALIDATED:
                r = search_validated(t->search, e->trial, e->time, e->metric, ret_reason);
                break;
        case TRIAL_EXITED:
                r = e->exit < _SEARCH_EXIT_MAX ? search_exited(t->search, e->trial, e->exit) : -EINVAL;
                break;
        case TRIAL_STOPPED:
                r = t->settings.searcher ? search_stopped(t->search, e->trial) : -EINVAL;
                break;
        case TRIAL_CLOSED:
                r = t->settings.searcher ? search_closed(t->search) : -EINVAL;
                break;
        case TRIAL_GROWN:
                r = e->time <= SEARCH_TRIALS_MAX ? search_grow(t->search, (uint32_t)e->time) : -EINVAL;
                if (r >= 0)
                        t->settings.max_trials = (uint32_t)e->time;
                break;
        case _TRIAL_EVENT_MAX:
                break;
        }
        if (r < 0 || (e->kind == TRIAL_VALIDATED && r == SEARCH_PAST))
                return r;
        if (t->settings.searcher)
                note_event(t, e, r);
        t->n_events++;
        return r;
}

int trials_given(const struct trials *t, uint32_t trial, char **ret_json) {
        _cleanup_(json_unref_p) json_t *j = NULL;

        if (t->settings.searcher) {
                if (trial >= t->n_given)
                        return -ENOENT;
                *ret_json = strdup(t->given[trial]);
                return *ret_json ? 0 : -ENOMEM;
        }
        TRY(space_given(t->space, t->seed, trial, &j));
        *ret_json = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
        return *ret_json ? 0 : -ENOMEM;
}
