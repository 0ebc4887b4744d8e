/* SPDX-License-Identifier: Apache-2.0 */
/* A libmicrohttpd daemon in sd-event: one thread, which nobody's request can make wait. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

struct http_limits {
        unsigned connections; /* at a time; further ones wait in the kernel's queue */
        unsigned idle_sec;    /* without a byte, and a connection is closed */
        unsigned request_sec; /* from a request's beginning to its answer's last byte, likewise */
        size_t memory;        /* of a connection, for its request and the answer's headers */
};

struct http_handlers {
        /* As MHD_AccessHandlerCallback. */
        enum MHD_Result (*request)(void *userdata, struct MHD_Connection *connection, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **request);
        /* As MHD_RequestCompletedCallback. */
        void (*completed)(void *userdata, struct MHD_Connection *connection, void **request,
                          enum MHD_RequestTerminationCode why);
        /* NULL: everybody. A connection of which it says no is closed before anything of it is read. */
        bool (*welcome)(void *userdata, int fd);
        /* NULL, or: there is no connection any more. */
        void (*idle)(void *userdata);
};

struct http_server;

/* fd: listens already; it is taken over in any case. */
int http_server_new(sd_event *event, int fd, const struct http_limits *limits,
                    const struct http_handlers *handlers, void *userdata, struct http_server **ret);
/* Connections that are suspended have been resumed before. */
void http_server_free(struct http_server *s);
DEFINE_CLEANUP(struct http_server *, http_server_free)

/* A connection was resumed: it goes on at the next turn of the loop. */
void http_server_wake(struct http_server *s);
/* How long the request of this connection takes is for its handler to bound. */
void http_server_unhurried(struct http_server *s, struct MHD_Connection *connection);
unsigned http_server_connections(const struct http_server *s);
