/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a stop that somebody asked for is never a failure, but that of one which was not ready in time.
 */
#include "masterd/job/judge.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"

#define EXIT_REQUEUE_DEFAULT 75 /* EX_TEMPFAIL: "try again later" */

uint64_t judge_more_memory(const struct elastic_spec *elastic, uint64_t had) {
        uint64_t more = MAX(had / 1000 * elastic->ratio_milli, usec_add(had, elastic->size));

        more = MIN(MAX(more, elastic->min), elastic->max);
        return more > had ? more : 0;
}

static bool by_memory(const struct exit_report *x) {
        return strcmp(x->result, "oom-kill") == 0 || (x->oom_kills > 0 && x->oom_kills != UINT64_MAX);
}

static enum exit_kind kind_of(const struct exit_report *x) {
        return by_memory(x)                         ? EXIT_KIND_OOM
               : strcmp(x->result, "watchdog") == 0 ? EXIT_KIND_WATCHDOG
                                                    : EXIT_KIND_STATUS;
}

/* As a shell would say it: 128 and the signal. */
static int status_of(const struct exit_report *x) {
        return strcmp(x->code, "killed") == 0 || strcmp(x->code, "dumped") == 0 ? 128 + x->status : x->status;
}

static const struct exit_rule_spec *find_rule(const struct exit_rule_spec *rules, size_t n, int status,
                                              enum exit_kind kind) {
        for (size_t i = 0; i < n; i++)
                if (exit_codes_match(rules[i].codes, status, kind))
                        return rules + i;
        return NULL;
}

static void append_text(char text[static OUTCOME_TEXT_MAX], const char *more) {
        size_t l = strlen(text);

        snprintf(text + l, OUTCOME_TEXT_MAX - l, "%s", more);
}

static void judge_by_rule(struct executor *e, enum exit_action action, enum executor_event *event,
                          char text[static OUTCOME_TEXT_MAX]) {
        static const char *const said[_EXIT_ACTION_MAX] = {
                [EXIT_ACTION_RESTART] = "; does not count (exitCodes: restart)",
                [EXIT_ACTION_FAIL] = "; fails the job (exitCodes: fail)",
                [EXIT_ACTION_SUCCESS] = "; counts as success (exitCodes: success)",
                [EXIT_ACTION_IGNORE] = "; counts as nothing (exitCodes: ignore)",
                [EXIT_ACTION_BLAME] = "; counts against the host (exitCodes: blame)",
                [EXIT_ACTION_REQUEUE] = ": asks to be requeued",
        };

        e->end.fate = fate_of_action(action);
        if (action == EXIT_ACTION_SUCCESS)
                *event = EXECUTOR_EVENT_SUCCEEDED;
        else if (action == EXIT_ACTION_IGNORE || action == EXIT_ACTION_REQUEUE)
                *event = EXECUTOR_EVENT_KILLED; /* neither success nor failure */
        append_text(text, said[action]);
}

static void judge_stopped(struct executor *e, enum executor_event *event,
                          char text[static OUTCOME_TEXT_MAX]) {
        if (e->end.fate == FATE_NOT_READY && *event != EXECUTOR_EVENT_SUCCEEDED) {
                *event = EXECUTOR_EVENT_FAILED;
                snprintf(text, OUTCOME_TEXT_MAX, "%s", e->reason ? e->reason : "not ready in time");
        } else if (e->end.fate == FATE_SCOPE)
                *event = EXECUTOR_EVENT_KILLED;
}

/* systemd's own verdicts: the signal by which it enforced them is no status of the command's. */
static bool judge_start(const struct executor *e, const struct exit_report *x,
                        char text[static OUTCOME_TEXT_MAX]) {
        const struct ready_spec *ready = &executor_role(e)->failure.ready;
        char limit[FORMAT_DURATION_MAX];

        if (ready->kind == READY_NOTIFY) {
                /* Its time limit begins when it is ready. */
                if (strcmp(x->result, "timeout") == 0 &&
                    usec_sub(x->ended_real, x->started_real) < executor_role(e)->time_limit_usec)
                        snprintf(text, OUTCOME_TEXT_MAX, "not ready within %s: no READY=1 (ready: notify)",
                                 format_duration(ready->timeout_usec, limit, sizeof(limit)));
                else if (strcmp(x->result, "protocol") == 0)
                        snprintf(text, OUTCOME_TEXT_MAX, "exited before it said READY=1 (ready: notify)");
        }
        return strcmp(x->result, "timeout") == 0 || strcmp(x->result, "protocol") == 0;
}

/* The signal that systemd sent says nothing. */
static void say_watchdog(const struct executor *e, char text[static OUTCOME_TEXT_MAX]) {
        char limit[FORMAT_DURATION_MAX];

        snprintf(text, OUTCOME_TEXT_MAX, "its watchdog was not fed for %s (watchdog)",
                 format_duration(executor_role(e)->failure.watchdog_usec, limit, sizeof(limit)));
}

void judge_exit(struct executor *e, const struct exit_report *x, enum executor_event *event,
                char text[static OUTCOME_TEXT_MAX]) {
        const struct role_spec *role = executor_role(e);
        const struct job_spec *job = e->job->spec;
        const struct exit_rule_spec *rule;
        enum exit_kind kind = kind_of(x);
        char size[FORMAT_SIZE_MAX], more[FORMAT_SIZE_MAX + 64];
        uint64_t grown;

        if (e->orders.stopped) {
                judge_stopped(e, event, text);
                return;
        }
        if (*event != EXECUTOR_EVENT_FAILED || judge_start(e, x, text))
                return;
        if (kind == EXIT_KIND_WATCHDOG && role->failure.watchdog_usec > 0)
                say_watchdog(e, text);
        rule = find_rule(role->failure.exit_rules, role->failure.n_exit_rules, status_of(x), kind);
        if (!rule)
                rule = find_rule(job->failure.exit_rules, job->failure.n_exit_rules, status_of(x), kind);
        if (rule)
                judge_by_rule(e, (enum exit_action)rule->action, event, text);
        else if (kind == EXIT_KIND_OOM &&
                 (grown = judge_more_memory(&role->failure.elastic, executor_memory(e))) > 0) {
                e->end.fate = FATE_GROWN;
                snprintf(more, sizeof(more), "; comes back with %s", format_size(grown, size, sizeof(size)));
                append_text(text, more);
        } else if (status_of(x) == EXIT_REQUEUE_DEFAULT && strcmp(x->code, "exited") == 0)
                judge_by_rule(e, EXIT_ACTION_REQUEUE, event, text);
}
