/* SPDX-License-Identifier: Apache-2.0 */
/* The connections by which systemd is asked for jobs. For each job that it has, PID 1 watches who asked for
 * it, by a match rule of its own on the bus; it may have 512 of these and loses its bus at the next one. A
 * job may last for as long as a user likes (READY=1 is to come, files are fetched), so there is no bound on
 * their number. But PID 1 forgets who asked when the connection goes, and not the job: when LANE_JOBS of a
 * connection's last, the next ones are asked for by another, and that one is closed when all its calls are
 * answered. The starter's own connection, which stays, is the first and is taken whenever it has room. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#define LANE_JOBS 128u

struct lanes;

struct lane {
        struct lanes *lanes;
        sd_bus *bus;
        sd_bus_slot *slots[2];
        uint64_t number; /* 0: the starter's own connection */
        unsigned calls;  /* under way */
        unsigned jobs;   /* asked for or there */
        bool connected;
};

struct lanes {
        struct lane own;
        struct lane *extra, *leaving; /* or NULL */
        uint64_t count;
        int (*connect)(sd_bus **ret, void *userdata); /* makes one that is not started */
        void (*connected)(void *userdata);            /* lanes_pick() is worth another try */
        void *userdata;
};

void lanes_init(struct lanes *l, sd_bus *own, int (*connect)(sd_bus **ret, void *userdata),
                void (*connected)(void *userdata), void *userdata);
void lanes_done(struct lanes *l);

/* The one for the next job; NULL: none has room now, which passes when calls are answered or the next one is
 * connected. */
struct lane *lanes_pick(struct lanes *l);
void lane_called(struct lane *lane);
/* A call of it was answered; job: it made one. The lane may be gone afterwards. */
void lane_answered(struct lane *lane, bool job);
/* A job of the lane of that number is over. */
void lanes_job_over(struct lanes *l, uint64_t number);
