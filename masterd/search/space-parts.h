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
        uint64_t count; /* points of a grid */
        json_t *values; /* categorical: the array; const: the value */
        json_t *when;   /* while it is read; borrowed */
        unsigned depth; /* while it is read: 1 more than that of what it depends on */
        struct condition *conditions;
        size_t n_conditions;
};

struct space {
        struct parameter *parameters; /* by name */
        size_t n;
        uint64_t *points;  /* of a grid: which of the product are points; NULL: all */
        uint32_t n_points; /* of a grid, of a list */
        json_t *list;      /* of a list: its points, and no parameters */
        size_t bytes, given_max;
};

/* The value that a digit of the grid stands for. A new reference; NULL: no memory. */
json_t *space_grid_value(const struct parameter *p, uint32_t digit);
#define DEPTH_ASKED UINT32_MAX
/* Makes NULL what its conditions do not allow, and what depends on that; of values that are borrowed. */
void space_leave_out(const struct space *s, json_t **values);
