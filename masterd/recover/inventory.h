/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct manager;
struct node;
struct inventory;

/* Copies what it reports over what was known of the node; executors there follow their GPUs. -ENOMEM: nothing
 * has changed. */
int inventory_take(struct manager *m, struct node *node, const struct inventory *reported);
