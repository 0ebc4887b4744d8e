/* SPDX-License-Identifier: Apache-2.0 */
/* The page in which an executor says how far it is: two little-endian 64-bit numbers, the step and when that
 * was (CLOCK_BOOTTIME, microseconds; 0: nothing was said yet), in /run/primus/x/UNIT/progress. The program
 * may write into it whatever it likes; what it adds is cut off. */
#pragma once

#include <stdint.h>

#include "lib/wire/telemetry-fields.h"

/* Writes step and age where something was said. */
void progress_fill(int fd, uint64_t now_boot, uint64_t values[static _TELEMETRY_MAX]);
