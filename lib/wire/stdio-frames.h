/* SPDX-License-Identifier: Apache-2.0 */
/* What primusctl and primus-stdio say to each other about a command's standard input or terminal, through a
 * session. A frame is a head of five bytes, its kind and the size of what follows, little-endian, and at most
 * STDIO_DATA_MAX bytes. Both streams are counted from their first byte: after a connection broke, each side
 * says how far it has come, and the other goes on there. That input has ended is a frame: a connection that
 * ends without it was broken off. */
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STDIO_DATA_MAX (32u << 10)
#define STDIO_HEAD 5u
#define STDIO_FRAME_MAX (STDIO_HEAD + STDIO_DATA_MAX)
/* Bytes of a stream that its sender keeps, since they are not acknowledged. */
#define STDIO_INPUT_WINDOW (512u << 10)
#define STDIO_OUTPUT_WINDOW (256u << 10)
/* In the job's private environment: its holder's name, which no other job's has. */
#define STDIO_VARIABLE "PRIMUS_STDIO"
#define STDIO_KEY_SIZE 32u /* digits */

enum stdio_frame {
        /* to primusctl */
        STDIO_HELD = 1, /* struct stdio_held: the first one */
        STDIO_OUTPUT,   /* bytes of the terminal */
        STDIO_TAKEN,    /* u64: so much input is with the command */
        STDIO_UNREAD,   /* nothing: the command has closed its input */
        STDIO_EXIT,     /* nothing: the command has ended, and all its output stands before this */
        /* from primusctl */
        STDIO_HELLO = 64, /* struct stdio_hello: the first one */
        STDIO_INPUT,      /* bytes */
        STDIO_INPUT_END,  /* nothing */
        STDIO_SHOWN,      /* u64: so much output is shown */
        STDIO_SIZE,       /* struct stdio_size */
        STDIO_ABORT,      /* a sentence: the input will never be whole */
};

/* All little-endian. */
struct stdio_held {
        uint64_t taken;    /* with the command */
        uint64_t received; /* here */
        uint64_t output;   /* the first byte that can still be had */
};

struct stdio_size {
        uint16_t rows, columns;
};

struct stdio_hello {
        uint64_t from; /* where its input goes on */
        uint64_t shown;
        struct stdio_size size;
        uint32_t spare;
};

static inline void stdio_head(uint8_t head[static STDIO_HEAD], enum stdio_frame kind, size_t size) {
        const uint32_t n = htole32((uint32_t)size);

        head[0] = (uint8_t)kind;
        memcpy(head + 1, &n, sizeof(n));
}

/* Size of the frame at data, head included; 0: not all of it is there; -1: none that can be. */
static inline long stdio_frame_size(const uint8_t *data, size_t size) {
        uint32_t n;

        if (size < STDIO_HEAD)
                return 0;
        memcpy(&n, data + 1, sizeof(n));
        n = le32toh(n);
        if (n > STDIO_DATA_MAX)
                return -1;
        return size < STDIO_HEAD + n ? 0 : (long)(STDIO_HEAD + n);
}
