/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/primus/environment.h"

#include <errno.h>
#include <stdlib.h>

int environment_number(const char *variable, uint32_t otherwise, uint32_t most, uint32_t *ret) {
        const char *text = getenv(variable);
        unsigned long n;
        char *end;

        *ret = otherwise;
        if (!text)
                return 0;
        errno = 0;
        n = strtoul(text, &end, 10);
        if (errno != 0 || end == text || *end || n > most)
                return -EINVAL;
        *ret = (uint32_t)n;
        return 0;
}
