/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of orders.c share. */
#pragma once

#include "lib/base/turns.h"
#include "lib/base/unitname.h"
#include "lib/wire/messages.h"
#include "masterd/core/manager.h"
#include "masterd/link/orders.h"

/* What an effect remembers: names, not pointers, since all may be gone when the disk has answered. */
struct order {
        struct manager *manager;
        struct executor_id id;
        char node[65];
        /* Of a start. */
        struct turn turn;         /* waits in its link */
        struct link *link;        /* by which it was sent; NULL: it has gone */
        struct turns_user *place; /* that it holds there */
        UT_hash_handle hh;        /* in its link, by unit */
        char unit[UNIT_NAME_MAX];
};

/* To be freed with free(). NULL: no memory. */
struct order *order_new(struct manager *m, const struct node *node, const struct executor_id *id);
/* Calls run with such an order once everything is on disk; run frees it. -ENOMEM. */
int order_later(struct manager *m, const struct node *node, const struct executor_id *id, effect_fn run);
int order_later_of(struct manager *m, const struct executor *e, effect_fn run);
/* The executor, if the order is still for its current attempt. */
struct executor *order_executor(struct manager *m, const struct order *o);
/* A call that begins with the term and the node's epoch. -ENOTCONN: its registration brings it up again. */
int order_message(struct manager *m, struct node *node, const char *method, sd_bus_message **ret);
