/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of a trace (Link1.Trace), on their way from an agent to whoever asked. Conventions of
 * messages.h. */
#pragma once

#include <systemd/sd-bus.h>

#define TRACE_ANSWER_SIGNATURE "ta(stttat)a{sv}"
#define TRACE_ANSWER_HISTOGRAMS_MAX 16u
#define TRACE_ANSWER_BUCKETS_MAX 64u
#define TRACE_ANSWER_NAME_MAX 31u

/* Appends to the answer what the agent's has, read again piece by piece: names are a line each, of keys only
 * "missed" (t) is passed on. 1; -EBADMSG: it is not within the bounds; to is of no use then. */
int trace_answer_pass(sd_bus_message *from, sd_bus_message *to);
