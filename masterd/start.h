/* SPDX-License-Identifier: Apache-2.0 */
/* masterd as a whole. */
#pragma once

struct manager;

/* All that is needed before the store is read. Logged when it fails. */
int start_new(struct manager **ret);
/* Loads the store, creates what a new cluster needs, and starts to serve once the new term is on disk. */
int start_serving(struct manager *m);
/* Executors go on. NULL is allowed. */
void start_free(struct manager *m);
