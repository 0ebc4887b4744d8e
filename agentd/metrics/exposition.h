/* SPDX-License-Identifier: Apache-2.0 */
/* Writes metrics as text: OpenMetrics 1.0, or Prometheus' text format 0.0.4. Pure. Only what is known is
 * written; a family without a sample does not appear. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/metrics/families.h"
#include "lib/base/cleanup.h"
#include "lib/wire/telemetry.h"

/* How a number is to be read: 1500000 in MICRO is 1.5. */
enum metric_scale {
        SCALE_ONE = 0,
        SCALE_MILLI = 3,
        SCALE_MICRO = 6,
        SCALE_NANO = 9,
};

struct exposition;

/* -ENOMEM. */
int exposition_new(struct exposition **ret);
void exposition_free(struct exposition *x);
DEFINE_CLEANUP(struct exposition *, exposition_free)

/* A new page. */
void exposition_begin(struct exposition *x, bool openmetrics);

/* Ends a page. < 0: something did not fit into memory; else the text, which is the caller's now. */
int exposition_end(struct exposition *x, char **ret, size_t *ret_size);

/* Labels, 'job="4",role="w"', of n names and values in turn; values are made valid UTF-8 and escaped. What
 * does not fit into the buffer is cut at the label before. Returns buf. */
#define METRIC_LABELS_MAX 512u
char *exposition_labels(char buf[static METRIC_LABELS_MAX], const char *const *pairs, size_t n);
#define EXPOSITION_LABELS(buf, ...)                                                                          \
        exposition_labels(buf, (const char *const[]){ __VA_ARGS__ },                                         \
                          sizeof((const char *const[]){ __VA_ARGS__ }) / (2 * sizeof(const char *)))

/* One sample. All of a family come together; labels and more are from exposition_labels(), or "".
 * TELEMETRY_UNKNOWN is not written. */
void exposition_add(struct exposition *x, enum metric_family f, const char *labels, const char *more,
                    uint64_t value, enum metric_scale scale);

/* An executor. The strings stay the caller's until exposition_roles(). */
struct exposition_role {
        const struct telemetry_sample *sample;
        const char *unit;
        const char *state;     /* "running"; NULL: not known */
        uint64_t cgroup_id;    /* 0: not known */
        uint64_t started_real; /* 0: not known */
};
/* All families of executors. */
void exposition_roles(struct exposition *x, const char *node, const struct exposition_role *roles, size_t n);

const char *metric_family_name(enum metric_family f);
