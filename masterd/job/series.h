/* SPDX-License-Identifier: Apache-2.0 */
/* How a role has been doing: what follows from two samples of an executor, and a bounded history of that over
 * all executors of a role. Pure: time is an argument. What is not known is NAN, which is never 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/wire/telemetry-fields.h"

/* X(NAME, "name on the bus", adds up over executors) */
#define SERIES(X)                                                                                            \
        X(CPU, "cpu", true)             /* cores */                                                          \
        X(CPU_SHARE, "cpuShare", false) /* of its limit, else of what its role asks for; 1: all of it */     \
        X(MEMORY, "memory", true)       /* bytes */                                                          \
        X(MEMORY_SHARE, "memoryShare", false)                                                                \
        X(READ, "read", true) /* bytes a second, as all of these */                                          \
        X(WRITE, "write", true)                                                                              \
        X(NET_RX, "netRx", true)                                                                             \
        X(NET_TX, "netTx", true)                                                                             \
        X(GPU, "gpu", false)             /* mean utilisation of its GPUs; 1: all the time */                 \
        X(GPU_MEMORY, "gpuMemory", true) /* bytes */                                                         \
        X(DATA_WAIT, "dataWait", false)  /* share of the time that it waited for data */                     \
        X(PRESSURE, "pressure", false)   /* of CPU, memory and I/O the one that it stood still for most */   \
        X(STEPS, "steps", false)         /* of its own count (primus_progress()), a second */

enum series_kind {
#define X(name, text, adds) SERIES_##name,
        SERIES(X)
#undef X
        _SERIES_MAX
};

const char *series_name(enum series_kind k);
bool series_adds(enum series_kind k);

/* Two samples of an executor; before_usec 0: there is none before. cpu (cores) and memory (bytes): what its
 * role asks for, 0: nothing. */
struct series_input {
        uint64_t before_usec, now_usec; /* the host's clock */
        const uint64_t *before, *now;   /* _TELEMETRY_MAX values */
        double cpu;
        uint64_t memory;
};
void series_derive(const struct series_input *in, float ret[static _SERIES_MAX]);

enum series_range {
        SERIES_FINE,   /* 10 minutes, */
        SERIES_COARSE, /* 4 hours */
        _SERIES_RANGE_MAX,
};
#define SERIES_POINTS 120u                     /* of each */
uint64_t series_interval(enum series_range r); /* microseconds between two points */

/* What all histories together may take. */
struct series_budget {
        size_t bytes, max;
};

struct series;
/* wide: the role has more than one executor, and the highest of them is kept beside the mean. -ENOMEM,
 * -ENOBUFS: the budget is used up. */
int series_new(struct series_budget *budget, bool wide, struct series **ret);
void series_free(struct series *s);
/* Its role has more than one executor from now on. Without room for that it stays as it is. */
void series_widen(struct series *s);

/* What one executor does: O(1), but for points that nothing was heard in. now is one clock for all. */
void series_add(struct series *s, uint64_t now_usec, const float values[static _SERIES_MAX]);

/* The points of a series up to now, oldest first, mean over its executors and (may be NULL) the highest of
 * them. Returns how many. */
size_t series_read(struct series *s, enum series_range range, enum series_kind k, uint64_t now_usec,
                   float ret_mean[static SERIES_POINTS], float *ret_max);
