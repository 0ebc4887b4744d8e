/* SPDX-License-Identifier: Apache-2.0 */
/* What an executor may use on its host, as orders say it. Zero is "no such limit" throughout, but where it
 * says otherwise. Part of messages.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#define LINK_IO_MAX 16u
#define LINK_IO_SIGNATURE "(sttuuu)"

/* Of one device: bytes and operations in a second, and what share of it the executor gets beside others. */
struct io_limit {
        char *path; /* absolute: a device, or a place on it; "": the weight on all devices */
        uint64_t read_bps, write_bps;
        uint32_t read_iops, write_iops, weight;
};

/* What the executors of one job may use on one host together; told with each of them. */
struct slice_limits {
        uint64_t memory_max, cpu_usec_per_sec, tasks_max;
        uint32_t cpu_weight; /* 1 ... 10000; 0: as every job */
};

/* Limits of a unit that runs. */
struct unit_limits {
        bool check;                /* only whether they could be set */
        uint64_t cpu_usec_per_sec; /* 0: none */
        uint64_t memory_max;       /* 0: none */
        struct slice_limits job;   /* of the job's slice on this host */

        /* In the message's a{sv}; a master that does not know of them leaves them as they are. */
        bool has_more;
        uint64_t memory_high;
        uint32_t cpu_weight, tasks_max;
};
int unit_limits_append(sd_bus_message *m, const struct unit_limits *l);
int unit_limits_read(sd_bus_message *m, struct unit_limits *ret);

/* The value a(sttuuu) of an entry of an a{sv}; a path that is no path is -EBADMSG, too many -E2BIG. */
int io_limits_append(sd_bus_message *m, const struct io_limit *io, size_t n);
int io_limits_read(sd_bus_message *m, struct io_limit **ret, size_t *ret_n);
void io_limits_free(struct io_limit *io, size_t n);
