/* SPDX-License-Identifier: Apache-2.0 */
/* Sick from slow: verdicts about executors, from samples of what they do. Pure: sees samples, facts and
 * rules, no clock, bus or store; time is an argument (microseconds of any clock that does not step back).
 *
 * A verdict needs its condition to hold for its rule's time *as observed*: time for which there are no
 * samples, and the one sample in which counters began anew, count as nothing. So a master or an agent that
 * was restarted, or a host that is not heard for a while, makes no verdict; it only makes one later.
 * docs/health.md has each verdict from a person's side. Memory is bounded: less than 1 KiB for each member.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/telemetry-fields.h"

/* The numbers are stored. */
enum verdict_kind {
        VERDICT_HUNG,
        VERDICT_STRAGGLER,
        VERDICT_IDLE,
        VERDICT_STARVED,
        VERDICT_THRASHING,
        VERDICT_LEAKING,
        VERDICT_OOM,
        VERDICT_CRASH_LOOP,
        _VERDICT_MAX,
};

/* "hung", "crash-loop"; NULL outside the table. */
const char *verdict_kind_to_string(enum verdict_kind k);

/* When something is a verdict. What share, within and count mean is the verdict's:
 *   straggler   share: of the looks, in which data lay there unread
 *   idle        share: of the CPUs it was given, or of its GPUs' time, below which they count as unused
 *   starved     share: of the time, in which it waits for data
 *   thrashing   share: of the time, in which all of it stands still for lack of memory (twice as much of I/O)
 *   leaking     within: its memory is projected to run out so soon
 *   crash loop  count failures within within */
struct health_rule {
        bool off;
        uint64_t after_usec;
        uint32_t share_milli;
        uint32_t count;
        uint64_t within_usec;
};
struct health_rules {
        struct health_rule of[_VERDICT_MAX];
};
extern const struct health_rules health_defaults;

/* What was given to an executor. */
struct health_facts {
        uint32_t gpus;
        uint64_t cpu_milli;
        uint64_t memory; /* bytes; 0: no limit */
};

#define HEALTH_TEXT_MAX 480u
#define HEALTH_NUMBERS_MAX 8u

struct health_number {
        const char *name; /* static: "stillUsec" */
        uint64_t value;
};

struct health_verdict {
        enum verdict_kind kind;
        bool begins; /* false: it is over; no text or numbers */
        bool gang;   /* all of them stand still; role and index: the suspect, where samples show one */
        bool suspect;
        uint32_t role, index;
        uint64_t since_usec;        /* when what it is about began, on the caller's clock */
        uint32_t n_members;         /* of a gang: how many stand still */
        const char *resource;       /* what is different or short of, static ("cpu", "memory"), or NULL */
        char text[HEALTH_TEXT_MAX]; /* a sentence without its subject: "no progress for 10min: …" */
        struct health_number numbers[HEALTH_NUMBERS_MAX];
        size_t n_numbers;
};
typedef void (*verdict_handler)(const struct health_verdict *v, void *userdata);

struct health_gang; /* all executors of a job */

int health_gang_new(struct health_gang **ret); /* -ENOMEM */
struct health_gang *health_gang_free(struct health_gang *g);
static inline void health_gang_free_p(struct health_gang **g) {
        health_gang_free(*g);
}

/* Rules of a role; those of a role without are the defaults. -ENOMEM. */
int health_set_rules(struct health_gang *g, uint32_t role, const struct health_rules *rules);

/* An attempt begins (or is seen for the first time): what was known of an earlier one is forgotten. -ENOMEM.
 */
int health_join(struct health_gang *g, uint32_t role, uint32_t index, uint64_t now_usec,
                const struct health_facts *facts);
/* It has ended; its verdicts are over, without a word. */
void health_leave(struct health_gang *g, uint32_t role, uint32_t index);
/* All of them were held back or frozen: what was does not count. Verdicts that stand are over at the next
 * judge. */
void health_pause(struct health_gang *g);

/* Nothing is there that it could be given: that it waits for data is not its fault. */
void health_dry(struct health_gang *g, uint32_t role, uint32_t index, bool dry);

/* A sample of a member; of one that has not joined, nothing. */
void health_observe(struct health_gang *g, uint32_t role, uint32_t index, uint64_t now_usec,
                    const uint64_t values[static _TELEMETRY_MAX]);

/* What a thread waits in, or not. In the order of orders_capture()'s classes. */
enum health_wait {
        WAIT_RUNNING,
        WAIT_NETWORK,
        WAIT_FUTEX,
        WAIT_SLEEP,
        WAIT_DISK,
        WAIT_PIPE,
        WAIT_DEVICE,
        WAIT_STOPPED,
        WAIT_OTHER,
        WAIT_UNKNOWN, /* nothing was heard of it */
        _WAIT_MAX,
};
const char *health_wait_to_string(enum health_wait w);

/* A look at the threads of a member: what they wait in, and which of them are the first of their process.
 * place: where its program is, for people, or NULL. */
void health_look(struct health_gang *g, uint32_t role, uint32_t index, const enum health_wait *threads,
                 const bool *mains, size_t n, const char *place);

/* Whether, and how often, its threads are worth a look. */
enum health_looked {
        LOOK_NONE,
        LOOK_THREADS,
        LOOK_PLACE, /* and where its program is */
};
enum health_looked health_wants_look(const struct health_gang *g, uint32_t role, uint32_t index,
                                     uint64_t now_usec, uint64_t *ret_every_usec);

/* Calls f for each verdict that begins or ends. f must not change the gang. */
void health_judge(struct health_gang *g, uint64_t now_usec, verdict_handler f, void *userdata);

/* ---- crash loop: over the attempts of one executor */
/* times: of its failures, oldest first, n_at (or NULL): how many each stands for. True: too many, and text
 * says it. */
bool health_crashes(const struct health_rule *rule, const uint64_t *times, const uint32_t *n_at, size_t n,
                    uint64_t now_usec, struct health_verdict *ret);

/* ---- the odd one out */
/* What an executor of these threads does as a whole: where the main threads of its processes (mains[i]) wait.
 */
enum health_wait health_wait_of(const enum health_wait *threads, const bool *mains, size_t n);

/* Of a gang that stands still, the one that does not wait where the others wait: its place in waits, or -1:
 * nobody stands out. *ret_usual: where the others wait. */
int health_odd_one(const enum health_wait *waits, size_t n, enum health_wait *ret_usual);
