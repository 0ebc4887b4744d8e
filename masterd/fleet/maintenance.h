/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance windows: before one, nothing starts that would run into it; in it the host is drained; behind
 * it the host is in use again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/node/node.h"

struct manager;

#define WINDOWS_MAX 10000u

/* -EINVAL: over before it begins, or over already; -EEXIST: it overlaps one that is there; -E2BIG; -ENOMEM.
 */
int maintenance_add(struct manager *m, struct node *node, uint64_t from_real, uint64_t to_real,
                    const char *reason, uint32_t uid);
/* -ENOENT. One that has begun ends now. */
int maintenance_cancel(struct manager *m, struct node *node, uint64_t from_real);
/* Begins and ends what is due; returns when something is due next, UINT64_MAX: nothing. */
uint64_t maintenance_run(struct manager *m, uint64_t now_real);
/* All, by the time they begin; a list. */
struct window *maintenance_windows(const struct manager *m);
/* The node goes. */
void maintenance_forget(struct manager *m, const struct node *node);
int maintenance_load(struct manager *m);
