/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/primus/agentd.conf. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "agentd/device/sensors.h"
#include "lib/base/addr.h"
#include "lib/policy/serve.h"

struct port_range {
        uint16_t first, last;
};

/* What is watched of the host, see agentd/host/hostwatch.h. */
struct watch_settings {
        char *interfaces;           /* patterns of interfaces to watch beside the usual; or NULL */
        char *rendezvous_interface; /* pattern of the interface whose address is told to jobs; or NULL */
        char *disks;                /* paths of file systems to watch beside the usual; or NULL */
        struct room disk_warn, disk_drain;
        uint64_t clock_skew_usec; /* that far the clock may be off masterd's */
        uint64_t clock_kept_usec; /* so long after the boot somebody should keep it */
};

struct settings {
        struct watch_settings watch;
        char *master;              /* HOST[:PORT]; NULL: not set */
        char *node_name;           /* NULL: the certificate's */
        struct addr address;       /* AF_UNSPEC: where masterd is reached from */
        struct serve_policy serve; /* complete, but for what has to be looked up */
        struct port_range ports;
        uint64_t memory_reserve;
        uint64_t memory;                /* 0: the host's */
        uint32_t cpus;                  /* 0: the host's */
        char **labels;                  /* NULL-ended KEY=VALUE, or NULL */
        uint64_t gpu_memory;            /* of each GPU whose driver does not say; 0: unknown */
        uint64_t health_usec;           /* how often the health hook runs */
        uint32_t user_max;              /* executors of one user at a time; 0: no bound */
        bool hide_managers;             /* from executors */
        bool relay;                     /* calls of this host's people to masterd */
        uint32_t open_files;            /* the least soft limit of executors: primus-starter's to apply */
        uint64_t hook_usec;             /* how long a hook may take */
        uint64_t artifacts_max;         /* how much of it one user may have */
        uint64_t artifacts_usec;        /* how long what jobs leave is kept */
        uint64_t unkillable_usec;       /* how long after SIGKILL an executor is said not to die */
        uint64_t condition_settle_usec; /* how long the host is better before that is told */
        uint64_t telemetry_usec;        /* how often masterd gets samples of the executors; 0: never */
        bool metrics_jobs;              /* those of executors are served on ports, too */
        char **metrics_listen;          /* NULL-ended; addresses and socket paths */
        uint64_t pressure_window_usec, memory_pressure_usec, io_pressure_usec; /* cgroup/pressure.h */
        int log_level;                                                         /* < 0: as it is */
};

/* Reads the files below root ("" in life). -EINVAL: they refuse the start, see conf_load(). */
int settings_load(const char *root, struct settings *ret);
void settings_done(struct settings *s);

/* "--check-config", "--show-config": reads everything, says what is wrong, and with f writes what holds. The
 * exit status: 0, 1 for something that is ignored, 78 for what would refuse the start. */
int settings_command(FILE *f);
