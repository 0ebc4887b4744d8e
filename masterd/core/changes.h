/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs and hosts have changed since when, for those who look at many: a number for each change, and of
 * each job and host the latest alone. Who asks again with the number that he was told misses nothing, however
 * long he was away, or is told that he was away for too long. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/cleanup.h"

struct changes;

/* A job or a host that has changed. */
struct change {
        uint64_t number;  /* of its latest change, from 1 */
        uint32_t job;     /* 0: a host */
        const char *node; /* NULL: a job */
};

/* max: jobs and hosts that are remembered. NULL: no memory. */
struct changes *changes_new(unsigned max);
void changes_free(struct changes *c);
DEFINE_CLEANUP(struct changes *, changes_free)

/* Where memory lacks, whoever asks is told to look at everything again. */
void changes_job(struct changes *c, uint32_t number);
void changes_node(struct changes *c, const char *name);

/* The number of the latest change; 0: nothing has changed yet. */
uint64_t changes_now(const struct changes *c);

/* Whether all that changed since is still known. */
bool changes_known(const struct changes *c, uint64_t since);

/* Calls f for each that has changed since, the latest first, until it returns < 0, which is returned. */
int changes_each(const struct changes *c, uint64_t since, int (*f)(const struct change *x, void *userdata),
                 void *userdata);
