/* SPDX-License-Identifier: Apache-2.0 */
/* After a restart: hosts, jobs and their executors, data and the queue, as the store has them. */
#pragma once

struct manager;

/* Negative: something cannot be loaded, and nothing is to be served. */
int recover_load(struct manager *m);
