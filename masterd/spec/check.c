/* SPDX-License-Identifier: Apache-2.0 */
/* Rules between keys, in the order in which a person would want to hear of them. */
#include "masterd/spec/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"

struct place place_of(const char *key) {
        struct place p = {};

        place_push(&p, key, 0);
        return p;
}

struct place place_in_role(size_t i, const char *key) {
        struct place p = place_of("role");

        place_push(&p, NULL, i);
        if (key)
                place_push(&p, key, 0);
        return p;
}

static struct place place_in_strategy(size_t i, const char *key) {
        struct place p = place_in_role(i, "scheduleStrategy");

        place_push(&p, key, 0);
        return p;
}

/* ---- defaults that depend on other keys ---- */

static int set_argv(struct role_spec *role, const char *const *from, size_t n) {
        char **argv;

        TRY(strings_copy((char *const *)from, n, &argv));
        free(role->argv); /* empty */
        role->argv = argv;
        role->n_argv = n;
        return 0;
}

static int complete_command(struct role_spec *role) {
        const char *const shell[] = { "/bin/bash", "-c", role->command };
        char slots[16];
        const char *const host[] = { "python3", "-m", "primus.actors.host", slots };

        snprintf(slots, sizeof(slots), "%" PRIu32, role->actors);
        if (role->command)
                return set_argv(role, shell, ELEMENTSOF(shell));
        if (role->actors == 0)
                return 0;
        role->limits.delegate = true; /* each actor has a part of it */
        return set_argv(role, host, ELEMENTSOF(host));
}

/* What short keys say, in the terms of the long ones. */
static void complete_short(struct role_spec *role) {
        const uint64_t mib = UINT64_C(1) << 20;

        if (role->hosts > 0) {
                role->per_node = role->per_node ?: 1;
                role->num = role->hosts * role->per_node; /* at most 10,000 times 100,000 */
                role->hosts = 0;
        }
        role->memory = (role->memory + mib - 1) / mib * mib;
}

static int complete_nodes(const struct job_spec *s, struct role_spec *role) {
        char **nodes;
        int r;

        if (role->n_nodes > 0 || s->n_nodes == 0)
                return 0;
        r = strings_copy(s->nodes, s->n_nodes, &nodes);
        if (r < 0)
                return r;
        free(role->nodes); /* empty */
        role->nodes = nodes;
        role->n_nodes = s->n_nodes;
        return 0;
}

static int complete_job(struct job_spec *s) {
        int r;

        for (size_t i = 0; i < s->n_roles; i++) {
                struct role_spec *role = &s->roles[i];
                complete_short(role);
                if (role->min_num == 0)
                        role->min_num = role->num;
                if ((r = complete_command(role)) < 0 || (r = complete_nodes(s, role)) < 0)
                        return r;
        }
        if (s->waits.signal && (r = spec_signal_parse(s->waits.signal, &s->waits.signal_number,
                                                      &s->waits.signal_before_usec)) < 0)
                return r;
        if (s->rendezvous.signal) {
                uint64_t unused;
                if ((r = spec_signal_parse(s->rendezvous.signal, &s->rendezvous.signal_number, &unused)) < 0)
                        return r;
        }
        r = spec_stack_signal_parse(s->stack_signal, &s->stack_signal_number);
        if (r < 0)
                return r;
        r = complete_failure(s);
        return r < 0 ? r : complete_data(s);
}

/* ---- rules ---- */

static size_t texts_bytes(char *const *texts) {
        size_t n = 0;

        for (; *texts; texts++)
                n += strlen(*texts) + 1;
        return n;
}

static int check_role_placement(struct reader *r, const struct role_spec *role, size_t i) {
        uint32_t hosts;

        if (role->per_node > 0 && role->num % role->per_node != 0)
                return report_at(r, place_in_strategy(i, "replicasPerNode"),
                                 "num (%" PRIu32 ") must be a multiple of it, not %" PRIu32, role->num,
                                 role->per_node);
        if (role->per_node > 0 && role->min_num != role->num)
                return report_at(r, place_in_strategy(i, "replicasPerNode"),
                                 "does not go with minNum < num: then hosts could not be filled evenly");
        hosts = role->per_node > 0       ? role->num / role->per_node
                : role->max_per_node > 0 ? (role->min_num + role->max_per_node - 1) / role->max_per_node
                                         : 0;
        if (role->n_nodes > 0 && hosts > role->n_nodes)
                return report_at(r, place_in_role(i, "scheduleStrategy"),
                                 "needs %" PRIu32 " hosts, but nodes names %zu", hosts, role->n_nodes);
        return 0;
}

