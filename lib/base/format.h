/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them: durations, sizes, times. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* "1d 2h", "3min 20s", "450ms": the two largest units, into buf. Returns buf. */
char *format_duration(uint64_t usec, char *buf, size_t size);
#define FORMAT_DURATION_MAX 48

/* "1.5G", "64K", "0": into buf. Returns buf. */
char *format_size(uint64_t bytes, char *buf, size_t size);
#define FORMAT_SIZE_MAX 16

/* "00ff1e": two lower-case digits a byte, into buf, which has room for 2 * n + 1. Returns buf. */
char *format_hex(const void *bytes, size_t n, char *buf);

/* RFC 3339 with seconds, UTC ("2026-01-31T12:00:00Z"), into buf; "" for 0. Returns buf. */
char *format_time(uint64_t real_usec, char *buf, size_t size);
#define FORMAT_TIME_MAX 32
