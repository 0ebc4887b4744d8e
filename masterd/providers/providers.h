/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts by demand: providers of /etc/primus/providers, and their instances (docs/providers.md). Everything
 * here changes memory and the open batch together; verbs are asked for when what led to them is on disk. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "masterd/job/job.h"
#include "masterd/node/node.h"
#include "masterd/provision/decide.h"

struct manager;
struct providers;
struct provider;
struct instance;

/* -ENOMEM. */
int providers_new(struct manager *m);
void providers_free(struct manager *m);
/* What is stored; behind the nodes. Reads the providers' settings. */
int providers_load(struct manager *m);
/* The term is on disk: verbs that were under way are asked for again. */
int providers_start(struct manager *m);
/* Before the bus goes. */
void providers_stop(struct manager *m);
/* The settings again. */
void providers_reload(struct manager *m);

/* Something has changed by which more or fewer hosts may be wanted: decided soon, not at once. */
void providers_poke(struct manager *m);

/* ---- what happens (struct listener) ---- */

void providers_executor_placed(struct manager *m, struct executor *e);
void providers_node_registered(struct manager *m, struct node *node);
/* A person has removed it from the cluster: what was made is given back. */
void providers_node_removed(struct manager *m, const char *node, uint32_t uid);

/* ---- what primus-provider asks and says ---- */

/* The request of a unit, "NAME.VERB.TOKEN": JSON for the executable, allocated, and how long it may take;
 * records a join token in the open batch. -ENOENT: nobody asked for it (any more). */
int providers_take(struct manager *m, const char *request, char **ret_json, uint64_t *ret_usec);
#define PROVIDERS_OUTPUT_MAX ((size_t)1 << 20)
/* How it ended: the exit status, or negative; what it printed. -ENOENT. */
int providers_finish(struct manager *m, const char *request, int32_t status, const char *output);

/* ---- for people ---- */

/* In the order of names; of instances by the time when they were made. NULL: that was the last. */
struct provider *providers_next(struct manager *m, const struct provider *p);
struct instance *providers_next_instance(struct provider *p, const struct instance *i);
struct provider *providers_find(struct manager *m, const char *name);
/* By the name of its host, or by its token. */
struct instance *providers_find_instance(struct manager *m, const char *name);

/* As rows of the bus: a{sv}. */
int providers_append(sd_bus_message *reply, struct provider *p);
int providers_append_instance(sd_bus_message *reply, struct instance *i);

/* Makes no hosts and gives none back. */
void providers_hold(struct manager *m, struct provider *p, bool held);
void providers_hold_instance(struct manager *m, struct instance *i, bool held);
/* One of that shape, beyond what is asked for; it goes when it has been idle for long enough. With a sentence
 * in why: -EBUSY (at a limit), -ENOENT (no such shape), -EHOSTDOWN (held, or without settings), -ENOMEM. */
#define PROVIDERS_WHY_MAX 256u
int providers_up(struct manager *m, struct provider *p, const char *shape, uint32_t uid,
                 char why[static PROVIDERS_WHY_MAX]);
/* Given back: drained, then stopped, whatever runs there (as by `node drain`). */
int providers_down(struct manager *m, struct instance *i, uint32_t uid);

/* What would be done now, without doing it: a row a{sv} for each act and for each job that waits for a host.
 */
int providers_append_plan(struct manager *m, sd_bus_message *reply);

/* Whether the job waits for a host that is coming, or why none comes: one line, behind why it waits. False:
 * there is nothing to say. */
bool providers_job_text(struct manager *m, const struct job *j, char *buf, size_t size);
/* Whose the host is; NULL: no provider's. */
struct instance *providers_of_node(struct manager *m, const struct node *node);
/* Why it is kept, or leaves. Returns buf. */
char *providers_instance_text(struct instance *i, char *buf, size_t size);
/* The same, into the dictionary that is open: "provider", "shape", "kept". */
int providers_append_kept(sd_bus_message *reply, struct instance *i);
