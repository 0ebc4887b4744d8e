/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a stop that somebody asked for is never a failure, but that of one which was not ready in time.
 */
#include "masterd/job/judge.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/utf8.h"

#define EXIT_REQUEUE_DEFAULT 75 /* EX_TEMPFAIL: "try again later" */
#define EXIT_INVALID_TRIAL 78   /* EX_CONFIG */

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

static void append_text(char text[static OUTCOME_TEXT_MAX], const char *more) {
        size_t l = strlen(text), n = utf8_fit(more, OUTCOME_TEXT_MAX - 1 - l);

        memcpy(text + l, more, n);
        text[l + n] = 0;
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

/* The lists of rules that hold for an executor, in the order in which they are looked at. */
struct rules {
        const struct exit_rule_spec *rules;
        size_t n;
        const char *from; /* for people */
};
#define RULE_LISTS 3

static void rules_of(const struct executor *e, const struct judging *how,
                     struct rules ret[static RULE_LISTS]) {
        const struct role_failure_spec *role = &executor_role(e)->failure;
        const struct job_failure_spec *job = &e->job->spec->failure;

        ret[0] = (struct rules){ role->exit_rules, role->n_exit_rules, "exitCodes" };
        ret[1] = (struct rules){ job->exit_rules, job->n_exit_rules, "exitCodes" };
        ret[2] = (struct rules){ how->site, how->n_site, "masterd.conf" };
}

static bool codes_fit(const struct exit_rule_spec *rule, const struct exit_report *x) {
        return !rule->codes || exit_codes_match(rule->codes, status_of(x), kind_of(x));
}

size_t judge_questions(const struct executor *e, const struct exit_report *x, enum executor_event event,
                       const struct judging *how, const char *ret[static FIND_PATTERNS_MAX]) {
        char text[OUTCOME_TEXT_MAX];
        struct rules lists[RULE_LISTS];
        size_t n = 0;

        if (e->orders.stopped || event != EXECUTOR_EVENT_FAILED || judge_start(e, x, text))
                return 0;
        rules_of(e, how, lists);
        for (size_t k = 0; k < RULE_LISTS; k++)
                for (size_t i = 0; i < lists[k].n; i++) {
                        const struct exit_rule_spec *rule = lists[k].rules + i;

                        if (!codes_fit(rule, x))
                                continue;
                        if (rule->output && n < FIND_PATTERNS_MAX)
                                ret[n++] = rule->output;
                        else if (!rule->output && rule->action != EXIT_ACTION_NOTE)
                                return n; /* what is behind it does not count */
                }
        return n;
}

/* The line that the rule's expression has matched, or NULL. The rules may have changed since it was looked
 * for; so it is the text that counts. */
static const char *line_of(const struct exit_rule_spec *rule, const struct judging *how) {
        for (size_t i = 0; how->lines && i < how->n; i++)
                if (how->lines[i].found && strcmp(how->patterns[i], rule->output) == 0)
                        return how->lines[i].text;
        return NULL;
}

static void say_line(char text[static OUTCOME_TEXT_MAX], const char *line) {
        if (!line || strstr(text, line)) /* as often as not it is the last one, and said already */
                return;
        append_text(text, "; printed '");
        append_text(text, line);
        append_text(text, "'");
}

/* The first rule that fits and is more than a note; *ret_from: where it is written. */
static const struct exit_rule_spec *find_rule(const struct executor *e, const struct exit_report *x,
                                              const struct judging *how, const char **ret_from,
                                              char text[static OUTCOME_TEXT_MAX]) {
        struct rules lists[RULE_LISTS];

        rules_of(e, how, lists);
        for (size_t k = 0; k < RULE_LISTS; k++)
                for (size_t i = 0; i < lists[k].n; i++) {
                        const struct exit_rule_spec *rule = lists[k].rules + i;
                        const char *line = rule->output ? line_of(rule, how) : NULL;

                        if ((rule->output && !line) || !codes_fit(rule, x))
                                continue;
                        say_line(text, line);
                        *ret_from = lists[k].from;
                        if (rule->action != EXIT_ACTION_NOTE)
                                return rule;
                }
        return NULL;
}

static void judge_by_rule(struct executor *e, enum exit_action action, const char *from,
                          enum executor_event *event, char text[static OUTCOME_TEXT_MAX]) {
        static const char *const said[_EXIT_ACTION_MAX] = {
                [EXIT_ACTION_RESTART] = "does not count",
                [EXIT_ACTION_FAIL] = "fails the job",
                [EXIT_ACTION_SUCCESS] = "counts as success",
                [EXIT_ACTION_IGNORE] = "counts as nothing",
                [EXIT_ACTION_BLAME] = "counts against the host",
                [EXIT_ACTION_REQUEUE] = "asks to be requeued",
        };
        char more[96];

        e->end.fate = fate_of_action(action);
        if (action == EXIT_ACTION_SUCCESS)
                *event = EXECUTOR_EVENT_SUCCEEDED;
        else if (action == EXIT_ACTION_IGNORE || action == EXIT_ACTION_REQUEUE)
                *event = EXECUTOR_EVENT_KILLED; /* neither success nor failure */
        if (action == EXIT_ACTION_REQUEUE)
                snprintf(more, sizeof(more), ": %s", said[action]);
        else
                snprintf(more, sizeof(more), "; %s (%s: %s)", said[action], from, exit_action_words[action]);
        append_text(text, more);
}

static void judge_stopped(struct executor *e, enum executor_event *event,
                          char text[static OUTCOME_TEXT_MAX]) {
        if (e->end.fate == FATE_NOT_READY && *event != EXECUTOR_EVENT_SUCCEEDED) {
                *event = EXECUTOR_EVENT_FAILED;
                snprintf(text, OUTCOME_TEXT_MAX, "%s", e->reason ? e->reason : "not ready in time");
        } else if (e->end.fate == FATE_SCOPE)
                *event = EXECUTOR_EVENT_KILLED;
}

/* The signal that systemd sent says nothing. */
static void say_watchdog(const struct executor *e, char text[static OUTCOME_TEXT_MAX]) {
        char limit[FORMAT_DURATION_MAX];

        snprintf(text, OUTCOME_TEXT_MAX, "its watchdog was not fed for %s (watchdog)",
                 format_duration(executor_role(e)->failure.watchdog_usec, limit, sizeof(limit)));
}

void judge_exit(struct executor *e, const struct exit_report *x, const struct judging *how,
                enum executor_event *event, char text[static OUTCOME_TEXT_MAX]) {
        const struct role_spec *role = executor_role(e);
        const struct exit_rule_spec *rule;
        const char *from;
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
        if (how->n > 0 && !how->lines)
                append_text(text, "; its log could not be searched");
        rule = find_rule(e, x, how, &from, text);
        if (rule)
                judge_by_rule(e, (enum exit_action)rule->action, from, event, text);
        else if (kind == EXIT_KIND_OOM &&
                 (grown = judge_more_memory(&role->failure.elastic, executor_memory(e))) > 0) {
                e->end.fate = FATE_GROWN;
                snprintf(more, sizeof(more), "; comes back with %s", format_size(grown, size, sizeof(size)));
                append_text(text, more);
        } else if (status_of(x) == EXIT_REQUEUE_DEFAULT && strcmp(x->code, "exited") == 0)
                judge_by_rule(e, EXIT_ACTION_REQUEUE, NULL, event, text);
        else if (how->trial && status_of(x) == EXIT_INVALID_TRIAL && strcmp(x->code, "exited") == 0) {
                e->end.fate = FATE_INVALID;
                *event = EXECUTOR_EVENT_KILLED;
                append_text(text, ": its parameters make no sense");
        }
}
