/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of api share: who calls, and what is known and counted of callers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct change_waits;
struct job;
struct manager;
struct why;

struct api {
        struct callers *callers; /* NULL: not connected to the bus, or not any more; so are these: */
        struct audit *audit;
        struct people *people; /* users' names and groups */
        struct quota *quota;   /* what users have under way */
        struct change_waits *change_waits;

        const sd_bus_message *known_for; /* the call in hand has waited for its people (looking.c) */
        char banner[501];                /* of the administrators, one line; "": none */
        uint32_t backup_uid;             /* of primus-backup.service */
        bool backup_uid_known;
};

/* queue-calls.c: why it waits for a place, and what would help, as entries of the dictionary that is open. */
int api_append_why(sd_bus_message *reply, struct manager *m, struct job *j, const struct why *w);
