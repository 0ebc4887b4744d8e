/* SPDX-License-Identifier: Apache-2.0 */
/* The programs on demand, in one object; of it only those are loaded that somebody asks for. */
#include "bpf/trace.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#include "bpf/calls.bpf.c"
#include "bpf/runqueue.bpf.c"
#include "bpf/stacks.bpf.c"
