/* SPDX-License-Identifier: Apache-2.0 */
/* What an executor may use on its host, beyond CPUs, memory, GPUs and time. Part of spec.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPEC_TASKS_PRESET 16384u
#define SPEC_TASKS_MAX (1u << 22)
#define SPEC_WEIGHT_CGROUP_MAX 10000u /* cpu.weight and io.weight of cgroup v2 */
#define SPEC_IO_MAX 16u
#define SPEC_IO_MBPS_MAX (16u << 20)
#define SPEC_IOPS_MAX UINT32_MAX
#define SPEC_OPEN_FILES_MAX (1u << 30)

/* An entry of io. Bytes and operations in a second; 0: no such limit. */
struct io_spec {
        char *path; /* a device, or where a file system is mounted; NULL: the weight on all devices */
        uint64_t read_bps, write_bps;
        uint32_t read_iops, write_iops;
        uint32_t weight; /* 1 ... 10000; 0: not given */
};

/* Of a role; 0: not given. */
struct limits_spec {
        uint64_t memory_high; /* bytes */
        uint32_t cpu_weight;  /* 1 ... 10000 */
        uint32_t tasks;       /* >= 1: processes and threads of one executor */
        struct io_spec *io;
        size_t n_io;
        uint32_t open_files;
        uint64_t locked_memory; /* bytes */
        bool delegate;          /* the executor may divide its cgroup */
};
