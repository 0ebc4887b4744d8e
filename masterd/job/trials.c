/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/trials.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/heap.h"
#include "lib/base/try.h"

static void json_unref_p(json_t **v) {
        json_decref(*v);
}

static int read_given(const struct search_spec *spec, struct space **ret) {
        const char *text = spec->points ?: spec->space;
        _cleanup_(json_unref_p) json_t *j = text ? json_loads(text, 0, NULL) : NULL;
        char why[SPACE_WHY_MAX];

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
        return heap_of(sizeof(*t)) + search_bytes(t->search) + space_bytes(t->space);
}

struct trials *trials_free(struct trials *t) {
        if (!t)
                return NULL;
        search_free(t->search);
        space_free(t->space);
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

        TRY(space_given(t->space, t->seed, trial, &j));
        *ret_json = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
        return *ret_json ? 0 : -ENOMEM;
}
