/* SPDX-License-Identifier: Apache-2.0 */
/* A job that serves a page to its owner alone: begun, found, and forwarded to a port here, by one command.
 * What runs there is "python3 -m primus.served", which says where it listens to who asks in the executor. */
#pragma once

#include "tools/primusctl/commands/run.h"

struct served_options {
        struct run_options run; /* of which SERVED_OPTIONS sets some */
        uint64_t idle;          /* usec, 0: SERVED_IDLE */
        uint32_t port;          /* 0: any */
        bool no_idle;
        const char *attach, *directory;
};
#define SERVED_IDLE (UINT64_C(3600) * 1000000)

/* Rows of an option table of a struct that is, or begins with, a struct served_options. */
#define SERVED_ROW(name, letter, value, parse, member, help)                                                 \
        { name, letter, value, parse, offsetof(struct served_options, member), help }
#define SERVED_OPTIONS                                                                                       \
        SERVED_ROW("attach", 'a', "JOB", option_string, attach, "open that one again, which runs"),          \
                SERVED_ROW("port", 0, "PORT", option_count, port, "of this machine (any that is free)"),     \
                SERVED_ROW("idle", 0, "T", option_duration, idle,                                            \
                           "end it when its GPUs, or without any its CPUs, were idle for T (1h)"),           \
                SERVED_ROW("no-idle", 0, NULL, NULL, no_idle, "do not"),                                     \
                SERVED_ROW("gpus", 0, "G", option_number, run.gpus, "GPUs for it"),                          \
                SERVED_ROW("cpus", 0, "C", option_string, run.cpus, "cores, such as 2 or 0.5"),              \
                SERVED_ROW("mem", 0, "SIZE", option_size, run.memory, "memory, such as 4G"),                 \
                SERVED_ROW("hosts", 0, "HOST", option_string, run.hosts, "on that one"),                     \
                SERVED_ROW("time", 't', "T", option_duration, run.time, "end it after T in any case"),       \
                SERVED_ROW("name", 0, "X", option_string, run.name, "the job's name"),                       \
                TURN_OPTIONS(served_options, run.turn)

/* what: "notebook", which is its command here, the argument of primus.served, and the job's name where it
 * has no other; sent: a directory that goes along and is the work directory, or NULL. An exit status. */
int served_run(struct cli *c, struct served_options *o, const char *what, const char *sent);
