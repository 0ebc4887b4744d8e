/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured of an executor: one table, from which the samples that agentd sends (telemetry.h),
 * masterd's history and what people are shown take their names and kinds. A value is a uint64_t;
 * TELEMETRY_UNKNOWN where this host cannot tell, which is never the same as 0. COUNTER   since the attempt
 * began, never falls but when agentd was restarted (a reader takes a fall as the beginning of another count)
 *   GAUGE     at the time of the sample
 * The order is the wire's: new fields go to the end. */
#pragma once

#include <stdint.h>

#define TELEMETRY_UNKNOWN UINT64_MAX

/* X(FIELD, "name on the bus and in JSON", kind) */
#define TELEMETRY_FIELDS(X)                                                                                  \
        /* CPU; limit in microseconds per second, UNKNOWN: none */                                           \
        X(CPU_USEC, "cpuUsec", COUNTER)                                                                      \
        X(CPU_LIMIT_USEC, "cpuLimitUsec", GAUGE)                                                             \
        X(CPU_THROTTLED_USEC, "cpuThrottledUsec", COUNTER)                                                   \
        X(RUNQUEUE_WAIT_USEC, "runqueueWaitUsec", COUNTER) /* ready to run and did not, all threads */       \
        /* pressure: time in which some (full: all) of its tasks stood still for lack of it */               \
        X(PRESSURE_CPU_USEC, "pressureCpuUsec", COUNTER)                                                     \
        X(PRESSURE_MEMORY_USEC, "pressureMemoryUsec", COUNTER)                                               \
        X(PRESSURE_MEMORY_FULL_USEC, "pressureMemoryFullUsec", COUNTER)                                      \
        X(PRESSURE_IO_USEC, "pressureIoUsec", COUNTER)                                                       \
        X(PRESSURE_IO_FULL_USEC, "pressureIoFullUsec", COUNTER)                                              \
        /* memory, bytes */                                                                                  \
        X(MEMORY_BYTES, "memoryBytes", GAUGE)                                                                \
        X(MEMORY_PEAK_BYTES, "memoryPeakBytes", GAUGE)                                                       \
        X(MEMORY_LIMIT_BYTES, "memoryLimitBytes", GAUGE) /* UNKNOWN: none */                                 \
        X(MEMORY_HIGH_EVENTS, "memoryHighEvents", COUNTER)                                                   \
        X(MEMORY_MAX_EVENTS, "memoryMaxEvents", COUNTER)                                                     \
        X(OOM_KILLS, "oomKills", COUNTER)                                                                    \
        /* bytes of read() and write() calls, and of block devices */                                        \
        X(READ_BYTES, "readBytes", COUNTER)                                                                  \
        X(WRITE_BYTES, "writeBytes", COUNTER)                                                                \
        X(BLOCK_READ_BYTES, "blockReadBytes", COUNTER)                                                       \
        X(BLOCK_WRITE_BYTES, "blockWriteBytes", COUNTER)                                                     \
        /* network */                                                                                        \
        X(NET_RX_BYTES, "netRxBytes", COUNTER)                                                               \
        X(NET_TX_BYTES, "netTxBytes", COUNTER)                                                               \
        X(NET_RX_PACKETS, "netRxPackets", COUNTER)                                                           \
        X(NET_TX_PACKETS, "netTxPackets", COUNTER)                                                           \
        X(TCP_RETRANSMITS, "tcpRetransmits", COUNTER)                                                        \
        X(TCP_RTT_USEC, "tcpRttUsec", GAUGE)         /* mean of its connections, smoothed */                 \
        X(TCP_CONNECTIONS, "tcpConnections", GAUGE)  /* established, to elsewhere than itself */             \
        X(NET_UNREAD_BYTES, "netUnreadBytes", GAUGE) /* arrived, and not read by it */                       \
        /* Looks (one a second) at its connections, and those in which something had been waiting to be read \
         */                                                                                                  \
        /* since the look before: a rank that others wait for computes while their data lies there. */       \
        X(LOOKS, "looks", COUNTER)                                                                           \
        X(LOOKS_UNREAD, "looksUnread", COUNTER)                                                              \
        /* threads */                                                                                        \
        X(TASKS, "tasks", GAUGE)                                                                             \
        X(TASKS_RUNNING, "tasksRunning", GAUGE)                                                              \
        X(TASKS_BLOCKED, "tasksBlocked", GAUGE) /* in D state */                                             \
        X(TASKS_STOPPED, "tasksStopped", GAUGE) /* SIGSTOP, a debugger */                                    \
        X(LAST_RUN_USEC, "lastRunUsec", GAUGE)  /* since any of its threads was on a CPU */                  \
        /* data */                                                                                           \
        X(DATA_RECORDS, "dataRecords", COUNTER)                                                              \
        X(DATA_BYTES, "dataBytes", COUNTER)                                                                  \
        X(DATA_WAIT_USEC, "dataWaitUsec", COUNTER)         /* the trainer waited for data */                 \
        X(DATA_PRODUCER_USEC, "dataProducerUsec", COUNTER) /* the trainer was busy with data */              \
        /* GPUs it was given: mean utilisation in thousandths, sums of the others */                         \
        X(GPUS, "gpus", GAUGE)                                                                               \
        X(GPU_UTILIZATION, "gpuUtilization", GAUGE)                                                          \
        X(GPU_MEMORY_BYTES, "gpuMemoryBytes", GAUGE)                                                         \
        X(GPU_POWER_MILLIWATTS, "gpuPowerMilliwatts", GAUGE)                                                 \
        X(GPU_BUSY_USEC, "gpuBusyUsec", COUNTER) /* utilisation over time, summed over its GPUs */           \
        /* what it says itself: primus_progress() */                                                         \
        X(PROGRESS_STEP, "progressStep", GAUGE)                                                              \
        X(PROGRESS_AGE_USEC, "progressAgeUsec", GAUGE) /* since it said so last */                           \
        X(MEMORY_SWAP_BYTES, "memorySwapBytes", GAUGE)                                                       \
        X(DATA_AGE_USEC, "dataAgeUsec", GAUGE) /* since its records rose, or its feed began */               \
        /* of memoryBytes, what is no cache of files */                                                      \
        X(MEMORY_ANON_BYTES, "memoryAnonBytes", GAUGE)

enum telemetry_field {
#define X(field, name, kind) TELEMETRY_##field,
        TELEMETRY_FIELDS(X)
#undef X
        _TELEMETRY_MAX
};

enum telemetry_kind {
        TELEMETRY_COUNTER,
        TELEMETRY_GAUGE,
};

/* All unknown. */
static inline void telemetry_clear(uint64_t values[static _TELEMETRY_MAX]) {
        for (unsigned i = 0; i < _TELEMETRY_MAX; i++)
                values[i] = TELEMETRY_UNKNOWN;
}

/* "cpuUsec"; NULL outside the table. */
const char *telemetry_field_name(enum telemetry_field f);
enum telemetry_kind telemetry_field_kind(enum telemetry_field f);
