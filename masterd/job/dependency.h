/* SPDX-License-Identifier: Apache-2.0 */
/* What one job waits for of another. Pure. */
#pragma once

#include "masterd/job/states.h"
#include "masterd/spec/array.h"

enum dependency {
        DEPENDENCY_WAITS,
        DEPENDENCY_HOLDS,
        DEPENDENCY_NEVER, /* it ended otherwise */
};

/* How it stands when the job that is waited for is in that state. */
enum dependency dependency_judge(enum after_condition c, enum job_state state);

/* "job 417 failed, and this one was to run after its success (after 417:ok)", into buf. Returns buf. */
char *dependency_never_text(const struct after_entry *e, enum job_state state, char *buf, size_t size);
#define DEPENDENCY_TEXT_MAX 192
