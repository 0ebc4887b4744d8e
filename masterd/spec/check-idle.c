/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that mean something only beside others: what is given and changes nothing is said. Invariant: a
 * warning here is about a value that is not the default, so that a configuration that is written out in full
 * (spec_effective()) is read without a word. */
#include "lib/base/cleanup.h"
#include "masterd/spec/check.h"

/* given: a value that is not the default; applies: what it is about is there, too. */
struct condition {
        bool given, applies;
        const char *path[4]; /* of the key; up to the first NULL */
        const char *why;
};

static int say(struct reader *r, const struct condition *c, size_t n) {
        int q = 0;

        for (size_t i = 0; i < n && q >= 0; i++) {
                struct place p = place_of(c[i].path[0]);

                if (!c[i].given || c[i].applies)
                        continue;
                p.at_key = true;
                for (size_t k = 1; k < ELEMENTSOF(c[i].path) && c[i].path[k]; k++)
                        place_push(&p, c[i].path[k], 0);
                q = reader_report(r, DIAGNOSTIC_WARNING, &p, "%s", c[i].why);
        }
        return MIN(q, 0);
}

static bool blames(const struct exit_rule_spec *rules, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (rules[i].action == EXIT_ACTION_BLAME)
                        return true;
        return false;
}

/* Without "enabled", only an exit status that blames the host keeps the job off one. */
static bool excludes_hosts(const struct job_spec *s) {
        bool yes = s->failure.blacklist.enabled || blames(s->failure.exit_rules, s->failure.n_exit_rules);

        for (size_t i = 0; i < s->n_roles; i++)
                yes |= blames(s->roles[i].failure.exit_rules, s->roles[i].failure.n_exit_rules);
        return yes;
}

static int check_hosts(struct reader *r, const struct job_spec *s) {
        static const char off[] =
                "has no effect: no host is excluded unless enabled is true; write that, or remove it";
        const struct blacklist_spec *b = &s->failure.blacklist;
        bool applies = excludes_hosts(s);
        const struct condition all[] = {
                { b->max_failed != 2, b->enabled, { "blacklistConfig", "maxFailedContainerPerNode" }, off },
                { b->timeout_usec != UINT64_C(3600) * 1000000,
                  applies,
                  { "blacklistConfig", "blacklistTimeoutMillis" },
                  off },
                { b->max_nodes != 20, applies, { "blacklistConfig", "maxBlacklistNode" }, off },
        };

        return say(r, all, ELEMENTSOF(all));
}

static int check_search_keys(struct reader *r, const struct job_spec *job) {
        static const char no_rungs[] = "has no effect: this method stops nobody early; remove it";
        static const char no_mode[] =
                "has no effect: a mode is that of \"adaptive-asha\" without rungs; remove it";
        static const char no_metric[] = "has no effect: there is no metric; remove it";
        const struct search_spec *s = &job->search;
        bool stops = search_has_rungs((enum search_method)s->method);
        const struct condition all[] = {
                { s->divisor != 4, stops, { "search", "divisor" }, no_rungs },
                { s->max_rungs != 5, stops, { "search", "maxRungs" }, no_rungs },
                { s->mode != SEARCH_STANDARD,
                  s->method == SEARCH_ADAPTIVE && !s->rungs,
                  { "search", "mode" },
                  no_mode },
                { !s->smaller, s->metric, { "search", "smaller" }, no_metric },
        };

        return search_spec_given(s) ? say(r, all, ELEMENTSOF(all)) : 0;
}

#define STAGING_DIR "inputManager", "workPreserve", "hdfsConfig", "stagingDir"

