/* SPDX-License-Identifier: Apache-2.0 */
/* How one file is cut into tasks, and which of them the sample takes. Arithmetic alone: any part is found
 * without looking at the others. */
#pragma once

#include <stdint.h>

#include "masterd/data/data.h"

#define SAMPLE_ALL 1000000u

struct parts {
        uint64_t n;      /* parts of the file */
        uint64_t length; /* of each but the last; 0: the file is one part */
        uint64_t taken;  /* parts in the sample */
        uint32_t phase, ppm;
};

/* key: chooses the sample; of seed, source and file. */
struct parts parts_of(const struct data_file *f, uint32_t ppm, uint64_t key);
/* The k-th part of the sample, k < taken. */
void parts_range(const struct parts *p, const struct data_file *f, uint64_t k, uint64_t *ret_start,
                 uint64_t *ret_end);
/* Sum of task_length() over the sample. */
uint64_t parts_bytes(const struct parts *p, const struct data_file *f);
/* How much a task of the file from start to end is, as far as known; else 0. */
uint64_t task_length(const struct data_file *f, uint64_t start, uint64_t end);
