/* SPDX-License-Identifier: Apache-2.0 */
/* The transient unit of a session in an executor. Pure, as builder.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/wire/messages.h"
#include "starter/unit/open-files.h"

/* What is like the executor's unit. Its process is moved into the executor's cgroup, with the limits there,
 * before the session begins (units/session-enter.conf.in). */
struct session_unit {
        const struct executor_id *id;
        uint32_t session, uid;
        char *const *environment; /* Environment= of the executor */
        bool no_new_privileges;
        bool hide_managers;
        uint64_t memlock; /* LimitMEMLOCK= */
        struct open_files open_files;
        int control; /* becomes standard input */
};

/* Appends the arguments of StartTransientUnit. */
int session_unit_build(sd_bus_message *m, const struct session_unit *s);
