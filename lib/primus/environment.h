/* SPDX-License-Identifier: Apache-2.0 */
/* Which of how many processes of a training this one is, as Primus and torchrun say it. */
#pragma once

#include <stdint.h>

#define WORLD_MAX (1u << 20)

/* A number from 0 to most. Not set: what is said otherwise. -EINVAL: it is none. */
int environment_number(const char *variable, uint32_t otherwise, uint32_t most, uint32_t *ret);
