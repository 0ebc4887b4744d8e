/* SPDX-License-Identifier: Apache-2.0 */
/* Providers of hosts: /etc/primus/providers/NAME/provider.conf of each, see docs/providers.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/conf.h"
#include "masterd/provision/decide.h"
#include "masterd/sched/sched.h"

#define PROVIDERS_MAX 16u
#define PROVIDER_NAME_MAX 32u

struct conf_report;

/* [a-z0-9][a-z0-9-]*, at most PROVIDER_NAME_MAX bytes. */
bool provider_name_valid(const char *s);

/* A host that can be made, as it will be when it registers. Its numbers as a provider's are in the policy. */
struct provider_shape_conf {
        char name[SECTION_NAME_MAX + 1];
        uint32_t cpus, gpus;
        uint64_t memory, shm, gpu_memory; /* bytes */
        char *gpu_model;
        char **labels; /* NULL-ended; NULL: none */
        struct provision_shape limits;
};

struct provider_conf {
        char name[PROVIDER_NAME_MAX + 1];
        struct provision_conf policy; /* its shapes are filled from these */
        struct provider_shape_conf *shapes[PROVISION_SHAPES_MAX];
        size_t n_shapes;
        char *pools;        /* whose jobs may bring hosts, by spaces; "": all */
        char *master;       /* HOST[:PORT] that new hosts are told; "": this host's name */
        uint64_t verb_usec; /* of `up` and `down` */
        bool power_off;     /* a host that is given back is powered off by its agent */
};
void provider_conf_free(struct provider_conf *c);

struct provider_confs {
        struct provider_conf *items[PROVIDERS_MAX]; /* by name */
        size_t n;
};
void provider_confs_done(struct provider_confs *c);

/* Reads those that there are. What is wrong with one is logged, counted in the report (may be NULL), and
 * leaves it out: nothing is made and nothing taken away by what may not have been meant. -ENOMEM. root, for
 * tests, is put before every path. */
int provider_confs_read(const char *root, struct provider_confs *ret, struct conf_report *report);

/* Whether jobs of that pool may bring a host of it. */
bool provider_conf_serves(const struct provider_conf *c, const char *pool);

/* "0.35": millionths. */
int provider_parse_cost(const char *value, void *target, const char **ret_why);
