/* SPDX-License-Identifier: Apache-2.0 */
/* What agentd sees of its executors, put together: who measures (a table of providers), the sampler that asks
 * them, and who is told. */
#pragma once

#include "lib/base/cleanup.h"
#include "lib/wire/messages.h"

struct sampling;
struct probe;
struct manager;

/* Without memory nothing works; whatever else is missing only means that less is seen. */
int sampling_new(struct manager *m, struct sampling **ret);
void sampling_free(struct sampling *e);
DEFINE_CLEANUP(struct sampling *, sampling_free)

/* For whoever shows how the probes are; stays e's. */
const struct probe *sampling_probes(const struct sampling *e);

/* The host's units are known. */
int sampling_start(struct sampling *e);
void sampling_starting(struct sampling *e, const struct executor_id *id);
/* Puts into the report of an executor that has ended what was measured of it; before sampling_ended(). */
void sampling_account(struct sampling *e, struct exit_report *x);
/* A fresh sample of the unit goes to masterd now, if it can. */
void sampling_push(struct sampling *e, const char *unit);
void sampling_ended(struct sampling *e, const struct executor_id *id);
