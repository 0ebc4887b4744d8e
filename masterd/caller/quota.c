/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: who has nothing under way and was idle for as long as it takes to save everything up has no
 * entry that matters, so forgetting him gives nobody more than he has. */
#include "masterd/caller/quota.h"

#include <errno.h>
#include <stdlib.h>

#include <uthash.h>

#include "lib/base/clock.h"

/* Fills by rate a second up to burst. A call is taken while there is anything in it, and may leave a debt. */
struct bucket {
        int64_t left;
        uint64_t at;
};

struct user {
        uint32_t uid;
        unsigned calls;
        size_t bytes;
        struct bucket time, answers;
        UT_hash_handle hh; /* the one heard last is last */
};

struct quota {
        struct user *users;
};

int quota_new(struct quota **ret) {
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

struct quota *quota_free(struct quota *q) {
        struct user *u, *next;

        if (!q)
                return NULL;
        HASH_ITER (hh, q->users, u, next) {
                HASH_DEL(q->users, u);
                free(u);
        }
        free(q);
        return NULL;
}

static void fill(struct bucket *b, int64_t rate, int64_t burst, uint64_t now) {
        uint64_t passed = usec_sub(now, b->at);
        /* Longer ago than any debt lasts. */
        uint64_t most = (uint64_t)(burst - b->left) * USEC_PER_SEC / (uint64_t)rate + 1;

        b->left = passed >= most ? burst : b->left + (int64_t)(passed * (uint64_t)rate / USEC_PER_SEC);
        b->left = MIN(b->left, burst);
        b->at = now;
}

static void refresh(struct user *u, uint64_t now) {
        fill(&u->time, QUOTA_USEC_RATE, QUOTA_USEC_BURST, now);
        fill(&u->answers, QUOTA_ANSWER_RATE, QUOTA_ANSWER_BURST, now);
}

static struct user *find(const struct quota *q, uint32_t uid) {
        struct user *u;

        HASH_FIND(hh, q->users, &uid, sizeof(uid), u);
        return u;
}

/* Makes room by forgetting who has been silent for longest. */
static void trim(struct quota *q) {
        struct user *u, *next;

        if (HASH_COUNT(q->users) < QUOTA_USERS)
                return;
        HASH_ITER (hh, q->users, u, next)
                if (u->calls == 0) {
                        HASH_DEL(q->users, u);
                        free(u);
                        return;
                }
}

/* NULL: no memory; then he is not counted. */
static struct user *get(struct quota *q, uint32_t uid, uint64_t now) {
        struct user *u = find(q, uid);

        if (u)
                HASH_DEL(q->users, u);
        else {
                trim(q);
                u = calloc(1, sizeof(*u));
                if (!u)
                        return NULL;
                u->uid = uid;
                u->time = (struct bucket){ QUOTA_USEC_BURST, now };
                u->answers = (struct bucket){ QUOTA_ANSWER_BURST, now };
        }
        HASH_ADD(hh, q->users, uid, sizeof(u->uid), u);
        refresh(u, now);
        return u;
}

/* Until there is something in it again. */
static uint64_t wait_of(const struct bucket *b, uint64_t rate) {
        return (uint64_t)(1 - b->left) * USEC_PER_SEC / rate + 1;
}

enum quota_verdict quota_admit(struct quota *q, uint32_t uid, uint64_t now, uint64_t *ret_usec) {
        struct user *u = uid == 0 ? NULL : find(q, uid);

        *ret_usec = 0;
        if (!u)
                return QUOTA_FREE;
        refresh(u, now);
        if (u->calls >= QUOTA_CALLS || u->bytes >= QUOTA_BYTES)
                return QUOTA_CALLS_WAIT;
        if (u->time.left <= 0) {
                *ret_usec = wait_of(&u->time, QUOTA_USEC_RATE);
                return QUOTA_TIME_USED;
        }
        if (u->answers.left <= 0) {
                *ret_usec = wait_of(&u->answers, QUOTA_ANSWER_RATE);
                return QUOTA_ANSWERS_BIG;
        }
        return QUOTA_FREE;
}

void quota_charge(struct quota *q, uint32_t uid, uint64_t usec, size_t answered, uint64_t now) {
        struct user *u = uid == 0 ? NULL : get(q, uid, now);

        if (!u)
                return;
        u->time.left -= (int64_t)MIN(usec, 60 * USEC_PER_SEC);
        u->answers.left -= (int64_t)answered;
}

void quota_wait(struct quota *q, uint32_t uid, size_t bytes, uint64_t now) {
        struct user *u = uid == 0 ? NULL : get(q, uid, now);

        if (!u)
                return;
        u->calls++;
        u->bytes += bytes;
}

void quota_waited(struct quota *q, uint32_t uid, size_t bytes) {
        struct user *u = uid == 0 ? NULL : find(q, uid);

        if (!u || u->calls == 0) /* there was no memory to count it */
                return;
        u->calls--;
        u->bytes -= MIN(bytes, u->bytes);
}
