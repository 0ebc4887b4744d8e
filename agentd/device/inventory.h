/* SPDX-License-Identifier: Apache-2.0 */
/* What the host has: CPUs, memory, GPUs, as the kernel shows it. */
#pragma once

#include <stdint.h>

#include "agentd/device/gpu-state.h"
#include "lib/wire/messages.h"

struct inventory_limits {
        uint32_t cpus;                /* 0: all that are online */
        uint64_t memory_reserve;      /* bytes kept for the host itself */
        uint64_t memory;              /* bytes to offer in all; 0: all but the reserve */
        uint64_t gpu_memory;          /* of each GPU that does not say; 0: unknown */
        char *const *labels;          /* NULL-ended, or NULL */
        const struct gpu_state *gpus; /* NVIDIA's, as their library says; none: as /proc and /sys say */
        size_t n_gpus;
};

/* root, for tests, is put before every path ("" in life). Ports, address and allow_root are the caller's.
 * What cannot be read is left out (0, ""), never an error; -ENOMEM. Release with inventory_done(). */
int inventory_read_host(const char *root, const struct inventory_limits *limits, struct inventory *ret);
