/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints by their numbers, for who names them. 0 or an exit status, having said why. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "tools/primusctl/cli/cli.h"

int checkpoint_number(const struct cli *c, const char *text, uint64_t *ret);
/* Some of that job's (0: of all jobs), in the order of their numbers, from the first behind that one. */
int checkpoints_some(struct cli *c, uint32_t job, uint64_t after, json_t **ret);
int checkpoint_pin(struct cli *c, uint64_t id, bool pin);
