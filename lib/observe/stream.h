/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of the starter's found, as it finds it, through a pipe: records of a head and a body,
 * integers as the host has them (one machine, one package). The reader believes nothing: whoever wrote it had
 * looked at what belongs to anybody. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/capture.h"

enum stream_type {
        STREAM_TOTAL = 1, /* number: so many threads more there are */
        STREAM_THREAD,    /* thread; text: its kernel stack, as describe_stack() has it; "": none */
        STREAM_STACK,     /* number: thread; text: a better stack of it */
        STREAM_PYTHON,    /* number: process; text: what it says of itself */
        STREAM_USAGE,     /* usage */
        STREAM_END,       /* that is all; without it something is missing */
        _STREAM_TYPE_MAX
};

#define STREAM_NO_CALL (-1)
struct stream_thread {
        uint32_t pid, tid;
        int32_t call; /* number of a system call of this machine; STREAM_NO_CALL */
        uint8_t state, class /* enum capture_class */, reserved[2];
        char name[16];
};

/* Of the unit that was number index in the question. */
struct stream_usage {
        uint32_t index, reserved;
        uint64_t read_bytes, write_bytes, block_read_bytes, block_write_bytes;
};

#define STREAM_TEXT_MAX CAPTURE_PYTHON_MAX
#define STREAM_HEAD_SIZE 8u
#define STREAM_RECORD_MAX (STREAM_HEAD_SIZE + sizeof(struct stream_usage) + STREAM_TEXT_MAX)

struct stream_item {
        enum stream_type type;
        uint32_t number;
        struct stream_thread thread; /* its name ends with NUL, its class is one */
        struct stream_usage usage;
        char text[STREAM_TEXT_MAX + 1]; /* without NUL in it; no more is promised */
};

/* The first record of data: how long it is, with *ret set; 0: it is not whole; -EBADMSG: it never will be. */
int stream_read(const uint8_t *data, size_t size, struct stream_item *ret);

/* Its record: how long it is. text: cut where it is too long; the end of it is kept. */
size_t stream_write(const struct stream_item *item, const char *text, uint8_t ret[static STREAM_RECORD_MAX]);
