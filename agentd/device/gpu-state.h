/* SPDX-License-Identifier: Apache-2.0 */
/* What was seen of a GPU, or of a part of one (MIG), at one moment. Plain data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/unitname.h"

#define GPU_UNKNOWN UINT64_MAX
#define GPU_STATES_MAX 128u /* whole ones and parts */
#define GPU_PROCESSES_MAX 32u

enum gpu_value {
        GPU_UTILIZATION,            /* thousandths of the time in which something ran on it */
        GPU_MEMORY_TOTAL,           /* bytes */
        GPU_MEMORY_USED,            /* bytes */
        GPU_POWER_MILLIWATTS,       /* now */
        GPU_ENERGY_MILLIJOULES,     /* since the driver was loaded */
        GPU_TEMPERATURE,            /* degrees Celsius */
        GPU_ECC_CORRECTED,          /* since the driver was loaded */
        GPU_ECC_UNCORRECTED,        /* since the driver was loaded */
        GPU_REMAPPED_CORRECTABLE,   /* rows of memory that were replaced */
        GPU_REMAPPED_UNCORRECTABLE, /* the same, for errors that could not be corrected */
        GPU_REMAP_PENDING,          /* 1: a row waits for a reset to be replaced */
        GPU_REMAP_FAILURE,          /* 1: a row could not be replaced */
        GPU_PCIE_REPLAYS,           /* packets sent again, since it was reset */
        GPU_THROTTLE,               /* bits of enum gpu_throttle */
        GPU_RECOVERY,               /* enum gpu_recovery */
        GPU_BUSY_USEC,              /* utilisation over time, since this agent began to look */
        GPU_XIDS,                   /* how many came, since this agent began to look */
        GPU_LAST_XID,               /* 0: none came */
        _GPU_VALUE_MAX
};

/* As NVML numbers them. */
enum gpu_throttle {
        GPU_THROTTLE_POWER_CAP = 0x4,
        GPU_THROTTLE_HARDWARE = 0x8,
        GPU_THROTTLE_THERMAL_SOFTWARE = 0x20,
        GPU_THROTTLE_THERMAL_HARDWARE = 0x40,
        GPU_THROTTLE_POWER_BRAKE = 0x80,
};

/* What the driver says has to be done, as NVML numbers it. */
enum gpu_recovery {
        GPU_RECOVERY_NONE,
        GPU_RECOVERY_RESET,
        GPU_RECOVERY_REBOOT,
        GPU_RECOVERY_DRAIN_P2P,
        GPU_RECOVERY_DRAIN_AND_RESET,
};

struct gpu_process {
        uint32_t pid;
        uint64_t memory;          /* bytes; GPU_UNKNOWN */
        char unit[UNIT_NAME_MAX]; /* of Primus, or "": it is in none, and then: */
        uint32_t uid;             /* UINT32_MAX: it is gone */
        char name[16], where[96]; /* its control group; as texts for people */
};

struct gpu_state {
        char uuid[96];                       /* "GPU-..." or "MIG-..." */
        char model[96];                      /* of a part: of the GPU that it is of */
        char pci[16];                        /* "0000:3b:00.0" */
        char mig[32];                        /* profile, "1g.10gb"; "": a whole one */
        char parent[96];                     /* uuid of the GPU that it is a part of */
        uint32_t index;                      /* NVML's, of the whole GPU */
        uint32_t minor;                      /* /dev/nvidiaN */
        uint32_t instance, compute_instance; /* of a part */
        bool cut;                            /* a whole GPU in MIG mode: only its parts can be used */
        bool lost;                           /* it does not answer; what is said of it is from before */
        bool reset_required;
        uint64_t links; /* bit N: joined to the GPU of that index, by NVLink, or, where the host has no
                           NVLink, by a PCIe switch */
        uint64_t values[_GPU_VALUE_MAX];
        struct gpu_process processes[GPU_PROCESSES_MAX];
        size_t n_processes;
};
