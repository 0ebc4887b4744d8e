/* SPDX-License-Identifier: Apache-2.0 */
/* Lack of memory or I/O. Invariant: only processes that were killed are an event of the job, since those are
 * few and something is lost; the rest is a line in the journal, and the sample that comes with it. */
#include "masterd/watch/pressure.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/unitname.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"

/* Agents tell of a unit every 10 s at most; of one that does not, no more is written than of the others. */
#define EVENTS_MAX 300u
#define EVENTS_INTERVAL (600 * USEC_PER_SEC)

void pressure_told(struct manager *m, struct node *node, const struct executor_id *id, const char *what,
                   uint64_t amount) {
        struct executor *e = manager_attempt(m, id);
        char unit[UNIT_NAME_MAX];

        if (!e || e->node != node)
                return;
        if (strcmp(what, "oom") == 0 &&
            burst_admit(&node->bursts.kills, now_boot(), EVENTS_INTERVAL, EVENTS_MAX))
                record_event(
                        m, e->job, "oom-kill", e,
                        "attempt %u on %s: the kernel has killed %llu of its processes for lack of memory",
                        e->attempt, node->name, (unsigned long long)amount);
        else
                log_full(LOG_DEBUG, 0,
                         &(struct log_fields){ .job = id->job, .node = node->name, .role = id->role },
                         "%s: pressure (%s, %llu)",
                         executor_unit_name(id->job, id->role, id->index, id->attempt, unit), what,
                         (unsigned long long)amount);
}
