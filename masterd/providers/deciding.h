/* SPDX-License-Identifier: Apache-2.0 */
/* A decision about all providers. */
#pragma once

#include "masterd/providers/providers-parts.h"

/* instances: by the action's number. */
typedef void (*deciding_function)(void *userdata, struct provider *p, struct instance **instances,
                                  const struct provision_action *a, uint64_t now);

/* What is to be done now, each act by each; and why no host comes for whom. *ret_next: when to decide again,
 * CLOCK_REALTIME. -ENOMEM. */
int deciding_each(struct manager *m, deciding_function each, void *userdata, uint64_t *ret_next);
/* The same, carried out. Returns when to decide again. */
uint64_t deciding_run(struct manager *m);
/* READY, where its host takes executors by now. */
void deciding_promote(struct instance *i);
void deciding_words_drop(struct providers *ps);
