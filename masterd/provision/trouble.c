/* SPDX-License-Identifier: Apache-2.0 */
/* How long a shape is not asked for after failures. Invariant: nothing makes a block shorter but a success,
 * and that only a block by failures. */
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/utf8.h"
#include "masterd/provision/decide.h"

#define MINUTE_USEC UINT64_C(60000000)
#define WITHIN_USEC (30 * MINUTE_USEC)
#define BACKOFF_MAX_USEC (30 * MINUTE_USEC)

/* A provider's program has said it. */
static void set_why(struct provision_trouble *t, const char *why) {
        size_t size = strnlen(why ? why : "", sizeof(t->why) - 1);

        (void)utf8_clean(why ? why : "", (size_t)utf8_fit(why ? why : "", size), t->why, sizeof(t->why));
        (void)text_one_line(t->why);
}

static void block_for(struct provision_trouble *t, uint64_t usec, uint64_t now) {
        uint64_t until = usec > UINT64_MAX - now ? UINT64_MAX : now + usec;

        t->blocked_until = MAX(t->blocked_until, until);
}

bool provision_blocked(const struct provision_trouble *t, uint64_t now) {
        return t->blocked_until > now;
}

static void forget_if_over(struct provision_trouble *t, uint64_t now) {
        if (provision_blocked(t, now))
                return;
        t->unavailable = t->told = false;
        t->blocked_until = 0;
}

static bool third_in_a_row(const struct provision_trouble *t) {
        return t->failed[0] > 0 && sub_sat(t->failed[2], t->failed[0]) <= WITHIN_USEC;
}

void provision_failed(struct provision_trouble *t, const char *why, uint64_t now) {
        bool blocked = provision_blocked(t, now);

        memmove(t->failed, t->failed + 1, sizeof(t->failed) - sizeof(*t->failed));
        t->failed[ELEMENTSOF(t->failed) - 1] = now;
        /* Many may have been asked for at once, and fail at once: that is one reason to wait. */
        if (blocked)
                return;
        forget_if_over(t, now);
        set_why(t, why);
        if (t->backoffs == 0 && !third_in_a_row(t))
                return;
        block_for(t, MIN(MINUTE_USEC << MIN(t->backoffs, 5u), BACKOFF_MAX_USEC), now);
        if (t->backoffs < UINT32_MAX)
                t->backoffs++;
}

void provision_unavailable(struct provision_trouble *t, const char *why, uint64_t now) {
        forget_if_over(t, now);
        block_for(t, PROVISION_UNAVAILABLE_USEC, now);
        t->unavailable = true;
        set_why(t, why);
}

void provision_later(struct provision_trouble *t, uint64_t usec, const char *why, uint64_t now) {
        forget_if_over(t, now);
        block_for(t, usec, now);
        t->told = true;
        if (!t->unavailable)
                set_why(t, why);
}

void provision_succeeded(struct provision_trouble *t) {
        memset(t->failed, 0, sizeof(t->failed));
        t->backoffs = 0;
        if (t->unavailable || t->told)
                return;
        t->blocked_until = 0;
        t->why[0] = 0;
}
