/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that a person took out of use: what runs on one ends by itself, and nobody gets it until it is put
 * back. They are named by uuid, so it stays out of use wherever it stands in the list, and while it is not
 * there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct manager;
struct node;

struct gpu_off {
        char *uuid;
        uint32_t uid; /* who */
        uint64_t since_real;
        char *reason; /* may be "" */
        struct gpu_off *next, *prev;
};

#define GPUS_OFF_MAX 64u /* of a host */

/* The GPU that people call so: its number in the host's list, or its uuid, also one that is out of use and
 * not in the list any more. NULL: there is none. */
const char *gpus_off_find(const struct node *node, const char *word);
/* Out of use, from now on; recorded. -EALREADY; -E2BIG: too many of them; -ENOMEM. */
int gpus_off_add(struct manager *m, struct node *node, const char *uuid, uint32_t uid, const char *reason);
/* In use again; recorded. False: it was. */
bool gpus_off_remove(struct manager *m, struct node *node, const char *uuid, uint32_t uid);

/* The host's list of GPUs is another, or what is out of use: the scheduler hears of it. */
void gpus_off_apply(struct manager *m, struct node *node);
/* The host leaves the cluster; its records go with it. */
void gpus_off_forget(struct node *node);

/* Behind the nodes. */
int gpus_off_load(struct manager *m);
void gpus_off_free_all(struct manager *m);
