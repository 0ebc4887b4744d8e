/* SPDX-License-Identifier: Apache-2.0 */
/* Options of submit and run about waiting and giving way; they win over the configuration. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "tools/primusctl/options.h"

struct turn_options {
        const char *queue, *signal, *time;
        const char *priority; /* a number, checked */
        bool requeue, preemptible;
};

int option_priority(const char *value, void *target, const char **ret_why); /* const char * */

/* Rows of an option table; member is the struct turn_options in type. */
#define TURN_OPTIONS(type, member)                                                                           \
        { "queue",                                                                                           \
          'q',                                                                                               \
          "POOL",                                                                                            \
          option_string,                                                                                     \
          offsetof(struct type, member.queue),                                                               \
          "in this pool, see primusctl pools" },                                                             \
                { "priority",                                                                                \
                  'p',                                                                                       \
                  "N",                                                                                       \
                  option_priority,                                                                           \
                  offsetof(struct type, member.priority),                                                    \
                  "-1000 to 1000, higher is sooner (the pool's)" },                                          \
                { "requeue",                                                                                 \
                  0,                                                                                         \
                  NULL,                                                                                      \
                  NULL,                                                                                      \
                  offsetof(struct type, member.requeue),                                                     \
                  "at the time limit wait again instead of failing, as often as it takes" },                 \
                { "preemptible",                                                                             \
                  0,                                                                                         \
                  NULL,                                                                                      \
                  NULL,                                                                                      \
                  offsetof(struct type, member.preemptible),                                                 \
                  "may be stopped and wait again for a job of higher priority" },                            \
        {                                                                                                    \
                "signal", 0, "SIG[@T]", option_string, offsetof(struct type, member.signal),                 \
                        "a signal that the job gets T (60s) before its time limit or a preemption stops it"  \
        }

/* Appends those that are given to Submit's options. */
int turn_append(sd_bus_message *m, const struct turn_options *t);
