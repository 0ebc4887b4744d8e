/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library, as far as it is on the host: loaded at run time, by prototypes of our own.
 * Every function of it may be missing, and every call may take seconds, or never return when a GPU is sick:
 * so these are called in a thread that nobody waits for (gpu-watch.c), and touch nothing that is shared. */
#pragma once

#include "agentd/device/gpu-state.h"
#include "lib/base/cleanup.h"

struct nvml;

/* library: "libnvidia-ml.so.1". -ENOENT: there is none; -ENODEV: it finds no driver or no GPU; -EIO: it
 * fails. why (at least 160 bytes) is filled in with a sentence. */
int nvml_open(const char *library, struct nvml **ret, char *why, size_t size);
void nvml_close(struct nvml *n);
DEFINE_CLEANUP(struct nvml *, nvml_close)

/* Looks at all GPUs and their parts, in PCI order, parts behind the GPU that they are of. states has room for
 * GPU_STATES_MAX and holds those of the look before (n_before): a GPU that does not answer any more stays, as
 * lost. Returns how many there are, or -EIO. */
int nvml_read(struct nvml *n, struct gpu_state *states, size_t n_before);

struct nvml_event {
        char uuid[96]; /* of the whole GPU */
        uint32_t xid;
        uint32_t instance; /* GPU instance (MIG); UINT32_MAX: the whole */
};
/* Waits for the next Xid, at most that long. 1, or 0: none came. -EOPNOTSUPP: there are no events. */
int nvml_wait(struct nvml *n, unsigned msec, struct nvml_event *ret);
