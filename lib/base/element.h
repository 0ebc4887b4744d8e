/* SPDX-License-Identifier: Apache-2.0 */
/* How elements of arrays are called: by their index, "418[7]"; the searcher of a search, which has none,
 * "418[searcher]". */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ELEMENT_SEARCHER (UINT32_MAX - 1) /* in the place of an index; it is beyond ARRAY_INDEX_MAX */
#define ELEMENT_SEARCHER_NAME "searcher"
#define ELEMENT_TEXT_MAX 16

/* What stands between the brackets. Returns buf. */
static inline char *element_text(uint32_t index, char buf[static ELEMENT_TEXT_MAX]) {
        if (index == ELEMENT_SEARCHER)
                strcpy(buf, ELEMENT_SEARCHER_NAME);
        else
                snprintf(buf, ELEMENT_TEXT_MAX, "%" PRIu32, index);
        return buf;
}
