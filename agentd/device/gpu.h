/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs by what their drivers show in /proc and /sys, without a vendor's library. */
#pragma once

#include "lib/wire/messages.h"

/* Appends the host's GPUs, in PCI order, to gpus (LINK_GPUS_MAX entries); *n is how many there are. -ENOMEM.
 */
int gpus_find_nvidia(const char *root, struct gpu_info *gpus, size_t *n);
int gpus_find_amd(const char *root, struct gpu_info *gpus, size_t *n);
