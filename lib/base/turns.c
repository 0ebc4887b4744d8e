/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a user is known while he waits or holds a place, and in the ring while he waits and holds less
 * than his share; held is the sum of what the users hold. */
#include "lib/base/turns.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

static void settle_user(struct turns *t, struct turns_user *u) {
        bool belongs = u->waiting && u->held < t->share;

        if (belongs && !u->in_ring)
                DL_APPEND(t->ring, u);
        else if (!belongs && u->in_ring)
                DL_DELETE(t->ring, u);
        u->in_ring = belongs;
        if (u->waiting || u->held > 0)
                return;
        HASH_DEL(t->users, u);
        free(u);
}

int turns_wait(struct turns *t, uint32_t uid, struct turn *x) {
        struct turns_user *u;

        HASH_FIND(hh, t->users, &uid, sizeof(uid), u);
        if (!u) {
                u = calloc(1, sizeof(*u));
                if (!u)
                        return -ENOMEM;
                u->uid = uid;
                HASH_ADD(hh, t->users, uid, sizeof(u->uid), u);
        }
        x->user = u;
        DL_APPEND(u->waiting, x);
        settle_user(t, u);
        return 0;
}

bool turns_may_go(const struct turns *t) {
        return t->ring && t->held < t->places;
}

struct turn *turns_next(struct turns *t) {
        struct turns_user *u = t->ring;
        struct turn *x;

        if (!turns_may_go(t))
                return NULL;
        assert(u->waiting && u->held < t->share);
        x = u->waiting;
        DL_DELETE(u->waiting, x);
        u->held++;
        t->held++;
        /* Behind the others, if he has more. */
        DL_DELETE(t->ring, u);
        u->in_ring = false;
        settle_user(t, u);
        return x;
}

void turns_give_back(struct turns *t, struct turns_user *user) {
        assert(user->held > 0 && t->held >= user->held);
        user->held--;
        t->held--;
        settle_user(t, user);
}

struct turn *turns_drop(struct turns *t) {
        struct turns_user *u, *next;
        struct turn *x;

        HASH_ITER (hh, t->users, u, next)
                if ((x = u->waiting)) {
                        DL_DELETE(u->waiting, x);
                        settle_user(t, u);
                        return x;
                }
        return NULL;
}
