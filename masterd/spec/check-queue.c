/* SPDX-License-Identifier: Apache-2.0 */
/* How a job waits and gives way. Invariant: a signal that is accepted is one that a program can catch, and
 * leaves it some of its time limit. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/parse.h"
#include "masterd/spec/check.h"

#define SIGNAL_BEFORE_DEFAULT (60 * USEC_PER_SEC)
#define SIGNAL_BEFORE_MAX (86400 * USEC_PER_SEC)

static int signal_from_text(const char *name, int32_t *ret) {
        uint32_t number;

        if (parse_u32(name, 1, 64, &number) == 0) {
                *ret = (int32_t)number;
                return 0;
        }
        if (strncmp(name, "SIG", 3) == 0)
                name += 3;
        for (int i = 1; i <= 31; i++) {
                const char *known = sigabbrev_np(i);
                if (known && strcmp(known, name) == 0) {
                        *ret = i;
                        return 0;
                }
        }
        return -EINVAL;
}

int spec_signal_parse(const char *text, int32_t *ret_number, uint64_t *ret_before_usec) {
        const char *at = strchr(text, '@');
        uint64_t before = SIGNAL_BEFORE_DEFAULT;
        int32_t number = 0;
        char name[16];

        if ((at ? (size_t)(at - text) : strlen(text)) >= sizeof(name))
                return -EINVAL;
        snprintf(name, sizeof(name), "%.*s", (int)(at ? at - text : (ptrdiff_t)strlen(text)), text);
        if (signal_from_text(name, &number) < 0 || number == SIGKILL || number == SIGSTOP ||
            (at && (parse_duration(at + 1, &before) < 0 || before > SIGNAL_BEFORE_MAX)))
                return -EINVAL;
        *ret_number = number;
        *ret_before_usec = before;
        return 0;
}

int spec_stack_signal_parse(const char *text, int32_t *ret_number) {
        uint64_t unused;

        if (text && strcmp(text, "none") == 0) {
                *ret_number = 0;
                return 0;
        }
        if (!text) {
                *ret_number = SPEC_STACK_SIGNAL_DEFAULT;
                return 0;
        }
        return strchr(text, '@') ? -EINVAL : spec_signal_parse(text, ret_number, &unused);
}

int check_queue(struct reader *r, const struct job_spec *s) {
        char before[FORMAT_DURATION_MAX], limit[FORMAT_DURATION_MAX];

        if (s->waits.signal_number == 0 || s->waits.signal_before_usec < s->time_limit_usec)
                return 0;
        return report_at(r, place_of("signal"),
                         "comes %s before the end, but timeLimit is %s: nothing is left",
                         format_duration(s->waits.signal_before_usec, before, sizeof(before)),
                         format_duration(s->time_limit_usec, limit, sizeof(limit)));
}
