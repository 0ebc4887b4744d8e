/* SPDX-License-Identifier: Apache-2.0 */
/* A pipe of records. Invariant: of what the other side writes no more than one record is kept. */
#include "agentd/observe/records.h"

#include <string.h>

struct records {
        int fd;
        sd_event_source *source;
        records_handler handler;
        void *userdata;
        size_t used, all;
        struct stream_item item;
        uint8_t buffer[STREAM_RECORD_MAX];
};

/* r is not there any more afterwards. */
static int end_records(struct records *r, int why) {
        r->source = sd_event_source_disable_unref(r->source);
        r->handler(why, NULL, r->userdata);
        return 0;
}

static int on_readable(sd_event_source *s, int fd, uint32_t events, void *userdata) {
        struct records *r = userdata;
        ssize_t n = read(fd, r->buffer + r->used, sizeof(r->buffer) - r->used);
        size_t at = 0;
        int l;

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : end_records(r, -errno);
        if (n == 0)
                return end_records(r, -EPIPE);
        r->used += (size_t)n;
        r->all += (size_t)n;
        while ((l = stream_read(r->buffer + at, r->used - at, &r->item)) > 0) {
                at += (size_t)l;
                if (r->item.type == STREAM_END)
                        return end_records(r, 0);
                r->handler(0, &r->item, r->userdata);
        }
        if (l < 0 || r->all > RECORDS_BYTES_MAX)
                return end_records(r, l < 0 ? l : -EFBIG);
        r->used -= at;
        memmove(r->buffer, r->buffer + at, r->used);
        return 0;
}

int records_new(sd_event *event, int fd, records_handler handler, void *userdata, struct records **ret) {
        _cleanup_(records_free_p) struct records *r = calloc(1, sizeof(*r));
        int error;

        if (!r) {
                close_fd(fd);
                return -ENOMEM;
        }
        r->fd = fd;
        r->handler = handler;
        r->userdata = userdata;
        error = sd_event_add_io(event, &r->source, fd, EPOLLIN, on_readable, r);
        if (error < 0)
                return error;
        *ret = TAKE_PTR(r);
        return 0;
}

void records_free(struct records *r) {
        if (!r)
                return;
        sd_event_source_disable_unref(r->source);
        close_fd(r->fd);
        free(r);
}
