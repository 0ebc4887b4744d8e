/* SPDX-License-Identifier: Apache-2.0 */
/* When a job attempt is over: counts per role → go on, succeeded, failed. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct role_count {
        const char *name;
        uint32_t wanted;          /* executors of the role */
        uint32_t success_percent; /* 0: the role is optional */
        uint32_t succeeded;       /* ended well and not coming back */
        uint32_t failed;          /* ended otherwise and not coming back */
        uint32_t fail_percent;    /* of wanted: so many failed are too many; 0: never */
};

enum verdict {
        VERDICT_GO_ON,
        VERDICT_SUCCEEDED,
        VERDICT_FAILED
};

#define VERDICT_TEXT_MAX 256

/* Failed at once: a role has fail_percent failures. Succeeded: every required role has ceil(wanted × percent
 * / 100) successes; where all roles are optional, every executor has ended. Failed: all executors of a
 * required role have ended and it is short. The text says why; when failed, *ret_role is the role that is
 * short. */
enum verdict verdict_of(const struct role_count *roles, size_t n, size_t *ret_role,
                        char ret_text[static VERDICT_TEXT_MAX]);
