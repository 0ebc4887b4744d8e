/* SPDX-License-Identifier: Apache-2.0 */
/* The key search of a job. */
#include "masterd/spec/schema-search.h"

#include <stdlib.h>
#include <string.h>

#include "masterd/spec/schema-rows.h"
#include "masterd/spec/spec.h"

static const char *const variant_names[_SEARCH_VARIANT_MAX] = {
        [SEARCH_VARIANT_STOP] = "stop",
        [SEARCH_VARIANT_PROMOTE] = "promote",
};

bool job_has_search(const void *target) {
        return search_spec_given(&((const struct job_spec *)target)->search);
}

/* A name in what trainers report: a line of text to people too. */
static bool valid_metric(const char *s, const char **ret_why) {
        *ret_why = "must be letters, digits, _, -, . or /";
        return strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./") == strlen(s);
}

static const struct key search_keys[] = {
        { "method", KEY_ENUM, AT(search_spec, method), WORDS(search_method_names),
          .preset = _SEARCH_METHOD_MAX, .required = true,
          .hint = "say how trials are chosen, such as \"random\" or \"adaptive-asha\"" },
        { "space", KEY_JSON, AT(search_spec, space), RANGE(1, SPEC_SEARCH_TEXT_MAX) },
        { "points", KEY_JSON, AT(search_spec, points), RANGE(1, SPEC_SEARCH_TEXT_MAX) },
        { "metric", KEY_TEXT, AT(search_spec, metric), RANGE(1, 64), .valid = valid_metric },
        { "smaller", KEY_BOOL, AT(search_spec, smaller), .preset = true },
        { "maxTrials", KEY_U32, AT(search_spec, max_trials), RANGE(1, SEARCH_TRIALS_MAX),
          .zero_is_preset = true },
        { "maxConcurrent", KEY_U32, AT(search_spec, max_concurrent), RANGE(0, SEARCH_TRIALS_MAX),
          .preset = 16 },
        { "maxTime", KEY_SCALED, AT(search_spec, max_time), RANGE(1, SEARCH_TIME_MAX), .scale = 1,
          .zero_is_preset = true },
        { "divisor", KEY_U32, AT(search_spec, divisor), RANGE(2, SEARCH_DIVISOR_MAX), .preset = 4 },
        { "maxRungs", KEY_U32, AT(search_spec, max_rungs), RANGE(1, SEARCH_RUNGS_MAX), .preset = 5 },
        { "mode", KEY_ENUM, AT(search_spec, mode), WORDS(search_mode_names) },
        { "variant", KEY_ENUM, AT(search_spec, variant), WORDS(variant_names) },
        { "rungs", KEY_JSON, AT(search_spec, rungs), RANGE(1, 1024) },
        { "seed", KEY_SCALED, AT(search_spec, seed), RANGE(0, SEARCH_TIME_MAX), .scale = 1 },
};
const struct schema search_schema = SCHEMA(search_keys);

static void drop_search(struct job_spec *s) {
        schema_done(&search_schema, &s->search);
        s->search.method = _SEARCH_METHOD_MAX;
}

/* The searcher alone, or all but it. */
static void split_roles(struct job_spec *s, bool searcher) {
        size_t n = 0;

        for (size_t i = 0; i < s->n_roles; i++)
                if ((strcmp(s->roles[i].name, SPEC_SEARCHER) == 0) == searcher)
                        s->roles[n++] = s->roles[i];
                else
                        schema_done(&role_schema, s->roles + i);
        s->n_roles = n;
        n = 0;
        for (size_t i = 0; i < s->n_order; i++)
                if ((strcmp(s->order[i].role, SPEC_SEARCHER) == 0) == searcher)
                        s->order[n++] = s->order[i];
                else
                        free(s->order[i].role);
        s->n_order = n;
}

void spec_make_trial(struct job_spec *s) {
        if (s->search.searcher)
                split_roles(s, false);
        drop_search(s);
}

void spec_make_searcher(struct job_spec *s) {
        split_roles(s, true);
        drop_search(s);
        schema_done(&input_manager_schema, s);
        s->n_inputs = s->n_topics = 0;
        s->lockstep = LOCKSTEP_OFF;
        s->whole_hosts = false;
}
