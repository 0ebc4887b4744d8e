/* SPDX-License-Identifier: Apache-2.0 */
/* The page of metrics, from everything that agentd knows; and the addresses at which it is served. */
#pragma once

#include "agentd/metrics/sampler.h"
#include "lib/base/cleanup.h"

struct eyes_page;
struct manager;

/* Listens at the addresses of MetricsListen=; one that cannot be had is logged and left out. */
int eyes_page_new(struct manager *m, struct sampler *sampler, struct eyes_page **ret);
void eyes_page_free(struct eyes_page *p);
DEFINE_CLEANUP(struct eyes_page *, eyes_page_free)
