/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs that agentd has in the kernel as long as it runs, in one object: each object costs a reading
 * of the kernel's types, 75 ms, when it is loaded. A program that the kernel refuses is left out, and the
 * others are loaded again without it. */
#include "bpf/probe.bpf.h"

/* The kernel lends what these programs call to nothing else. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";

#include "bpf/block.bpf.c"
#include "bpf/exits.bpf.c"
#include "bpf/network.bpf.c"
#include "bpf/retransmits.bpf.c"
#include "bpf/tasks.bpf.c"
#include "bpf/victims.bpf.c"
