/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of what people type: numbers, sizes, durations, booleans. Every function returns 0, or
 * -EINVAL for text that is not of the form, or -ERANGE for a value outside the bounds; outputs are written on
 * success only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);
int parse_u32(const char *s, uint32_t min, uint32_t max, uint32_t *ret);

/* yes/no, true/false, on/off, 1/0. */
int parse_bool(const char *s, bool *ret);

/* "512", "64K", "1.5G", "1 GiB": bytes, suffixes are powers of 1024. */
int parse_size(const char *s, uint64_t *ret);

/* "90", "90s", "500ms", "2h30min", "1d", "infinity", also Slurm's "HH:MM:SS", "D-HH:MM"; bare numbers are
 * seconds. Microseconds. */
int parse_duration(const char *s, uint64_t *ret_usec);
