/* SPDX-License-Identifier: Apache-2.0 */
/* What agentd sees of its executors, put together: who measures (a table of providers), the sampler that asks
 * them, and who is told. */
#pragma once

#include "lib/base/cleanup.h"
#include "lib/wire/messages.h"

struct eyes;
struct probe;
struct manager;

/* Without memory nothing works; whatever else is missing only means that less is seen. */
int eyes_new(struct manager *m, struct eyes **ret);
void eyes_free(struct eyes *e);
DEFINE_CLEANUP(struct eyes *, eyes_free)

/* For whoever shows how the probes are; stays e's. */
const struct probe *eyes_probes(const struct eyes *e);

/* The host's units are known. */
int eyes_start(struct eyes *e);
void eyes_starting(struct eyes *e, const struct executor_id *id);
/* Puts into the report of an executor that has ended what was measured of it; before eyes_ended(). */
void eyes_account(struct eyes *e, struct exit_report *x);
/* A fresh sample of the unit goes to masterd now, if it can. */
void eyes_push(struct eyes *e, const char *unit);
void eyes_ended(struct eyes *e, const struct executor_id *id);
