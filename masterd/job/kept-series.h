/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a role as the store keeps it behind the job's end (docs/decisions/store-formats.md). */
#pragma once

#include "masterd/job/series.h"

/* What is known of it up to now, as bytes, allocated; *ret_size 0: nothing is. coarse: the short range is
 * left out. At most 25 KB. */
int kept_series_write(struct series *s, uint64_t now_usec, bool coarse, uint8_t **ret, size_t *ret_size);

/* As series_read(): how many points. 0 where it was not known, or the bytes are no such history. */
size_t kept_series_read(const uint8_t *data, size_t size, enum series_range range, enum series_kind k,
                        float ret_mean[static SERIES_POINTS], float ret_max[static SERIES_POINTS]);
