/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a host that its agent cannot take away: people's, and what a provider says of a shape. Memory and
 * the open batch change together. */
#pragma once

struct manager;
struct node;

/* Sets (value) or takes away (NULL) one of them; labels_apply() after the last. As node_set_label(). */
int labels_set(struct manager *m, struct node *node, const char *key, const char *value);
/* Those that are set count from now on. Negative errno. */
int labels_apply(struct manager *m, struct node *node);
