/* SPDX-License-Identifier: Apache-2.0 */
/* The turn of a call whose caller is known and may: taken when its user does not have all that he may have
 * (masterd/caller/quota.h), and charged to him. */
#pragma once

#include "masterd/caller/caller.h"

struct manager;
struct turn;

/* For m->bus; when the bus is gone. */
int turns_start(struct manager *m);
void turns_stop(struct manager *m);

/* What is to be done (userdata of work: m). To be freed; NULL: no memory. */
struct turn *turn_new(struct manager *m, caller_handler work);
/* Does it, or refuses it with Busy. A caller_handler. */
int turn_take(sd_bus_message *call, uint32_t uid, void *turn, sd_bus_error *error);

/* So many bytes go to a user in one answer. */
void turn_answered(struct manager *m, uint32_t uid, size_t bytes);
