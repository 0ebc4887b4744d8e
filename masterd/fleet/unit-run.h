/* SPDX-License-Identifier: Apache-2.0 */
/* Template units on masterd's host: started by systemd at masterd's word (a polkit rule says which), and
 * their end heard of. masterd forks nothing. */
#pragma once

#include <stdint.h>

struct manager;
struct unit_run;
struct unit_runs;

/* The unit's job is over: why NULL: it ended well. Called once, never from within unit_run_start(); the run
 * is the callee's to free. */
typedef void (*unit_run_done)(void *userdata, const char *why);

/* Starts the unit, which has to be a oneshot service; one that runs already is waited for. give_up_usec: when
 * nothing is heard of its end. 0, *ret to be freed; or negative errno. */
int unit_run_start(struct manager *m, const char *unit, uint64_t give_up_usec, unit_run_done done,
                   void *userdata, struct unit_run **ret);
/* Nothing is heard of it any more; it goes on. NULL is fine; returns NULL. */
struct unit_run *unit_run_free(struct unit_run *r);

/* Before the bus goes: the filter, when no run is left. */
void unit_runs_stop(struct manager *m);
