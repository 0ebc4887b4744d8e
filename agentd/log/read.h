/* SPDX-License-Identifier: Apache-2.0 */
/* Serving ReadLog: the lines of one executor from the journal, page by page, waiting for more without
 * polling. One thread and one open journal serve all readers; the journal is closed again when nobody reads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>

struct log_reader;

struct log_reader_options {
        const char *directory;   /* tests: journal files instead of the host's */
        const char *sync_socket; /* tests: instead of primus-starter's */
};

#define LOG_CURSOR_MAX 512u
#define LOG_REQUESTS_MAX 1024u

struct log_request {
        const char *unit;
        const char *identifier; /* only lines with this SYSLOG_IDENTIFIER; NULL: all */
        sd_id128_t invocation;  /* SD_ID128_NULL: any */
        const void *cursor;     /* of the page before; empty: from the unit's first line */
        size_t cursor_size;
        bool last;          /* no cursor: the last max bytes, when the unit has ended and all is there */
        uint32_t max;       /* bytes of a page; at least 4 KiB and at most LINK_CHUNK_MAX are used */
        uint64_t wait_usec; /* for the first byte */
        uint64_t ended;     /* CLOCK_BOOTTIME, usec: when it was known that the unit has ended; 0: it runs */
};

/* error < 0: the rest is empty. -EINVAL: the cursor is none. end: the unit has ended and nothing is left. */
struct log_page {
        int error;
        const char *data;
        size_t size;
        const char *cursor;
        bool end;
};
typedef void (*log_page_handler)(void *userdata, const struct log_page *page);

int log_reader_new(sd_event *event, const struct log_reader_options *options, struct log_reader **ret);
/* Waits for the thread. Handlers that wait are not called. */
void log_reader_free(struct log_reader *r);

/* Queues a request. The handler is called once, from the event loop. 0 with *ret_ticket; -EINVAL; -EBUSY:
 * more than LOG_REQUESTS_MAX wait; -ENOMEM. */
int log_read(struct log_reader *r, const struct log_request *q, log_page_handler handler, void *userdata,
             uint64_t *ret_ticket);

/* The handler will not be called any more. */
void log_read_cancel(struct log_reader *r, uint64_t ticket);

/* The unit has ended: who waits for its lines gets the last ones, and "end". */
void log_reader_ended(struct log_reader *r, const char *unit);
