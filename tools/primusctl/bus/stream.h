/* SPDX-License-Identifier: Apache-2.0 */
/* A session in an executor, as bytes in both directions in the tool's event loop. At most STREAM_READS
 * answers and STREAM_WRITES pieces of input are under way. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/primusctl/cli/cli.h"

#define STREAM_READS 3u
#define STREAM_WRITES 2u
#define STREAM_PIECE_MAX (128u << 10)
/* The status of a session that something else than its command ended. */
#define STREAM_BROKEN 255

struct stream;

enum stream_kind {
        STREAM_OUTPUT = 1,
        STREAM_ERRORS = 2,
        STREAM_OUTPUT_END = 3 /* as lib/wire/session.h numbers them */
};

/* Called from the event loop; ended() at last, and exactly once, where stream_free() does not come first. */
struct stream_handlers {
        void (*opened)(struct stream *s, void *userdata);
        void (*data)(struct stream *s, enum stream_kind kind, const void *data, size_t size, void *userdata);
        void (*room)(struct stream *s, void *userdata); /* stream_write() takes something again */
        /* why: "" or what ended it, status is STREAM_BROKEN then */
        void (*ended)(struct stream *s, int status, const char *why, void *userdata);
};

/* Where: an executor of a job. */
struct stream_target {
        struct job_ref job;
        char *role;
        uint32_t index;
        const char *node; /* not NULL: what the job has left on that host, in the place of an executor */
};
void stream_target_done(struct stream_target *t);
/* text: a rank, ROLE or ROLE/INDEX. 0 or an exit status. */
int stream_target_find(struct cli *c, const char *job, const char *text, struct stream_target *ret);

struct stream_options {
        char **arguments; /* NULL-ended */
        bool pty;
        uint16_t rows, columns;
        char **environment; /* NULL-ended, or NULL */
        uint16_t port;      /* not 0: a connection */
};

/* The bus of c is attached to an event loop. Negative errno. */
int stream_new(struct cli *c, const struct stream_target *target, const struct stream_options *options,
               const struct stream_handlers *handlers, void *userdata, struct stream **ret);
/* Ends the session where it is not over. */
void stream_free(struct stream *s);
DEFINE_CLEANUP(struct stream *, stream_free)

bool stream_has_room(const struct stream *s);
/* At most STREAM_PIECE_MAX bytes, while there is room; end: the last ones. */
int stream_write(struct stream *s, const void *data, size_t size, bool end);
/* No more data is asked for, until it is let go. What is under way still comes. */
void stream_hold(struct stream *s, bool hold);
void stream_resize(struct stream *s, uint16_t rows, uint16_t columns);
