/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: ids rise in the order of addition, so both tables, which keep that order, are sorted by them. */
#include "masterd/checkpoint/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct user {
        uint32_t uid;
        struct checkpoint *by_path;
        UT_hash_handle hh;
};

struct checkpoints {
        struct checkpoint *by_id;
        struct user *users;
        uint64_t next;
};

int checkpoints_new(struct checkpoints **ret) {
        struct checkpoints *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        c->next = 1;
        *ret = c;
        return 0;
}

static struct user *find_user(const struct checkpoints *c, uint32_t uid) {
        struct user *u;

        HASH_FIND(hh, c->users, &uid, sizeof(uid), u);
        return u;
}

static struct user *add_user(struct checkpoints *c, uint32_t uid) {
        struct user *u = calloc(1, sizeof(*u));

        if (!u)
                return NULL;
        u->uid = uid;
        HASH_ADD(hh, c->users, uid, sizeof(u->uid), u);
        return u;
}

/* A user of whom nothing is known is not, either. */
static void user_done(struct checkpoints *c, struct user *u) {
        if (u->by_path)
                return;
        HASH_DEL(c->users, u);
        free(u);
}

void checkpoints_remove(struct checkpoints *c, struct checkpoint *x) {
        struct user *u = find_user(c, x->facts.owner);

        HASH_DEL(c->by_id, x);
        HASH_DELETE(user_hh, u->by_path, x);
        user_done(c, u);
        free(x->texts);
        free(x);
}

void checkpoints_free(struct checkpoints *c) {
        struct checkpoint *x, *next;

        if (!c)
                return;
        HASH_ITER (hh, c->by_id, x, next)
                checkpoints_remove(c, x);
        free(c);
}

/* The facts with texts of their own, in one piece of memory. */
static int own_texts(struct checkpoint_facts *f, char **ret) {
        const char **const texts[] = { &f->path, &f->host, &f->metrics, &f->metric };
        size_t size = 0;
        char *p;

        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
                size += strlen(*texts[i]) + 1;
        p = *ret = malloc(size);
        if (!p)
                return -ENOMEM;
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                const char *from = *texts[i];
                *texts[i] = p;
                p = stpcpy(p, from) + 1;
        }
        return 0;
}

static int add_new(struct checkpoints *c, uint64_t id, const struct checkpoint_facts *facts, char *texts,
                   struct checkpoint **ret) {
        struct user *u = find_user(c, facts->owner);
        struct checkpoint *x;

        if (HASH_COUNT(c->by_id) >= CHECKPOINTS_MAX)
                return -ENOSPC;
        if (u && HASH_CNT(user_hh, u->by_path) >= CHECKPOINTS_PER_USER_MAX)
                return -EDQUOT;
        if (id > 0 && id < c->next)
                return -EEXIST;
        x = calloc(1, sizeof(*x));
        u = x && !u ? add_user(c, facts->owner) : u;
        if (!x || !u) {
                free(x);
                return -ENOMEM;
        }
        *x = (struct checkpoint){ .id = id > 0 ? id : c->next, .facts = *facts, .texts = texts };
        c->next = x->id + 1;
        HASH_ADD(hh, c->by_id, id, sizeof(x->id), x);
        HASH_ADD_KEYPTR(user_hh, u->by_path, x->facts.path, strlen(x->facts.path), x);
        *ret = x;
        return 0;
}

int checkpoints_put(struct checkpoints *c, uint64_t id, const struct checkpoint_facts *facts,
                    struct checkpoint **ret) {
        struct checkpoint *x = checkpoints_find(c, facts->owner, facts->path);
        struct checkpoint_facts mine = *facts;
        char *texts;
        int r = own_texts(&mine, &texts);

        if (r < 0)
                return r;
        if (!x) {
                r = add_new(c, id, &mine, texts, ret);
                if (r < 0)
                        free(texts);
                return r;
        }
        free(x->texts);
        x->texts = texts;
        x->facts = mine;
        x->user_hh.key = mine.path; /* the same text, elsewhere */
        x->marked = false;
        *ret = x;
        return 1;
}

void checkpoints_begin(struct checkpoints *c, uint64_t next) {
        c->next = next > c->next ? next : c->next;
}

uint64_t checkpoints_next_id(const struct checkpoints *c) {
        return c->next;
}

struct checkpoint *checkpoints_get(const struct checkpoints *c, uint64_t id) {
        struct checkpoint *x;

        HASH_FIND(hh, c->by_id, &id, sizeof(id), x);
        return x;
}

struct checkpoint *checkpoints_find(const struct checkpoints *c, uint32_t owner, const char *path) {
        const struct user *u = find_user(c, owner);
        struct checkpoint *x = NULL;

        if (u)
                HASH_FIND(user_hh, u->by_path, path, strlen(path), x);
        return x;
}

struct checkpoint *checkpoints_after(const struct checkpoints *c, uint32_t owner, uint64_t id) {
        const struct user *u = find_user(c, owner);
        struct checkpoint *x = checkpoints_get(c, id);

        if (x && x->facts.owner == owner)
                return x->user_hh.next;
        for (x = u ? u->by_path : NULL; x && x->id <= id;)
                x = x->user_hh.next;
        return x;
}

struct checkpoint *checkpoints_after_of_all(const struct checkpoints *c, uint64_t id) {
        struct checkpoint *x = checkpoints_get(c, id);

        if (x)
                return x->hh.next;
        for (x = c->by_id; x && x->id <= id;)
                x = x->hh.next;
        return x;
}
