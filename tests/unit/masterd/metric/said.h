/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of metric share: a process that says a loss. */
#pragma once

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/metric/metrics.h"

/* Of its own size, so that a look behind its end is found. */
_unused_ static uint8_t *copy_of(const uint8_t *bytes, size_t size) {
        uint8_t *copy = malloc(MAX(size, (size_t)1));

        assert_non_null(copy);
        memcpy(copy, bytes, size);
        return copy;
}

_unused_ static struct metric_source *source(struct metrics *m, uint32_t index) {
        struct metric_source *s;

        assert_int_equal(metrics_source(m, "worker", index, 0, &s), 0);
        return s;
}

/* One that is said at a time of its own. */
_unused_ static int say(struct metrics *m, struct metric_source *s, uint32_t attempt, uint64_t step,
                        uint64_t usec, double value) {
        struct metric_point p = metric_single(step, usec, value);

        return metrics_add(m, s, attempt, "loss", &p);
}

_unused_ static size_t all(struct metrics *m, struct metric_source *s,
                           struct metric_point ret[static METRIC_CAP_MAX]) {
        const struct metric_series *x = metric_series_of(m, s, "loss");

        return x ? metric_series_read(x, METRIC_CAP_MAX, ret) : 0;
}
