/* SPDX-License-Identifier: Apache-2.0 */
/* The base set of programs: what executors used and how their threads stand, exact, and without a cost while
 * they run (docs/decisions/probes.md). In the kernel between programs_new() and programs_free(); the
 * process's end is the latter, too. A build without libbpf has none of them and says so (programs-none.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/cleanup.h"
#include "lib/observe/observe.h"

/* How a program is; why: what is in its way, for people, "" where it is up. */
struct program_state {
        const char *name;
        bool up;
        bool out_of_place; /* down because what it counts is not there to be counted, and nothing was refused
                            */
        char why[OBSERVE_WHY_MAX];
};

struct programs;
/* Loads every program as far as the kernel lets it; -ENOMEM only. */
int programs_new(struct programs **ret);
void programs_free(struct programs *p);
DEFINE_CLEANUP(struct programs *, programs_free)

/* Counts below this directory (primus.slice on the v2 hierarchy) from now on; it stays the caller's. Nothing
 * is done where it is the one already. -1: there is none, which is said of every program. 0, -errno of
 * fstat(). */
int programs_set_slice(struct programs *p, int slice_fd);
/* All _OBSERVE_PROGRAM_MAX of them; p's. */
const struct program_state *programs_states(const struct programs *p);
/* What is handed to who reads, by the names of lib/observe/observe.h; p's. -EBADF: it is not there. */
int programs_descriptor(const struct programs *p, const char *name);
