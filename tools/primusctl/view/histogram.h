/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of latency, as numbers and as text. No bus in here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HISTOGRAM_BUCKETS 64u

/* Bucket i: what took from 2^i up to 2^(i + 1) ns. */
struct histogram {
        char name[32];
        uint64_t count, sum_ns, bytes;
        uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* What was added since before. */
void histogram_subtract(struct histogram *h, const struct histogram *before);
void histogram_add(struct histogram *h, const struct histogram *more);
/* The upper bound of the bucket in which so many thousandths of all are or are below; 0: there are none. */
uint64_t histogram_quantile(const struct histogram *h, unsigned thousandths);

/* "512ns", "16.8ms", "1.07s": three digits. Into buf, which is returned. */
char *histogram_time(uint64_t ns, char *buf, size_t size);

/* A line of numbers, then one for each bucket from the first that is not empty to the last, with a bar of at
 * most width columns. usec: for how long it was counted. */
void histogram_print(FILE *out, const struct histogram *h, uint64_t usec, unsigned width, bool color);
