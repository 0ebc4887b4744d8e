/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of metric share. */
#pragma once

#include "masterd/metric/metrics.h"

#define METRIC_ROLES_MAX 256u

struct metrics {
        struct metric_budget *budget;
        void *owner;
        size_t bytes;
        struct metric_source *sources, **sorted; /* sorted: NULL, until it is asked for */
        char *names[METRIC_JOB_NAMES_MAX];
        char *roles[METRIC_ROLES_MAX];
        uint32_t n_names, n_roles, n_series;
        uint32_t cap; /* points of a series at the most */
};

/* The series of that name, made where it is not there yet. -ENOMEM, -ENOBUFS. */
int metric_series_find(struct metrics *m, struct metric_source *s, const char *name,
                       struct metric_series **ret);
/* One point behind those that are there: 1; -ENOMEM, -ENOBUFS. */
int metric_series_put(struct metrics *m, struct metric_series *s, const struct metric_point *p);
