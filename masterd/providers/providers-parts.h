/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the room share. */
#pragma once

#include <systemd/sd-event.h>
#include <uthash.h>

#include "masterd/conf/providers-conf.h"
#include "masterd/fleet/unit-run.h"
#include "masterd/providers/providers.h"

#define TOKEN_MAX 26u /* of an instance: the first 8 digits of the cluster's id, '-', 16 at random */
#define INSTANCE_ID_MAX 128u
#define PACE_MAX 512u
#define LIST_EVERY_USEC (30 * UINT64_C(1000000))   /* while there are instances */
#define LIST_SOON_USEC (5 * UINT64_C(1000000))     /* while one is to go, or is missing */
#define LIST_SELDOM_USEC (600 * UINT64_C(1000000)) /* for orphans */
#define LIST_LIMIT_USEC (60 * UINT64_C(1000000))

enum verb {
        VERB_LIST,
        VERB_UP,
        VERB_DOWN,
        _VERB_MAX,
};

/* A verb that is asked for; one at a time of an instance, and one `list` of a provider. */
struct request {
        struct provider *provider;
        struct instance *instance; /* NULL: of `list` */
        enum verb verb;
        struct unit_run *run; /* NULL: it waits for its turn */
        uint64_t begun_real;
        bool answered;
        int32_t status;
        char *output;
        struct request *next, *prev;
};

struct instance {
        struct provider *provider;
        char token[TOKEN_MAX];
        char shape[SECTION_NAME_MAX + 1];
        char node[65]; /* set by instance_set_node() */
        char id[INSTANCE_ID_MAX + 1];
        enum instance_state state;
        uint32_t job;
        uint64_t made_real, since_real, ready_real;
        bool held;
        bool woken;  /* its host was a node before, and stays one when it is given back */
        bool leaves; /* a person gives it back: nothing keeps it */
        char reason[PROVISION_WHY_MAX];

        /* In memory alone. */
        enum instance_seen seen;
        uint32_t absent;
        uint64_t idle_since, lost_since; /* CLOCK_REALTIME */
        uint64_t retry_real;             /* its verb is not asked for again before */
        unsigned tries;
        bool wanted;
        bool used;   /* an executor was placed there */
        bool listed; /* in the list that is being taken */
        struct request *request;
        struct instance *next, *prev;
        UT_hash_handle hh;      /* by token */
        UT_hash_handle hh_node; /* by the name of its host */
        UT_hash_handle hh_id;   /* while a list is taken */
};

/* A host was made for a job, and did not do, though one as its shape says would have. */
#define MISFITS_MAX 256u
struct misfit {
        uint32_t job, shape;
        char node[65];
};

struct provider {
        struct manager *manager;
        char name[PROVIDER_NAME_MAX + 1];
        struct provider_conf *conf; /* NULL: it has no settings (any more); what it has stays */
        bool held;
        uint64_t last; /* number of the latest instance */
        struct provision_trouble trouble[PROVISION_SHAPES_MAX];
        struct instance *instances;
        uint32_t n;
        struct request *requests, *list;
        uint32_t running;
        uint64_t list_next, listed_real; /* when to ask; the last complete one */
        uint32_t foreign;                /* in it, and nobody's */
        char list_error[PROVISION_WHY_MAX];
        struct misfit misfits[MISFITS_MAX]; /* the latest ones, a ring; until the settings are read again */
        uint64_t n_misfits;
        uint64_t asked[PACE_MAX]; /* times of the latest `up`s, a ring */
        uint64_t n_asked;
        uint64_t cost;
        bool serves[POLICY_POOLS_MAX]; /* by the pool's index; of the decision that is being made */
        struct provider *next, *prev;
};

/* Why no host comes for a job. */
#define JOB_WORD_MAX (PROVISION_WHY_MAX + PROVIDER_NAME_MAX + SECTION_NAME_MAX + 64u)
struct job_word {
        uint32_t job;
        char text[JOB_WORD_MAX];
        UT_hash_handle hh;
};

struct providers {
        struct manager *manager;
        struct provider *all; /* by name */
        struct instance *by_token, *by_node;
        struct job_word *words;
        sd_event_source *timer;
        uint64_t due_boot, decided_boot; /* of the timer; of the last decision */
        bool serving;
};

/* instances.c */
/* A token that nobody has. -EIO. */
int instance_token(const struct manager *m, char ret[static TOKEN_MAX]);
struct instance *instance_new(struct provider *p, const char *token);
void instance_set_node(struct instance *i, const char *name);
void instance_free(struct instance *i);
/* By what the settings call its shape now; UINT32_MAX: they do not. */
uint32_t instance_shape(const struct instance *i);
struct node *instance_node(const struct instance *i);
/* It counts for the limits: it is not given back, or has been for so long that it may be there for good. */
bool instance_counts(const struct instance *i, uint64_t now);
/* What a provider with settings has of what counts for its limits. */
struct provider_tally {
        uint32_t all, of_shape;
        uint64_t cost;
};
struct provider_tally provider_tally(const struct provider *p, uint32_t shape, uint64_t now);
/* Its host is heard of: then the provider's word counts for less. */
bool instance_lives(const struct instance *i);
void instance_put(struct instance *i);
/* -EINVAL: there is no such transition (logged). why: one line. */
int instance_go(struct instance *i, enum instance_event event, const char *why);
/* The one of that host. */
struct instance *instance_of_node(struct manager *m, const char *node);
/* Gives it a name that was never anybody's; in the open batch but for the instance itself. */
void instance_name(struct instance *i);
/* A new one, recorded; `up` is asked for when that is on disk. */
int instance_make(struct provider *p, uint32_t shape, uint32_t job, const char *why);
/* Those that its host might still join with. */
void instance_revoke_tokens(struct instance *i);
/* What runs on its host is moved, and nothing new comes. Of one that has no node: 0. */
int instance_empty(struct instance *i, uint32_t uid, enum hold_then then, const char *why);
/* It is not to be there any more: the host is held, `down` is asked for. */
void instance_give_back(struct instance *i, const char *why);
/* Its row goes, and its host. */
void instance_forget(struct instance *i, const char *why);

/* verbs.c */
/* Asks for it, unless it is asked for already. */
void verbs_ask(struct provider *p, enum verb verb, struct instance *i);
/* When what is recorded now is on disk. */
void verbs_ask_later(struct instance *i, enum verb verb);
void verbs_drop(struct request *r);
/* Verbs whose time has come; when the next one comes, CLOCK_REALTIME. */
uint64_t verbs_due(struct manager *m, uint64_t now);

/* answers.c: status negative: it was not answered; why says more. */
void answers_take(struct request *r, const char *why);