static int check_role(struct reader *r, const struct job_spec *s, size_t i) {
        const struct role_spec *role = &s->roles[i];
        size_t bytes = texts_bytes(s->env) + texts_bytes(role->env) + texts_bytes(role->argv);

        for (size_t j = 0; j < i; j++)
                if (strcmp(s->roles[j].name, role->name) == 0)
                        return report_at(r, place_in_role(i, "roleName"), "role[%zu] is called %s already", j,
                                         role->name);
        if (role->n_argv == 0)
                return report_at(r, place_in_role(i, "command"),
                                 "missing: say what an executor of %s runs (or argv)", role->name);
        if (!*role->argv[0])
                return report_at(r, place_in_role(i, "argv"), "the program (argv[0]) must not be empty");
        if (role->min_num > role->num)
                return report_at(r, place_in_role(i, "minNum"),
                                 "must be at most num (%" PRIu32 "), not %" PRIu32, role->num, role->min_num);
        if (bytes > SPEC_ENV_BYTES_MAX)
                return report_at(
                        r, place_in_role(i, NULL),
                        "command and env, with the job's env, have %zu bytes; at most %u are accepted", bytes,
                        SPEC_ENV_BYTES_MAX);
        if (role->input_policy == INPUT_STREAMING && spec_n_sources(s) == 0)
                return report_at(r, place_in_role(i, "inputPolicy"),
                                 "STREAMING needs data: inputManager is missing");
        return check_role_placement(r, role, i);
}

static int check_order(struct reader *r, const struct job_spec *s) {
        for (size_t i = 0; i < s->n_order; i++) {
                struct place p = place_of("scheduler");
                place_push(&p, "schedulePolicy", 0);
                place_push(&p, "orderPolicy", 0);
                place_push(&p, "rolePolicy", 0);
                place_push(&p, NULL, i);
                place_push(&p, "roleName", 0);
                if (!spec_role(s, s->order[i].role))
                        return report_at(r, p, "there is no role of this name");
                for (size_t j = 0; j < i; j++)
                        if (strcmp(s->order[j].role, s->order[i].role) == 0)
                                return report_at(r, p, "rolePolicy[%zu] is for %s already", j,
                                                 s->order[i].role);
        }
        if (s->schedule_policy == SCHEDULE_POLICY_ORDER && s->n_order < s->n_roles)
                for (size_t i = 0; i < s->n_roles; i++) {
                        bool found = false;
                        for (size_t j = 0; j < s->n_order; j++)
                                found |= strcmp(s->order[j].role, s->roles[i].name) == 0;
                        if (!found)
                                return report_at(
                                        r, place_in_role(i, "roleName"),
                                        "orderPolicy does not say when %s starts: add it to rolePolicy",
                                        s->roles[i].name);
                }
        return 0;
}

/* Before roles get copies of the job's list. */
static int check_nodes_total(struct reader *r, const struct job_spec *s) {
        size_t n = s->n_nodes;

        for (size_t i = 0; i < s->n_roles; i++)
                n += s->roles[i].n_nodes ?: s->n_nodes;
        if (n > SPEC_NODES_TOTAL_MAX)
                return report_at(r, place_of("nodes"),
                                 "the lists of the job and its roles name %zu hosts; at most %u are accepted",
                                 n, SPEC_NODES_TOTAL_MAX);
        return 0;
}

static int check_totals(struct reader *r, const struct job_spec *s) {
        bool required = false;
        uint64_t executors = 0;

        for (size_t i = 0; i < s->n_roles; i++) {
                executors += s->roles[i].num;
                required |= s->roles[i].success_percent > 0;
        }
        if (executors > SPEC_EXECUTORS_MAX)
                return report_at(r, place_of("role"), "%" PRIu64 " executors in all; at most %u are accepted",
                                 executors, SPEC_EXECUTORS_MAX);
        if (!required)
                return report_at(
                        r, place_of("role"),
                        "no role is required (successPercent is 0 in all), so the job would succeed at once");
        return 0;
}

int check_job(struct reader *r, struct job_spec *s) {
        struct place backoff = place_of("backoff");
        size_t errors = r->diagnostics->n_errors;
        int q;

        q = check_nodes_total(r, s);
        if (q < 0 || r->diagnostics->n_errors > errors)
                return q;
        q = complete_job(s);
        for (size_t i = 0; q >= 0 && i < s->n_roles; i++)
                q = check_role(r, s, i);
        if (q >= 0)
                q = check_totals(r, s);
        if (q >= 0)
                q = check_order(r, s);
        if (q >= 0)
                q = check_placement(r, s);
        if (q >= 0)
                q = check_limits(r, s);
        if (q >= 0)
                q = check_failure(r, s);
        q = q < 0 ? q : check_search(r, s);
        if (q >= 0)
                q = check_queue(r, s);
        if (q >= 0)
                q = check_data(r, s);
        if (q >= 0 && s->backoff.max_usec < s->backoff.initial_usec)
                q = report_at(r, backoff, "max is less than initial");
        return MIN(q, 0);
}
