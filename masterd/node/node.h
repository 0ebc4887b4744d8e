/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of nodes and their liveness: JOINING → READY → SUSPECT → LOST → back as READY. Whether a node
 * is wanted is beside that (masterd/node/hold.h) and survives it. Time is an argument; links and executors
 * hang on the node but are somebody else's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-id128.h>
#include <uthash.h>

#include "lib/base/addr.h"
#include "lib/base/burst.h"
#include "lib/wire/messages.h"
#include "masterd/node/blame.h"
#include "masterd/node/condition.h"
#include "masterd/node/hold.h"

enum node_state {
        NODE_JOINING, /* has a certificate, has not registered since this master came up */
        NODE_READY,
        NODE_SUSPECT = 3, /* the numbers are on disk */
        NODE_LOST,
        _NODE_STATE_MAX,
        _NODE_STATE_INVALID = -22,
};

enum node_event {
        NODE_EVENT_REGISTERED,
        NODE_EVENT_HEARD,   /* a heartbeat */
        NODE_EVENT_SILENT,  /* nothing heard for SuspectSec */
        NODE_EVENT_EXPIRED, /* nothing heard for LostSec, or declared dead */
        _NODE_EVENT_MAX,
};

const char *node_state_to_string(enum node_state s);
enum node_state node_state_from_string(const char *s);
enum node_state node_next(enum node_state s, enum node_event e);

struct link;
struct executor;
struct stuck;
struct gpu_off;

/* How it got its name: by a token. */
struct node_joined {
        uint64_t real; /* when; 0: before that was kept */
        struct addr from;
        uint32_t by;     /* who had made the token */
        bool taken_over; /* then the name was another's, whose certificate was good */
};

/* Signs of life. */
struct node_seen {
        uint64_t boot; /* CLOCK_BOOTTIME usec of the last one; 0: none since start */
        uint64_t real;
        struct node *prev, *next; /* by last sign of life, oldest first; READY, SUSPECT only */
        bool watched;             /* it is in that list */
};

/* How much of its is taken within a time. */
/* Of what it has sent of trainers' metrics it waits to hear that this number is on disk; boot: since then, 0:
 * for nothing (masterd/watch/training.c). */
struct node_metrics {
        uint64_t seq, boot;
};

struct node_bursts {
        struct burst came;  /* with a main connection */
        struct burst lines; /* of the log that it had written */
        struct burst kills; /* of its executors' processes that the kernel ended, as events of their jobs */
        struct burst conditions; /* told to its jobs */
        struct burst samples;    /* of telemetry, within a second */
        struct burst metrics;    /* bytes, of masterd/watch/training.c */
};

/* Users whom it refuses (masterd/queue/serving.h). */
#define NODE_REFUSES_MAX 16u /* the last ones */
struct node_refuses {
        bool choosy; /* it may refuse a user whom others serve; counted in struct nodes */
        uint8_t n;
        uint32_t uids[NODE_REFUSES_MAX]; /* that it has refused since it registered */
};

struct node {
        uint64_t renewed_boot; /* when its certificate was renewed last, 0: not since masterd started */
        char *name;
        enum node_state state;
        uint64_t epoch;  /* rises with each registration; stored */
        char serial[41]; /* of its certificate */
        sd_id128_t boot_id;
        struct addr address;
        struct inventory inventory;
        char *version; /* the agent's build */
        char *refused; /* why its agent cannot talk to this master, by its version; NULL: it can */
        struct node_joined joined;
        struct node_seen seen;
        uint32_t slot; /* in the scheduler's arrays */
        bool in_sched;
        struct link *link, *bulk, *calls; /* NULL: not connected */
        struct executor *executors;       /* that hold resources here */
        uint32_t n_executors;
        struct node_hold holds[_HOLD_MAX];
        uint64_t n_events;   /* number of the latest (masterd/core/host-event.h) */
        struct blame *blame; /* NULL: nothing was ever held against it */
        char **labels; /* NULL-ended KEY=VALUE, by key: what the agent says, with people's over it; or NULL */
        char **set_labels;   /* people's alone, the same */
        struct stuck *stuck; /* attempts that are over and hold their place, see masterd/fleet/stuck.h */
        uint32_t n_stuck;
        struct gpu_off *gpus_off;          /* out of use, see masterd/fleet/gpus-off.h */
        struct node_condition *conditions; /* masterd/node/condition.h; worst first */
        struct node_bursts bursts;
        struct node_metrics metrics;
        struct node_refuses refuses;
        bool left_told;     /* that it is drained was said */
        uint32_t drop_told; /* number of the job whose end this node was told of last */
        UT_hash_handle hh;
};

