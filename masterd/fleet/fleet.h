/* SPDX-License-Identifier: Apache-2.0 */
/* The state of fleet. */
#pragma once

struct manager;

int fleet_new(struct manager *m); /* -ENOMEM */
/* Timers and windows with it. The nodes are not in it. */
void fleet_free(struct manager *m);
