/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a directory of its own, for the tests of what goes into it and comes out. What goes wrong fails
 * the test. */
#pragma once

#include "masterd/store/store.h"

struct fixture {
        char directory[32], path[64];
        sd_event *event;
        struct store *store;
        unsigned effects; /* calls of count_effect() */
        int error;        /* what the last one was told */
};

/* For cmocka: *state is a struct fixture with an open store. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* What was committed is read from disk again. */
void reopen(struct fixture *f);
/* An effect for store_commit(). */
void count_effect(void *userdata, int error);
/* Commits and runs the loop until it is durable. */
void settle(struct fixture *f);
