/* SPDX-License-Identifier: Apache-2.0 */
/* Why a host takes nothing new, beside how it is: whoever has a reason holds it, and it is usable again when
 * the last reason is gone. Nothing here changes when a host falls silent or comes back. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-id128.h>

#define HOLD_REASON_MAX 256u

/* The numbers are on disk. */
enum hold_cause {
        HOLD_ADMIN = 0,       /* a person: cordon, drain */
        HOLD_MAINTENANCE = 1, /* a window has begun */
        HOLD_HEALTH = 2,      /* the host's health hook says so */
        HOLD_HOOK = 3,        /* a prolog or epilog failed there */
        HOLD_STUCK = 4,       /* an executor there does not die */
        HOLD_QUARANTINE = 5,  /* too much has failed there */
        HOLD_CONDITION = 6,   /* its agent sees that it is not well: disk, GPU, kernel ... */
        HOLD_PROVIDER = 7,    /* it is given back, or powered off until it is wanted */
        _HOLD_MAX,
        _HOLD_INVALID = -22,
};
/* "admin", "maintenance" ... */
const char *hold_cause_to_string(enum hold_cause c);

/* What follows when nothing is left on the host. */
enum hold_then {
        HOLD_THEN_NOTHING,
        HOLD_THEN_REBOOT,
        HOLD_THEN_POWEROFF,
        _HOLD_THEN_MAX,
        _HOLD_THEN_INVALID = -22
};
const char *hold_then_to_string(enum hold_then t); /* "none", "reboot", "poweroff" */
enum hold_then hold_then_from_string(const char *s);

#define HOLD_AT_ONCE 0u               /* as the deadline */
#define HOLD_WHEN_THEY_END UINT64_MAX /* the same */

struct node_hold {
        bool set;
        bool drain;          /* what runs there is to leave */
        char *reason;        /* one line; may be "" */
        uint32_t uid;        /* who asked; of a person's hold */
        uint64_t since_real; /* CLOCK_REALTIME usec, as the next */
        /* HOLD_AT_ONCE: what may be started again elsewhere is moved now, the rest is waited for. A time:
         * everything may end by itself until then, and is moved at that time. HOLD_WHEN_THEY_END. */
        uint64_t deadline_real;
        uint64_t grace_usec; /* between the signals; UINT64_MAX: each job's own */
        enum hold_then then;
        char boot[SD_ID128_STRING_MAX]; /* the boot in which then was ordered; "": not yet */
};

/* Whether an executor is to be moved now, for the sake of this hold. again: it is one that is started again
 * after a failure. */
bool hold_moves(const struct node_hold *h, bool again, uint64_t now_real);
/* When the answer of hold_moves() changes next; UINT64_MAX: never. */
uint64_t hold_next(const struct node_hold *h, uint64_t now_real);

/* All of a host: an array of _HOLD_MAX. */
bool holds_any(const struct node_hold *holds);
bool holds_drain(const struct node_hold *holds);
/* The first cause after which something follows when nothing is left on the host; _HOLD_INVALID: none. */
enum hold_cause holds_then(const struct node_hold *holds);
/* The shortest grace that a drain asks for, else other. */
uint64_t holds_grace(const struct node_hold *holds, uint64_t other);
/* "kernel update; health: GPU 3 is gone", into buf; "" where nothing holds it. Returns buf. */
char *holds_text(const struct node_hold *holds, char *buf, size_t size);
#define HOLDS_TEXT_MAX 1024u

/* Copies all but the reason, which is taken in one line, and cut. -ENOMEM. */
int hold_set(struct node_hold *h, const struct node_hold *value, const char *reason);
void hold_clear(struct node_hold *h);

/* ---- maintenance windows */

struct window {
        struct node *node;
        uint64_t from_real, to_real;
        char *reason;
        uint32_t uid;
        struct window *next, *prev;
};

/* Whether what starts now on the host would run into the window. limit_usec: it runs no longer than that
 * (UINT64_MAX: for ever; then it is not started within lead_usec of the window). A window that is over is in
 * nobody's way; one that has begun is in everybody's. */
bool window_blocks(const struct window *w, uint64_t limit_usec, uint64_t lead_usec, uint64_t now_real);
