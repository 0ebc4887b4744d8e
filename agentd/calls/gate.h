/* SPDX-License-Identifier: Apache-2.0 */
/* Between a caller's connection and sd-bus, which would make room for whatever a message's header claims: a
 * message that is too large ends the connection before sd-bus hears of it, and of one that is large the owner
 * is asked. Either direction is bounded, and neither waits for the other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

struct gate;

struct gate_options {
        size_t message_max; /* bytes of one */
        size_t large;       /* one of more is large */
        /* The caller begins to send a large one; false: it may not. */
        bool (*large_comes)(void *userdata);
        /* It is over, or has done what it must not. Called once; the owner frees the gate later, not in it.
         */
        void (*ended)(void *userdata);
};

/* Takes fd over, also on failure; *ret_bus_fd is for sd_bus_set_fd(). options outlive it. */
int gate_new(sd_event *event, int fd, const struct gate_options *options, void *userdata, int *ret_bus_fd,
             struct gate **ret);
/* A large message is on its way. */
bool gate_is_large(const struct gate *g);
struct gate *gate_free(struct gate *g);
DEFINE_CLEANUP(struct gate *, gate_free)
