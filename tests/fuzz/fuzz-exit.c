/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an exit record: refused, or a report of an executor that there may be. How to run it:
 * README.md. */
#include <errno.h>
#include <stdlib.h>

#include "agentd/unit/exits.h"
#include "lib/base/names.h"
#include "tests/fuzz/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct exit_report e = {};
        sd_bus_message *m;
        char *text;
        int r;

        if (size > EXIT_RECORD_MAX)
                return 0;
        text = malloc(size + 1);
        MUST(text);
        memcpy(text, data, size);
        text[size] = 0;
        r = exit_record_parse(text, &e);
        MUST(r == 0 || r == -EBADMSG);
        if (r == 0) {
                MUST(e.detail && e.id.job > 0 && e.id.attempt > 0 && role_name_valid(e.id.role) &&
                     !sd_id128_is_null(e.id.job_uid));
                MUST(memchr(e.result, 0, sizeof(e.result)) && memchr(e.code, 0, sizeof(e.code)));
                m = fuzz_message_new();
                MUST(exit_report_append(m, &e) >= 0);
                sd_bus_message_unref(m);
                exit_report_done(&e);
        }
        free(text);
        return 0;
}
