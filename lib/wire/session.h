/* SPDX-License-Identifier: Apache-2.0 */
/* The packets between primus-session and agentd: a socket pair, SOCK_SEQPACKET, whose other end is the
 * program's standard input. A packet is one byte, enum session_frame, and at most SESSION_DATA_MAX bytes
 * behind it. agentd passes data on without looking into it. Integers are of the host (one machine). */
#pragma once

#include <stdint.h>

#define SESSION_DATA_MAX (60u << 10)
#define SESSION_PACKET_MAX (1u + SESSION_DATA_MAX)
/* Packets that one ReadSession may bring. */
#define SESSION_CHUNKS_MAX 4u

enum session_frame {
        /* primus-session -> agentd. The first three are also what chunks on the links are called. */
        SESSION_OUTPUT = 1, /* bytes of standard output, the terminal, the connection */
        SESSION_ERRORS,     /* bytes of standard error */
        SESSION_OUTPUT_END, /* a connection: the other side has finished writing */
        SESSION_END,        /* struct session_end + text; the last one */
        /* agentd -> primus-session */
        SESSION_START =
                64,    /* struct session_start + strings, each ended by a NUL: arguments, then NAME=VALUE */
        SESSION_INPUT, /* bytes */
        SESSION_INPUT_END, /* nothing */
        SESSION_SIZE,      /* struct session_size */
};

enum session_kind {
        SESSION_COMMAND, /* arguments; none: the user's shell */
        SESSION_CONNECT, /* to a port on which a process of the executor listens */
        _SESSION_KIND_MAX,
        _SESSION_KIND_INVALID = -22
};

struct session_size {
        uint16_t rows, columns;
};

/* Both are of one package, so that they differ only in the moment in which an upgrade has replaced the files
 * and agentd still runs: such a session is refused. */
#define SESSION_VERSION 1u

struct session_start {
        uint32_t version; /* SESSION_VERSION; the first field in every version */
        uint8_t kind;     /* enum session_kind */
        uint8_t pty;
        uint16_t port;
        struct session_size size;
        uint32_t n_arguments, n_environment;
};

/* How the command ended: its exit status, or 128 and the signal. why: a sentence where it is not the command
 * that ended the session; status is then SESSION_STATUS_BROKEN. */
#define SESSION_STATUS_BROKEN 255
struct session_end {
        int32_t status;
};
