/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of masterd: /etc/primus/masterd.conf and its drop-ins, see primus-masterd.conf(5). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/addr.h"
#include "lib/base/conf.h"
#include "lib/wire/condition.h"
#include "masterd/conf/exit-rules.h"
#include "masterd/conf/healing-conf.h"
#include "masterd/conf/placement-conf.h"
#include "masterd/conf/pools.h"
#include "masterd/conf/relay-conf.h"
#include "masterd/node/blame.h"
#include "masterd/spec/layers.h"

#define LISTEN_MAX 8u

struct conf {
        struct addr listen[LISTEN_MAX];
        size_t n_listen;
        uint64_t heartbeat_usec, suspect_usec, lost_usec, spread_usec;
        uint64_t certificate_usec; /* lifetime of a node's certificate */
        uint64_t authority_usec;   /* lifetime of the authority's */
        uint32_t jobs_max;         /* active ones at a time */
        uint32_t jobs_per_user_max;
        uint64_t bytes_per_user_max;    /* of memory, that active jobs of a user take */
        uint64_t metrics_max;           /* bytes of memory for what trainers say of their training */
        uint32_t min_uid;               /* of who may submit, but for root; 0: anybody's */
        uint64_t keep_usec;             /* how long ended jobs stay in the store */
        uint32_t keep_jobs;             /* so many of the newest stay in any case */
        uint64_t keep_bytes;            /* of the store; beyond it ended jobs go earlier */
        uint64_t keep_free;             /* of the disk, for jobs that are there; no more are taken then */
        uint64_t bundle_max;            /* bytes of one upload */
        uint64_t bundles_per_user_max;  /* bytes a user may have stored */
        uint64_t maintenance_lead_usec; /* what has no time limit does not start so short before a window */
        enum condition_severity conditions[_CONDITION_KIND_MAX]; /* what is made of them at most */
        struct blame_policy blame;                               /* when a host is kept out */
        char *state_directory;
        struct pools pools;
        struct placement_conf placement;
        struct health_conf health;
        struct exit_rules_conf exit_rules;
        struct relay_conf relay; /* whose calls hosts may hand on */
        struct layers *layers;   /* what the site says of all jobs; NULL: nothing */
};

/* Defaults, then the files; users and groups are not looked up yet (conf_resolve()). -EINVAL where the files
 * refuse the start, see conf_load(). report may be NULL. */
int conf_read(struct conf *c, struct conf_report *report);
void conf_done(struct conf *c);
/* Looks up whom the settings name, which may block. *ret_unknown: as pools_resolve() has it. */
int conf_resolve(struct conf *c, char **ret_unknown);

/* "--check-config", "--show-config": reads everything, also who may use the pools, says what is wrong, and
 * with f writes what holds. The exit status: 0, 1 for something that is ignored, 78 for what would refuse the
 * start. */
int conf_command(FILE *f);
