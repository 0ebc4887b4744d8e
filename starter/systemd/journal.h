/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Starter1.Journal on a connection: journald takes this call from root alone. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

#define JOURNAL_SOCKET "/run/systemd/journal/io.systemd.journal"
#define JOURNAL_SYNCS_MAX 4u                  /* of a connection under way: agentd has two readers */
#define JOURNAL_SYNC_USEC (UINT64_C(5000000)) /* journald may take so long to write what it has */

struct journal_syncs;

/* Offers the interface; socket: journald's, JOURNAL_SOCKET in life, copied. */
int journal_offer(sd_bus *connection, sd_event *event, const char *socket, struct journal_syncs **ret);
/* The connection has ended: nobody waits any more. */
void journal_syncs_free(struct journal_syncs *s);
DEFINE_CLEANUP(struct journal_syncs *, journal_syncs_free)
