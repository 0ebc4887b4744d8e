/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of the starter's writes while it looks at anybody's threads:
 *   meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false  (CC=clang)
 *   build-fuzz/tests/fuzz/fuzz-observe CORPUS tests/fuzz/corpus/observe */
#include <string.h>

#include "agentd/capture/found.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct stream_item item;
        struct capture c = {};
        int n;

        while ((n = stream_read(data, size, &item)) > 0) {
                MUST((size_t)n <= size && strlen(item.text) <= STREAM_TEXT_MAX);
                if (found_add(&c, &item) < 0)
                        break;
                data += n;
                size -= (size_t)n;
        }
        MUST(c.n <= CAPTURE_THREADS_MAX);
        capture_done(&c);
        return 0;
}
