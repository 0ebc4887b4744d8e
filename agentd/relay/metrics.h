/* SPDX-License-Identifier: Apache-2.0 */
/* What trainers say of their training (lib/wire/metrics.h), on its way to masterd: gathered, sent together,
 * and kept until masterd has it on disk (MetricsKept), so that a masterd that is away or is killed costs none
 * of it. Bounded: beyond that the oldest goes. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"
#include "lib/wire/messages.h"

struct link;
struct metric_relay;

/* -ENOMEM. */
int metric_relay_new(sd_event *event, struct metric_relay **ret);
void metric_relay_free(struct metric_relay *r);
DEFINE_CLEANUP(struct metric_relay *, metric_relay_free)
/* Where it goes, once there is one; borrowed. */
void metric_relay_set_link(struct metric_relay *r, struct link *link);

/* Points of one process of the executor; copied. */
void metric_relay_take(struct metric_relay *r, const struct executor_id *id, uint32_t local,
                       const void *points, size_t size);
/* All that there is goes out now, on this bus: ahead of the end of an executor, or of the registration.
 * again: also what went out before, on a connection that is over. */
int metric_relay_say(struct metric_relay *r, sd_bus *bus, bool again);
/* masterd has all up to this one on disk. */
void metric_relay_kept(struct metric_relay *r, uint64_t seq);
