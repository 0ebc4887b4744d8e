/* SPDX-License-Identifier: Apache-2.0 */
/* What one message holds, appended to another one. */
#pragma once

#include <stddef.h>
#include <systemd/sd-bus.h>

/* All of from's body, from its beginning, behind what to has. sd_bus_message_copy() does so too, but takes
 * whatever is there into memory. max: bytes of what is copied; ret_size (or NULL): how many these were,
 * about. -E2BIG: there are more; -EOPNOTSUPP: it has descriptors; -EBADMSG. */
int message_copy(sd_bus_message *to, sd_bus_message *from, size_t max, size_t *ret_size);

/* An answer to call, of what somebody else has answered to the same: its body, or its error. */
int message_copy_answer(sd_bus_message *call, sd_bus_message *answer, size_t max, sd_bus_message **ret,
                        size_t *ret_size);
