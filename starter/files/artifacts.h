/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs have left on this host, all of it: how much of it is whose, and what goes. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Removes the oldest of each user who has more than max bytes there, until he has not; never those named in
 * keep (NUMBER-UID8, NULL-ended), whose jobs are here, nor of jobs that have come since then (by the clock of
 * ctime, CLOCK_REALTIME_COARSE). Takes as long as the trees are large: for a process of
 * its own. Negative errno. */
int artifacts_trim(const char *root, uint64_t max, char *const *keep, const struct timespec *since);
