/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of executors: answers of agents, ends. Every function here changes memory and the open batch
 * together.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-id128.h>

#include "masterd/job/job.h"
#include "masterd/job/judge.h"

struct manager;
struct node;
struct exit_report;
struct executor_id;
struct start_result;

void attempts_start_answered(struct manager *m, struct executor *e, const struct start_result *result);
/* A unit that the agent reported as running. */
void attempts_found_running(struct manager *m, struct executor *e, sd_id128_t invocation,
                            uint64_t started_real);
/* What its log has to be searched for before attempts_exited(): as judge_questions(). *ret: the executor. */
size_t attempts_asks(struct manager *m, struct node *node, const struct exit_report *report,
                     const char *ret_patterns[static FIND_PATTERNS_MAX], struct executor **ret);
/* found: what was looked for, and what was found; its site's rules are filled in here. */
void attempts_exited(struct manager *m, struct node *node, const struct exit_report *report,
                     struct judging *found);
/* What its agent says of its readiness. */
void attempts_ready(struct manager *m, struct node *node, const struct executor_id *id, bool ready,
                    const char *why);
/* It is being stopped and does not die; its job goes on without it, and what it holds goes to others. */
void attempts_given_up(struct manager *m, struct executor *e, const char *text);
/* Neither a unit nor a record of it is on its node (or the node booted anew): LOST, or KILLED when it was
 * being stopped. */
void attempts_vanished(struct manager *m, struct executor *e);
/* Its node is LOST; declared: a person vouches that it is dead. */
void attempts_node_lost(struct manager *m, struct executor *e, bool declared);
/* It is over as event says; text, one line: why. What follows is decided. */
void attempts_end(struct manager *m, struct executor *e, enum executor_event event, const char *text);
