/* SPDX-License-Identifier: Apache-2.0 */
/* The transient unit that reads what a job has left on this host (primus-executor --collect). Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-id128.h>

struct get_unit {
        uint32_t job, uid, session;
        sd_id128_t job_uid;
        const char *directory; /* the job's artifacts */
        bool hide_managers;
        int control; /* becomes standard input */
};

/* Appends the arguments of StartTransientUnit. */
int get_unit_build(sd_bus_message *m, const struct get_unit *g);
