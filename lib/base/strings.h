/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of strings: allocated, ended by NULL, each string allocated too. */
#pragma once

#include <stdlib.h>

#include "lib/base/cleanup.h"

static inline void strings_free(char **list) {
        for (char **s = list; s && *s; s++)
                free(*s);
        free(list);
}
DEFINE_CLEANUP(char **, strings_free)
