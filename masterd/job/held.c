/* SPDX-License-Identifier: Apache-2.0 */
/* What was held. Invariant: the microseconds of all days together are those from the beginning to the end. */
#include "masterd/job/held.h"

#include "lib/base/cleanup.h"

struct held held_on_day(const struct holding *h, uint64_t from, uint64_t to, uint32_t day) {
        uint64_t begin = (uint64_t)day * DAY_USEC, end = begin + DAY_USEC, usec;

        from = MAX(from, begin);
        to = MIN(to, end);
        if (to <= from)
                return (struct held){};
        usec = to - from;
        return (struct held){
                .cpu = (uint64_t)((unsigned __int128)h->cpu_milli * usec / 1000),
                .memory = (uint64_t)((unsigned __int128)h->memory * usec / ((UINT64_C(1) << 20) * 1000)),
                .gpu = h->gpus * usec,
        };
}
