/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs on demand, in one object; of it only those are loaded that somebody asks for. */
#include "bpf/trace.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#include "bpf/calls.bpf.c"
#include "bpf/runqueue.bpf.c"
#include "bpf/stacks.bpf.c"