static int check_no_data(struct reader *r, const struct job_spec *s) {
        static const char none[] = "has no effect: the job has no data (inputManager); remove it";
        const struct condition all[] = {
                { s->graceful_shutdown, false, { "inputManager", "gracefulShutdown" }, none },
                { s->end_wait_usec > 0, false, { "inputManager", "gracefulShutdownTimeWaitSec" }, none },
                { s->max_task_attempts != 2, false, { "inputManager", "maxTaskAttempts" }, none },
                { s->staging_dir, false, { STAGING_DIR }, none },
                { s->input_mode != DELIVERY_STDIN, false, { "input", "mode" }, none },
                { s->input_ack != ACK_LAG && s->input_ack != ACK_RELEASE, false, { "input", "ack" }, none },
                { s->pipe_size != 1 << 20, false, { "input", "pipeSize" }, none },
                { s->input_order != ORDER_LISTED, false, { "input", "order" }, none },
                { s->lockstep != LOCKSTEP_OFF, false, { "input", "lockstep" }, none },
                { s->input_seed != 0, false, { "input", "seed" }, none },
                { s->epochs != 1, false, { "input", "epochs" }, none },
                { s->window != 0, false, { "input", "window" }, none },
                { s->split != 64 << 20, false, { "input", "split" }, none },
                { s->max_record != 64 << 20, false, { "input", "maxRecord" }, none },
                { s->slots != 16, false, { "input", "slots" }, none },
                { s->slot_size != 1 << 20, false, { "input", "slotSize" }, none },
                { s->poll_usec != 60000000, false, { "input", "poll" }, none },
        };

        return say(r, all, ELEMENTSOF(all));
}

static int check_lockstep(struct reader *r, const struct job_spec *s) {
        static const char all_roles[] =
                "has no effect: with input.lockstep the end of all roles decides; remove it";
        static const char tasks[] =
                "has no effect: it is about tasks, and input.lockstep has none; remove it";
        const struct condition all[] = {
                { s->graceful_shutdown, false, { "inputManager", "gracefulShutdown" }, all_roles },
                { s->end_wait_usec > 0, false, { "inputManager", "gracefulShutdownTimeWaitSec" }, all_roles },
                { s->max_task_attempts != 2, false, { "inputManager", "maxTaskAttempts" }, tasks },
                { s->staging_dir, false, { STAGING_DIR }, tasks },
                { s->task_failed_milli != 50000,
                  false,
                  { "inputManager", "fileConfig", "stopPolicy", "taskFailedPercent" },
                  tasks },
                { s->split != 64 << 20, false, { "input", "split" }, tasks },
                { s->poll_usec != 60000000, false, { "input", "poll" }, tasks },
        };

        return say(r, all, ELEMENTSOF(all));
}

static int check_topics(struct reader *r, const struct job_spec *s) {
        int q = 0;

        for (size_t i = 0; i < s->n_topics && q >= 0; i++) {
                struct place p = place_of("inputManager");

                if (s->topics[i].start == KAFKA_TIMESTAMP || s->topics[i].start_timestamp == 0)
                        continue;
                place_push(&p, "kafkaConfig", 0);
                place_push(&p, "topics", 0);
                place_push(&p, NULL, i);
                place_push(&p, "startUpTimestamp", 0);
                q = reader_report(
                        r, DIAGNOSTIC_WARNING, &p,
                        "has no effect: it is where \"kafkaStartUpMode\": \"TIMESTAMP\" begins; remove it");
        }
        return MIN(q, 0);
}

static int check_delivery(struct reader *r, const struct job_spec *s) {
        static const char no_pipe[] =
                "has no effect: there is a pipe with \"mode\": \"stdin\" alone; remove it";
        static const char no_ring[] =
                "has no effect: there is a ring with \"mode\": \"ring\" alone; remove it";
        static const char no_chance[] =
                "has no effect: nothing is left to chance (input.order, input.window, sampleRate); remove it";
        bool ring = s->input_mode == DELIVERY_RING, shares = s->sample_ppm < 1000000;
        bool mixes = s->input_order == ORDER_SHUFFLE || s->window > 1;
        bool pipe = s->input_mode == DELIVERY_STDIN && s->lockstep == LOCKSTEP_OFF;
        const struct condition all[] = {
                { s->pipe_size != 1 << 20, pipe, { "input", "pipeSize" }, no_pipe },
                { s->slots != 16, ring, { "input", "slots" }, no_ring },
                { s->slot_size != 1 << 20, ring, { "input", "slotSize" }, no_ring },
                { s->input_seed != 0, mixes || shares, { "input", "seed" }, no_chance },
        };

        return say(r, all, ELEMENTSOF(all));
}

int check_idle(struct reader *r, const struct job_spec *s) {
        int q = check_hosts(r, s);

        q = q < 0 ? q : check_search_keys(r, s);
        if (q < 0 || spec_n_sources(s) == 0)
                return q < 0 ? q : check_no_data(r, s);
        q = check_delivery(r, s);
        if (q >= 0)
                q = check_topics(r, s);
        if (q >= 0 && s->lockstep != LOCKSTEP_OFF)
                q = check_lockstep(r, s);
        return q;
}
