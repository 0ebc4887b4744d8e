/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters that can be followed by hand, and gangs that are placed there. What goes wrong fails the test. */
#pragma once

#include "lib/base/cleanup.h"
#include "masterd/sched/sched.h"

#define GIB (UINT64_C(1) << 30)

/* Nodes of 8 CPUs; node i is of switch i / per_switch, two switches to a rack. */
struct sched *sched_kit_cluster(uint32_t n, uint32_t per_switch);
/* n executors of so many CPUs each. */
struct sched_shape sched_kit_cpus(uint32_t n, uint32_t each);
/* As sched_place(), and nobody asks why not. */
int sched_kit_place(struct sched *s, const struct sched_gang *g, struct sched_placement *ret);
void sched_kit_release(struct sched *s, struct sched_placement *p);
/* So many CPUs of the node are somebody else's. */
void sched_kit_occupy(struct sched *s, uint32_t slot, uint32_t n);
/* Over how many domains of the level it is. */
uint32_t sched_kit_domains(const struct sched *s, const struct sched_placement *p, uint32_t level);
