/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent says when it registers, read from the message whole and within bounds before anything is
 * believed. */
#pragma once

#include <stddef.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-id128.h>

#include "lib/wire/condition.h"
#include "lib/wire/messages.h"

struct registration {
        sd_id128_t boot_id;
        struct inventory inventory;
        struct unit_report *units;
        size_t n_units;
        struct exit_report *exits;
        size_t n_exits;
        struct work {
                uint32_t job;
                sd_id128_t uid; /* its first four bytes */
        } * work;               /* directories of jobs without a unit there */
        size_t n_work;
        struct host_condition *conditions;
        size_t n_conditions;
        uint64_t *epochs; /* of the units, in their order; NULL: not said */
};

/* -EBADMSG where it is out of bounds; registration_done() in any case. */
int registration_read(sd_bus_message *m, struct registration *ret);
void registration_done(struct registration *r);
