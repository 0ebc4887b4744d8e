/* SPDX-License-Identifier: Apache-2.0 */
/* What executors have read and written where no program counts it: /proc has it for the starter alone, which
 * is asked once in a round and answers by the next. */
#pragma once

#include <stdint.h>

#include "lib/base/cleanup.h"

struct eyes_usage;
struct manager;
struct probe;

int eyes_usage_new(struct manager *m, struct probe *probe, struct eyes_usage **ret);
void eyes_usage_free(struct eyes_usage *u);
DEFINE_CLEANUP(struct eyes_usage *, eyes_usage_free)

/* To be asked for with the next eyes_usage_ask(). */
void eyes_usage_want(struct eyes_usage *u, const char *unit, uint64_t cgroup_id);
/* Asks for what was wanted, if nothing is under way. */
void eyes_usage_ask(struct eyes_usage *u);
