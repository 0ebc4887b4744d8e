/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts the IP packets of each unit, on primus.slice and so in everything below it. Lets all of them pass.
 */
#include "bpf/probe.bpf.h"

#define PASS 1

/* How deep primus.slice lies is asked once: a container host does not see what it is mounted below. */
BPF_INLINE int find_level(struct __sk_buff *skb, struct probe_place *s) {
        for (int i = 1; i < PROBE_DEPTH_MAX; i++)
                if (bpf_skb_ancestor_cgroup_id(skb, i) == s->slice) {
                        s->level = i;
                        return i;
                }
        return 0;
}

BPF_INLINE struct probe_flow *flow_of(struct __sk_buff *skb) {
        struct probe_place *s = probe_place();
        uint64_t id;
        int level;

        if (!s)
                return 0;
        level = s->level ?: find_level(skb, s);
        if (level == 0)
                return 0;
        id = bpf_skb_ancestor_cgroup_id(skb, level + 2);
        return id != 0 ? flow_get(id) : 0;
}

SEC("cgroup_skb/ingress")
int primus_ingress(struct __sk_buff *skb) {
        struct probe_flow *flow = flow_of(skb);

        if (flow) {
                __sync_fetch_and_add(&flow->rx_bytes, skb->len);
                __sync_fetch_and_add(&flow->rx_packets, 1);
        }
        return PASS;
}

SEC("cgroup_skb/egress")
int primus_egress(struct __sk_buff *skb) {
        struct probe_flow *flow = flow_of(skb);

        if (flow) {
                __sync_fetch_and_add(&flow->tx_bytes, skb->len);
                __sync_fetch_and_add(&flow->tx_packets, 1);
        }
        return PASS;
}
