/* SPDX-License-Identifier: Apache-2.0 */
/* A port or a socket here, each of whose connections is a session of its own to a port of an executor. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "tools/primusctl/bus/stream.h"

struct forward;

/* Listens on 127.0.0.1 and ::1, or, where local has a '/', on a unix socket of that path; local NULL: on the
 * same port, "0": on any that is free. The bus of c is attached to the loop; target and local are borrowed.
 * An exit status; what is wrong has been said. */
int forward_new(struct cli *c, sd_event *event, const struct stream_target *target, uint16_t port,
                const char *local, struct forward **ret);
/* Where it listens, unless that is a path. */
uint16_t forward_local_port(const struct forward *f);
void forward_free(struct forward *f);
DEFINE_CLEANUP(struct forward *, forward_free)
