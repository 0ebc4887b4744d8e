/* SPDX-License-Identifier: Apache-2.0 */
/* The state of watch. */
#pragma once

struct manager;

int watch_new(struct manager *m); /* -ENOMEM */
void watch_free(struct manager *m);
