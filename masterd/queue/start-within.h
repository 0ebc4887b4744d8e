/* SPDX-License-Identifier: Apache-2.0 */
/* startWithin: a job that has had no place for so long since it could have been placed fails, instead of
 * waiting for one that nobody needs any more. What it waits for by its own word (after, begin, a hold) does
 * not count, and a job that has begun once has met it. */
#pragma once

#include <stdint.h>

struct manager;
struct job;

/* Nothing but a place is missing, as far as known: the time counts from the first such call. Idempotent; also
 * when the limit is another one. */
void start_within_arm(struct manager *m, struct job *j);
/* It has its first place, or is being stopped. */
void start_within_disarm(struct job *j);
/* When it fails; 0: it does not. */
uint64_t start_within_real(const struct job *j);
