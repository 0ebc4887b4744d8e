/* SPDX-License-Identifier: Apache-2.0 */
/* Scenes under a simulated clock: what the executors of a job do, second by second, told as a table; and the
 * verdicts that came of it. An hour takes milliseconds. */
#pragma once

#include "masterd/health/health.h"

#define MIN_(n) ((n)*60u) /* seconds */
#define EVERYBODY UINT32_MAX
#define ONLY(i) (UINT32_C(1) << (i))
#define BUT(i) (~ONLY(i))
#define FOREVER UINT32_MAX

/* What an executor does, per second. A negative number: the host cannot tell. */
struct doing {
        double cpu;                                                    /* CPUs */
        double net;                                                    /* bytes, half each way */
        double files;                                                  /* bytes, read and written */
        double data;                                                   /* bytes of its input */
        double data_wait;                                              /* share of the time */
        double unread;                                                 /* share of the looks */
        double gpu;                                                    /* share of the time, of each GPU */
        double watts;                                                  /* of all its GPUs */
        double throttled, runqueue, memory_full, io_full, retransmits; /* shares; packets */
        double grows;                                                  /* bytes of memory */
        double rtt;                                                    /* usec */
        unsigned tasks;                                                /* threads; 0: 10 */
        bool forks;                                                    /* their number changes all the time */
        bool stopped, blocked;
        unsigned killed;                            /* by the kernel for memory */
        bool steps;                                 /* primus_progress() */
        unsigned connections;                       /* +1; 0: 3 */
        double sleeps, reads, pipes, server, locks; /* share of the looks in which its trainer is in that */
        unsigned launcher, loaders; /* other processes: that sleep; that wait for work in a pipe */
        double loading;             /* share of the looks, in which a loader reads storage */
        double strays;              /* of the signals for its place: it has gone on meanwhile */
};

enum event {
        DOES,         /* what doing says */
        SILENT,       /* no samples come */
        AGENT_AGAIN,  /* at from: its counters begin at 0 */
        MASTER_AGAIN, /* at from: the engine begins anew */
        LEAVES,
        COMES,   /* at from: elastic */
        HELD,    /* suspended: no samples, and the pause is known */
        SHRINKS, /* at from: gives memory back, down to what it began with */
};

/* Lines further down override those above. */
struct line {
        uint32_t from, to; /* seconds, to exclusive */
        uint32_t who;      /* a bit for each member */
        enum event event;
        struct doing doing;
};

struct scene {
        const char *name;
        uint32_t members, seconds;
        uint32_t gpus;   /* of each */
        uint64_t memory; /* limit; 0: 8 GiB */
        uint32_t sample; /* seconds between samples; 0: 5 */
        bool roles;      /* member 0 is of a role of its own */
        const struct line *lines;
        size_t n;
        const struct health_rules *rules; /* NULL: the defaults */
};
#define LINES(table) .lines = table, .n = sizeof(table) / sizeof((table)[0])

#define VERDICTS_MAX 64u
struct verdicts {
        struct {
                uint32_t at; /* seconds */
                struct health_verdict v;
        } all[VERDICTS_MAX];
        size_t n;
};

void scene_play(const struct scene *s, struct verdicts *ret);
/* None at all. */
void scene_is_healthy(const struct scene *s);
/* The first that begins is of that kind, of that member, in [after, before) seconds, and nothing else begins.
 * Returns it. member UINT32_MAX: of the gang, without a suspect. */
struct health_verdict scene_is_sick(const struct scene *s, enum verdict_kind kind, bool gang, uint32_t member,
                                    uint32_t after, uint32_t before);
