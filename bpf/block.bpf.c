/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts what block devices have read and written, by the unit that a request is charged to: only where the
 * io controller is on the v2 hierarchy. */
#include "bpf/probe.bpf.h"

#define OPERATION_MASK 0xff
#define OPERATION_READ 0
#define OPERATION_WRITE 1

SEC("tp_btf/block_rq_complete")
int BPF_PROG(primus_block, struct request *request, int error, unsigned bytes) {
        struct probe_place *s = probe_place();
        unsigned operation = request->cmd_flags & OPERATION_MASK;
        struct probe_flow *flow;
        struct cgroup *cgroup;
        struct blkcg_gq *group;
        struct bio *bio;
        uint64_t id;

        if (!s || s->slice == 0 || operation > OPERATION_WRITE)
                return 0;
        bio = request->bio;
        if (!bio)
                return 0;
        group = bio->bi_blkg;
        if (!group)
                return 0;
        cgroup = group->blkcg->css.cgroup;
        if (!cgroup || cgroup->root->hierarchy_id != 0) /* of a v1 hierarchy, which counts its own ids */
                return 0;
        id = unit_of(cgroup, s->slice);
        if (id == 0)
                return 0;
        flow = flow_get(id);
        if (!flow)
                return 0;
        if (operation == OPERATION_READ)
                __sync_fetch_and_add(&flow->block_read_bytes, bytes);
        else
                __sync_fetch_and_add(&flow->block_write_bytes, bytes);
        return 0;
}
