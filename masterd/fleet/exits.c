/* SPDX-License-Identifier: Apache-2.0 */
/* Ends that agents report. Invariant: an agent may forget an end when the turn that read it is on disk,
 * whosever it was. */
#include "masterd/fleet/exits.h"

#include "lib/wire/messages.h"
#include "masterd/fleet/stuck.h"
#include "masterd/life/attempts.h"
#include "masterd/link/orders.h"

void exit_reported(struct manager *m, struct node *node, const struct exit_report *report) {
        (void)orders_committed_later(m, node, &report->id);
        if (!stuck_ended(m, node, &report->id))
                attempts_exited(m, node, report);
}
