/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what comes in over a link, in pieces of any size: what the watch says does not depend on the
 * pieces, and a message that it lets through is within the bound. The first byte chooses the bound, and each
 * piece's size is the next byte of its own. How to run it: README.md. */
#include <errno.h>

#include "lib/base/cleanup.h"
#include "lib/wire/frame.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const uint32_t bounds[] = { 16, 24, 64 << 10, 32 << 20, UINT32_MAX };
        struct frame_watch whole = {}, parts = {};
        int r, q = 0;

        if (size < 1)
                return 0;
        whole.max = parts.max = bounds[data[0] % ELEMENTSOF(bounds)];
        whole.messages = parts.messages = data[0] & 64;
        r = frame_watch_feed(&whole, data + 1, size - 1);
        MUST(r == 0 || r == -EMSGSIZE || r == -EBADMSG);
        for (size_t at = 1; at < size && q == 0;) {
                size_t n = MIN(size - at, (size_t)(data[at] & 31) + 1);

                q = frame_watch_feed(&parts, data + at, n);
                MUST(q < 0 || (parts.header_size < sizeof(parts.header) && parts.rest <= parts.max));
                at += n;
        }
        MUST(q == r);
        if (r == 0)
                MUST(whole.messages == parts.messages && whole.auth == parts.auth &&
                     whole.rest == parts.rest && whole.header_size == parts.header_size);
        return 0;
}
