/* SPDX-License-Identifier: Apache-2.0 */
/* How executors find each other: the environment variables of one executor, made from where all of them are.
 * Pure.
 *
 *   TF_CONFIG                                   TensorFlow (left out for a job of one executor, as upstream
 * does; a role of which an executor before others is not placed is an object index → address instead of a
 * list, which TensorFlow takes as well) MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
 * NODE_RANK    torch.distributed, and PET_NNODES PET_NODE_RANK PET_MASTER_ADDR PET_MASTER_PORT plain
 * `torchrun train.py` EXECUTOR_ID EXECUTOR_ROLE EXECUTOR_INDEX PORT_LIST ROLES_LIST NUM_OF_PRIMUS_<role>
 *   PRIMUS_EXECUTOR_UNIQID PRIMUS_ROLE_CATEGORY PRIMUS_SUBMIT_TIMESTAMP               upstream's names
 *   PRIMUS_JOB_NAME PRIMUS_RANK PRIMUS_WORLD_SIZE PRIMUS_NUM_NODES PRIMUS_NODE_RANK PRIMUS_LOCAL_RANK
 * PRIMUS_LOCAL_WORLD_SIZE PRIMUS_PORTS PRIMUS_ROLE_SIZE PRIMUS_HOSTS Ranks count through the roles in the
 * order of the configuration, then by index. MASTER_* is rank 0's host and its first port: whoever has rank 0
 * decides which of TensorFlow's server and torch's store listens there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/addr.h"

struct rendezvous_member {
        uint32_t role; /* index into roles */
        uint32_t index;
        const char *node; /* name; NULL: not placed yet (it and its rank are left out) */
        const struct addr *address;
        const uint16_t *ports;
        size_t n_ports;
};

struct rendezvous_role {
        const char *name;
        const char *category; /* "PS", "WORKER", "UNKNOWN" */
        uint32_t wanted;
};

struct rendezvous_job {
        const char *name;
        const char *uid; /* 32 hex digits */
        uint64_t submitted_real;
        const struct rendezvous_role *roles;
        size_t n_roles;
        const struct rendezvous_member *members; /* sorted by rank */
        size_t n_members;
};

/* What does not depend on the executor, computed once for a whole gang: O(members log members). Refers to
 * what job points to, for as long as it lives; of the nodes and addresses it keeps copies. */
struct rendezvous;
int rendezvous_new(const struct rendezvous_job *job, struct rendezvous **ret);
void rendezvous_free(struct rendezvous *r);

/* The variables of members[i] as a NULL-ended array of "NAME=VALUE", allocated (free each and the array).
 * -ENOENT when members[i] is not placed, or there is none. TF_CONFIG is left out where it would pass 100 KiB:
 * the kernel takes at most 128 KiB for one variable. */
int rendezvous_environment(const struct rendezvous *r, size_t i, char ***ret);
