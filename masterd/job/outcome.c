/* SPDX-License-Identifier: Apache-2.0 */
/* What an ending means. Invariant: whoever asks for a stop gets KILLED, whatever the trainer answered or ran
 * into on its way out; any other out-of-memory kill is a failure, also as "exit status 137". */
#include "masterd/job/outcome.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/format.h"

static const char *signal_name(int number) {
        const char *s = sigabbrev_np(number);

        return s ? s : "?";
}

static void describe_status(const struct exit_report *e, char *buf, size_t size) {
        if (strcmp(e->code, "exited") == 0)
                snprintf(buf, size, "exit status %d", e->status);
        else if (strcmp(e->code, "dumped") == 0)
                snprintf(buf, size, "signal %s (core dumped)", signal_name(e->status));
        else if (strcmp(e->code, "killed") == 0)
                snprintf(buf, size, "signal %s", signal_name(e->status));
        else if (strcmp(e->result, "exit-code") == 0) /* of what runs before the command */
                snprintf(buf, size, "the job's files could not be unpacked");
        else
                snprintf(buf, size, "%s", e->result[0] ? e->result : "no status");
}

/* With which process it was, where the host could tell. */
static void describe_oom(const struct exit_report *e, uint64_t memory_limit,
                         char ret_text[static OUTCOME_TEXT_MAX]) {
        const char *detail = e->detail && strncmp(e->detail, "the kernel killed", 17) == 0 ? e->detail : "";
        char limit[FORMAT_SIZE_MAX];

        if (memory_limit > 0)
                snprintf(ret_text, OUTCOME_TEXT_MAX, "out of memory (limit %s)%s%s",
                         format_size(memory_limit, limit, sizeof(limit)), *detail ? ": " : "", detail);
        else
                snprintf(ret_text, OUTCOME_TEXT_MAX, "out of memory (no limit of its own: the host's)%s%s",
                         *detail ? ": " : "", detail);
}

enum executor_event outcome_of(const struct exit_report *e, uint64_t memory_limit, uint64_t runtime_limit,
                               char ret_text[static OUTCOME_TEXT_MAX]) {
        char status[128], limit[FORMAT_DURATION_MAX];

        describe_status(e, status, sizeof(status));
        if (strcmp(e->result, "no-record") == 0) {
                snprintf(ret_text, OUTCOME_TEXT_MAX, "vanished without a record%s%s",
                         e->detail && *e->detail ? ": " : "", e->detail ? e->detail : "");
                return EXECUTOR_EVENT_LOST;
        }
        if (e->stop_requested || e->stop_local) {
                snprintf(ret_text, OUTCOME_TEXT_MAX, "%s, %s",
                         e->stop_requested ? "stopped" : "stopped by somebody on the host", status);
                return EXECUTOR_EVENT_KILLED;
        }
        if (strcmp(e->result, "oom-kill") == 0 || (e->oom_kills > 0 && e->oom_kills != UINT64_MAX)) {
                describe_oom(e, memory_limit, ret_text);
                return EXECUTOR_EVENT_FAILED;
        }
        if (strcmp(e->result, "success") == 0 && strcmp(e->code, "exited") == 0 && e->status == 0) {
                snprintf(ret_text, OUTCOME_TEXT_MAX, "%s", status);
                return EXECUTOR_EVENT_SUCCEEDED;
        }
        if (strcmp(e->result, "timeout") == 0 && runtime_limit > 0)
                snprintf(ret_text, OUTCOME_TEXT_MAX, "ran longer than its time limit (%s)",
                         format_duration(runtime_limit, limit, sizeof(limit)));
        else
                snprintf(ret_text, OUTCOME_TEXT_MAX, "%s%s%s", status, e->detail && *e->detail ? ": " : "",
                         e->detail ? e->detail : "");
        return EXECUTOR_EVENT_FAILED;
}
