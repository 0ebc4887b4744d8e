/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps one job from filling what all executors of the host need to start: looks every other second, and ends
 * who takes too much of it (unit/private-usage.h). */
#pragma once

struct manager;
struct private_guard;
int private_guard_new(struct manager *m, struct private_guard **ret);
void private_guard_free(struct private_guard *g);
