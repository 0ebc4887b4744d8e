/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway: /v1, its stream of events, and the page, on a socket that listens. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

#define SERVE_CALLS 32u /* to masterd at a time; beyond that the answer is 503 */
#define SERVE_BODY_MAX (4u << 20)

struct serve;

struct serve_options {
        const char *page; /* directory of the page's files */
        const char *host; /* NULL: the bus here; else over ssh */
        /* NULL: the socket is the person's own; else that of whoever has it (webd/route/session.h). */
        const char *token;
        unsigned port;      /* with a token: the socket's */
        uint64_t idle_usec; /* so long without a connection, and the loop is ended; 0: never */
        /* The socket is everybody's, and nothing is changed here. */
        bool reads_only;
        const char *const *names; /* by which it is called, beside those of this host; NULL-ended, or NULL */
        const char *embed; /* whose pages may show it in a frame, "https://grafana.example"; NULL: none */
};

/* fd is taken over in any case. Strings of the options have to stay. */
int serve_new(sd_event *event, int fd, const struct serve_options *options, struct serve **ret);
void serve_free(struct serve *s);
DEFINE_CLEANUP(struct serve *, serve_free)
