/* SPDX-License-Identifier: Apache-2.0 */
/* What the searcher of a search asks, and what it is answered: JSON objects. Pure; masterd/life/searcher.c
 * does what is asked.
 *
 *     {"op": "hello"}                                   how the search is: metric, smaller, maxTrials, ...
 *     {"op": "events", "after": 17}                     what happened behind the 17th event
 *     {"op": "create", "trial": 3, "params": {...}}     the fourth trial is to be that; said again, the same
 *     {"op": "stop", "trial": 3}                        it is to end, as a success; said again, the same
 *
 * Events count up from 1 and stay as they are; so a searcher that was lost reads them from 0 and is where it
 * was. The number of a trial is how many there were before: a searcher that does not know whether it was
 * heard says the same number again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/wire/question.h"
#include "masterd/job/trials.h"

#define TALK_TEXT_MAX (60u << 10) /* bytes of a question and of an answer: LINK_QUESTION_MAX */
#define TALK_WHY_MAX QUESTION_WHY_MAX

enum talk_op {
        TALK_HELLO,
        TALK_EVENTS,
        TALK_CREATE,
        TALK_STOP,
        _TALK_OP_MAX,
};
struct talk {
        enum talk_op op;
        uint64_t after; /* TALK_EVENTS */
        uint32_t trial;
        char *given; /* TALK_CREATE: compact JSON, names sorted; allocated */
};
/* -EINVAL with why; -ENOMEM. */
int talk_read(const char *text, struct talk *ret, char why[static TALK_WHY_MAX]);
static inline void talk_done(struct talk *t) {
        free(t->given);
        t->given = NULL;
}

/* Answers; allocated. -ENOMEM. */
int talk_hello(const struct trials *t, const struct search_spec *s, char **ret);
/* As many of those behind after as go into one answer; "events" is empty when there are none. */
int talk_events(const struct trials *t, uint64_t after, char **ret);
/* {"trial": N}; full not NULL: {"full": "why there will be no further trial"}. */
int talk_created(uint32_t trial, const char *full, char **ret);
