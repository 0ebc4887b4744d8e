/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of nodes. Invariant: the live list is ordered by last_seen_boot, oldest first. */
#include "masterd/node/node.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/base/utf8.h"

/* JOINING is 0; nothing goes back to it. */
static const uint8_t table[_NODE_STATE_MAX][_NODE_EVENT_MAX] = {
        [NODE_JOINING] = { [NODE_EVENT_REGISTERED] = NODE_READY, [NODE_EVENT_EXPIRED] = NODE_LOST },
        [NODE_READY] = { [NODE_EVENT_REGISTERED] = NODE_READY,
                         [NODE_EVENT_HEARD] = NODE_READY,
                         [NODE_EVENT_SILENT] = NODE_SUSPECT,
                         [NODE_EVENT_EXPIRED] = NODE_LOST },
        [NODE_SUSPECT] = { [NODE_EVENT_REGISTERED] = NODE_READY,
                           [NODE_EVENT_HEARD] = NODE_READY,
                           [NODE_EVENT_SILENT] = NODE_SUSPECT,
                           [NODE_EVENT_EXPIRED] = NODE_LOST },
        /* A heartbeat alone does not bring a LOST node back: it must register, so that stale units are
           stopped first. */
        [NODE_LOST] = { [NODE_EVENT_REGISTERED] = NODE_READY, [NODE_EVENT_EXPIRED] = NODE_LOST },
};

static const char *const names[_NODE_STATE_MAX] = {
        [NODE_JOINING] = "JOINING", [NODE_READY] = "READY", [NODE_SUSPECT] = "SUSPECT", [NODE_LOST] = "LOST"
};

const char *node_state_to_string(enum node_state s) {
        return s >= 0 && s < _NODE_STATE_MAX ? names[s] : NULL;
}

enum node_state node_state_from_string(const char *s) {
        for (size_t i = 0; s && i < _NODE_STATE_MAX; i++)
                if (names[i] && strcmp(s, names[i]) == 0)
                        return (enum node_state)i;
        return _NODE_STATE_INVALID;
}

enum node_state node_next(enum node_state s, enum node_event e) {
        assert(s >= 0 && s < _NODE_STATE_MAX && e < _NODE_EVENT_MAX);
        return table[s][e] ? (enum node_state)table[s][e] : _NODE_STATE_INVALID;
}

bool node_usable(const struct node *node) {
        return node->state == NODE_READY && !holds_any(node->holds);
}

bool node_left(const struct node *node) {
        return holds_drain(node->holds) && node->n_executors == 0;
}

bool node_drained(const struct node *node) {
        return node_left(node) && node->n_stuck == 0;
}

const char *node_shown_state(const struct node *node) {
        if (node->state == NODE_LOST && node->holds[HOLD_PROVIDER].set)
                return "POWERED_DOWN";
        if (node->state != NODE_READY || !holds_any(node->holds))
                return node_state_to_string(node->state);
        if (node->holds[HOLD_QUARANTINE].set && !holds_drain(node->holds) && !node->holds[HOLD_ADMIN].set)
                return "QUARANTINED";
        return !holds_drain(node->holds) ? "CORDONED" : node_drained(node) ? "DRAINED" : "DRAINING";
}

char *node_reason(const struct node *node, char buf[static NODE_REASON_MAX]) {
        size_t l = 0;

        *buf = 0;
        if (node->refused)
                l = (size_t)snprintf(buf, NODE_REASON_MAX - HOLDS_TEXT_MAX, "%.250s", node->refused);
        if (l > 0 && holds_any(node->holds))
                l += (size_t)snprintf(buf + l, NODE_REASON_MAX - l, "; ");
        (void)holds_text(node->holds, buf + l, NODE_REASON_MAX - l);
        return buf;
}

void node_set_version(struct node *node, const char *build) {
        char clean[65];

        utf8_clean(build, strlen(build), clean, sizeof(clean));
        free(node->version);
        node->version = strdup(clean);
}

struct node *nodes_get(struct nodes *n, const char *name) {
        struct node *node;

        HASH_FIND_STR(n->by_name, name, node);
        return node;
}

/* ---- labels ---- */

static bool label_has_key(const char *label, const char *key, size_t n) {
        return strncmp(label, key, n) == 0 && label[n] == '=';
}

static bool label_word(const char *s) {
        size_t n = strlen(s);

        if (n == 0 || n > 63 || !isalnum((unsigned char)s[0]) || !isalnum((unsigned char)s[n - 1]))
                return false;
        return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-") == n;
}

bool node_label_key_valid(const char *s) {
        return label_word(s);
}

bool node_label_value_valid(const char *s) {
        return !*s || label_word(s);
}

