/* SPDX-License-Identifier: Apache-2.0 */
/* The names of Primus's own errors on a bus: what org.primus.Master1 and org.primus.Agent1 answer to people
 * and tools, see dbus/. Those of the link between masterd and agents are in lib/wire/messages.h. */
#pragma once

#include <stdbool.h>
#include <string.h>

#define ERROR_BAD_BUNDLE "org.primus.Error.BadBundle"
#define ERROR_BAD_CONFIG "org.primus.Error.BadConfig"
#define ERROR_BUSY "org.primus.Error.Busy"
#define ERROR_CONFLICT "org.primus.Error.Conflict"
#define ERROR_NOT_FOUND "org.primus.Error.NotFound"
#define ERROR_NO_SUCH_JOB "org.primus.Error.NoSuchJob"
#define ERROR_NO_SUCH_NODE "org.primus.Error.NoSuchNode"
#define ERROR_REFUSED "org.primus.Error.Refused"

/* The message of such an error is a sentence for people; of others it is the bus's or a library's. */
static inline bool error_is_primus(const char *name) {
        return strncmp(name, "org.primus.Error.", strlen("org.primus.Error.")) == 0;
}
