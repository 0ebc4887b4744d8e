/* SPDX-License-Identifier: Apache-2.0 */
/* Pools. Invariant: a pool whose users are given admits nobody that was not looked up. */
#include "masterd/conf/pools.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"
#include "masterd/conf/conf.h"

#define UIDS_MAX 65536u
#define GROUP_NAME_MAX 128u
#define BLANKS " \t,"
#define SHARED_GROUPS "users"

static struct pool *pool_free(struct pool *p) {
        if (!p)
                return NULL;
        free(p->users);
        free(p->groups);
        free(p->uids);
        free(p->named);
        free(p->gids);
        free(p->group);
        free(p);
        return NULL;
}

void pools_done(struct pools *p) {
        for (size_t i = 0; i < p->n; i++)
                pool_free(p->items[i]);
        free(p->items);
        free(p->shared_groups);
        free(p->shared_gids);
        *p = (struct pools){};
}

struct pool *pools_find(const struct pools *p, const char *name) {
        for (size_t i = 0; i < p->n; i++)
                if (strcmp(p->items[i]->policy.name, name) == 0)
                        return p->items[i];
        return NULL;
}

static struct pool *add(struct pools *p, const char *name) {
        static const struct policy_amount none = { UINT64_MAX, UINT64_MAX, UINT32_MAX };
        struct pool **bigger = reallocarray(p->items, p->n + 1, sizeof(struct pool *)), *pool;

        if (!bigger)
                return NULL;
        p->items = bigger;
        pool = calloc(1, sizeof(*pool));
        if (!pool)
                return NULL;
        snprintf(pool->policy.name, sizeof(pool->policy.name), "%s", name);
        pool->policy.weight = 1;
        pool->policy.limit = pool->policy.user_limit = none;
        pool->default_time_usec = pool->max_time_usec = UINT64_MAX;
        pool->max_priority = POLICY_PRIORITY_MAX;
        pool->visible = _VISIBLE_MAX;
        pool->visible_max = VISIBLE_ALL;
        pool->defined = true;
        p->items[p->n++] = pool;
        return pool;
}

int pools_new(struct pools *ret) {
        *ret = (struct pools){};
        policy_conf_defaults(&ret->policy);
        ret->visible = _VISIBLE_MAX;
        ret->shared_groups = strdup(SHARED_GROUPS);
        return ret->shared_groups && add(ret, "default") ? 0 : -ENOMEM;
}

/* ---- values of masterd.conf ---- */

void *pools_find_section(void *target, const char *name, const char **ret_why) {
        struct pools *p = &((struct conf *)target)->pools;
        struct pool *found = pools_find(p, name);

        if (found)
                return found;
        if (!conf_name_valid(name)) {
                *ret_why = "a pool's name is 1 to 40 letters, digits, '.', '_' and '-'";
                return NULL;
        }
        if (p->n == POLICY_POOLS_MAX) {
                *ret_why = "there are 256 pools already, which is the most";
                return NULL;
        }
        found = add(p, name);
        if (!found)
                *ret_why = "out of memory";
        return found;
}

static int parse_cpus(const char *s, uint64_t *ret_milli) {
        char *end;
        double d;

        if (strspn(s, "0123456789.") != strlen(s) || !*s)
                return -EINVAL;
        d = strtod(s, &end);
        if (*end || d > 1e9)
                return -EINVAL;
        *ret_milli = (uint64_t)(d * 1000 + 0.5);
        return 0;
}

