/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a D-Bus client's byte stream (authentication lines, then messages) and refuses a message that
 * claims to be larger than a bound, before sd-bus sees its header and makes room for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame_watch {
        uint32_t max;  /* bytes of one message */
        bool messages; /* the authentication is over */
        size_t auth;   /* bytes of it */
        char line[8];  /* the first bytes of the current line */
        size_t line_size;
        uint8_t header[16];
        size_t header_size;
        uint64_t rest; /* bytes of the current message that are still to come */
};

/* 0; -EMSGSIZE: a message is too large; -EBADMSG: not D-Bus. */
int frame_watch_feed(struct frame_watch *w, const void *data, size_t n);
