/* SPDX-License-Identifier: Apache-2.0 */
/* agentd's probes in the kernel (probe/), put to use: as a provider of the sampler, for exit reports, and for
 * what the kernel says by itself. */
#pragma once

#include "agentd/metrics/sampler.h"
#include "agentd/probe/probe.h"
#include "lib/base/cleanup.h"
#include "lib/wire/messages.h"

struct sampling_probe;
struct manager;

/* Asks the starter for the probes; what the kernel refuses is said once it has answered. -ENOMEM only. */
int sampling_probe_new(struct manager *m, struct sampling_probe **ret);
void sampling_probe_free(struct sampling_probe *e);
DEFINE_CLEANUP(struct sampling_probe *, sampling_probe_free)

/* To come behind the provider of the control groups' files. */
struct sampler_provider sampling_probe_provider(struct sampling_probe *e);

/* An executor has ended: puts into its report, and into values, what the probes have seen of all of it, and
 * forgets it. false: nothing. */
bool sampling_probe_account(struct sampling_probe *e, struct exit_report *x,
                            uint64_t values[static _TELEMETRY_MAX]);

/* For whoever shows how they are; stays e's. */
const struct probe *sampling_probe_get(const struct sampling_probe *e);
