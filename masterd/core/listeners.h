/* SPDX-License-Identifier: Apache-2.0 */
/* How a room speaks to those above it, which it does not include. start.c fills both tables; they are
 * constant, and there is nothing to register with at run time.
 *
 * struct listener: something has happened, and any room may want to hear of it. They hear in the order of
 * start.c's list. struct upcalls: a room needs a decision or an act of the one room above that has it. Every
 * entry is filled. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/job/job.h"

struct manager;
struct node;
struct executor_id;
struct start_result;
struct registration;

/* Sends one message to one name on the bus. */
typedef void (*watcher_function)(struct manager *m, const char *watcher, const void *data);

struct listener {
        /* queue: it has got its place, in memory; its record is in the open batch. */
        void (*executor_placed)(struct manager *m, struct executor *e);
        /* queue: it holds nothing on e->node any more. Its state still says that it does. */
        void (*executor_released)(struct manager *m, struct executor *e);
        /* life: this attempt is over, and recorded; also of one that was never begun. Before people are told.
         */
        void (*executor_over)(struct manager *m, struct executor *e);
        /* life: its failure is one that people want the reason of. */
        void (*executor_failed)(struct manager *m, struct executor *e);
        /* life: it has ended as event, from state before; people are told. Before it is decided what follows.
         */
        void (*executor_ended)(struct manager *m, struct executor *e, enum executor_event event,
                               enum executor_state before);
        /* life: its failure counts in its history. */
        void (*executor_failure_counted)(struct manager *m, struct executor *e);
        /* life: an attempt before its latest one was read from the store. */
        void (*executor_remembered)(struct executor *e);
        /* life: this attempt of the job is over, or all of it. Before it is QUEUED again or ended. */
        void (*job_attempt_over)(struct manager *m, struct job *j);
        /* life: it has ended, and people are told. */
        void (*job_ended)(struct manager *m, struct job *j);
        /* life: it leaves memory. */
        void (*job_freed)(struct job *j);
        /* link: a host joined with a token; taken_over: under a name that another one had. */
        void (*node_joined)(struct manager *m, struct node *node, bool taken_over, const char *text);
        /* recover: hosts are in memory, from the store; life: jobs are, without their executors; recover:
         * jobs and their executors are. Negative: it cannot be loaded. */
        int (*nodes_loaded)(struct manager *m);
        int (*jobs_read)(struct manager *m);
        int (*jobs_loaded)(struct manager *m);
        /* recover: its agent has registered, what runs there is known, and it is READY. */
        void (*node_registered)(struct manager *m, struct node *node, const struct registration *g);
        /* life, link: the site's prolog of the job failed there. text: the agent's word. */
        void (*prolog_failed)(struct manager *m, struct node *node, const struct job *j, const char *text);
};

#define TELL(m, event, ...)                                                                                  \
        do {                                                                                                 \
                const struct listener *const *l_ = (m)->listeners;                                           \
                for (; l_ && *l_; l_++)                                                                      \
                        if ((*l_)->event)                                                                    \
                                (*l_)->event(__VA_ARGS__);                                                   \
        } while (0)

/* The same of something that is loaded: negative from the first that cannot, or 0. */
#define TELL_LOADED(m, event)                                                                                \
        ({                                                                                                   \
                const struct listener *const *l_ = (m)->listeners;                                           \
                int r_ = 0;                                                                                  \
                for (; r_ >= 0 && l_ && *l_; l_++)                                                           \
                        if ((*l_)->event)                                                                    \
                                r_ = (*l_)->event(m);                                                        \
                r_;                                                                                          \
        })

struct upcalls {
        /* What signals ask of api, as audience_tell(): calls send for each who may look at the job. */
        void (*tell_watchers)(struct job *j, watcher_function send, const void *data, size_t size);
        /* Something was put into m->changes: who waits for that is in api. */
        void (*changed)(struct manager *m);
        /* What the relay asks of api, as api_sees(): whether that user may look at the job. */
        bool (*may_look)(struct manager *m, uint32_t uid, const struct job *j);
        /* What the queue asks of life. Whether it is somebody else's turn to make something of the job (it
         * waits for another job, or is an array). */
        bool (*job_not_placeable)(struct manager *m, struct job *j);
        /* Whether it is held, or not to be tried yet; then it is tried again when it may. */
        bool (*job_kept_waiting)(struct manager *m, struct job *j);
        /* It was QUEUED and has got places; some of it has got places. */
        void (*job_begins)(struct manager *m, struct job *j);
        void (*job_places_changed)(struct manager *m, struct job *j);
        /* It has got its places, so nobody has to go for it any more. */
        void (*job_is_served)(struct manager *m, struct job *j);
        /* It has to go for another one; how long that takes at most. */
        void (*job_preempt)(struct manager *m, struct job *j, uint32_t by);
        uint64_t (*job_time_to_stop)(const struct job *j);
        /* When its last savepoint was made; 0: it has none. */
        uint64_t (*job_saved_real)(struct manager *m, const struct job *j);
        /* What the queue asks of the fleet: as hosts_excluded(), blaming_room(). */
        int (*hosts_excluded)(struct manager *m, const struct job *j, const struct role_spec *spec,
                              uint32_t **ret, size_t *ret_n);
        uint32_t (*host_room)(const struct node *node);
        /* What the feed asks of life: as lifecycle_stop_job(). */
        void (*job_stop)(struct manager *m, struct job *j, enum job_event verdict, const char *reason);
        /* What answers to orders are for: life, and for a unit that lists a source (SCAN_ROLE) the feed. */
        void (*start_answered)(struct manager *m, struct executor *e, const struct start_result *result);
        void (*executor_vanished)(struct manager *m, struct executor *e);
        void (*freeze_refused)(struct manager *m, struct executor *e, const char *why);
        /* The executor listing a source was not started; without text: its host's prolog failed. */
        void (*scan_refused)(struct manager *m, struct job *j, struct node *node,
                             const struct executor_id *id, const char *text);
        /* Where that source's listing goes on behind, NULL: that unit is not wanted any more. */
        const struct source *(*scan_source)(struct job *j, struct node *node, const struct executor_id *id);
};
