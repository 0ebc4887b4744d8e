/* SPDX-License-Identifier: Apache-2.0 */
/* What executors have read and written where no program counts it: /proc has it for the starter alone, which
 * is asked once in a round and answers by the next. */
#pragma once

#include <stdint.h>

#include "lib/base/cleanup.h"

struct sampling_usage;
struct manager;
struct probe;

int sampling_usage_new(struct manager *m, struct probe *probe, struct sampling_usage **ret);
void sampling_usage_free(struct sampling_usage *u);
DEFINE_CLEANUP(struct sampling_usage *, sampling_usage_free)

/* To be asked for with the next sampling_usage_ask(). */
void sampling_usage_want(struct sampling_usage *u, const char *unit, uint64_t cgroup_id);
/* Asks for what was wanted, if nothing is under way. */
void sampling_usage_ask(struct sampling_usage *u);
