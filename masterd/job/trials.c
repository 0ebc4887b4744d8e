/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/trials.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/heap.h"
#include "lib/base/try.h"

static void json_unref_p(json_t **v) {
        json_decref(*v);
}

static int read_given(const struct search_spec *spec, struct trials *t) {
        _cleanup_(json_unref_p) json_t *j = NULL;
        char why[SPACE_WHY_MAX];

        if (spec->points) {
                t->points = json_loads(spec->points, 0, NULL);
                t->given_max = MIN(strlen(spec->points), (size_t)SPACE_GIVEN_MAX);
                return t->points ? 0 : -ENOMEM;
        }
        j = spec->space ? json_loads(spec->space, 0, NULL) : NULL;
        TRY(j ? space_read(j, spec->method == SEARCH_GRID, &t->space, why) : -EINVAL);
        t->given_max = space_given_max(t->space);
        return 0;
}

int trials_new(const struct search_spec *spec, struct trials **ret) {
        _cleanup_(trials_free_p) struct trials *t = calloc(1, sizeof(*t));

        if (!t)
                return -ENOMEM;
        t->seed = spec->seed;
        TRY(search_spec_settings(spec, &t->settings));
        TRY(read_given(spec, t));
        TRY(search_new(&t->settings, &t->search));
        *ret = TAKE_PTR(t);
        return 0;
}

size_t trials_bytes(const struct trials *t) {
        return heap_of(sizeof(*t)) + search_bytes(t->search) + (t->space ? space_bytes(t->space) : 0) +
               (t->points ? space_json_bytes(t->points) : 0);
}

struct trials *trials_free(struct trials *t) {
        if (!t)
                return NULL;
        search_free(t->search);
        space_free(t->space);
        json_decref(t->points);
        free(t);
        return NULL;
}

int trials_follow(struct trials *t, struct trial_event *e, struct search_reason *ret_reason) {
        int r = -EINVAL;

        *ret_reason = (struct search_reason){ 0 };
        switch (e->kind) {
        case TRIAL_CREATED:
                r = search_created(t->search, &e->trial);
                break;
        case TRIAL_VALIDATED:
                r = search_validated(t->search, e->trial, e->time, e->metric, ret_reason);
                break;
        case TRIAL_EXITED:
                r = e->exit < _SEARCH_EXIT_MAX ? search_exited(t->search, e->trial, e->exit) : -EINVAL;
                break;
        case _TRIAL_EVENT_MAX:
                break;
        }
        t->n_events += r >= 0 && !(e->kind == TRIAL_VALIDATED && r == SEARCH_PAST);
        return r;
}

int trials_given(const struct trials *t, uint32_t trial, char **ret_json) {
        _cleanup_(json_unref_p) json_t *j = NULL;

        if (t->points && trial >= json_array_size(t->points))
                return -ENOENT;
        if (t->space && t->settings.method == SEARCH_GRID && trial >= space_n_points(t->space))
                return -ENOENT;
        if (t->points)
                j = json_incref(json_array_get(t->points, trial));
        else
                j = t->settings.method == SEARCH_GRID ? space_point(t->space, trial)
                                                      : space_draw(t->space, t->seed, trial);
        *ret_json = j ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
        return *ret_json ? 0 : -ENOMEM;
}
