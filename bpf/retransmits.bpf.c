/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts the TCP segments that were sent again, by the unit of the socket. */
#include "bpf/probe.bpf.h"

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(primus_retransmits, const struct sock *sk) {
        struct probe_place *s = probe_place();
        struct probe_flow *flow;
        uint64_t id;

        if (!s || s->slice == 0)
                return 0;
        id = unit_of(sk->sk_cgrp_data.cgroup, s->slice);
        if (id == 0)
                return 0;
        flow = flow_get(id);
        if (flow)
                __sync_fetch_and_add(&flow->retransmits, 1);
        return 0;
}
