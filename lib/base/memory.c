/* SPDX-License-Identifier: Apache-2.0 */
/* Giving memory back. Invariant: an idle daemon does nothing here but compare two numbers. */
#include "lib/base/memory.h"

#include <errno.h>
#include <malloc.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define LOOK_USEC (5 * USEC_PER_SEC)
#define WORTH_IT ((size_t)256 << 10) /* bytes */

bool memory_trim(void) {
        static size_t used_before; /* of the process's one allocator */
        struct mallinfo2 info = mallinfo2();

        if (info.uordblks == used_before || info.fordblks < WORTH_IT)
                return false;
        used_before = info.uordblks;
        return malloc_trim(0) > 0;
}

static int on_time(sd_event_source *s, uint64_t usec, void *userdata) {
        (void)memory_trim();
        return sd_event_source_set_time_relative(s, LOOK_USEC) < 0 ||
                               sd_event_source_set_enabled(s, SD_EVENT_ONESHOT) < 0
                       ? -EIO
                       : 0;
}

int memory_watch(sd_event *event) {
        sd_event_source *s = NULL;
        int r = sd_event_add_time_relative(event, &s, CLOCK_BOOTTIME, LOOK_USEC, USEC_PER_SEC, on_time, NULL);

        if (r >= 0)
                r = sd_event_source_set_priority(s, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = sd_event_source_set_floating(s, true);
        sd_event_source_unref(s);
        return r;
}
