/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/unit/ports-range.h"

#include <errno.h>
#include <string.h>

#include "lib/base/parse.h"

int port_range_parse(const char *text, uint16_t *ret_first, uint16_t *ret_last) {
        const char *dash = strchr(text, '-');
        uint32_t first, last;
        char head[16];

        if (!dash || (size_t)(dash - text) >= sizeof(head))
                return -EINVAL;
        memcpy(head, text, (size_t)(dash - text));
        head[dash - text] = 0;
        if (parse_u32(head, 1024, UINT16_MAX, &first) < 0 ||
            parse_u32(dash + 1, first, UINT16_MAX, &last) < 0)
                return -EINVAL;
        *ret_first = (uint16_t)first;
        *ret_last = (uint16_t)last;
        return 0;
}
