/* SPDX-License-Identifier: Apache-2.0 */
/* What a job has left on a host, as a stream of bytes between primus-executor --collect, which reads it as
 * the job's user, and primusctl get. Both directions are records: a head, and up to 65,535 bytes behind it.
 * Nothing is collected on the way, and either side takes what comes from the other as hostile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARTIFACT_PAYLOAD_MAX UINT16_MAX
#define ARTIFACT_PATH_MAX 4095u
/* Directories below each other; who walks has one open for each. */
#define ARTIFACT_DEPTH_MAX 64u

enum artifact_type {
        /* the collector says */
        ARTIFACT_DIRECTORY = 'd', /* payload: path, as in all of these */
        ARTIFACT_FILE = 'f',      /* size, mtime; after "fetch", DATA and EOF follow it */
        ARTIFACT_LINK = 'l',      /* path, a NUL, where it points to */
        ARTIFACT_LEFT_OUT = 'x',  /* why; in the place of a file that was wanted, or of no file */
        ARTIFACT_DATA = 'D',      /* payload: bytes of the file */
        ARTIFACT_EOF = 'F',       /* size: bytes sent, sum: their CRC-32C; why: CHANGED,
                                     UNREADABLE (from there on) or 0 */
        ARTIFACT_END = 'E',       /* nothing is missing; size: records before it */
        /* the receiver says */
        ARTIFACT_WANT = 'W', /* path, of which no more than size bytes are sent */
};

enum artifact_why {
        ARTIFACT_CHANGED = 1, /* while it was read */
        ARTIFACT_SPECIAL,     /* a FIFO, a socket, a device */
        ARTIFACT_UNREADABLE,
        ARTIFACT_GONE,
        ARTIFACT_DEEP,    /* more than ARTIFACT_DEPTH_MAX directories, or a path too long */
        ARTIFACT_OUTSIDE, /* a link that points out of the directory */
        _ARTIFACT_WHY_MAX,
};
/* "is a FIFO, a socket or a device"; of what nobody knows: "cannot be read". */
const char *artifact_why_text(uint8_t why);

/* In memory; ARTIFACT_HEAD_SIZE bytes, little-endian, on the way. */
#define ARTIFACT_HEAD_SIZE 24u
struct artifact {
        uint8_t type, why;
        uint16_t payload_size;
        uint32_t mode; /* sum of EOF */
        uint64_t size, mtime_nsec;
};
void artifact_write(const struct artifact *a, uint8_t buf[static ARTIFACT_HEAD_SIZE]);
void artifact_read(const uint8_t buf[static ARTIFACT_HEAD_SIZE], struct artifact *ret);

/* A path that a host may name: relative, of 1 to ARTIFACT_PATH_MAX bytes without a NUL, no part of it empty,
 * "." or ".." or longer than 255 bytes, and at most ARTIFACT_DEPTH_MAX + 1 of them. */
bool artifact_path_valid(const char *path, size_t size);
/* Whether a link of that path may point there: to something relative that goes up, if at all, before it goes
 * down (so no other link can be what it goes up from), and stays below the directory that the path begins in.
 */
bool artifact_link_inside(const char *path, const char *target);

/* Bytes in pieces of any size -> records. */
struct artifact_decoder {
        size_t have;
        uint8_t buffer[ARTIFACT_HEAD_SIZE + ARTIFACT_PAYLOAD_MAX + 1];
};
/* payload is followed by a NUL. < 0 ends the decoding and is returned. */
typedef int (*artifact_handler)(const struct artifact *a, const uint8_t *payload, void *userdata);
int artifact_decode(struct artifact_decoder *d, const void *data, size_t size, artifact_handler handler,
                    void *userdata);
