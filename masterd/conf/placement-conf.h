/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of placement: [Scheduler] Topology= and Licences=. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "masterd/sched/sched.h"

struct manager;

struct licence {
        char name[SCHED_CONSUMABLE_MAX + 1];
        uint64_t total;
};

struct placement_conf {
        char levels[SCHED_LEVELS_MAX][LABEL_MAX + 1]; /* labels, the nearest first */
        size_t n_levels;
        struct licence licences[SCHED_CONSUMABLES_MAX];
        size_t n_licences;
};

/* "switch rack": replaces the list. For conf_load(). */
int placement_parse_topology(const char *value, void *target, const char **ret_why);
/* "matlab=10 abaqus=5": the same. */
int placement_parse_licences(const char *value, void *target, const char **ret_why);

/* Tells the scheduler; licences that are not among them any more have a total of 0. -ENOMEM. */
int placement_configure(struct sched *s, const struct placement_conf *c);
