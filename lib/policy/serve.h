/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a host serves: whether it runs anything as a uid. The decision (serve.c) is pure; what it needs to
 * know of the host's user database is looked up beside it (serve-lookup.c), by whoever may block. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/conf.h"

#define SERVE_NAMES_MAX 256u /* in each list */
#define SERVE_NAME_MAX 256u  /* bytes of each */
#define SERVE_UID_MIN 1000u  /* where neither MinUid= nor login.defs says */
#define SERVE_WHY_MAX 256u

/* Users of this program, whose uids nobody else's work ever runs as. */
#define SERVE_OWN_USERS                                                                                      \
        { "primus", "primus-agent" }
#define SERVE_OWN_MAX 2u

struct serve_policy {
        uint32_t min_uid; /* what is below is a system account's */
        bool allow_root;
        /* NULL-ended names or numbers, or NULL for none. Without allow_users and allow_groups everybody who
         * is not denied is served. */
        char **allow_users, **allow_groups, **deny_users;
        uint32_t own[SERVE_OWN_MAX]; /* uids of SERVE_OWN_USERS on this host */
        size_t n_own;
};
void serve_policy_done(struct serve_policy *p);
/* -ENOMEM: ret is empty. */
int serve_policy_copy(struct serve_policy *ret, const struct serve_policy *p);

/* What is known of a uid: which of the policy's lists it is in. */
struct serve_person {
        uint32_t uid;
        bool denied, allowed, in_group;
};

/* NULL: it is served. Else why not, in buf: a clause such as "host n1 runs nothing as uid 33: ...". */
const char *serve_decide(const struct serve_policy *p, const struct serve_person *who, const char *node,
                         char buf[static SERVE_WHY_MAX]);

/* Never anybody's work, whatever the settings are: "nobody", what stands for no user, and those of services
 * that systemd makes up as they start (DynamicUser=). */
bool serve_uid_is_nobodys(uint32_t uid);

/* The same as far as the number alone tells; what it does not tell counts as fine. *ret_sure: nothing has to
 * be looked up, this is the decision. */
const char *serve_decide_number(const struct serve_policy *p, uint32_t uid, const char *node,
                                char buf[static SERVE_WHY_MAX], bool *ret_sure);

/* Whether the lists have anything beside numbers in them, so that serve_lookup() is needed. */
bool serve_needs_lookup(const struct serve_policy *p);

/* ---- settings ---- */

/* Values of MinUid=, and of AllowUsers=, AllowGroups= and DenyUsers=: for a struct conf_key. */
int serve_parse_min_uid(const char *value, void *target, const char **ret_why);
int serve_parse_names(const char *value, void *target, const char **ret_why);

/* UID_MIN of /etc/login.defs, or SERVE_UID_MIN. root, for tests, is put before the path. */
uint32_t serve_login_min_uid(const char *root);
/* What does not stand in the settings: min_uid where it is 0, own. From files alone. */
void serve_policy_complete(struct serve_policy *p, const char *root);

/* ---- the user database: may block for long ---- */

/* Asks it about the uid. 0; or a negative errno: it cannot be told, which is no permission. *ret_unknown, for
 * the log: names of the policy that it does not have, allocated, or NULL. */
int serve_lookup(const struct serve_policy *p, uint32_t uid, struct serve_person *ret, char **ret_unknown);

/* The uids of a list of users: at most max; those that it does not know are left out. */
int serve_lookup_uids(char *const *names, uint32_t *ret, size_t max, size_t *ret_n);
