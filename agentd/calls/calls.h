/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1 on every host, by a socket (MASTER_SOCKET): every call is handed on to masterd, with the
 * uid that the kernel says of the connection, and its answer is handed back; signals come the same way. To
 * whoever calls it is a bus that has one service, and a link that is lost is a service that is started again.
 *
 * The connection to masterd is one of its own, which is there while somebody here has something to do with
 * it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

struct calls;
struct link;

#define CALLS_CALLERS_MAX 1024u /* as masterd has it for a host */
#define CALLS_CALLERS_PER_USER_MAX 128u
#define CALLS_MAX 1024u /* that are not answered */
#define CALLS_PER_USER_MAX 256u
#define CALLS_PER_USER_A_SECOND 1000u
#define CALLS_WAITING_PER_USER_MAX 4u    /* of these, without a connection to masterd */
#define CALL_BYTES_MAX ((size_t)8 << 20) /* of one: a configuration, variables and secrets */
/* A user who has calls with so many bytes under way has room for no more; nor has anybody, where all have so
 * many. */
#define CALLS_BYTES_PER_USER_MAX ((size_t)16 << 20)
#define CALLS_BYTES_MAX ((size_t)128 << 20)
/* Messages of more are large: so many of them may a user be sending at a time. */
#define CALLS_LARGE ((size_t)256 << 10)
#define CALLS_LARGE_PER_USER_MAX 4u
#define CALLS_UNREAD_MAX 1024u                    /* messages that a caller has not read, */
#define CALLS_UNREAD_BYTES_MAX ((size_t)32 << 20) /* and bytes */

/* The job whose executor the process at the other end of fd is in; 0: none. */
typedef uint32_t (*calls_job_of)(int fd, void *userdata);

/* master: as the settings have it, for a sentence; it outlives this, as does path. */
int calls_new(sd_event *event, const char *path, const char *master, calls_job_of job_of, void *userdata,
              struct calls **ret);
void calls_set_link(struct calls *c, struct link *link);
/* The host is registered. */
void calls_registered(struct calls *c);
/* The connection to masterd is there; it is gone, or did not come up. Of NULL: nothing. */
void calls_up(struct calls *c);
void calls_down(struct calls *c);
struct calls *calls_free(struct calls *c);
DEFINE_CLEANUP(struct calls *, calls_free)
