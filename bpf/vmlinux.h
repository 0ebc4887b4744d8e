/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/* What the programs of this folder know of the kernel's structures: a subset written by hand, so that the
 * build needs no kernel with BTF. Only names count: where a field is, is found on the host that loads the
 * program (preserve_access_index), and a field that it does not have is asked for first
 * (bpf_core_field_exists). Variants of other kernels end in ___NAME, which the lookup ignores. */
#pragma once

#include <stdint.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef int32_t __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum {
        BPF_MAP_TYPE_HASH = 1,
        BPF_MAP_TYPE_LRU_HASH = 9,
        BPF_MAP_TYPE_ARRAY = 2,
        BPF_MAP_TYPE_PERCPU_HASH = 5,
        BPF_MAP_TYPE_RINGBUF = 27,
        BPF_ANY = 0,
        BPF_NOEXIST = 1,
        BPF_F_NO_PREALLOC = 1,
};

/* Context of cgroup_skb programs; its layout is the kernel's interface and does not move. */
struct __sk_buff {
        __u32 len;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
        __u64 id;
};

struct cgroup;
struct cgroup_subsys_state {
        struct cgroup *cgroup;
        struct cgroup_subsys_state *parent;
};

struct cgroup_root {
        int hierarchy_id;
};

struct cgroup {
        struct cgroup_subsys_state self;
        struct kernfs_node *kn;
        struct cgroup_root *root;
};

struct css_set {
        struct cgroup *dfl_cgrp;
};

struct task_io_accounting {
        __u64 rchar, wchar, read_bytes, write_bytes;
};

struct sched_entity {
        __u64 sum_exec_runtime;
};

struct sched_info {
        unsigned long long run_delay, last_arrival;
};

struct signal_struct {
        struct task_io_accounting ioac; /* of threads that ended and of children that were waited for */
};

typedef struct {
        unsigned int val;
} kuid_t;

struct cred {
        kuid_t uid;
};

struct percpu_counter {
        __s64 count;
};

struct mm_struct {
        struct percpu_counter rss_stat[4];
};

/* Up to kernel 6.1. */
typedef struct {
        long counter;
} atomic_long_t;
struct mm_rss_stat {
        atomic_long_t count[4];
};
struct mm_struct___counted {
        struct mm_rss_stat rss_stat;
};

struct upid {
        int nr;
};

struct pid {
        unsigned int level;
        struct upid numbers[1];
};

struct task_struct {
        unsigned int __state;
        unsigned int flags;
        int on_cpu;
        int exit_state, exit_code;
        int pid, tgid;
        __u64 start_boottime;
        struct pid *thread_pid;
        char comm[16];
        struct sched_entity se;
        struct sched_info sched_info;
        struct mm_struct *mm;
        const struct cred *real_cred;
        struct signal_struct *signal;
        struct task_io_accounting ioac;
        struct css_set *cgroups;
};

struct seq_file;
struct bpf_iter_meta {
        struct seq_file *seq;
        __u64 session_id, seq_num;
};
struct bpf_iter__task {
        struct bpf_iter_meta *meta;
        struct task_struct *task;
};

struct sock_cgroup_data {
        struct cgroup *cgroup;
};
struct sock {
        struct sock_cgroup_data sk_cgrp_data;
};
struct sk_buff;

struct blkcg {
        struct cgroup_subsys_state css;
};
struct blkcg_gq {
        struct blkcg *blkcg;
};
struct bio {
        struct blkcg_gq *bi_blkg;
};
struct request {
        unsigned int cmd_flags;
        struct bio *bio;
};

#pragma clang attribute pop
