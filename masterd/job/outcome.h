/* SPDX-License-Identifier: Apache-2.0 */
/* From "how a unit ended" to what that means: the record plus who asked. Pure. */
#pragma once

#include <stddef.h>

#include "lib/wire/messages.h"
#include "masterd/job/states.h"

#define OUTCOME_TEXT_MAX 512

/* exit: the agent's report. memory_limit: bytes, 0 none; runtime_limit usec, 0 none: only for the text.
 * Returns SUCCEEDED, FAILED, KILLED (somebody asked: never a failure, never a success) or LOST (no record),
 * and one line for people: "exit status 3", "signal SEGV (core dumped)", "out of memory (limit 512M)". */
enum executor_event outcome_of(const struct exit_report *exit, uint64_t memory_limit, uint64_t runtime_limit,
                               char ret_text[static OUTCOME_TEXT_MAX]);
