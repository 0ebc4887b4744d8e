/* SPDX-License-Identifier: Apache-2.0 */
/* How far an executor says that it is. Invariants: the file is the user's, so its first 16 bytes are read
 * whatever it became; it lies in /run, which all need, so it stays that short. */
#include "agentd/metrics/progress.h"

#include <endian.h>
#include <unistd.h>

#define PAGE_BYTES 16

void progress_fill(int fd, uint64_t now_boot, uint64_t values[static _TELEMETRY_MAX]) {
        uint64_t page[3], when; /* the third has nothing to say, but that there is more */
        ssize_t n = pread(fd, page, sizeof(page), 0);

        /* What it says holds even where what was written behind it cannot be cut off. */
        if (n > PAGE_BYTES && ftruncate(fd, PAGE_BYTES) < 0)
                n = PAGE_BYTES;
        if (n < PAGE_BYTES || (when = le64toh(page[1])) == 0)
                return;
        values[TELEMETRY_PROGRESS_STEP] = le64toh(page[0]);
        values[TELEMETRY_PROGRESS_AGE_USEC] = when < now_boot ? now_boot - when : 0;
}
