/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as people and configurations write them. Pure but for the time zone. Every function returns
 * 0, or -EINVAL for text that is not of the form, or -ERANGE for a date that there is not. Microseconds on
 * CLOCK_REALTIME; outputs are written on success only. */
#pragma once

#include <stdint.h>

/* RFC 3339 with its offset: "2026-01-31T08:00:00Z", "2026-01-31 08:00:00.5+01:00". */
int when_parse_absolute(const char *s, uint64_t *ret_real);

/* What a person types at now_real: the above, "+2h", "now", and in the zone of this process "HH:MM[:SS]" (the
 * next time that the clock shows it), "today HH:MM", "tomorrow [HH:MM]", "YYYY-MM-DD [HH:MM[:SS]]". */
int when_parse(const char *s, uint64_t now_real, uint64_t *ret_real);
