/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of resources as masterd.conf has them: shares, limits, and who may use them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/sched/policy.h"
#include "masterd/spec/spec.h"

struct pool {
        struct policy_pool policy;  /* its name too */
        uint64_t default_time_usec; /* of jobs that give none; UINT64_MAX: no limit */
        uint64_t max_time_usec;     /* that a job may ask for; UINT64_MAX: any */
        int32_t priority;           /* of jobs that give none */
        int32_t max_priority;       /* that its users may give; root may give any */
        bool preemptible;           /* all its jobs are */
        char *users, *groups;       /* as written: who may submit to it; both NULL: everybody */
        uint32_t *uids;             /* the same, looked up and sorted */
        size_t n_uids;
        uint32_t *named; /* those of users alone */
        size_t n_named;
        uint32_t *gids; /* those of groups, to be compared with the groups of a person of now */
        size_t n_gids;
        char *group;          /* whom "visible: group" means here, as written; NULL: the owner's own group */
        uint32_t gid;         /* the same, looked up */
        bool group_known;     /* there is such a group */
        uint32_t visible;     /* enum visible, of jobs that say nothing; _VISIBLE_MAX: see pool_visible() */
        uint32_t visible_max; /* what a job can be at most */
        uint32_t index;       /* in the policy */
        bool defined; /* false: it was taken out of the configuration while the master ran; what is in it
                         stays */
};

struct pools {
        struct policy_conf policy;
        struct pool **items; /* the first is "default" */
        size_t n;
        bool resolved;
        uint32_t visible;    /* of jobs in pools that say nothing; _VISIBLE_MAX: see pool_visible() */
        char *shared_groups; /* as written: primary groups of so many that they are nobody's team */
        uint32_t *shared_gids;
        size_t n_shared;
};

/* Defaults: one pool, "default", for everybody and without limits. -ENOMEM. */
int pools_new(struct pools *ret);
void pools_done(struct pools *p);

/* NULL: there is none of that name. */
struct pool *pools_find(const struct pools *p, const char *name);

/* For conf_load_groups(), with struct conf as the target: the pool of [Pool NAME], made where it is new. */
void *pools_find_section(void *target, const char *name, const char **ret_why);
int pools_parse_guarantee(const char *value, void *target, const char **ret_why); /* struct policy_amount */
int pools_parse_limit(const char *value, void *target, const char **ret_why); /* the same; what is not given
                                                                                 is without limit */
int pools_parse_priority(const char *value, void *target, const char **ret_why);        /* int32_t */
int pools_parse_visible(const char *value, void *target, const char **ret_why);         /* uint32_t */
int pools_parse_visible_default(const char *value, void *target, const char **ret_why); /* or nothing */
int pools_parse_group(const char *value, void *target, const char **ret_why);           /* char * */
int pools_parse_names(const char *value, void *target, const char **ret_why);           /* char * */

/* What does not go together: warns, and takes what is safe. Returns how often. */
int pools_check(struct pools *p);

/* Looks users and groups up. It may block, and does not log: for the start, and for a thread. What is not
 * known is left out; *ret_unknown (allocated) names it, NULL: all are known. */
int pools_resolve(struct pools *p, char **ret_unknown);

/* Whether the user may submit to it; root always may. */
bool pool_admits(const struct pool *p, uint32_t uid);

/* Who may look at a job of the pool that says nothing of it: what the pool says, or the site; else the pool's
 * group where it has one, and its owner alone where not. Never more than visible_max. */
enum visible pool_visible(const struct pools *pools, const struct pool *p);

/* "16 CPUs, 64G, 4 GPUs" of what is limited, "none" where nothing is; into buf, which is returned. */
char *policy_amount_text(const struct policy_amount *a, char *buf, size_t size);
#define POLICY_AMOUNT_TEXT_MAX 96
/* Warns of names that pools_resolve() did not know; NULL: of none. */
void pools_say_unknown(const char *unknown);
