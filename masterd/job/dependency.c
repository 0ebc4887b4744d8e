/* SPDX-License-Identifier: Apache-2.0 */
/* What one job waits for of another. Invariant: a job that has ended never leaves anybody waiting. */
#include "masterd/job/dependency.h"

#include <stdio.h>

enum dependency dependency_judge(enum after_condition c, enum job_state state) {
        bool good = state == JOB_SUCCEEDED;

        if (!job_state_ended(state))
                return DEPENDENCY_WAITS;
        switch (c) {
        case AFTER_OK:
                return good ? DEPENDENCY_HOLDS : DEPENDENCY_NEVER;
        case AFTER_FAIL:
                return good ? DEPENDENCY_NEVER : DEPENDENCY_HOLDS;
        case AFTER_ANY:
        case _AFTER_CONDITION_MAX:
                break;
        }
        return DEPENDENCY_HOLDS;
}

char *dependency_never_text(const struct after_entry *e, enum job_state state, char *buf, size_t size) {
        const char *how = state == JOB_SUCCEEDED ? "succeeded"
                          : state == JOB_KILLED  ? "was killed"
                                                 : "failed";
        char name[AFTER_NAME_MAX];

        (void)after_name(e, name);
        snprintf(buf, size, "job %s %s, and this one was to run after its %s (after %s:%s)", name, how,
                 e->condition == AFTER_OK ? "success" : "failure", name,
                 after_condition_to_string(e->condition));
        return buf;
}
