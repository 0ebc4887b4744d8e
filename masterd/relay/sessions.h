/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in executors: calls of people are passed on to the agent, on the connection for bulk, and its
 * answers back. Nothing is kept of what they carry. A session belongs to the connection to the bus that
 * opened it, and ends with it, or with the agent's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"

struct manager;
struct node;
struct job;
struct executor;
struct sessions;

int sessions_new(struct manager *m, struct sessions **ret);
void sessions_free(struct sessions *s);
DEFINE_CLEANUP(struct sessions *, sessions_free)

struct session_request {
        const char *kind; /* command, connect */
        uint32_t uid;     /* who asks */
        bool pty;
        uint16_t rows, columns, port;
        sd_bus_message *strings; /* stands before aay, the arguments */
        char **environment;      /* NULL-ended, or NULL */
};

/* Answer the call, later or, where they return < 0, not at all (with error set, or to be sent as that errno).
 * > 0: it will be answered. The call's sender is whose session it is. */
int sessions_open(struct manager *m, struct executor *e, const struct session_request *q,
                  sd_bus_message *call, sd_bus_error *error);
/* What a job, which may have ended, has left on a host. */
int sessions_open_artifacts(struct manager *m, const struct job *j, const struct node *node,
                            const struct session_request *q, sd_bus_message *call, sd_bus_error *error);
/* What is behind the session's number in these calls is read here. */
int sessions_read(struct manager *m, const struct job *j, sd_bus_message *call, sd_bus_error *error);
int sessions_write(struct manager *m, const struct job *j, sd_bus_message *call, sd_bus_error *error);
int sessions_resize(struct manager *m, const struct job *j, sd_bus_message *call, sd_bus_error *error);
int sessions_close(struct manager *m, const struct job *j, sd_bus_message *call, sd_bus_error *error);

/* The node's connection for bulk is gone; a name has left the bus. */
void sessions_node_gone(struct manager *m, const struct node *node);
void sessions_caller_gone(struct manager *m, const char *name);
