/* SPDX-License-Identifier: Apache-2.0 */
/* The decision whom a host serves. Invariant: whoever is not clearly served is not; a denial goes before any
 * permission, and nothing opens what is below MinUid=. */
#include "lib/policy/serve.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/base/strv.h"

#define UID_NOBODY 65534u
/* systemd's range for DynamicUser=: whoever starts next gets one of them. */
#define UID_DYNAMIC_FIRST 61184u
#define UID_DYNAMIC_LAST 65519u

void serve_policy_done(struct serve_policy *p) {
        strings_free(p->allow_users);
        strings_free(p->allow_groups);
        strings_free(p->deny_users);
        *p = (struct serve_policy){};
}

/* Of no list none. */
static int copy_names(char *const *names, char ***ret) {
        return names ? strings_copy(names, strings_count(names), ret) : 0;
}

int serve_policy_copy(struct serve_policy *ret, const struct serve_policy *p) {
        struct serve_policy copy = *p;

        copy.allow_users = copy.allow_groups = copy.deny_users = NULL;
        if (copy_names(p->allow_users, &copy.allow_users) < 0 ||
            copy_names(p->allow_groups, &copy.allow_groups) < 0 ||
            copy_names(p->deny_users, &copy.deny_users) < 0) {
                serve_policy_done(&copy);
                *ret = (struct serve_policy){};
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

bool serve_uid_is_nobodys(uint32_t uid) {
        return uid == UID_NOBODY || uid == UINT16_MAX || uid >= UINT32_MAX - 1 ||
               (uid >= UID_DYNAMIC_FIRST && uid <= UID_DYNAMIC_LAST);
}

static const char *refuse_user(char buf[static SERVE_WHY_MAX], const char *node, uint32_t uid,
                               const char *why) {
        snprintf(buf, SERVE_WHY_MAX, "host %.64s runs nothing as uid %u: %s", node, uid, why);
        return buf;
}

static bool is_own(const struct serve_policy *p, uint32_t uid) {
        for (size_t i = 0; i < p->n_own; i++)
                if (p->own[i] == uid)
                        return true;
        return false;
}

const char *serve_decide(const struct serve_policy *p, const struct serve_person *who, const char *node,
                         char buf[static SERVE_WHY_MAX]) {
        char why[128];

        if (who->denied)
                return refuse_user(buf, node, who->uid, "DenyUsers= in its agentd.conf names that user");
        if (who->uid == 0)
                return p->allow_root
                               ? NULL
                               : refuse_user(
                                         buf, node, 0,
                                         "it does not run jobs of root; submit as an ordinary user, or set "
                                         "AllowRoot=yes in /etc/primus/agentd.conf there");
        if (is_own(p, who->uid))
                return refuse_user(buf, node, who->uid, "that is a user of Primus itself");
        if (serve_uid_is_nobodys(who->uid))
                return refuse_user(buf, node, who->uid, "that is no person's");
        if (who->uid < p->min_uid) {
                snprintf(why, sizeof(why),
                         "that is a system account's, users' begin with %u (MinUid= in its agentd.conf)",
                         p->min_uid);
                return refuse_user(buf, node, who->uid, why);
        }
        if ((p->allow_users || p->allow_groups) && !who->allowed && !who->in_group)
                return refuse_user(buf, node, who->uid,
                                   "AllowUsers= and AllowGroups= in its agentd.conf do not have that user");
        return NULL;
}

static bool is_number(const char *name, uint32_t *ret) {
        return parse_u32(name, 0, UINT32_MAX, ret) == 0;
}

static bool has_number(char *const *names, uint32_t uid) {
        uint32_t n;

        for (; names && *names; names++)
                if (is_number(*names, &n) && n == uid)
                        return true;
        return false;
}

static bool has_names(char *const *names) {
        uint32_t n;

        for (; names && *names; names++)
                if (!is_number(*names, &n))
                        return true;
        return false;
}

bool serve_needs_lookup(const struct serve_policy *p) {
        return p->allow_groups || has_names(p->allow_users) || has_names(p->deny_users);
}

const char *serve_decide_number(const struct serve_policy *p, uint32_t uid, const char *node,
                                char buf[static SERVE_WHY_MAX], bool *ret_sure) {
        struct serve_person who = { .uid = uid,
                                    .denied = has_number(p->deny_users, uid),
                                    .allowed = has_number(p->allow_users, uid) };
        bool sure = !serve_needs_lookup(p);

        if (ret_sure)
                *ret_sure = sure;
        if (!sure)
                who.allowed = true; /* for all that is known here */
        return serve_decide(p, &who, node, buf);
}
