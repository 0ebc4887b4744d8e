/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of executors that run: CPUs and memory of a role are changed, the scheduler's books and the units
 * follow. */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>

#include "masterd/job/job.h"

struct manager;
struct node;

/* Executors whose role has other limits in the new configuration, and that stay. */
struct limits {
        struct executor **changed;
        size_t n;
};
void limits_done(struct limits *l);

/* What it will hold; one that has come to have more than its role says keeps it. */
static inline uint64_t limits_memory(const struct executor *e, const struct role_spec *after) {
        return after->memory == 0 || after->memory > e->memory ? after->memory : e->memory;
}

/* Who would have other limits; the books are open for them. Where a host has no room for them, the error is
 * set and says which and what it lacks. */
int limits_plan(struct manager *m, struct job *j, const struct job_spec *spec, struct limits *ret,
                sd_bus_error *error);
/* The job has the new configuration now: the books follow at once, the units when it is on disk. Or it has
 * not: the books are as before. After limits_plan() one of the two has to be called. */
void limits_apply(struct manager *m, struct job *j, struct limits *l);
void limits_abandon(struct manager *m, struct limits *l);

/* The host has registered: units that were started with other limits are told. */
void limits_registered(struct manager *m, struct node *node);

/* Asks the hosts whether units that would get less memory can do with it. done is called later, once: problem
 * NULL, or a sentence. Returns how many are asked; 0: there is nobody to ask, and done is not called. */
struct limits_ask {
        void (*done)(void *userdata, const char *problem);
        void *userdata;
};
int limits_ask(struct manager *m, struct job *j, const struct job_spec *spec, const struct limits_ask *ask);
