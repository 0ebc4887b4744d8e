/* SPDX-License-Identifier: Apache-2.0 */
/* What the end of an attempt counts as, where its exit alone does not say it. The numbers are stored. */
#pragma once

#include "masterd/spec/spec-failure.h"

enum fate {
        FATE_NONE,
        /* what exitCodes said, in the order of enum exit_action */
        FATE_RESTART,
        FATE_FAIL,
        FATE_SUCCESS,
        FATE_IGNORE,
        FATE_BLAME,
        FATE_REQUEUE,
        FATE_SCOPE,     /* stopped because another one of its scope had to start again */
        FATE_NOT_READY, /* stopped because it was not ready in time: a failure */
        FATE_GROWN,     /* out of memory; comes back with more */
        FATE_LEFT,      /* has failed for good, and stays so when its scope starts again */
        FATE_INVALID,   /* a trial's: what it was given makes no sense; neither success nor failure */
        _FATE_MAX,
};

static inline enum fate fate_of_action(enum exit_action a) {
        return (enum fate)(FATE_RESTART + (int)a);
}

/* A failure that counts for maxFailureTimes. */
static inline bool fate_counts(enum fate f) {
        return f == FATE_NONE || f == FATE_NOT_READY || f == FATE_LEFT || f == FATE_FAIL;
}
