/* SPDX-License-Identifier: Apache-2.0 */
/* Executors that must not outlive the host's contact with its master (onPartition: stop) have a name each in
 * a directory, for primus-alone: it stops them where agentd does not, because it is stopped, hangs or is
 * gone. Invariant: who has a name there has a private directory. */
#pragma once

#include <stdbool.h>

/* Before the unit is started, and after its private directory is made: -ENOENT without one. Fine where it is
 * already. */
int alone_mark(const char *root, const char *unit);
/* Its private directory goes. */
void alone_clear(const char *root, const char *unit);

/* Calls f for each executor that has one and may run, until it returns < 0. Names of units whose private
 * directory is gone, go, and what is no such name. < 0: f's, or an error; else how many there are, whether
 * they run or not. */
int alone_visit(const char *root, int (*f)(const char *unit, void *userdata), void *userdata);