static int by_text(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

int node_set_label(struct node *node, const char *key, const char *value) {
        size_t n = strings_count(node->set_labels), l = strlen(key), i = 0;
        char *text = NULL, **bigger;

        while (i < n && !label_has_key(node->set_labels[i], key, l))
                i++;
        if (!value) {
                if (i == n)
                        return 0;
                free(node->set_labels[i]);
                memmove(node->set_labels + i, node->set_labels + i + 1, (n - i) * sizeof(*node->set_labels));
                return 1;
        }
        if (i < n && strcmp(node->set_labels[i] + l + 1, value) == 0)
                return 0;
        if (asprintf(&text, "%s=%s", key, value) < 0)
                return -ENOMEM;
        if (i < n) {
                free(node->set_labels[i]);
                node->set_labels[i] = text;
                return 1;
        }
        bigger = reallocarray(node->set_labels, n + 2, sizeof(*bigger));
        if (!bigger) {
                free(text);
                return -ENOMEM;
        }
        bigger[n] = text;
        bigger[n + 1] = NULL;
        qsort(bigger, n + 1, sizeof(*bigger), by_text);
        node->set_labels = bigger;
        return 1;
}

static bool set_by_people(const struct node *node, const char *label) {
        size_t l = strcspn(label, "=");

        for (char **p = node->set_labels; p && *p; p++)
                if (label_has_key(*p, label, l))
                        return true;
        return false;
}

int node_merge_labels(struct node *node, char *const *agent) {
        char **merged = calloc(strings_count(agent) + strings_count(node->set_labels) + 1, sizeof(*merged));
        size_t n = 0;
        bool whole = merged;

        for (char *const *p = agent; whole && p && *p; p++)
                if (!set_by_people(node, *p))
                        whole = (merged[n++] = strdup(*p));
        for (char **p = node->set_labels; whole && p && *p; p++)
                whole = (merged[n++] = strdup(*p));
        if (!whole) {
                strings_free(merged);
                return -ENOMEM;
        }
        qsort(merged, n, sizeof(*merged), by_text);
        strings_free(node->labels);
        node->labels = merged;
        return 0;
}

/* ---- the registry ---- */

static void node_free(struct node *node) {
        free(node->blame);
        free(node->name);
        free(node->version);
        free(node->refused);
        inventory_done(&node->inventory);
        for (int i = 0; i < _HOLD_MAX; i++)
                hold_clear(node->holds + i);
        strings_free(node->labels);
        strings_free(node->set_labels);
        node_conditions_clear(node);
        free(node);
}

int nodes_add(struct nodes *n, const char *name, struct node **ret) {
        struct node *node = nodes_get(n, name);

        if (!node) {
                node = calloc(1, sizeof(*node));
                if (!node)
                        return -ENOMEM;
                node->name = strdup(name);
                if (!node->name) {
                        node_free(node);
                        return -ENOMEM;
                }
                HASH_ADD_KEYPTR(hh, n->by_name, node->name, strlen(node->name), node);
                n->n++;
        }
        *ret = node;
        return 0;
}

void nodes_unwatch(struct nodes *n, struct node *node) {
        if (!node->seen.watched)
                return;
        if (n->fresh == node)
                n->fresh = node->seen.next;
        DL_DELETE2(n->live_head, node, seen.prev, seen.next);
        node->seen.watched = false;
}

bool node_may_log(struct node *node, uint64_t now_boot) {
        bool may = burst_admit(&node->bursts.lines, now_boot, 60 * USEC_PER_SEC, NODE_LINES_MAX);

        if (!may && node->bursts.lines.n == NODE_LINES_MAX + 1)
                log_full(LOG_WARNING, 0, &(struct log_fields){ .node = node->name },
                         "Node %s gives more to write than %u lines a minute; the rest is left out",
                         node->name, NODE_LINES_MAX);
        return may;
}

void node_set_choosy(struct nodes *n, struct node *node, bool choosy) {
        assert(!node->refuses.choosy || n->n_choosy > 0);
        n->n_choosy += choosy - node->refuses.choosy;
        node->refuses.choosy = choosy;
}

void nodes_remove(struct nodes *n, struct node *node) {
        nodes_unwatch(n, node);
        node_set_choosy(n, node, false);
        assert(n->n > 0);
        HASH_DEL(n->by_name, node);
        n->n--;
        node_free(node);
}

void nodes_clear(struct nodes *n) {
        struct node *node, *next;

        HASH_ITER (hh, n->by_name, node, next)
                nodes_remove(n, node);
}

void nodes_heard(struct nodes *n, struct node *node, uint64_t now_boot, uint64_t now_real) {
        nodes_unwatch(n, node);
        node->seen.boot = n->live_head ? MAX(now_boot, n->live_head->seen.prev->seen.boot) : now_boot;
        node->seen.real = now_real;
        DL_APPEND2(n->live_head, node, seen.prev, seen.next);
        if (!n->fresh)
                n->fresh = node;
        node->seen.watched = true;
}

struct node *nodes_next_deadline(struct nodes *n, uint64_t suspect_usec, uint64_t lost_usec,
                                 uint64_t *ret_when) {
        struct node *head = n->live_head;

        if (!head)
                return NULL;
        /* A suspect stops being one only by a sign of life, which moves it behind the others. */
        while (n->fresh && n->fresh->state == NODE_SUSPECT)
                n->fresh = n->fresh->seen.next;
        *ret_when = usec_add(head->seen.boot,
                             head->state == NODE_SUSPECT ? lost_usec : MIN(suspect_usec, lost_usec));
        if (n->fresh && usec_add(n->fresh->seen.boot, suspect_usec) < *ret_when) {
                *ret_when = usec_add(n->fresh->seen.boot, suspect_usec);
                return n->fresh;
        }
        return head;
}
