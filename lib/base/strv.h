/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of strings: allocated, ended by NULL, each string allocated too. */
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

static inline void strings_free(char **list) {
        for (char **s = list; s && *s; s++)
                free(*s);
        free(list);
}
DEFINE_CLEANUP(char **, strings_free)

static inline size_t strings_count(char *const *list) {
        size_t n = 0;

        while (list && list[n])
                n++;
        return n;
}

/* A copy of the first n, all of them allocated, ended by NULL. 0 or -ENOMEM. */
static inline int strings_copy(char *const *list, size_t n, char ***ret) {
        _cleanup_(strings_free_p) char **copy = calloc(n + 1, sizeof(*copy));

        if (!copy)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (!(copy[i] = strdup(list[i])))
                        return -ENOMEM;
        *ret = TAKE_PTR(copy);
        return 0;
}

/* Appends to a list that has room, and the NULL behind it already. 0 or -ENOMEM. */
static inline int strings_push(char **list, size_t *n, const char *format, ...) _printf_(3, 4);
static inline int strings_push(char **list, size_t *n, const char *format, ...) {
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&list[*n], format, ap);
        va_end(ap);
        if (r < 0) {
                list[*n] = NULL;
                return -ENOMEM;
        }
        (*n)++;
        return 0;
}
