/* SPDX-License-Identifier: Apache-2.0 */
/* What `primusctl top` shows: the answers of Job.Telemetry and Manager.ListTelemetry as structs. What is not
 * known is NAN. Strings are the struct's own. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct json_t;

/* X(NAME, "name on the bus and in JSON") */
#define TOP_NUMBERS(X)                                                                                       \
        X(CPU, "cpu")                                                                                        \
        X(CPU_SHARE, "cpuShare")                                                                             \
        X(MEMORY, "memory")                                                                                  \
        X(MEMORY_SHARE, "memoryShare")                                                                       \
        X(READ, "read")                                                                                      \
        X(WRITE, "write")                                                                                    \
        X(NET_RX, "netRx")                                                                                   \
        X(NET_TX, "netTx")                                                                                   \
        X(GPU, "gpu")                                                                                        \
        X(GPU_MEMORY, "gpuMemory")                                                                           \
        X(DATA_WAIT, "dataWait")                                                                             \
        X(PRESSURE, "pressure")                                                                              \
        X(STEPS, "steps")

enum top_number {
#define X(name, text) TOP_##name,
        TOP_NUMBERS(X)
#undef X
        _TOP_NUMBER_MAX
};

#define TOP_POINTS_MAX 240u

struct top_total {
        uint32_t running, measured, gpus;
        double cpu; /* cores that they may use; 0: no limit */
        uint64_t memory;
        double sum[_TOP_NUMBER_MAX], mean[_TOP_NUMBER_MAX], max[_TOP_NUMBER_MAX];
};

struct top_role {
        char *name;
        uint32_t executors; /* wanted */
        struct top_total total;
        uint32_t n_points;              /* of each history that is there */
        float *points[_TOP_NUMBER_MAX]; /* means, oldest first; NULL: nothing is known */
};

struct top_executor {
        char *role, *state, *node;
        uint32_t order;                   /* as it came */
        uint32_t index, attempt, element; /* element UINT32_MAX: it is of no array */
        uint64_t age;                     /* UINT64_MAX: not measured yet */
        double rates[_TOP_NUMBER_MAX];
        struct json_t *values; /* as its agent said them; NULL: not asked for */
        char *verdicts;        /* "hung, leaking"; NULL: none */
};

struct top_job { /* a row of the overview, and the head of a job's page */
        uint32_t number, owner, executors;
        char *name, *state;
        uint64_t since;
        struct top_total total;
};

struct top_model {
        struct top_job job;    /* number 0: the overview */
        uint64_t at, interval; /* of two points */
        struct top_role *roles;
        size_t n_roles;
        struct top_executor *executors;
        size_t n_executors;
        struct top_job *jobs;
        size_t n_jobs;
};

void top_model_done(struct top_model *t);
void top_job_done(struct top_job *j);

/* The answers; 0 or negative errno. What was in the model stays on failure. */
int top_read_job(sd_bus_message *m, struct top_model *t);
int top_read_jobs(sd_bus_message *m, struct top_model *t);

/* Takes one out; the others keep their order. */
void top_model_drop_role(struct top_model *t, size_t i);
void top_model_drop_executor(struct top_model *t, size_t i);

struct json_t *top_json(const struct top_model *t); /* NULL: no memory */
