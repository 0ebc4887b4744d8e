/* SPDX-License-Identifier: Apache-2.0 */
/* The page of metrics, from everything that agentd knows; and the addresses at which it is served. */
#pragma once

#include "agentd/metrics/sampler.h"
#include "agentd/probe/probe.h"
#include "lib/base/cleanup.h"

struct sampling_page;
struct manager;

/* Listens at the addresses of MetricsListen=; one that cannot be had is logged and left out. probe stays the
 * caller's. */
int sampling_page_new(struct manager *m, struct sampler *sampler, const struct probe *probe,
                      struct sampling_page **ret);
void sampling_page_free(struct sampling_page *p);
DEFINE_CLEANUP(struct sampling_page *, sampling_page_free)

/* An executor has ended so; result: systemd's word. p may be NULL. */
void sampling_page_note_exit(struct sampling_page *p, const char *result);
