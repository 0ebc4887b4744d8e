/* SPDX-License-Identifier: Apache-2.0 */
/* The programs in the kernel and their maps. Inside the room; a build without libbpf has none of them and
 * says so (kernel-none.c). */
#pragma once

#include "agentd/probe/probe.h"

enum kernel_program {
        KERNEL_EXITS,
        KERNEL_TASKS,
        KERNEL_INGRESS,
        KERNEL_EGRESS,
        KERNEL_RETRANSMITS,
        KERNEL_BLOCK,
        KERNEL_VICTIMS,
        _KERNEL_PROGRAM_MAX
};
extern const char *const kernel_program_names[_KERNEL_PROGRAM_MAX];

struct kernel;
/* Loads and attaches; programs[] gets how each of them is. -ENOMEM only; *ret may be NULL: nothing is up. */
int kernel_new(struct probe_program programs[static _KERNEL_PROGRAM_MAX], struct kernel **ret);
void kernel_free(struct kernel *k);
/* Counts below this slice from now on. */
void kernel_set_slice(struct kernel *k, int slice_fd, uint64_t slice_id,
                      struct probe_program programs[static _KERNEL_PROGRAM_MAX]);
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
