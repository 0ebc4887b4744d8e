/* SPDX-License-Identifier: Apache-2.0 */
/* What space-read.c (what is written) and space.c (what is drawn) share. Not for others. */
#pragma once

#include "masterd/search/space.h"

enum parameter_type {
        PARAMETER_CONST,
        PARAMETER_INT,
        PARAMETER_DOUBLE,
        PARAMETER_LOG,
        PARAMETER_CATEGORICAL,
        _PARAMETER_TYPE_MAX,
};

struct condition {
        uint32_t on;    /* index of the parameter */
        json_t *values; /* an array; one of them */
};

struct parameter {
        char *name; /* joined by dots */
        enum parameter_type type;
        int64_t first, last; /* int */
        double low, high;    /* double; log: the exponents */
        double base;
        double step;    /* 0: none */
        uint32_t count; /* points of a grid */
        json_t *values; /* categorical: the array; const: the value */
        json_t *when;   /* while it is read; borrowed */
        struct condition *conditions;
        size_t n_conditions;
};

struct space {
        struct parameter *parameters; /* by name */
        size_t n;
        uint64_t *points; /* of a grid: which of the product are points */
        uint32_t n_points;
        size_t bytes, given_max;
};

/* The value that a digit of the grid stands for. A new reference; NULL: no memory. */
json_t *space_grid_value(const struct parameter *p, uint32_t digit);
/* Whether all that its conditions ask for is so; values: of each parameter, NULL: it is not there. */
bool space_holds(const struct parameter *p, json_t *const *values);