/* "cpus=16 memory=64G gpus=4"; what is not named stays as it is in a. */
static int parse_amount(const char *value, struct policy_amount *a) {
        _cleanup_free_ char *copy = strdup(value);
        char *save = NULL;

        if (!copy)
                return -ENOMEM;
        for (char *word = strtok_r(copy, BLANKS, &save); word; word = strtok_r(NULL, BLANKS, &save)) {
                char *v = strchr(word, '=');
                int r = -EINVAL;
                if (!v)
                        return -EINVAL;
                *v++ = 0;
                if (strcmp(word, "cpus") == 0)
                        r = parse_cpus(v, &a->cpu_milli);
                else if (strcmp(word, "memory") == 0)
                        r = parse_size(v, &a->memory);
                else if (strcmp(word, "gpus") == 0)
                        r = parse_u32(v, 0, UINT32_MAX - 1, &a->gpus);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_amount(const char *value, struct policy_amount start, void *target, const char **ret_why) {
        int r;

        *ret_why = "expected amounts such as cpus=16 memory=64G gpus=4";
        r = parse_amount(value, &start);
        if (r >= 0)
                *(struct policy_amount *)target = start;
        return r;
}

int pools_parse_guarantee(const char *value, void *target, const char **ret_why) {
        return take_amount(value, (struct policy_amount){}, target, ret_why);
}

int pools_parse_limit(const char *value, void *target, const char **ret_why) {
        return take_amount(value, (struct policy_amount){ UINT64_MAX, UINT64_MAX, UINT32_MAX }, target,
                           ret_why);
}

int pools_parse_priority(const char *value, void *target, const char **ret_why) {
        bool minus = *value == '-';
        uint32_t n;

        *ret_why = "expected a number from -1000 to 1000";
        if (parse_u32(value + minus, 0, POLICY_PRIORITY_MAX, &n) < 0)
                return -EINVAL;
        *(int32_t *)target = minus ? -(int32_t)n : (int32_t)n;
        return 0;
}

int pools_parse_names(const char *value, void *target, const char **ret_why) {
        char **s = target, *copy;

        *ret_why = "expected names, separated by blanks";
        if (!utf8_valid(value, strlen(value)))
                return -EINVAL;
        copy = strdup(value);
        if (!copy)
                return -ENOMEM;
        free(*s);
        *s = copy;
        return 0;
}

int pools_parse_visible(const char *value, void *target, const char **ret_why) {
        enum visible v = visible_from_string(value);

        *ret_why = "expected owner, group, pool or all";
        if (v < 0)
                return -EINVAL;
        *(uint32_t *)target = (uint32_t)v;
        return 0;
}

/* As a default, which may be nothing. */
int pools_parse_visible_default(const char *value, void *target, const char **ret_why) {
        if (*value)
                return pools_parse_visible(value, target, ret_why);
        *(uint32_t *)target = _VISIBLE_MAX;
        return 0;
}

/* One, and so a name with blanks in it is one, too. */
int pools_parse_group(const char *value, void *target, const char **ret_why) {
        char **group = target;

        *ret_why = "expected the name of one group, or its number";
        if (!*value) {
                free(*group);
                *group = NULL;
                return 0;
        }
        return strlen(value) <= GROUP_NAME_MAX ? conf_parse_string(value, target, ret_why) : -EINVAL;
}

static int check_guarantee(struct pool *p) {
        struct policy_amount *g = &p->policy.guarantee, *l = &p->policy.limit;

        if (g->cpu_milli <= l->cpu_milli && g->memory <= l->memory && g->gpus <= l->gpus)
                return 0;
        log_warning("masterd.conf: [Pool %s]: Guarantee= is more than Limit=; it holds up to the limit",
                    p->policy.name);
        g->cpu_milli = MIN(g->cpu_milli, l->cpu_milli);
        g->memory = MIN(g->memory, l->memory);
        g->gpus = MIN(g->gpus, l->gpus);
        return 1;
}

int pools_check(struct pools *p) {
        int n = 0;

        if (p->policy.half_life_usec < USEC_PER_SEC) {
                log_warning("masterd.conf: HalfLifeSec= is at least one second; using that");
                p->policy.half_life_usec = USEC_PER_SEC;
                n++;
        }
        for (size_t i = 0; i < p->n; i++) {
                struct pool *pool = p->items[i];
                const char *name = pool->policy.name;
                if (pool->policy.weight == 0) {
                        log_warning("masterd.conf: [Pool %s]: Weight= is at least 1; using 1", name);
                        pool->policy.weight = 1;
                        n++;
                }
                if (pool->default_time_usec > pool->max_time_usec)
                        pool->default_time_usec = pool->max_time_usec; /* a maximum is a default, too */
                if (pool->priority > pool->max_priority) {
                        log_warning(
                                "masterd.conf: [Pool %s]: Priority= is more than MaxPriority=; using that",
                                name);
                        pool->priority = pool->max_priority;
                        n++;
                }
                if (pool->visible < _VISIBLE_MAX && pool->visible > pool->visible_max) {
                        log_warning("masterd.conf: [Pool %s]: Visible= is more than VisibleMax=; using that",
                                    name);
                        pool->visible = pool->visible_max;
                        n++;
                }
                n += check_guarantee(pool);
        }
        return n;
}

/* ---- users ---- */

struct lookup {
        uint32_t *uids;
        size_t n;
        FILE *unknown; /* NULL: those are not named, or were before */
};

static int take_uid(struct lookup *l, uint32_t uid) {
        uint32_t *bigger;

        if (l->n == UIDS_MAX)
                return -E2BIG;
        bigger = reallocarray(l->uids, l->n + 1, sizeof(*bigger));
        if (!bigger)
                return -ENOMEM;
        l->uids = bigger;
        l->uids[l->n++] = uid;
        return 0;
}

static int take_user(struct lookup *l, const char *name) {
        struct passwd *pw;
        uint32_t uid;

        if (parse_u32(name, 0, UINT32_MAX - 1, &uid) == 0)
                return take_uid(l, uid);
        pw = getpwnam(name);
        if (pw)
                return take_uid(l, pw->pw_uid);
        if (l->unknown)
                fprintf(l->unknown, " user %s", name);
        return 0;
}

/* Members as the group has them, and those whose primary group it is, as far as the user database tells them.
 */
static int take_group(struct lookup *l, const char *name) {
        const struct group *g = getgrnam(name);
        _cleanup_free_ char *members = NULL;
        struct passwd *pw;
        char *save = NULL;
        size_t size;
        gid_t gid;
        FILE *f;
        int r = 0;

        if (!g) {
                fprintf(l->unknown, " group %s", name);
                return 0;
        }
        gid = g->gr_gid;
        f = open_memstream(&members, &size); /* looking a member up may overwrite the group */
        for (char **m = g->gr_mem; f && *m; m++)
                fprintf(f, "%s\n", *m);
        if (!f || fclose(f) != 0)
                return -ENOMEM;
        for (char *m = strtok_r(members, "\n", &save); r >= 0 && m; m = strtok_r(NULL, "\n", &save)) {
                pw = getpwnam(m);
                if (pw)
                        r = take_uid(l, pw->pw_uid);
        }
        setpwent();
        while (r >= 0 && (pw = getpwent()))
                if (pw->pw_gid == gid)
                        r = take_uid(l, pw->pw_uid);
        endpwent();
        return r;
}

/* The number alone, of what is compared with the groups that somebody is in now. */
static int take_gid(struct lookup *l, const char *name) {
        const struct group *g;
        uint32_t gid;

        if (parse_u32(name, 0, UINT32_MAX - 1, &gid) == 0)
                return take_uid(l, gid);
        g = getgrnam(name);
        return g ? take_uid(l, g->gr_gid) : 0;
}

static void look_up_group(struct lookup *l, struct pool *p) {
        const struct group *g;

        p->group_known = p->group && parse_u32(p->group, 0, UINT32_MAX - 1, &p->gid) == 0;
        if (!p->group || p->group_known)
                return;
        g = getgrnam(p->group);
        p->group_known = g;
        if (g)
                p->gid = g->gr_gid;
        else
                fprintf(l->unknown, " group %s", p->group);
}

static int take_names(struct lookup *l, const char *names, int (*take)(struct lookup *l, const char *name)) {
        _cleanup_free_ char *copy = names ? strdup(names) : NULL;
        char *save = NULL;
        int r = 0;

        if (!names)
                return 0;
        if (!copy)
                return -ENOMEM;
        for (char *n = strtok_r(copy, BLANKS, &save); r >= 0 && n; n = strtok_r(NULL, BLANKS, &save))
                r = take(l, n);
        return r;
}

static int compare_uids(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return x < y ? -1 : x > y;
}

/* The numbers of all names, sorted. */
static int look_up(struct lookup *l, const char *names, int (*take)(struct lookup *l, const char *name),
                   uint32_t **list, size_t *n) {
        int r;

        l->uids = NULL;
        l->n = 0;
        r = take_names(l, names, take);
        if (l->n > 0)
                qsort(l->uids, l->n, sizeof(*l->uids), compare_uids);
        free(*list);
        *list = l->uids;
        *n = l->n;
        return r;
}

int pools_resolve(struct pools *p, char **ret_unknown) {
        _cleanup_free_ char *unknown = NULL;
        struct lookup l = {}, quiet = {};
        size_t size;
        int r = 0;

        l.unknown = open_memstream(&unknown, &size);
        if (!l.unknown)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < p->n; i++) {
                struct pool *pool = p->items[i];
                l.uids = NULL;
                l.n = 0;
                r = take_names(&l, pool->users, take_user);
                if (r >= 0)
                        r = take_names(&l, pool->groups, take_group);
                if (l.n > 0)
                        qsort(l.uids, l.n, sizeof(*l.uids), compare_uids);
                free(pool->uids);
                pool->uids = l.uids;
                pool->n_uids = l.n;
                if (r >= 0)
                        r = look_up(&quiet, pool->users, take_user, &pool->named, &pool->n_named);
                if (r >= 0)
                        r = look_up(&quiet, pool->groups, take_gid, &pool->gids, &pool->n_gids);
                if (r >= 0)
                        look_up_group(&l, pool);
        }
        if (r >= 0)
                r = look_up(&quiet, p->shared_groups, take_gid, &p->shared_gids, &p->n_shared);
        if (fclose(l.unknown) != 0 && r >= 0)
                r = -ENOMEM;
        if (r < 0)
                return r;
        p->resolved = true;
        *ret_unknown = unknown && *unknown ? TAKE_PTR(unknown) : NULL;
        return 0;
}

bool pool_admits(const struct pool *p, uint32_t uid) {
        if (uid == 0 || (!p->users && !p->groups))
                return true;
        return p->n_uids > 0 && bsearch(&uid, p->uids, p->n_uids, sizeof(uid), compare_uids);
}

enum visible pool_visible(const struct pools *pools, const struct pool *p) {
        uint32_t v = p->visible < _VISIBLE_MAX       ? p->visible
                     : pools->visible < _VISIBLE_MAX ? pools->visible
                     : p->group                      ? (uint32_t)VISIBLE_GROUP
                                                     : (uint32_t)VISIBLE_OWNER;

        return (enum visible)MIN(v, p->visible_max);
}

char *policy_amount_text(const struct policy_amount *a, char *buf, size_t size) {
        char memory[FORMAT_SIZE_MAX];
        size_t n = 0;

        *buf = 0;
        if (a->cpu_milli != UINT64_MAX)
                n += (size_t)snprintf(buf, size, "%g CPUs", (double)a->cpu_milli / 1000);
        if (a->memory != UINT64_MAX && n < size)
                n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "",
                                      format_size(a->memory, memory, sizeof(memory)));
        if (a->gpus != UINT32_MAX && n < size)
                n += (size_t)snprintf(buf + n, size - n, "%s%u GPUs", n ? ", " : "", a->gpus);
        if (n == 0)
                snprintf(buf, size, "none");
        return buf;
}

void pools_say_unknown(const char *unknown) {
        if (unknown)
                log_warning("masterd.conf: not known, and so left out of the pools that name them:%s",
                            unknown);
}
