/* SPDX-License-Identifier: Apache-2.0 */
/* How many refusals of whom have a line of their own: so many within a time, and then a count. Pure: time is
 * an argument. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define REFUSALS_MAX 60u /* of one uid within the interval */
#define REFUSALS_USEC (60 * USEC_PER_SEC)
#define REFUSALS_WHO_MAX 64u       /* uids that are told apart; the rest share one share */
#define REFUSALS_OTHERS UINT32_MAX /* who that is; also those who have no uid */

struct refusals;
int refusals_new(struct refusals **ret);
struct refusals *refusals_free(struct refusals *r);
DEFINE_CLEANUP(struct refusals *, refusals_free)

/* Counts one. False: it has no line. now: CLOCK_BOOTTIME usec. */
bool refusals_admit(struct refusals *r, uint32_t uid, uint64_t now);
/* The next one would have none. */
bool refusals_full(const struct refusals *r, uint32_t uid);

/* There is somebody to be taken out some day. */
bool refusals_any(const struct refusals *r);

/* Takes out one of those whose time is over (all: of any), with how many had no line, which may be 0. False:
 * there is none. */
bool refusals_over(struct refusals *r, uint64_t now, bool all, uint32_t *ret_uid, uint64_t *ret_suppressed);
