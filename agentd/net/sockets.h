/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections of executors, by sock_diag and the cgroup of their unit: no probe, no privilege, nothing on
 * their way. The kernel filters: what comes back is the sockets of the units that were asked for. Of the
 * network namespace that agentd is in. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/cleanup.h"
#include "lib/wire/telemetry-fields.h"

struct sockets;

/* -EOPNOTSUPP: this kernel cannot tell sockets by cgroup (before 5.7, or built without). */
int sockets_new(struct sockets **ret);
void sockets_free(struct sockets *s);
DEFINE_CLEANUP(struct sockets *, sockets_free)

/* A look at the connections of these units (v2 cgroup ids), to be called once a second. 1: looked. 0: nothing
 * was done, because looks have cost too much lately (they take at most a two-hundredth of the time). < 0: it
 * failed, and what was known stays. */
int sockets_look(struct sockets *s, const uint64_t *cgroup_ids, size_t n);

/* What is known of the unit: TCP_CONNECTIONS, TCP_RTT_USEC, NET_UNREAD_BYTES, LOOKS, LOOKS_UNREAD; and where
 * values has nothing better (TELEMETRY_UNKNOWN) TCP_RETRANSMITS, NET_RX_BYTES and NET_TX_BYTES, which miss
 * what a connection did after the last look at it, and everything that is not TCP. Connections with both ends
 * in the same unit do not count. Others are untouched. */
void sockets_fill(struct sockets *s, uint64_t cgroup_id, uint64_t values[static _TELEMETRY_MAX]);
void sockets_forget(struct sockets *s, uint64_t cgroup_id);

/* How the kernel is asked, for measurements: so many units in one question (default 256); 0: for all sockets
 * of the host. */
void sockets_set_batch(struct sockets *s, size_t units);
