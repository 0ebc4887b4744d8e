/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/primus/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

char *text_make(const char *format, ...) {
        char *text;
        va_list ap;
        int n;

        va_start(ap, format);
        n = vasprintf(&text, format, ap);
        va_end(ap);
        return n < 0 ? NULL : text;
}

void text_hex(const void *bytes, size_t n, char *ret) {
        for (size_t i = 0; i < n; i++)
                (void)snprintf(ret + 2 * i, 3, "%02x", ((const uint8_t *)bytes)[i]);
}
