/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors of logs. Invariant: an offset counts every byte since the start of the log. */
#include "masterd/relay/logs-cursor.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"

/* Digits only, as format() writes them. */
static int read_offset(const char *p, size_t n, uint64_t *ret) {
        char text[24];

        if (n == 0 || n >= sizeof(text))
                return -EINVAL;
        for (size_t i = 0; i < n; i++)
                if (!isdigit((unsigned char)p[i]))
                        return -EINVAL;
        memcpy(text, p, n);
        text[n] = 0;
        return parse_u64(text, 0, UINT64_MAX - 1, ret) < 0 ? -EINVAL : 0;
}

int log_cursor_parse(const void *bytes, size_t size, struct log_cursor *ret) {
        const char *p = bytes, *colon;
        struct log_cursor c = {};
        int r;

        if (size == 0) {
                *ret = c;
                return 0;
        }
        if (size > 5 && memcmp(p, "kept:", 5) == 0) {
                c.kind = LOG_CURSOR_KEPT;
                r = read_offset(p + 5, size - 5, &c.offset);
                if (r < 0)
                        return r;
                *ret = c;
                return 0;
        }
        if (size <= 6 || memcmp(p, "agent:", 6) != 0)
                return -EINVAL;
        c.kind = LOG_CURSOR_AGENT;
        colon = memchr(p + 6, ':', size - 6);
        if (!colon)
                return -EINVAL;
        r = read_offset(p + 6, (size_t)(colon - p) - 6, &c.offset);
        if (r < 0)
                return r;
        c.size = size - (size_t)(colon + 1 - p);
        if (c.size > sizeof(c.agent))
                return -EINVAL;
        memcpy(c.agent, colon + 1, c.size);
        *ret = c;
        return 0;
}

size_t log_cursor_format(const struct log_cursor *c, char buf[static LOG_CURSOR_MAX]) {
        size_t n;

        if (c->kind == LOG_CURSOR_START)
                return 0;
        if (c->kind == LOG_CURSOR_KEPT)
                return (size_t)snprintf(buf, LOG_CURSOR_MAX, "kept:%llu", (unsigned long long)c->offset);
        n = (size_t)snprintf(buf, LOG_CURSOR_MAX, "agent:%llu:", (unsigned long long)c->offset);
        memcpy(buf + n, c->agent, c->size);
        return n + c->size;
}

int log_cursor_advance(struct log_cursor *c, size_t size, const void *agent, size_t agent_size) {
        if (agent_size > sizeof(c->agent) || size >= UINT64_MAX - c->offset)
                return -EINVAL;
        c->kind = LOG_CURSOR_AGENT;
        c->offset += size;
        if (agent_size > 0)
                memcpy(c->agent, agent, agent_size);
        c->size = agent_size;
        return 0;
}
