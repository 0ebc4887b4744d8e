/* SPDX-License-Identifier: Apache-2.0 */
/* A host that does not belong to the cluster any more. */
#pragma once

struct manager;
struct node;

/* Revokes its certificates, in the open batch, gives up what runs there, and frees it. Negative: nothing has
 * changed. */
int removal_of_node(struct manager *m, struct node *node);
