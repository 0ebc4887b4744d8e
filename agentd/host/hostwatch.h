/* SPDX-License-Identifier: Apache-2.0 */
/* Where what watches the host meets: conditions, interfaces, clock, disks, the kernel's complaints; and who
 * hears of it. */
#pragma once

#include <systemd/sd-bus.h>

#include "agentd/host/conditions.h"
#include "agentd/net/links.h"

struct hostwatch;
struct manager;
struct inventory;

/* Before the link is started. Never fails for what a kernel or a host does not offer. */
int hostwatch_new(struct manager *m, struct hostwatch **ret);
void hostwatch_free(struct hostwatch *w);

struct conditions *hostwatch_conditions(struct hostwatch *w);
/* For who shows them; NULL: interfaces are not watched. */
const struct links *hostwatch_links(const struct hostwatch *w);
/* What the kernel says of NVIDIA's GPUs ("NVRM: Xid ...") goes there, as it is said. */
void hostwatch_gpu_lines(struct hostwatch *w, void (*handler)(const char *line, void *userdata),
                         void *userdata);
/* The address that jobs are told, where the settings name none: that of RendezvousInterface=, else the one
 * from which masterd is reached. */
struct addr hostwatch_address(struct hostwatch *w, const struct addr *local);
/* The networks that jobs may meet over, into i: none where the settings say where they do. -ENOMEM. */
int hostwatch_networks(struct hostwatch *w, struct inventory *i);
/* masterd has answered what was sent at sent_boot: its wall clock was that. */
void hostwatch_clock(struct hostwatch *w, uint64_t master_real, uint64_t sent_boot);
/* "conditions" of a registration's a{sv}. */
int hostwatch_append(struct hostwatch *w, sd_bus_message *m);