struct nodes {
        struct node *by_name;
        struct node *live_head; /* oldest sign of life; seen.prev of it is the newest (utlist) */
        struct node *fresh;     /* all before it on the list are SUSPECT; NULL: all are */
        uint32_t n;
        uint32_t n_choosy;
};

/* Whether one more line of the log may be about what it says or does: a host that is somebody else's by now
 * must not wash the others' out of the journal. The last one before it may not is followed by one that says
 * so. */
bool node_may_log(struct node *node, uint64_t now_boot);
#define NODE_LINES_MAX 240u /* in a minute */

void node_set_choosy(struct nodes *n, struct node *node, bool choosy);

/* Whether anything new may be placed there. */
bool node_usable(const struct node *node);
/* Whether it drains and nothing is left of what ran there. */
bool node_drained(const struct node *node);
/* The same but for attempts that are over and do not die: a reboot is what may help against those. */
bool node_left(const struct node *node);
/* For people: CORDONED, DRAINING, DRAINED where a node that is READY is held; POWERED_DOWN for one that is
 * LOST and that its provider has taken back; else its liveness. */
const char *node_shown_state(const struct node *node);

/* Sets (value) or takes away (NULL) one of people's labels. 1 when that changed something, 0, -ENOMEM. The
 * key is valid (node_label_key_valid()). */
int node_set_label(struct node *node, const char *key, const char *value);
/* labels anew: agent's (NULL-ended, or NULL), with people's over them. -ENOMEM. */
int node_merge_labels(struct node *node, char *const *agent);
/* [A-Za-z0-9] and, in between, also . _ / -, at most 63 characters; a value is the same, or empty. */
bool node_label_key_valid(const char *s);
bool node_label_value_valid(const char *s);
#define NODE_LABELS_MAX 64u

/* Why nothing new is placed there, for people: that its agent is refused, and what it is held for. Returns
 * buf. */
#define NODE_REASON_MAX (HOLDS_TEXT_MAX + 256u)
char *node_reason(const struct node *node, char buf[static NODE_REASON_MAX]);

/* What its agent says of its build, cut to what people can read. */
void node_set_version(struct node *node, const char *build);

/* The node of that name, or NULL. */
struct node *nodes_get(struct nodes *n, const char *name);
/* Creates it (JOINING) where it does not exist. -ENOMEM. */
int nodes_add(struct nodes *n, const char *name, struct node **ret);
/* Forgets and frees it. Executors and links must be gone. */
void nodes_remove(struct nodes *n, struct node *node);
void nodes_clear(struct nodes *n);

/* A sign of life: O(1). A time before that of another node (which may be granted a spread to dial in) is
 * taken as that one's, so that the list stays in order. */
void nodes_heard(struct nodes *n, struct node *node, uint64_t now_boot, uint64_t now_real);
/* No longer watched (LOST). */
void nodes_unwatch(struct nodes *n, struct node *node);

/* The node whose next deadline (suspect or lost) comes first, and when; NULL where none is watched. The order
 * of signs of life is that of the LOST deadlines, and of the SUSPECT ones among those not suspect yet: the
 * list's head and its first fresh node. O(1) amortised over nodes that turn SUSPECT. */
struct node *nodes_next_deadline(struct nodes *n, uint64_t suspect_usec, uint64_t lost_usec,
                                 uint64_t *ret_when);
