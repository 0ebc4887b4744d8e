/* SPDX-License-Identifier: Apache-2.0 */
/* What stdio-hold.c (the command, and how long for whom is waited) and stdio-connection.c (what is said to
 * who brings its input) share. Not for others. */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "lib/base/bytes.h"
#include "session/command.h"
#include "session/stdio-parts.h"

/* Who sends has so long to come, and to come back. */
#define LOST_MSEC 120000

struct hold {
        const struct stdio_options *options;
        struct command command; /* pid 0: not started */
        sigset_t mask;          /* the command's */
        struct keeper keeper;
        int signals, listening, connection;
        bool greeted; /* the connection has said where it goes on */
        struct bytes in, out;
        uint64_t out_sent, told; /* told: acknowledged input */
        bool in_ended, in_gone, told_gone, tell_held;
        bool out_over; /* the terminal has no more */
        bool ended, told_exit, left;
        int status;                        /* of waitpid() */
        int64_t lost_at, last_at, kill_at; /* 0: not set */
        uint8_t rx[STDIO_FRAME_MAX], tx[STDIO_FRAME_MAX];
        size_t rx_size, tx_at, tx_size;
        bool broken; /* the input: the status is ours */
};

static inline int64_t now_msec(void) {
        struct timespec t;

        (void)clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Starts the command, if it is not there yet. 0, or the exit status, having said why. */
int hold_start(struct hold *h, const struct session_size *size);
/* The input will never be whole: the command ends with it. */
void hold_lose(struct hold *h, const char *why);

/* Takes the connection that has come, in the place of the one before. */
void connection_accept(struct hold *h);
/* Whether there is something to be sent; makes the next frame of it. */
bool connection_compose(struct hold *h);
void connection_send(struct hold *h);
void connection_read(struct hold *h);
