/* SPDX-License-Identifier: Apache-2.0 */
/* Serves GET /metrics over HTTP, in the event loop and without threads. Whoever reaches the address may read;
 * connections, their memory and their time are bounded, and nothing but that page is served. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

#define METRICS_CONNECTIONS 16u /* at a time, on one address; further ones wait in the kernel's queue */
#define METRICS_PAGES 4u        /* being sent at a time; beyond that the answer is 503 */
#define METRICS_PAGE_MSEC 500u  /* a page is served again for so long: a loop of requests costs nothing */
#define METRICS_IDLE_SEC 10u    /* without a byte, and a connection is closed */
#define METRICS_REQUEST_SEC 30u /* from its beginning to the page's last byte, likewise */

struct metrics_server;

/* Makes a page; *ret is allocated. < 0: there is none now. */
typedef int (*metrics_page)(bool openmetrics, char **ret, size_t *ret_size, void *userdata);

/* address: "127.0.0.1:7748", "[::1]:7748" or the path of a unix socket, to which root and the group primus,
 * where there is one, may connect (an old one is replaced). -EOPNOTSUPP: built without libmicrohttpd. */
int metrics_server_new(sd_event *event, const char *address, metrics_page page, void *userdata,
                       struct metrics_server **ret);
void metrics_server_free(struct metrics_server *s);
DEFINE_CLEANUP(struct metrics_server *, metrics_server_free)

/* Whether text is an address as above. */
bool metrics_address_valid(const char *text);
