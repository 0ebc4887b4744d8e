/* SPDX-License-Identifier: Apache-2.0 */
/* What the host's user database (files, LDAP, whatever nsswitch.conf names) knows of a uid. Everything in
 * here may block for as long as that takes. Invariant: an answer that did not come is an error, never "is not
 * in the list": a user that is to be denied would be served. */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"
#include "lib/policy/serve.h"

#define ENTRY_MAX (1u << 20) /* bytes of one: groups have many members */
#define GROUPS_MAX 65536     /* of a user, as the kernel has it */

/* A buffer that grows until the entry fits. */
struct entry {
        char *buf;
        size_t size;
};

static void entry_done(struct entry *e) {
        free(e->buf);
}

static int entry_grow(struct entry *e) {
        size_t size = e->size > 0 ? 4 * e->size : 16384;
        char *bigger = size <= 4 * ENTRY_MAX ? realloc(e->buf, size) : NULL;

        if (!bigger)
                return size <= 4 * ENTRY_MAX ? -ENOMEM : -E2BIG;
        e->buf = bigger;
        e->size = size;
        return 0;
}

/* 1, 0: there is none. What the manual says of ENOENT and others, that they may mean the same, is not taken
 * up: glibc answers 0 then, and ENOENT when the database's daemon is away. */
static int find_user(const char *name, uint32_t *ret) {
        _cleanup_(entry_done) struct entry e = {};
        struct passwd pw, *found = NULL;
        int r;

        if (parse_u32(name, 0, UINT32_MAX, ret) == 0)
                return 1;
        do
                r = entry_grow(&e);
        while (r >= 0 && (r = getpwnam_r(name, &pw, e.buf, e.size, &found)) == ERANGE);
        if (r != 0)
                return r < 0 ? r : -r;
        if (!found)
                return 0;
        *ret = found->pw_uid;
        return 1;
}

static int find_group(const char *name, gid_t *ret) {
        _cleanup_(entry_done) struct entry e = {};
        struct group gr, *found = NULL;
        uint32_t number;
        int r;

        if (parse_u32(name, 0, UINT32_MAX, &number) == 0) {
                *ret = number;
                return 1;
        }
        do
                r = entry_grow(&e);
        while (r >= 0 && (r = getgrnam_r(name, &gr, e.buf, e.size, &found)) == ERANGE);
        if (r != 0)
                return r < 0 ? r : -r;
        if (!found)
                return 0;
        *ret = found->gr_gid;
        return 1;
}

/* The groups that its processes get: allocated. 0 of them: there is no such user. */
static int groups_of(uint32_t uid, gid_t **ret, int *ret_n) {
        _cleanup_(entry_done) struct entry e = {};
        _cleanup_free_ gid_t *groups = NULL;
        struct passwd pw, *found = NULL;
        int r, n = 0, room = 32;

        do
                r = entry_grow(&e);
        while (r >= 0 && (r = getpwuid_r(uid, &pw, e.buf, e.size, &found)) == ERANGE);
        if (r != 0)
                return r < 0 ? r : -r;
        for (; found; room = MIN(4 * room, GROUPS_MAX)) {
                gid_t *bigger = reallocarray(groups, (size_t)room, sizeof(*groups));

                if (!bigger)
                        return -ENOMEM;
                groups = bigger;
                n = room;
                if (getgrouplist(found->pw_name, found->pw_gid, groups, &n) >= 0)
                        break;
                if (room == GROUPS_MAX)
                        return -E2BIG;
        }
        *ret = TAKE_PTR(groups);
        *ret_n = found ? n : 0;
        return 0;
}

static int among_users(char *const *names, uint32_t uid, FILE *unknown, bool *ret) {
        for (; names && *names; names++) {
                uint32_t found;
                int r = find_user(*names, &found);

                if (r < 0)
                        return r;
                if (r == 0 && unknown)
                        fprintf(unknown, " %s", *names);
                *ret |= r > 0 && found == uid;
        }
        return 0;
}

static int in_groups(char *const *names, uint32_t uid, FILE *unknown, bool *ret) {
        _cleanup_free_ gid_t *groups = NULL;
        int n, r;

        if (!names)
                return 0;
        r = groups_of(uid, &groups, &n);
        for (; r >= 0 && *names; names++) {
                gid_t gid;

                r = find_group(*names, &gid);
                if (r == 0 && unknown)
                        fprintf(unknown, " %s", *names);
                for (int i = 0; r > 0 && i < n; i++)
                        *ret |= groups[i] == gid;
        }
        return MIN(r, 0);
}

int serve_lookup(const struct serve_policy *p, uint32_t uid, struct serve_person *ret, char **ret_unknown) {
        struct serve_person who = { .uid = uid };
        _cleanup_free_ char *unknown = NULL;
        size_t size;
        FILE *f = open_memstream(&unknown, &size);
        int r;

        if (!f)
                return -ENOMEM;
        r = among_users(p->deny_users, uid, f, &who.denied);
        if (r >= 0)
                r = among_users(p->allow_users, uid, f, &who.allowed);
        if (r >= 0)
                r = in_groups(p->allow_groups, uid, f, &who.in_group);
        if (fclose(f) != 0 && r >= 0)
                r = -ENOMEM;
        if (r < 0)
                return r;
        *ret = who;
        if (ret_unknown)
                *ret_unknown = *unknown ? TAKE_PTR(unknown) : NULL;
        return 0;
}

int serve_lookup_uids(char *const *names, uint32_t *ret, size_t max, size_t *ret_n) {
        size_t n = 0;

        for (; names && *names; names++) {
                uint32_t uid;
                int r = find_user(*names, &uid);

                if (r < 0)
                        return r;
                if (r > 0 && n == max)
                        return -E2BIG;
                if (r > 0)
                        ret[n++] = uid;
        }
        *ret_n = n;
        return 0;
}
