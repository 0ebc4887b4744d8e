/* SPDX-License-Identifier: Apache-2.0 */
/* The packets between primus-executor (and later libprimus) and agentd on $PRIMUS_SOCKET, SOCK_SEQPACKET. A
 * packet is a struct feed_header and size bytes of body, at most FEED_PACKET_MAX together. Integers are of
 * the host (one machine). Strings in bodies are bytes without NUL, their length given before. */
#pragma once

#include <stdint.h>

#define FEED_PACKET_MAX (64u << 10)
#define FEED_VERSION 1u

enum feed_type {
        /* executor -> agentd */
        FEED_HELLO = 1, /* struct feed_hello */
        FEED_ANSWER,    /* struct feed_challenge, with SCM_CREDENTIALS */
        FEED_OPEN,      /* struct feed_open: ready for tasks */
        FEED_PROGRESS,  /* struct feed_progress, repeated */
        FEED_ENTRIES,   /* scan: struct feed_entry + path, repeated */
        FEED_BYE,       /* struct feed_bye + text: no more will come */
        FEED_FINAL, /* as PROGRESS, of all tasks that it held: the trainer has ended. agentd keeps it until
                     * masterd has the end of the unit on disk */
        /* agentd -> executor */
        FEED_CHALLENGE = 64, /* struct feed_challenge */
        FEED_WELCOME,  /* struct feed_welcome; kind feed: SCM_RIGHTS with the pipe's read end and write end */
        FEED_GRANT,    /* struct feed_grant + path, repeated */
        FEED_LAST,     /* no further task: end of file after those granted */
        FEED_REFUSED,  /* text: why; the connection is closed after it */
        FEED_FAREWELL, /* nothing: BYE and all before it have been passed on */
};

struct feed_header {
        uint32_t type;
        uint32_t size;
};
struct feed_hello {
        uint32_t version;
        uint32_t pid;
};
struct feed_challenge {
        uint8_t nonce[16];
};
struct feed_welcome {
        uint32_t ack;       /* enum ack_mode, see lib/wire/messages.h */
        uint32_t pipe_size; /* bytes that the pipe holds; 0 for kind scan */
};
struct feed_open {
        uint32_t credits; /* tasks it is ready to hold */
};
struct feed_progress {
        uint64_t task;
        uint64_t read, acked; /* bytes of the file, see lib/wire/messages.h */
        uint32_t state;       /* enum task_state */
        uint32_t credits;     /* tasks it is ready for beyond those granted */
        uint32_t error_size;  /* bytes of text behind this struct (FAILED) */
};
struct feed_entry {
        uint64_t size, mtime_nsec, inode;
        uint32_t path_size; /* path follows */
};
struct feed_grant {
        uint64_t task, offset, size, mtime_nsec, inode;
        uint32_t path_size; /* path follows */
};
struct feed_bye {
        uint32_t failed; /* 1: text says why */
        uint32_t text_size;
};
