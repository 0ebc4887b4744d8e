/* SPDX-License-Identifier: Apache-2.0 */
/* Options of submit and run about waiting and giving way; they win over the configuration. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "tools/primusctl/cli/options.h"

struct turn_options {
        const char *queue, *signal, *time, *start_within;
        const char *priority; /* a number, checked */
        const char *visible;  /* a word, checked */
        bool requeue, preemptible, for_hosts, with_parent;
};

int option_priority(const char *value, void *target, const char **ret_why); /* const char * */

int option_visible(const char *value, void *target, const char **ret_why); /* the same */

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
                { "visible",                                                                                 \
                  0,                                                                                         \
                  "WHOM",                                                                                    \
                  option_visible,                                                                            \
                  offsetof(struct type, member.visible),                                                     \
                  "who may look at it: owner, group, pool or all (the pool's)" },                            \
                { "start-within",                                                                            \
                  0,                                                                                         \
                  "T",                                                                                       \
                  option_string,                                                                             \
                  offsetof(struct type, member.start_within),                                                \
                  "fails when it has had no place for so long (2h)" },                                       \
                { "wait-for-hosts",                                                                          \
                  0,                                                                                         \
                  NULL,                                                                                      \
                  NULL,                                                                                      \
                  offsetof(struct type, member.for_hosts),                                                   \
                  "also when no host of the cluster is what it needs: one may come" },                       \
                { "with-parent",                                                                             \
                  0,                                                                                         \
                  NULL,                                                                                      \
                  NULL,                                                                                      \
                  offsetof(struct type, member.with_parent),                                                 \
                  "from inside a job: ends when that one does" },                                            \
        {                                                                                                    \
                "signal", 0, "SIG[@T]", option_string, offsetof(struct type, member.signal),                 \
                        "a signal that the job gets T (60s) before its time limit or a preemption stops it"  \
        }

/* Appends those that are given to Submit's options. */
int turn_append(sd_bus_message *m, const struct turn_options *t);
