/* SPDX-License-Identifier: Apache-2.0 */
/* The odd one out of a gang that stands still. Invariant: who is named does not wait where more than half of
 * the others wait, and is alone in that (or stopped). */
#include "lib/base/cleanup.h"
#include "masterd/health/health.h"

static const struct {
        const char *name;
        /* The higher, the rather it is the cause: waiting for a peer is what everybody does in a collective.
         */
        int suspicion;
        /* Of the processes of one executor, which one says what it does; shells and feeders only wait. */
        int telling;
} waits_table[_WAIT_MAX] = {
        [WAIT_RUNNING] = { "running", 2, 7 }, [WAIT_NETWORK] = { "network", 0, 2 },
        [WAIT_FUTEX] = { "futex", 1, 6 },     [WAIT_SLEEP] = { "sleep", 4, 3 },
        [WAIT_DISK] = { "disk", 5, 8 },       [WAIT_PIPE] = { "pipe", 4, 4 },
        [WAIT_DEVICE] = { "device", 1, 5 },   [WAIT_STOPPED] = { "stopped", 7, 9 },
        [WAIT_OTHER] = { "other", 1, 1 },     [WAIT_UNKNOWN] = { "unknown", 6, 0 },
};

const char *health_wait_to_string(enum health_wait w) {
        return w < 0 || w >= _WAIT_MAX ? NULL : waits_table[w].name;
}

enum health_wait health_wait_of(const enum health_wait *threads, const bool *mains, size_t n) {
        enum health_wait w = WAIT_UNKNOWN;

        for (size_t i = 0; i < n; i++)
                if (mains[i] && waits_table[threads[i]].telling > waits_table[w].telling)
                        w = threads[i];
        return w;
}

/* Of two there is no majority: one has to be far more suspicious than the other. */
static int odd_of_two(const enum health_wait *waits, enum health_wait *ret_usual) {
        int difference = waits_table[waits[0]].suspicion - waits_table[waits[1]].suspicion;

        if (difference > -2 && difference < 2)
                return -1;
        *ret_usual = difference > 0 ? waits[1] : waits[0];
        return difference > 0 ? 0 : 1;
}

int health_odd_one(const enum health_wait *waits, size_t n, enum health_wait *ret_usual) {
        size_t counts[_WAIT_MAX] = {};
        enum health_wait usual = WAIT_RUNNING;
        int odd = -1;

        if (n == 2)
                return odd_of_two(waits, ret_usual);
        for (size_t i = 0; i < n; i++)
                counts[waits[i]]++;
        for (size_t w = 0; w < _WAIT_MAX; w++)
                if (counts[w] > counts[usual])
                        usual = (enum health_wait)w;
        if (n < 2 || 2 * counts[usual] <= n || usual == WAIT_UNKNOWN)
                return -1;
        for (size_t i = 0; i < n; i++)
                if (waits[i] != usual &&
                    (odd < 0 || waits_table[waits[i]].suspicion > waits_table[waits[odd]].suspicion))
                        odd = (int)i;
        if (odd < 0 || (counts[waits[odd]] > 1 && waits[odd] != WAIT_STOPPED))
                return -1;
        *ret_usual = usual;
        return odd;
}
