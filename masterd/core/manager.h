/* SPDX-License-Identifier: Apache-2.0 */
/* All state of masterd, and the rule by which it changes: record, then act. A handler changes memory, puts
 * records into the store's open batch, and registers effects; when the turn of the loop ends, scheduling runs
 * once, the batch is committed, and the effects run when it is on disk. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>

#include "lib/wire/authority.h"
#include "lib/wire/join.h"
#include "lib/wire/peer.h"
#include "masterd/conf/conf.h"
#include "masterd/job/job.h"
#include "masterd/job/series.h"
#include "masterd/node/node.h"
#include "masterd/store/store.h"

struct manager;
struct effect;
struct placement;
struct shunner;
struct token;
struct revoked;
struct logs;
struct bundles;
struct sessions;
struct savepoint;
struct dependents;
struct hooks;
struct quota;
struct people;
struct link_handlers;
struct listener;
struct upcalls;
struct callers;
struct audit;

/* In the state directory, while a backup is made. */
#define BACKUP_FILE "backup.db"

struct manager {
        struct conf conf;
        sd_event *event;
        sd_bus *bus; /* system bus: people and tools */
        struct store *store;
        struct callers *callers;
        struct audit *audit;
        struct people *people;           /* users' names and groups */
        const sd_bus_message *known_for; /* the call in hand has waited for these (api/looking.h) */
        uint32_t backup_uid;             /* of primus-backup.service */
        bool backup_uid_known;
        struct quota *quota; /* what users have under way */
        sd_id128_t cluster;
        uint64_t term;

        struct certificate ca;
        struct tls_credentials *credentials;
        struct listener *listener;
        uint64_t refused_since; /* strangers at the port: when the count began */
        uint32_t n_refused;
        struct token *tokens;    /* by id */
        struct revoked *revoked; /* by serial */
        struct link *links;      /* by peer */
        const struct link_handlers *link_handlers;
        sd_event_source *renew_timer;

        struct nodes nodes;
        struct addr reached; /* this host's address as other hosts know it, see ownhost.h */
        sd_event_source *live_timer;
        struct shunner *shunners; /* users that some host is kept from, by uid (masterd/fleet/blaming.c) */
        sd_event_source *blame_timer;  /* when a quarantine is over, or a probe has run long enough */
        sd_event_source *health_timer; /* when executors are judged */
        uint32_t peek_first;           /* the job whose threads are looked at first the next time */
        sd_event_source *hosts_timer;  /* deadlines of drains, windows */
        struct window *windows;        /* maintenance, by the time they begin */
        uint32_t n_windows;
        uint64_t ready_boot; /* when this master began to serve: LOST timers of nodes not heard yet start here
                              */

        struct {
                uint64_t limit; /* of the unit, bytes; 0: not looked up yet; UINT64_MAX: none */
                uint64_t look_boot;
                bool is_short;
        } memory; /* masterd/core/space.h */

        struct series_budget histories; /* masterd/watch/telemetry.h */
        struct job *jobs;               /* by number; active ones and the latest ended */
        uint32_t n_active;
        struct job *ended; /* oldest first */
        uint32_t n_ended, n_ended_executors;
        uint64_t ended_bytes;
        struct dependents *dependents;        /* by the job that is waited for (masterd/life/depend.c) */
        struct job *settling, **settling_end; /* have ended, and those that wait for them are not told yet */
        struct placement *placement;
        struct logs *logs;
        struct bundles *bundles;
        struct sessions *sessions;
        struct array_owner *array_owners; /* masterd/life/arrays.c */
        struct hooks *hooks;
        struct savepoint *savepoints; /* by name, oldest first */
        uint32_t n_restoring;         /* jobs being made of them */

        const struct listener *const *listeners; /* masterd/core/listeners.h; the last is NULL */
        const struct upcalls *up;
        void (*schedule)(struct manager *m);
        sd_event_source *turn; /* runs at the end of a turn that asked for it */
        sd_event_source *prune_timer;
        uint64_t pruned_used;                  /* bytes of the store at the last time */
        struct effect *effects, **effects_end; /* of the open batch */
        struct effect *due, **due_end;         /* of what is on disk, not run yet */
        sd_event_source *run_due;
        bool schedule_wanted, batch_open;
        bool serving;
};

/* The state alone, with its settings and its loop; masterd/start.h joins the rooms to it. schedule: runs the
 * placement at the end of a turn that asked for it. */
int manager_new(void (*schedule)(struct manager *m), struct manager **ret);
void manager_free(struct manager *m);

/* Something was put into the store, or effects were registered: commit at the end of this turn. */
void manager_touch(struct manager *m);
/* Run the placement at the end of this turn. */
void manager_schedule(struct manager *m);

/* Calls run(m, data) once everything recorded so far is on disk; run takes data over. -ENOMEM: data is freed.
 */
typedef void (*effect_fn)(struct manager *m, void *data);
int manager_effect(struct manager *m, effect_fn run, void *data);
/* Sends a prepared reply (reference taken over) when the batch is on disk. */
int manager_reply_later(struct manager *m, sd_bus_message *reply);

struct job *manager_job(struct manager *m, uint32_t number);
/* The executor whose latest attempt that is; of a job that had the number before: NULL. */
struct executor *manager_attempt(struct manager *m, const struct executor_id *id);
