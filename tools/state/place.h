/* SPDX-License-Identifier: Apache-2.0 */
/* How a restored state takes the place of the one before: the database is one file, and changes by one
 * rename, so that after a kill or a power cut at any moment the state is the old one or the new one. All of
 * it is in the state directory, which may be a file system of its own. Functions that fail say why and return
 * a negative errno. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "lib/base/cleanup.h"

struct place {
        char *state;   /* StateDirectory= */
        char *staging; /* STATE/.restore */
        char *before;  /* STATE/before-restore-TIME: where the state before is kept */
        int staging_fd;
};

/* Makes an empty staging directory; what a restore that was killed left there is removed. */
int place_begin(const char *state, uint64_t now_real, struct place *ret);

/* The database and the bundles to that owner, and everything to disk. */
int place_finish(struct place *p, uid_t uid, gid_t gid);

/* Adds the bundles to those that are there, keeps the database before under p->before (which is NULL
 * afterwards where there was none), and replaces it. */
int place_swap(struct place *p);

/* Removes the staging directory. */
void place_done(struct place *p);
