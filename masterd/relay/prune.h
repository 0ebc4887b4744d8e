/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of jobs that have ended. */
#pragma once

struct manager;

/* Every ten minutes from now on. */
int prune_start(struct manager *m);
/* The store may have become larger than KeepBytes=. */
void prune_soon(struct manager *m);
