/* SPDX-License-Identifier: Apache-2.0 */
/* Where a restored state is put together, and how it takes the place of the one before: by one rename, so
 * that after a kill or a power cut at any moment the state is the old one or the new one. Paths are the
 * caller's; the user is found by name. Functions that fail say why and return a negative errno. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "lib/base/cleanup.h"

struct place {
        char *state;   /* StateDirectory= */
        char *staging; /* STATE.restore, beside it */
        char *before;  /* STATE.before-restore-TIME: where the state before is kept */
        int staging_fd;
};

/* What a restore that was killed left is dealt with: an unfinished staging directory is removed, a state that
 * had been taken out of its place gets its name (and *ret_left, allocated, is that; else NULL). Then an empty
 * staging directory is made. */
int place_begin(const char *state, uint64_t now_real, struct place *ret, char **ret_left);

/* Files and directories of the staging directory to that owner, and everything to disk. */
int place_finish(struct place *p, uid_t uid, gid_t gid);

/* Hard links of what is below STATE/NAME, where the staging directory has no NAME. */
int place_keep(struct place *p, const char *name);

/* The exchange. Afterwards p->before is the state before, or NULL where there was none worth keeping. */
int place_swap(struct place *p);

/* Removes the staging directory if it is still there. */
void place_done(struct place *p);
