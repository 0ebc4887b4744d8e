/* SPDX-License-Identifier: Apache-2.0 */
/* A scan's way to agentd. Entries are sent in packets; a full socket makes the scan wait, and so nothing
 * piles up between a large source and masterd. Invariant: what is passed or waited for is told behind the
 * entries that come before it. */
#include "executor/scan/scan.h"

#include <stddef.h>
#include <string.h>

#include "executor/feed/feed.h"
#include "executor/feed/session.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"

#define IDENTIFY_MAX (60 * USEC_PER_SEC)
#define FLUSH_USEC (200 * USEC_PER_MSEC) /* entries of a slow source are not kept back longer */

struct link {
        struct scan_sink sink;
        struct session session;
        uint8_t *packet; /* received */
        uint8_t *body;   /* to be sent: struct feed_entries, text, entries */
        uint8_t *entries;
        size_t size; /* of the entries */
        uint64_t passed, passed_told, flushed;
        int status; /* exit status < 0, once the connection is of no use any more */
};

/* Receives until there is something to do for the caller: returns 1 (room, or the deadline is over), 0 (a
 * packet of that type), or an exit status < 0. */
static int scan_wait(struct session *s, uint8_t *buf, short events, uint32_t type, uint64_t deadline) {
        for (;;) {
                uint64_t now = now_boot(), until;
                struct feed_header h;
                struct pollfd pfd;

                until = MIN(session_step(s, now), deadline);
                while (session_receive(s, now, buf, &h) > 0)
                        if (h.type == type)
                                return 0;
                if (now >= deadline)
                        return s->state == SESSION_UP ? 1
                               : s->refused_since > 0 ? -FEED_EXIT_REFUSED
                                                      : -FEED_EXIT_INTERNAL;
                /* Only the first connection is waited for. A scan whose agentd has gone is started again from
                 * its cursor, by masterd. */
                if (type != FEED_WELCOME && s->state != SESSION_UP)
                        return -FEED_EXIT_INTERNAL;
                pfd = (struct pollfd){ .fd = s->fd, .events = (short)(POLLIN | events) };
                until = MIN(until, session_step(s, now));
                (void)poll(&pfd, 1, (int)MIN((usec_sub(until, now) + 999) / 1000, UINT64_C(600000)));
                if (events && (pfd.revents & events))
                        return 1;
        }
}

static int scan_send(struct session *s, uint8_t *buf, uint32_t type, const void *body, size_t size) {
        for (;;) {
                int r = session_send(s, now_boot(), type, body, size);

                if (r == 0)
                        return 0;
                if (r != -EAGAIN)
                        return -FEED_EXIT_INTERNAL;
                r = scan_wait(s, buf, POLLOUT, FEED_FAREWELL, USEC_INFINITY);
                if (r < 0)
                        return r;
        }
}

static int scan_bye(struct session *s, uint8_t *buf, const char *error) {
        uint8_t body[sizeof(struct feed_bye) + 1024];
        struct feed_bye bye = { .failed = error != NULL,
                                .text_size = error ? (uint32_t)MIN(strlen(error), 1024u) : 0 };
        int r;

        memcpy(body, &bye, sizeof(bye));
        memcpy(body + sizeof(bye), error ? error : "", bye.text_size);
        r = scan_send(s, buf, FEED_BYE, body, sizeof(bye) + bye.text_size);
        if (r < 0)
                return r;
        r = scan_wait(s, buf, 0, FEED_FAREWELL, now_boot() + IDENTIFY_MAX);
        return r > 0 ? -FEED_EXIT_INTERNAL : r;
}

/* Sends what is collected, with what is waited for; told even without entries when it says something new. */
static int flush(struct link *l, const char *waiting_for) {
        struct feed_entries head = { .passed = l->passed,
                                     .waiting_size = (uint32_t)MIN(strlen(waiting_for), TASK_TEXT_MAX) };
        size_t before = sizeof(head) + head.waiting_size;
        int r;

        l->flushed = now_boot();
        if (l->size == 0 && head.waiting_size == 0 && l->passed == l->passed_told)
                return 0;
        memcpy(l->body, &head, sizeof(head));
        memcpy(l->body + sizeof(head), waiting_for, head.waiting_size);
        memmove(l->body + before, l->entries, l->size);
        r = scan_send(&l->session, l->packet, FEED_ENTRIES, l->body, before + l->size);
        l->size = 0;
        l->passed_told = l->passed;
        if (r >= 0)
                return 0;
        l->status = r;
        return -ENOTCONN;
}

