/* SPDX-License-Identifier: Apache-2.0 */
/* A signal for the programs of a unit. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Whether Signal() and Capture() take it: none that cannot be caught, and none of the C library's own. */
bool signal_allowed(int signal);

/* Sends it if the process is of the unit and has a handler for it; says so. */
bool signal_process(const char *proc, pid_t pid, const char *unit, int signal);
