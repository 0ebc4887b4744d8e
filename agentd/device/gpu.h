/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs as things to be given out: by what their drivers show in /proc and /sys, or by what was seen of them.
 */
#pragma once

#include "agentd/device/gpu-state.h"
#include "lib/wire/messages.h"

/* Appends the host's GPUs, in PCI order, to gpus (LINK_GPUS_MAX entries); *n is how many there are. -ENOMEM.
 */
int gpus_find_nvidia(const char *root, struct gpu_info *gpus, size_t *n);
/* Those of NVIDIA by the PCI bus alone, where the driver shows nothing else: in PCI order, which is that of
 * its device nodes. */
int gpus_find_pci(const char *root, struct gpu_info *gpus, size_t *n);
int gpus_find_amd(const char *root, struct gpu_info *gpus, size_t *n);

/* The same by what NVIDIA's library says (gpu-watch.h): whole GPUs, and of those that are cut (MIG) the
 * parts, with the nodes of their capabilities. */
int gpus_take(const char *root, const struct gpu_state *states, size_t n_states, struct gpu_info *gpus,
              size_t *n);
