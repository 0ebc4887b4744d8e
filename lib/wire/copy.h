/* SPDX-License-Identifier: Apache-2.0 */
/* What one message holds, appended to another one. */
#pragma once

#include <stddef.h>
#include <systemd/sd-bus.h>

/* All of from's body, from its beginning, behind what to has. sd_bus_message_copy() does so too, but takes
 * whatever is there into memory. max: bytes of what is copied. -E2BIG: there are more; -EOPNOTSUPP: it has
 * descriptors; -EBADMSG. */
int message_copy(sd_bus_message *to, sd_bus_message *from, size_t max);
