/* SPDX-License-Identifier: Apache-2.0 */
/* Ends that agents report. Invariants: an agent may forget an end when the turn that read it is on disk,
 * whosever it was; one whose rules ask for its log is read when that has been searched, and until then its
 * agent would tell it again. */
#include "masterd/fleet/exits.h"

#include <string.h>

#include "lib/base/strv.h"
#include "lib/wire/messages.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/stuck.h"
#include "masterd/life/attempts.h"
#include "masterd/link/orders.h"

static void settle_exit(struct manager *m, struct node *node, const struct exit_report *report,
                        struct judging *found) {
        (void)orders_committed_later(m, node, &report->id);
        if (!stuck_ended(m, node, &report->id))
                attempts_exited(m, node, report, found);
}

/* An end whose log is being searched. */
struct question {
        char node[65];
        const struct link *link; /* by which it was reported; to compare, it may be gone */
        struct exit_report report;
        char **patterns;
        size_t n;
};

static void question_free(struct question *q) {
        exit_report_done(&q->report);
        strings_free(q->patterns);
        free(q);
}

static void on_searched(struct manager *m, int r, const struct found_line *lines, void *userdata) {
        struct question *q = userdata;
        struct node *node = nodes_get(&m->nodes, q->node);
        struct executor *e = manager_attempt(m, &q->report.id);
        bool ours = !e || e->orders.asked == q->link;

        if (e && ours)
                e->orders.asked = NULL;
        /* Where the link is gone the end is told again by the next, which asks anew. */
        if (node && ours && r != -ENOTCONN)
                settle_exit(m, node, &q->report,
                            &(struct judging){ .patterns = (const char *const *)q->patterns,
                                               .lines = r < 0 ? NULL : lines,
                                               .n = q->n });
        question_free(q);
}

static int search_first(struct manager *m, struct executor *e, const struct exit_report *report,
                        const char *const *patterns, size_t n) {
        struct question *q = calloc(1, sizeof(*q));
        int r;

        if (!q)
                return -ENOMEM;
        *q = (struct question){ .link = e->node->link, .report = *report, .n = n };
        snprintf(q->node, sizeof(q->node), "%s", e->node->name);
        q->report.detail = strdup(report->detail ?: "");
        r = q->report.detail ? strings_copy((char *const *)patterns, n, &q->patterns) : -ENOMEM;
        r = r < 0 ? r : orders_find_later(m, e, report->invocation, patterns, n, on_searched, q);
        if (r < 0) {
                question_free(q);
                return r;
        }
        e->orders.asked = q->link;
        return 0;
}

void exit_reported(struct manager *m, struct node *node, const struct exit_report *report) {
        const char *patterns[FIND_PATTERNS_MAX];
        struct executor *e;
        size_t n = attempts_asks(m, node, report, patterns, &e);

        if (n > 0) {
                e->orders.confirmed = true; /* it is not gone without a word */
                if (e->orders.asked && e->orders.asked == node->link)
                        return;
                if (search_first(m, e, report, patterns, n) >= 0)
                        return;
        }
        settle_exit(m, node, report, &(struct judging){ .patterns = patterns, .n = n });
}
