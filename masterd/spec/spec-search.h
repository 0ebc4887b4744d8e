/* SPDX-License-Identifier: Apache-2.0 */
/* A job that is a search: its trials are elements of an array, each with parameters of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/element.h"
#include "masterd/search/search.h"

#define SPEC_SEARCH_TEXT_MAX (1u << 20) /* bytes of space, of points */

struct search_spec {
        uint32_t method;  /* enum search_method; _SEARCH_METHOD_MAX: the job is none */
        uint32_t mode;    /* enum search_mode */
        uint32_t variant; /* enum search_variant */
        char *space;      /* JSON, see masterd/search/space.h; NULL: points says all */
        char *points;     /* JSON, an array of objects; SEARCH_LIST alone */
        char *rungs;      /* JSON, an array of numbers; or NULL */
        char *metric;     /* its name; NULL: nothing is compared */
        bool smaller;     /* is better */
        uint64_t max_time;
        uint32_t max_trials; /* of a grid or a list, in a spec that is complete: how many points it has */
        uint32_t max_concurrent, divisor, max_rungs;
        uint64_t seed;
        bool searcher; /* in a spec that is complete: it has the role SPEC_SEARCHER, which is in no trial */
};
#define SPEC_SEARCHER ELEMENT_SEARCHER_NAME
#define SPEC_SEARCHER_SPACE_MAX (32u << 10) /* bytes of space that one is told */

static inline bool search_spec_given(const struct search_spec *s) {
        return s->method < _SEARCH_METHOD_MAX;
}

/* The same for the searcher, of a spec that is complete. -ENOMEM. */
int search_spec_settings(const struct search_spec *s, struct search_settings *ret);
