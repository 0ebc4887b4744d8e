/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of packets. Invariant: no byte behind body + size is read, whatever the lengths inside say. */
#include "agentd/feed/packet.h"

#include <string.h>

#include "lib/base/cleanup.h"

/* Takes a struct off the front of a body. */
static int take_bytes(const uint8_t **body, size_t *size, void *ret, size_t n) {
        if (*size < n)
                return -EBADMSG;
        memcpy(ret, *body, n);
        *body += n;
        *size -= n;
        return 0;
}

/* Takes n bytes of text off the front, without NUL and of at most max bytes, into an allocated string. */
static int take_text(const uint8_t **body, size_t *size, size_t n, size_t max, char **ret) {
        char *s;

        if (n > *size || n > max || memchr(*body, 0, n))
                return -EBADMSG;
        s = malloc(n + 1); /* not strndup(): no NUL follows in the packet */
        if (!s)
                return -ENOMEM;
        memcpy(s, *body, n);
        s[n] = 0;
        *body += n;
        *size -= n;
        *ret = s;
        return 0;
}

int packet_read_progress(const uint8_t *body, size_t size, struct feed_report *ret) {
        struct feed_progress p;
        int r;

        r = take_bytes(&body, &size, &p, sizeof(p));
        if (r < 0 || size > TASKS_WIRE_MAX)
                return -EBADMSG;
        *ret = (struct feed_report){ .progress = body,
                                     .size = size,
                                     .credits = MIN(p.credits, LINK_CREDITS_MAX),
                                     .counters = p.counters,
                                     .has_sync = p.flags & FEED_PROGRESS_SYNC,
                                     .sync = p.sync,
                                     .has_hungry = p.flags & FEED_PROGRESS_HUNGRY,
                                     .hungry = p.hungry,
                                     .unserved = MIN(p.unserved, p.hungry) };
        return 0;
}

int packet_read_entries(const uint8_t *body, size_t size, struct scan_batch *ret) {
        struct scan_batch b = {};
        struct feed_entries e;
        int r;

        r = take_bytes(&body, &size, &e, sizeof(e));
        if (r < 0 || e.waiting_size > size || e.waiting_size >= sizeof(b.waiting_for) ||
            memchr(body, 0, e.waiting_size) || size - e.waiting_size > TASKS_WIRE_MAX)
                return -EBADMSG;
        memcpy(b.waiting_for, body, e.waiting_size);
        b.entries = body + e.waiting_size;
        b.size = size - e.waiting_size;
        b.passed = e.passed;
        *ret = b;
        return 0;
}

int packet_read_bye(const uint8_t *body, size_t size, struct feed_bye *ret, char **ret_text) {
        struct feed_bye bye;
        int r;

        r = take_bytes(&body, &size, &bye, sizeof(bye));
        if (r < 0)
                return r;
        if (bye.text_size != size)
                return -EBADMSG;
        r = take_text(&body, &size, bye.text_size, PACKET_ERROR_MAX, ret_text);
        if (r < 0)
                return r;
        *ret = bye;
        return 0;
}
