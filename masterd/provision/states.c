/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an instance. Invariant: a state changes only along this table; nothing comes back from
 * STOPPING.
 */
#include <assert.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/provision/decide.h"

/* 0 in a cell means "no such transition": WANTED is entered by creation alone. The answer of `up` may come
 * after its host has, or after it was given back, and brings the name by which its provider knows it: so it
 * is taken in each of these states. A host registers again whenever its link was cut. */
static const uint8_t table[_INSTANCE_STATE_MAX][_INSTANCE_EVENT_MAX] = {
        [INSTANCE_WANTED] = { [INSTANCE_ACCEPTED] = INSTANCE_STARTING,
                              [INSTANCE_REGISTERED] = INSTANCE_JOINED,
                              [INSTANCE_GIVEN_BACK] = INSTANCE_STOPPING },
        [INSTANCE_STARTING] = { [INSTANCE_ACCEPTED] = INSTANCE_STARTING,
                                [INSTANCE_REGISTERED] = INSTANCE_JOINED,
                                [INSTANCE_GIVEN_BACK] = INSTANCE_STOPPING },
        [INSTANCE_JOINED] = { [INSTANCE_ACCEPTED] = INSTANCE_JOINED,
                              [INSTANCE_REGISTERED] = INSTANCE_JOINED,
                              [INSTANCE_USABLE] = INSTANCE_READY,
                              [INSTANCE_GIVEN_BACK] = INSTANCE_STOPPING },
        [INSTANCE_READY] = { [INSTANCE_ACCEPTED] = INSTANCE_READY,
                             [INSTANCE_REGISTERED] = INSTANCE_READY,
                             [INSTANCE_LEAVES] = INSTANCE_DRAINING,
                             [INSTANCE_GIVEN_BACK] = INSTANCE_STOPPING },
        [INSTANCE_DRAINING] = { [INSTANCE_ACCEPTED] = INSTANCE_DRAINING,
                                [INSTANCE_REGISTERED] = INSTANCE_DRAINING,
                                [INSTANCE_KEPT] = INSTANCE_READY,
                                [INSTANCE_GIVEN_BACK] = INSTANCE_STOPPING },
        [INSTANCE_STOPPING] = { [INSTANCE_ACCEPTED] = INSTANCE_STOPPING,
                                [INSTANCE_GIVEN_BACK] = INSTANCE_STOPPING },
};

static const char *const state_names[_INSTANCE_STATE_MAX] = {
        "WANTED", "STARTING", "JOINED", "READY", "DRAINING", "STOPPING",
};
/* SEEN_NOT_ASKED and SEEN_ABSENT are no words of a list: they are only shown. */
static const char *const seen_names[_SEEN_MAX] = {
        "not asked", "pending", "running", "stopping", "stopped", "failed", "absent",
};

const char *instance_state_to_string(enum instance_state s) {
        return s >= 0 && s < _INSTANCE_STATE_MAX ? state_names[s] : NULL;
}

enum instance_state instance_next(enum instance_state s, enum instance_event e) {
        uint8_t next;

        assert(s >= 0 && s < _INSTANCE_STATE_MAX && e < _INSTANCE_EVENT_MAX);
        next = table[s][e];
        return next == 0 ? _INSTANCE_STATE_INVALID : (enum instance_state)next;
}

enum instance_seen instance_seen_from_string(const char *s) {
        for (int i = SEEN_PENDING; s && i <= SEEN_FAILED; i++)
                if (strcmp(s, seen_names[i]) == 0)
                        return (enum instance_seen)i;
        return _SEEN_MAX;
}

const char *instance_seen_to_string(enum instance_seen s) {
        return s < _SEEN_MAX ? seen_names[s] : NULL;
}
