/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: rest > 0 only inside a message whose whole size is within the bound. */
#include "lib/wire/frame.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define AUTH_MAX 1024u

/* Lines up to "BEGIN\r\n"; the very first byte is NUL. Returns the bytes taken. */
static int feed_auth(struct frame_watch *w, const uint8_t *p, size_t n, size_t *ret_taken) {
        for (size_t i = 0; i < n; i++) {
                if (++w->auth > AUTH_MAX)
                        return -EBADMSG;
                if (p[i] == '\n') {
                        bool begin = w->line_size == 6 && memcmp(w->line, "BEGIN\r", 6) == 0;
                        w->line_size = 0;
                        if (begin) {
                                w->messages = true;
                                *ret_taken = i + 1;
                                return 0;
                        }
                } else if (p[i] != 0 && w->line_size < sizeof w->line)
                        w->line[w->line_size++] = (char)p[i];
        }
        *ret_taken = n;
        return 0;
}

static int header_complete(struct frame_watch *w) {
        uint32_t body, fields;
        memcpy(&body, w->header + 4, sizeof body);
        memcpy(&fields, w->header + 12, sizeof fields);
        if (w->header[0] == 'l') {
                body = le32toh(body);
                fields = le32toh(fields);
        } else if (w->header[0] == 'B') {
                body = be32toh(body);
                fields = be32toh(fields);
        } else
                return -EBADMSG;
        uint64_t rest = (((uint64_t)fields + 7) & ~UINT64_C(7)) + body;
        if (rest + sizeof w->header > w->max)
                return -EMSGSIZE;
        w->rest = rest;
        w->header_size = 0;
        return 0;
}

int frame_watch_feed(struct frame_watch *w, const void *data, size_t n) {
        const uint8_t *p = data;
        while (n > 0) {
                size_t taken;
                int r = 0;
                if (!w->messages)
                        r = feed_auth(w, p, n, &taken);
                else if (w->rest > 0) {
                        assert(w->rest <= w->max);
                        taken = (size_t)MIN((uint64_t)n, w->rest);
                        w->rest -= taken;
                } else {
                        taken = MIN(n, sizeof w->header - w->header_size);
                        memcpy(w->header + w->header_size, p, taken);
                        w->header_size += taken;
                        if (w->header_size == sizeof w->header)
                                r = header_complete(w);
                }
                if (r < 0)
                        return r;
                p += taken;
                n -= taken;
        }
        return 0;
}
