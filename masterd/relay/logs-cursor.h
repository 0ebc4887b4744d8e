/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors of Job.ReadLog: opaque to callers, and from them, so everything is checked. "" is the start;
 * "agent:OFFSET:BYTES" a cursor of the host's agent with the offset in the log that it stands for;
 * "kept:OFFSET" a place in what masterd has kept. The offset lets a reader go on in the kept part when the
 * host is gone. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LOG_CURSOR_AGENT_MAX 1024u
#define LOG_CURSOR_MAX (LOG_CURSOR_AGENT_MAX + 64)

enum log_cursor_kind {
        LOG_CURSOR_START,
        LOG_CURSOR_AGENT,
        LOG_CURSOR_KEPT
};

struct log_cursor {
        enum log_cursor_kind kind;
        uint64_t offset;
        size_t size; /* of agent */
        char agent[LOG_CURSOR_AGENT_MAX];
};

/* -EINVAL: none of ours. */
int log_cursor_parse(const void *bytes, size_t size, struct log_cursor *ret);
/* Returns the size; no NUL behind it. */
size_t log_cursor_format(const struct log_cursor *c, char buf[static LOG_CURSOR_MAX]);
/* The agent answered c with size bytes and its next cursor: c moves on. -EINVAL: the cursor is too long, or
 * the offset. */
int log_cursor_advance(struct log_cursor *c, size_t size, const void *agent, size_t agent_size);
