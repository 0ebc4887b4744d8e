/* SPDX-License-Identifier: Apache-2.0 */
/* All state of masterd, and the rule by which it changes: record, then act. A handler changes memory, puts
 * records into the store's open batch, and registers effects; when the turn of the loop ends, scheduling runs
 * once, the batch is committed, and the effects run when it is on disk. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>

#include "masterd/conf/conf.h"
#include "masterd/job/job.h"
#include "masterd/node/node.h"
#include "masterd/store/store.h"

struct placement;
struct listener;
struct upcalls;

/* The state of rooms: each is made, freed and seen by its own room alone. */
struct link_state;
struct life;
struct fleet;
struct watch;
struct relay_state;
struct api;
struct space;
struct changes;
struct pending;
struct keys;
struct calls;
struct providers;

/* In the state directory, while a backup is made. */
#define BACKUP_FILE "backup.db"

struct jobs {
        struct job *by_number; /* active ones and the latest ended */
        uint32_t n_active;
        uint32_t n_restoring; /* being made of savepoints (masterd/admit/restore.c) */
};

struct manager {
        struct conf conf;
        sd_event *event;
        sd_bus *bus; /* system bus: people and tools */
        sd_bus *far; /* signals for those on other hosts; NULL: nobody there listens */
        struct store *store;
        sd_id128_t cluster;
        uint64_t term;
        struct nodes nodes;
        struct jobs jobs;
        uint64_t serving_boot; /* since then; 0: not yet. LOST timers of nodes not heard yet start here */

        struct pending *pending;                 /* what the end of this turn does (manager.c) */
        struct space *space;                     /* what is left of the memory */
        struct changes *changes;                 /* what was told of to people, by numbers */
        const struct listener *const *listeners; /* masterd/core/listeners.h; the last is NULL */
        const struct upcalls *up;

        struct link_state *link;
        struct placement *placement; /* queue */
        struct life *life;
        struct fleet *fleet;
        struct watch *watch;
        struct relay_state *relay;
        struct providers *providers; /* hosts by demand */
        struct keys *keys;           /* admit */
        struct calls *calls;         /* of people on other hosts */
        struct api *api;
};

/* The state alone, with its settings and its loop; masterd/start.h joins the rooms to it. schedule: runs the
 * placement at the end of a turn that asked for it. */
int manager_new(void (*schedule)(struct manager *m), struct manager **ret);
void manager_free(struct manager *m);

/* Something was put into the store, or effects were registered: commit at the end of this turn. */
void manager_touch(struct manager *m);
/* Run the placement at the end of this turn. */
void manager_schedule(struct manager *m);
/* Something of this turn is to be committed. */
bool manager_batch_open(const struct manager *m);
/* That, or this turn has an end at all. */
bool manager_turn_waits(const struct manager *m);

/* Calls run(m, data) once everything recorded so far is on disk; run takes data over. -ENOMEM: data is freed.
 */
typedef void (*effect_fn)(struct manager *m, void *data);
int manager_effect(struct manager *m, effect_fn run, void *data);
/* Sends a prepared reply (reference taken over) when the batch is on disk. */
int manager_reply_later(struct manager *m, sd_bus_message *reply);
/* The same with a reply of these values, as sd_bus_message_append() takes them; "": of none. */
int manager_answer_later(struct manager *m, sd_bus_message *call, const char *types, ...);

struct job *manager_job(struct manager *m, uint32_t number);
/* The executor whose latest attempt that is; of a job that had the number before: NULL. */
struct executor *manager_attempt(struct manager *m, const struct executor_id *id);
/* The same of what that node says of one of its own: 0, or negative with UnknownExecutor set. */
int manager_attempt_of(struct manager *m, const struct node *node, const struct executor_id *id,
                       struct executor **ret, sd_bus_error *error);
