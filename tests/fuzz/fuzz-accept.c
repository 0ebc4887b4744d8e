/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as the Accept header of a scraper: an answer. All else of HTTP is libmicrohttpd's. How to run it:
 * README.md. */
#include <stdlib.h>

#include "agentd/metrics/accept.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *text = malloc(size + 1);

        MUST(text);
        memcpy(text, data, size);
        text[size] = 0;
        (void)accept_openmetrics(text);
        free(text);
        return 0;
}
