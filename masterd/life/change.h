/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that change while they run: another configuration by compare and set, and what follows from it:
 * executors that come and go, limits of units that run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "masterd/job/job.h"
#include "masterd/spec/edit.h"

struct manager;
struct change_record;
struct cut_record;
struct limits_ask;

/* What was changed lately, newest last. */
#define CHANGES_KEPT 16u
struct change_note {
        uint64_t version;
        uint32_t uid;
        char *text;
};

/* Executors that have left: those of the role from index on, up to that attempt. */
struct change_cut {
        char role[33];
        uint32_t from, attempt;
};

/* No version was given: versions begin at 1. */
#define CHANGE_ANY_VERSION UINT64_C(0)

/* 0, or the error is set (Conflict): the job is not at that version. */
int change_check_version(const struct job *j, uint64_t version, sd_bus_error *error);

/* Gives the job another configuration: 0, or the error is set (Conflict when version is neither any nor the
 * present one, BadConfig, Refused) and nothing has changed. In both cases nothing of edits is kept.
 * *ret_version: the job's from now on; the same as before where nothing is different. ask (or NULL): where
 * units would get less memory, their hosts are asked first, and CHANGE_LATER is returned: nothing has
 * changed, and ask->done will be called. */
#define CHANGE_LATER 1
int change_job(struct manager *m, struct job *j, uint32_t uid, uint64_t version,
               const struct spec_edit *edits, size_t n, const struct limits_ask *ask, uint64_t *ret_version,
               sd_bus_error *error);

/* The latest change in words: "" = there was none. */
const char *change_latest(const struct job *j);

/* Those whom the configuration does not have: who holds nothing is forgotten, the others are stopped, with
 * their scope where that is to start again (restart_scopes_keep_leaving()). */
void change_let_go(struct manager *m, struct job *j);
/* An executor that is leaving has ended and is recorded: the job forgets it. */
void change_gone(struct manager *m, struct executor *e);

/* From the store, before the executors. */
int change_load(struct job *j, const struct change_record *r);
int change_load_cut(struct job *j, const struct cut_record *r);
/* Whether such an attempt is of an executor that has left. */
bool change_has_left(const struct job *j, const char *role, uint32_t index, uint32_t attempt);
void change_free(struct job *j);
