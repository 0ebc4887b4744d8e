/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons for which a host takes nothing new. Invariant: each cause has one reason at a time; a cause is
 * cleared by who set it, or by a person. */
#include "masterd/node/hold.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/utf8.h"

static const char *const causes[_HOLD_MAX] = {
        [HOLD_ADMIN] = "admin",         [HOLD_MAINTENANCE] = "maintenance",
        [HOLD_HEALTH] = "health",       [HOLD_HOOK] = "hook",
        [HOLD_STUCK] = "stuck",         [HOLD_QUARANTINE] = "quarantine",
        [HOLD_CONDITION] = "condition", [HOLD_PROVIDER] = "provider",
};
static const char *const thens[_HOLD_THEN_MAX] = { "none", "reboot", "poweroff" };

const char *hold_cause_to_string(enum hold_cause c) {
        return c >= 0 && c < _HOLD_MAX ? causes[c] : NULL;
}

const char *hold_then_to_string(enum hold_then t) {
        return t >= 0 && t < _HOLD_THEN_MAX ? thens[t] : NULL;
}

enum hold_then hold_then_from_string(const char *s) {
        for (size_t i = 0; s && i < ELEMENTSOF(thens); i++)
                if (strcmp(s, thens[i]) == 0)
                        return (enum hold_then)i;
        return _HOLD_THEN_INVALID;
}

bool hold_moves(const struct node_hold *h, bool again, uint64_t now_real) {
        if (!h->set || !h->drain || h->deadline_real == HOLD_WHEN_THEY_END)
                return false;
        return h->deadline_real == HOLD_AT_ONCE ? again : h->deadline_real <= now_real;
}

uint64_t hold_next(const struct node_hold *h, uint64_t now_real) {
        return h->set && h->drain && h->deadline_real > now_real ? h->deadline_real : UINT64_MAX;
}

bool holds_any(const struct node_hold *holds) {
        for (int i = 0; i < _HOLD_MAX; i++)
                if (holds[i].set)
                        return true;
        return false;
}

bool holds_drain(const struct node_hold *holds) {
        for (int i = 0; i < _HOLD_MAX; i++)
                if (holds[i].set && holds[i].drain)
                        return true;
        return false;
}

enum hold_cause holds_then(const struct node_hold *holds) {
        for (int i = 0; i < _HOLD_MAX; i++)
                if (holds[i].set && holds[i].then != HOLD_THEN_NOTHING)
                        return (enum hold_cause)i;
        return _HOLD_INVALID;
}

uint64_t holds_grace(const struct node_hold *holds, uint64_t other) {
        uint64_t grace = UINT64_MAX;

        for (int i = 0; i < _HOLD_MAX; i++)
                if (holds[i].set && holds[i].drain)
                        grace = MIN(grace, holds[i].grace_usec);
        return grace == UINT64_MAX ? other : grace;
}

char *holds_text(const struct node_hold *holds, char *buf, size_t size) {
        size_t l = 0;

        *buf = 0;
        for (int i = 0; i < _HOLD_MAX && l + 1 < size; i++) {
                const char *reason = holds[i].reason ? holds[i].reason : "";
                /* What a person says stands for itself. */
                const char *cause = i == HOLD_ADMIN && *reason ? "" : causes[i];
                int n;
                if (!holds[i].set)
                        continue;
                n = snprintf(buf + l, size - l, "%s%s%s%s", l ? "; " : "", cause,
                             *cause && *reason ? ": " : "", reason);
                l = MIN(l + (size_t)MAX(n, 0), size - 1);
        }
        /* Cut in the middle of a character, D-Bus would not take it. */
        buf[utf8_fit(buf, size - 1)] = 0;
        return buf;
}

static char *one_line(const char *text) {
        char clean[HOLD_REASON_MAX + 1];

        (void)utf8_clean(text, strnlen(text, HOLD_REASON_MAX), clean, sizeof(clean));
        for (char *p = clean; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = ' ';
        return strdup(clean);
}

int hold_set(struct node_hold *h, const struct node_hold *value, const char *reason) {
        char *copy = one_line(reason ? reason : "");

        if (!copy)
                return -ENOMEM;
        free(h->reason);
        *h = *value;
        h->set = true;
        h->reason = copy;
        return 0;
}

void hold_clear(struct node_hold *h) {
        free(h->reason);
        *h = (struct node_hold){ 0 };
}

bool window_blocks(const struct window *w, uint64_t limit_usec, uint64_t lead_usec, uint64_t now_real) {
        if (w->to_real <= now_real)
                return false;
        return usec_add(now_real, limit_usec == UINT64_MAX ? lead_usec : limit_usec) > w->from_real;
}
