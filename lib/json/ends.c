/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/ends.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"

bool state_is_end(const char *state) {
        static const char *const ends[] = { "SUCCEEDED", "FAILED", "KILLED", "LOST" };

        for (size_t i = 0; i < ELEMENTSOF(ends); i++)
                if (strcmp(ends[i], state) == 0)
                        return true;
        return false;
}

char *attempt_end_text(const struct attempt_end *e, char *buf, size_t size) {
        const char *result = e->result ? e->result : "", *reason = e->reason ? e->reason : "";

        buf[0] = 0;
        if (!state_is_end(e->state))
                snprintf(buf, size, "%s", reason); /* why it waits */
        else if (strcmp(result, "oom-kill") == 0)
                snprintf(buf, size, "killed: %s", *reason ? reason : "out of memory");
        else if (strcmp(result, "timeout") == 0)
                snprintf(buf, size, "killed: %s", *reason ? reason : "time limit");
        else if (*reason)
                snprintf(buf, size, "%s", reason);
        else if (strcmp(result, "exit-code") == 0 && e->has_status)
                snprintf(buf, size, "exit %" PRIi32, e->status);
        else if ((strcmp(result, "signal") == 0 || strcmp(result, "core-dump") == 0) && e->has_status)
                snprintf(buf, size, "signal %s%s", sigabbrev_np(e->status) ? sigabbrev_np(e->status) : "?",
                         strcmp(result, "core-dump") == 0 ? " (core dumped)" : "");
        else if (strcmp(result, "success") != 0)
                snprintf(buf, size, "%s", result);
        return buf;
}
