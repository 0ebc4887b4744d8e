/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs in the kernel have counted, by descriptors of their maps. Inside the room. */
#pragma once

#include "agentd/probe/probe.h"

struct kernel;
/* d's descriptors are taken in any case. -EPERM: the kernel lets only root read; -ENOMEM, others. */
int kernel_new(struct probe_descriptors *d, struct kernel **ret);
void kernel_free(struct kernel *k);
/* < 0: there is no program for that. */
int kernel_scrape(struct kernel *k);
/* What the maps have of a unit; false: nothing. *ret_fresh: the last pass has seen tasks of
 * it. */
bool kernel_unit(struct kernel *k, uint64_t id, struct probe_unit *ret, bool *ret_fresh);
bool kernel_flow(struct kernel *k, uint64_t id, struct probe_flow *ret);
void kernel_forget(struct kernel *k, uint64_t id);
/* Forgets what is older than a minute and that known() does not know: hooks, what an administrator put below
 * the slice, the last packets of a unit that is over. */
void kernel_sweep(struct kernel *k, bool (*known)(uint64_t id, void *userdata), void *userdata);
uint64_t kernel_dropped(struct kernel *k);
int kernel_fd(const struct kernel *k);
int kernel_dispatch(struct kernel *k, probe_event_handler f, void *userdata);
