/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of nodes. Invariant: the list has one of each kind and subject, none that is FINE, and is in the
 * order of by_weight(). */
#include "masterd/node/condition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/utf8.h"
#include "masterd/node/node.h"

static int by_weight(const struct node_condition *a, const struct node_condition *b) {
        if (a->c.severity != b->c.severity)
                return a->c.severity > b->c.severity ? -1 : 1;
        if (a->c.kind != b->c.kind)
                return a->c.kind < b->c.kind ? -1 : 1;
        return strcmp(a->c.subject, b->c.subject);
}

struct node_condition *node_condition_find(const struct node *node, enum condition_kind kind,
                                           const char *subject) {
        struct node_condition *x;

        DL_FOREACH (node->conditions, x)
                if (x->c.kind == kind && strcmp(x->c.subject, subject) == 0)
                        return x;
        return NULL;
}

int node_condition_set(struct node *node, const struct host_condition *c,
                       enum condition_severity *ret_before) {
        struct node_condition *x = node_condition_find(node, c->kind, c->subject);
        enum condition_severity before = x ? x->c.severity : CONDITION_FINE;
        const struct node_condition *i;
        unsigned n;

        if (c->severity == CONDITION_FINE) {
                if (x)
                        DL_DELETE(node->conditions, x);
                free(x);
                *ret_before = before;
                return 0;
        }
        if (!x) {
                DL_COUNT(node->conditions, i, n);
                if (n >= CONDITIONS_MAX)
                        return -E2BIG;
                x = calloc(1, sizeof(*x));
                if (!x)
                        return -ENOMEM;
                DL_APPEND(node->conditions, x);
        }
        x->waved = x->waved && c->severity <= before;
        x->c = *c;
        DL_SORT(node->conditions, by_weight);
        *ret_before = before;
        return 0;
}

void node_conditions_clear(struct node *node) {
        struct node_condition *x, *next;

        DL_FOREACH_SAFE (node->conditions, x, next)
                free(x);
        node->conditions = NULL;
}

enum condition_severity
node_condition_severity(const struct host_condition *c,
                        const enum condition_severity limits[static _CONDITION_KIND_MAX]) {
        return MIN(c->severity, limits[c->kind]);
}

unsigned node_conditions_text(const struct node *node,
                              const enum condition_severity limits[static _CONDITION_KIND_MAX],
                              enum condition_severity least, bool skip_waved, char *buf, size_t size) {
        const struct node_condition *x, *worst = NULL;
        char more[32] = "";
        unsigned n = 0;

        *buf = 0;
        DL_FOREACH (node->conditions, x) {
                if (node_condition_severity(&x->c, limits) < least || (skip_waved && x->waved))
                        continue;
                if (!worst ||
                    node_condition_severity(&x->c, limits) > node_condition_severity(&worst->c, limits))
                        worst = x;
                n++;
        }
        if (!worst)
                return 0;
        if (n > 1)
                snprintf(more, sizeof(more), " (and %u more)", n - 1);
        (void)snprintf(buf, size, "%s %s: %.*s%s", condition_kind_to_string(worst->c.kind), worst->c.subject,
                       utf8_fit(worst->c.text, size > 128 ? size - 128 : 0), worst->c.text, more);
        return n;
}
