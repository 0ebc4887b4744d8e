/* SPDX-License-Identifier: Apache-2.0 */
/* What logs.c (tails, first errors) and logs-read.c (readers) share. */
#pragma once

#include <uthash.h>

#include "masterd/relay/logs-worker.h"
#include "masterd/relay/logs.h"

struct log_call;
struct note;

/* An attempt that has told its tail: whose word counts, also after another attempt of the same executor
 * began. */
struct followed {
        char key[96];
        char node[65];
        uint64_t last_boot;
        UT_hash_handle hh; /* by key, least recently heard first */
};

struct logs {
        struct manager *manager;
        struct log_worker *worker;
        struct followed *followed;
        struct note *notes;
        struct log_call *calls;
        uint64_t dropped_told, dropped_told_boot;
};

/* NULL where no node told its tail since masterd started (or it was long ago). */
struct followed *followed_find(struct logs *l, const struct executor_id *id);

/* Ends all calls without an answer; the worker must be gone. */
void log_calls_clear(struct logs *l);
