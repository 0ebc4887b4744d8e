/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/* Which unit something is of; no maps. */
#pragma once

#include "bpf/vmlinux.h"
/* After the types. */
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/events.h"

#define BPF_INLINE static inline __attribute__((always_inline))

/* The unit's id, 0 for what is of no unit: the control group two levels below primus.slice (primus-N.slice is
 * between them), also where the task sits deeper. Only the slice of this host counts: container hosts share a
 * kernel. */
BPF_INLINE uint64_t unit_of(struct cgroup *cgroup, uint64_t slice) {
        uint64_t job = 0, unit = 0;

        for (int i = 0; i < PROBE_DEPTH_MAX; i++) {
                struct cgroup_subsys_state *parent;
                uint64_t id;

                if (!cgroup)
                        return 0;
                id = cgroup->kn->id;
                if (id == slice)
                        return unit;
                unit = job;
                job = id;
                parent = cgroup->self.parent;
                if (!parent)
                        return 0;
                cgroup = parent->cgroup;
        }
        return 0;
}
