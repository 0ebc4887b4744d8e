/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that were submitted from inside another one, its parent, and of them those that end with it (wards).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct job;
struct manager;

/* Whether a job of that owner may be made as one of parent's (0: of none): with, it is to end with it. */
int family_admit(struct manager *m, uint32_t parent, uint32_t owner, bool with, sd_bus_error *error);
/* The job is in the table; where it is to end with one that has ended meanwhile, it does. */
void family_admitted(struct manager *m, struct job *j);
/* Listeners. */
int family_load(struct manager *m);
void family_job_ended(struct manager *m, struct job *j);
void family_job_freed(struct job *j);
