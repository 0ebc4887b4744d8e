/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/host/verdict.h"

#include <string.h>

#include "agentd/log/journal.h"
#include "agentd/log/verdict.h"
#include "lib/base/clock.h"

#define SYNC_MAX (2 * USEC_PER_SEC)

int unit_verdict(const char *unit, uint64_t since_real, struct unit_verdict *ret) {
        struct journal_verdict v;
        int r;

        (void)journal_sync(NULL, SYNC_MAX); /* without it the journal is as far as it is */
        r = journal_verdict(NULL, unit, since_real, &v);
        if (r <= 0)
                return r;
        *ret = (struct unit_verdict){ .status = v.status, .stopped = v.stopped, .ended_real = v.ended_real };
        memcpy(ret->result, v.result, sizeof(ret->result));
        memcpy(ret->code, v.code, sizeof(ret->code));
        return r;
}
