/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct manager;
struct job;

/* It is at an end, waits, or is held: the timer stops where the limit does not matter any more. */
void time_limit_review(struct job *j);
/* Sets the timers of the limit and of its signal, also of a job that was loaded. */
void time_limit_arm(struct manager *m, struct job *j);
