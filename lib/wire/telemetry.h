/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a host's executors, as agentd sends them: Telemetry(t boot_usec, a(id at) samples, a{sv}). */
#pragma once

#include "lib/wire/messages.h"
#include "lib/wire/telemetry-fields.h"

#define TELEMETRY_SAMPLE_SIGNATURE "(" LINK_ID_SIGNATURE "at)"
#define TELEMETRY_SAMPLES_MAX 4096u /* in one message; a host with more sends several */

struct telemetry_sample {
        struct executor_id id;
        uint64_t values[_TELEMETRY_MAX];
};

int telemetry_sample_append(sd_bus_message *m, const struct telemetry_sample *s);
/* As the other readers: 1, 0 at the end of the array, -EBADMSG. Values that the sender does not know of are
 * unknown, those that this program does not know of are passed over. */
int telemetry_sample_read(sd_bus_message *m, struct telemetry_sample *ret);

/* What came to a counter between two values; TELEMETRY_UNKNOWN where either is. A fall is a new count. */
uint64_t telemetry_growth(uint64_t before, uint64_t now);
