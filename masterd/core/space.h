/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of the disk that the store is on, and of the memory that masterd may have. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct manager;

/* Whether something new may be put on disk, bytes of it beside what the store needs: not when less than
 * KeepFree= would stay free. 0, or the error Refused. */
int space_admit_disk(const struct manager *m, uint64_t bytes, sd_bus_error *error);

/* Whether something new may be taken into memory. 0, or the error Busy. */
int space_admit_memory(struct manager *m, sd_bus_error *error);
/* Near the limit of the unit (MemoryHigh=, else MemoryMax=): jobs that run have to be minded with what is
 * left. Looked up a few times a second at most. */
bool space_memory_short(struct manager *m);
