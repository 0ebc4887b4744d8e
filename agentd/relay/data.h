/* SPDX-License-Identifier: Apache-2.0 */
/* Data on its way between masterd and the executors' processes: the feed's socket and the bundles, joined to
 * the link. It keeps nothing that masterd or an executor does not say again after a reconnect. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agentd/executors/units.h"
#include "agentd/link/link.h"
#include "agentd/observe/observer.h"
#include "lib/base/cleanup.h"

struct data;

int data_new(sd_event *event, struct units *units, struct observer *observer, struct data **ret);
void data_free(struct data *d);
DEFINE_CLEANUP(struct data *, data_free)

/* Once, when the host's units are known: opens the socket. */
int data_listen(struct data *d);
void data_set_link(struct data *d, struct link *link);

/* The bodies of Grant, of FeedControl, of FeedSource and of units_ops.bundle. */
int data_grant(struct data *d, sd_bus_message *m);
int data_control(struct data *d, sd_bus_message *m);
int data_source(struct data *d, sd_bus_message *m);
int data_want_bundle(struct data *d, uint32_t uid, const char *sha256, bundle_handler handler,
                     void *userdata);

/* What trainers have said of their training goes to masterd on this bus, ahead of a registration: all that it
 * has not on disk. */
int data_send_metrics(struct data *d, sd_bus *bus);
/* masterd has on disk what went out up to there. */
void data_metrics_kept(struct data *d, uint64_t seq);
/* The executor has ended: what it said of its training, and data_send_final(). */
int data_send_last(struct data *d, sd_bus *bus, const struct executor_id *id);

/* What the executor said last goes to masterd on this bus, ahead of the report of its end; and may be
 * forgotten. 0, or an error of the bus. */
int data_send_final(sd_bus *bus, const struct executor_id *id);
void data_forget_final(const struct executor_id *id);
/* f hears of each report of an executor's feed. */
typedef void (*counters_handler)(const struct executor_id *id, const struct feed_counters *c, void *userdata);
void data_watch_counters(struct data *d, counters_handler f, void *userdata);
void data_link_up(struct data *d);
void data_bulk_up(struct data *d);
void data_bulk_down(struct data *d);
/* From time to time while the link is up: what waited because it was congested goes on. */
void data_resume(struct data *d);
