/* SPDX-License-Identifier: Apache-2.0 */
/* On which hosts executors of a job have failed, and which of these it is kept off for a time: because too
 * many different ones failed there (blacklistConfig), or because a failure was the host's fault. Pure; times
 * are CLOCK_REALTIME microseconds, so that all of it can be found again from the attempts in the store. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exclusion {
        char node[65];
        uint32_t *ranks; /* of those that failed there, each once */
        uint32_t n_ranks;
        uint64_t last_real;    /* the latest failure */
        uint64_t until_real;   /* kept off until then */
        uint64_t allowed_real; /* what happened until then does not count */
};

/* Zero-initialised. */
struct exclusions {
        struct exclusion *hosts;
        size_t n;
};

void exclusions_done(struct exclusions *x);

/* The executor of that rank has failed there. Returns how many different ones have; 0: it is forgotten
 * already; or -ENOMEM. */
int exclusions_failed(struct exclusions *x, const char *node, uint32_t rank, uint64_t when);
/* Keeps the job off the host until then; an earlier word that lasts longer stays. -ENOMEM. */
int exclusions_until(struct exclusions *x, const char *node, uint64_t until);
/* Forgets what happened there until then, also when it is told later. -ENOMEM. */
int exclusions_allow(struct exclusions *x, const char *node, uint64_t when);
/* Until when what happened there is forgotten; 0: nothing is. */
uint64_t exclusions_allowed(const struct exclusions *x, const char *node);
/* Until when it is kept off; 0: it is not, or not any more. */
uint64_t exclusions_of(const struct exclusions *x, const char *node, uint64_t now);
/* On how many hosts has something failed since then? */
size_t exclusions_hosts_since(const struct exclusions *x, uint64_t since);