static int on_entry(struct scan_sink *s, const struct scan_entry *e) {
        struct link *l = (struct link *)s;
        int r = l->size > 0 && now_boot() >= l->flushed + FLUSH_USEC ? flush(l, "") : 0;

        if (r >= 0)
                r = scan_entry_write(e, l->entries, TASKS_WIRE_MAX, &l->size);
        if (r == -ENOBUFS) {
                r = flush(l, "");
                if (r >= 0)
                        r = scan_entry_write(e, l->entries, TASKS_WIRE_MAX, &l->size);
        }
        return r;
}

static int on_passed(struct scan_sink *s, uint64_t batch) {
        struct link *l = (struct link *)s;

        /* Nothing of an earlier batch may travel behind this. */
        l->passed = batch;
        return 0;
}

static int on_wait(struct scan_sink *s, const char *waiting_for, uint64_t usec) {
        struct link *l = (struct link *)s;
        int r = flush(l, waiting_for);

        if (r < 0)
                return r;
        r = scan_wait(&l->session, l->packet, 0, FEED_FAREWELL, now_boot() + usec);
        if (r > 0)
                return 0;
        l->status = r < 0 ? r : -FEED_EXIT_INTERNAL;
        return -ENOTCONN;
}

static void link_done(struct link *l) {
        session_done(&l->session);
        free(l->packet);
        free(l->body);
        free(l->entries);
}

/* 0, or an exit status < 0. */
static int link_new(struct link *l, const char *socket) {
        int r;

        session_init(&l->session, socket);
        l->sink = (struct scan_sink){ .entry = on_entry, .passed = on_passed, .wait = on_wait };
        l->packet = malloc(FEED_PACKET_MAX + 1);
        l->body = malloc(sizeof(struct feed_entries) + TASK_TEXT_MAX + TASKS_WIRE_MAX);
        l->entries = malloc(TASKS_WIRE_MAX);
        if (!l->packet || !l->body || !l->entries)
                return -FEED_EXIT_INTERNAL;
        r = scan_wait(&l->session, l->packet, 0, FEED_WELCOME, now_boot() + IDENTIFY_MAX);
        if (r < 0)
                fprintf(stderr, "primus-executor: %s\n",
                        l->session.refused[0] ? l->session.refused : "agentd does not answer");
        return MIN(r, 0);
}

static int read_description(const struct scan_options *o, struct input **ret, char **ret_error) {
        _cleanup_(input_free_p) struct input *input = NULL;
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = o->input ? read_file(o->input, INPUT_TEXT_MAX, &text, &size) : -ENOENT;

        if (r < 0)
                return asprintf(ret_error, "%s: %s", o->input ? o->input : "$PRIMUS_INPUT", strerror(-r)) < 0
                               ? -ENOMEM
                               : r;
        r = input_read(text, size, &input, ret_error);
        if (r < 0)
                return r;
        if (o->source >= input->n_sources)
                return asprintf(ret_error, "%s: has no source %u", o->input, o->source) < 0 ? -ENOMEM
                                                                                            : -EINVAL;
        *ret = TAKE_PTR(input);
        return 0;
}

static int list_source(struct link *l, const struct scan_options *o, char **ret_error) {
        struct scan_request q = { .after = o->after, .batch = o->batch };
        _cleanup_(input_free_p) struct input *input = NULL;
        int r = read_description(o, &input, ret_error);

        if (r < 0)
                return r;
        q.source = input->sources + o->source;
        q.poll_usec = input->poll_usec;
        r = scan_source(&q, &l->sink, ret_error);
        if (*ret_error)
                fprintf(stderr, "primus-executor: data source %s: %s\n", q.source->name, *ret_error);
        return r;
}

int scan_run(const struct scan_options *o) {
        _cleanup_(link_done) struct link l = { 0 };
        _cleanup_free_ char *error = NULL;
        int r = link_new(&l, o->socket);

        if (r < 0)
                return -r;
        r = list_source(&l, o, &error);
        if (r >= 0 || error)
                (void)flush(&l, "");
        if (l.status < 0)
                return -l.status;
        if (r < 0 && !error)
                return FEED_EXIT_INTERNAL;
        r = scan_bye(&l.session, l.packet, error);
        return r < 0 ? -r : error ? 1 : 0;
}
