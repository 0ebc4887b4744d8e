/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: the list is in the order of the numbers, the latest first, and has each job and host once. */
#include "masterd/core/changes.h"

#include <string.h>
#include <uthash.h>
#include <utlist.h>

struct mark {
        UT_hash_handle hh; /* by key */
        struct mark *prev, *next;
        struct change change;
        char key[]; /* "418", or "n1" behind a blank */
};

struct changes {
        struct mark *by_key, *latest;
        uint64_t now;
        uint64_t lost; /* of what changed up to here something may be forgotten */
        unsigned n, max;
};

struct changes *changes_new(unsigned max) {
        struct changes *c = calloc(1, sizeof(*c));

        if (c)
                c->max = max;
        return c;
}

static void mark_forget(struct changes *c, struct mark *x) {
        HASH_DEL(c->by_key, x);
        DL_DELETE(c->latest, x);
        c->n--;
        free(x);
}

void changes_free(struct changes *c) {
        if (!c)
                return;
        while (c->latest)
                mark_forget(c, c->latest);
        free(c);
}

static struct mark *mark_new(struct changes *c, const char *key) {
        struct mark *oldest = c->latest ? c->latest->prev : NULL, *x;

        if (c->n == c->max) {
                c->lost = oldest->change.number;
                mark_forget(c, oldest);
        }
        x = calloc(1, sizeof(*x) + strlen(key) + 1);
        if (!x)
                return NULL;
        memcpy(x->key, key, strlen(key) + 1);
        HASH_ADD_KEYPTR(hh, c->by_key, x->key, strlen(x->key), x);
        c->n++;
        return x;
}

static void mark_latest(struct changes *c, const char *key, uint32_t job) {
        struct mark *x;

        c->now++;
        HASH_FIND_STR(c->by_key, key, x);
        if (x)
                DL_DELETE(c->latest, x);
        else
                x = mark_new(c, key);
        if (!x) {
                c->lost = c->now;
                return;
        }
        x->change = (struct change){ c->now, job, job ? NULL : x->key + 1 };
        DL_PREPEND(c->latest, x);
}

void changes_job(struct changes *c, uint32_t number) {
        char key[16];

        snprintf(key, sizeof(key), "%u", number);
        mark_latest(c, key, number);
}

void changes_node(struct changes *c, const char *name) {
        char key[80];

        snprintf(key, sizeof(key), " %s", name);
        mark_latest(c, key, 0);
}

uint64_t changes_now(const struct changes *c) {
        return c->now;
}

bool changes_known(const struct changes *c, uint64_t since) {
        return since <= c->now && since >= c->lost;
}

int changes_each(const struct changes *c, uint64_t since, int (*f)(const struct change *x, void *userdata),
                 void *userdata) {
        int r = 0;

        for (const struct mark *x = c->latest; r >= 0 && x && x->change.number > since; x = x->next)
                r = f(&x->change, userdata);
        return r;
}
