/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events: which jobs and hosts have changed. Invariant: however many streams there are, one call
 * waits for masterd; and what a stream keeps is bounded, for what is told is that something has changed, and
 * a reader who is slow is told to list everything anew. */
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "webd/serve/serve-parts.h"

#define BUFFER_MAX 32768u
#define BLOCK_SIZE 1024u
/* Nothing has happened, and dead peers are found by it. */
#define BOOKMARK_SEC 15u
#define AGAIN_SEC 1u
#define WAIT_USEC (20 * USEC_PER_SEC)
#define MARK_MAX 48u

struct stream {
        struct stream *prev, *next;
        struct events *events;
        struct MHD_Connection *connection;
        sd_bus_slot *slot; /* it is asked what it has missed */
        char *buffer;      /* what is to be sent; NULL: nothing is */
        size_t used, sent;
        bool suspended, full, closing;
};

struct events {
        struct serve *serve;
        struct stream *streams;
        unsigned n;
        char now[MARK_MAX]; /* of masterd's, that all streams were told; "": not known */
        sd_bus_slot *slot;
        sd_event_source *again, *bookmark;
};

static void watch_changes(struct events *e);

/* ---- a stream ---- */

static void stream_wake(struct stream *s) {
        if (!s->suspended)
                return;
        s->suspended = false;
        MHD_resume_connection(s->connection);
        http_server_wake(s->events->serve->http);
}

/* All of it, or "reset" when there is room again. */
static void stream_put(struct stream *s, const char *text) {
        size_t n = strlen(text), left = s->used - s->sent;
        char *bigger;

        if (s->full || left + n > BUFFER_MAX) {
                s->full = true;
                return;
        }
        if (left > 0 && s->sent > 0)
                memmove(s->buffer, s->buffer + s->sent, left);
        s->used = left;
        s->sent = 0;
        bigger = realloc(s->buffer, left + n);
        if (!bigger) {
                s->full = true;
                return;
        }
        s->buffer = bigger;
        memcpy(s->buffer + left, text, n);
        s->used += n;
        stream_wake(s);
}

static ssize_t on_read(void *userdata, uint64_t position, char *to, size_t max) {
        struct stream *s = userdata;
        size_t n = MIN(s->used - s->sent, max);

        if (n == 0 && s->full) {
                s->full = false;
                stream_put(s, "event: reset\ndata: {}\n\n");
                n = MIN(s->used, max);
        }
        if (n > 0) {
                memcpy(to, s->buffer + s->sent, n);
                s->sent += n;
                return (ssize_t)n;
        }
        /* Nothing is kept for who waits. */
        free(s->buffer);
        s->buffer = NULL;
        s->used = s->sent = 0;
        if (s->closing)
                return MHD_CONTENT_READER_END_OF_STREAM;
        MHD_suspend_connection(s->connection);
        s->suspended = true;
        return 0;
}

static void on_free(void *userdata) {
        struct stream *s = userdata;

        DL_DELETE(s->events->streams, s);
        s->events->n--;
        if (!s->events->streams)
                s->events->slot = sd_bus_slot_unref(s->events->slot);
        sd_bus_slot_unref(s->slot);
        free(s->buffer);
        free(s);
}

/* ---- what has changed ---- */

/* "id: …", "event: changes", "data: {…}". Allocated. */
static char *event_text(const char *now, bool reset, json_t *jobs, json_t *nodes) {
        _cleanup_(json_decref_p) json_t *o = json_pack("{s:O, s:O}", "jobs", jobs, "nodes", nodes);
        _cleanup_free_ char *data = o ? json_dumps(o, JSON_COMPACT) : NULL;
        char *text = NULL;

        if (!data || asprintf(&text, "id: %s\nevent: %s\ndata: %s\n\n", now, reset ? "reset" : "changes",
                              reset ? "{}" : data) < 0)
                return NULL;
        return text;
}

/* An answer of Changes. ret_text: NULL, nothing has changed and (first) it is not the first one. */
static int read_changes(sd_bus_message *m, bool first, char ret_now[static MARK_MAX], char **ret_text) {
        _cleanup_(json_decref_p) json_t *jobs = NULL, *nodes = NULL;
        const char *now;
        int reset;

        TRY(sd_bus_message_read(m, "sb", &now, &reset));
        TRY(json_read_any(m, &jobs));
        TRY(json_read_any(m, &nodes));
        snprintf(ret_now, MARK_MAX, "%s", now);
        *ret_text = NULL;
        if (!first && !reset && json_array_size(jobs) + json_array_size(nodes) == 0)
                return 0;
        *ret_text = event_text(now, reset, jobs, nodes);
        return *ret_text ? 0 : -ENOMEM;
}

static int ask_changes(struct events *e, sd_bus_slot **slot, const char *since, uint64_t wait,
                       sd_bus_message_handler_t f, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus *bus;

        TRY(serve_bus(e->serve, &bus));
        TRY(sd_bus_message_new_method_call(bus, &m, MASTER_NAME, MASTER_PATH, MASTER_MANAGER, "Changes"));
        TRY(sd_bus_message_append(m, "sta{sv}", since, wait, 0));
        return sd_bus_call_async(bus, slot, m, f, userdata, wait + 25 * USEC_PER_SEC);
}

static void ask_again(struct events *e) {
        (void)sd_event_source_set_time_relative(e->again, AGAIN_SEC * USEC_PER_SEC);
        (void)sd_event_source_set_enabled(e->again, SD_EVENT_ONESHOT);
}

static int on_changes(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct events *e = userdata;
        _cleanup_free_ char *text = NULL;
        struct stream *s;

        e->slot = sd_bus_slot_unref(e->slot);
        if (sd_bus_message_get_error(m) || read_changes(m, false, e->now, &text) < 0) {
                ask_again(e); /* masterd starts, or is busy: the number says what was missed */
                return 0;
        }
        if (text)
                DL_FOREACH (e->streams, s)
                        stream_put(s, text);
        watch_changes(e);
        return 0;
}

/* What all of them wait for, as long as there are some. */
static void watch_changes(struct events *e) {
        if (e->slot || !e->streams)
                return;
        if (ask_changes(e, &e->slot, e->now, *e->now ? WAIT_USEC : 0, on_changes, e) < 0)
                ask_again(e);
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        watch_changes(userdata);
        return 0;
}

static int on_bookmark(sd_event_source *source, uint64_t usec, void *userdata) {
        struct events *e = userdata;
        struct stream *s;
        char text[MARK_MAX + 8];

        snprintf(text, sizeof(text), "id: %s\n\n", e->now);
        DL_FOREACH (e->streams, s)
                stream_put(s, *e->now ? text : ":\n\n");
        (void)sd_event_source_set_time_relative(source, BOOKMARK_SEC * USEC_PER_SEC);
        return sd_event_source_set_enabled(source, e->streams ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* ---- a new stream ---- */

/* From now on, or what has changed since it was here last. */
static int on_missed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct stream *s = userdata;
        _cleanup_free_ char *text = NULL;
        char now[MARK_MAX];

        s->slot = sd_bus_slot_unref(s->slot);
        if (sd_bus_message_get_error(m) || read_changes(m, true, now, &text) < 0)
                stream_put(s, "event: reset\ndata: {}\n\n");
        else
                stream_put(s, text);
        return 0;
}

/* "": from now on. */
static const char *last_seen(struct MHD_Connection *connection) {
        const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Last-Event-ID");

        return text && strlen(text) < MARK_MAX && strspn(text, "0123456789.") == strlen(text) ? text : "";
}

static struct MHD_Response *stream_response(struct stream *s) {
        struct MHD_Response *response =
                MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, on_read, s, on_free);

        if (!response)
                return NULL;
        answer_headers(response);
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        (void)MHD_add_response_header(response, "X-Accel-Buffering", "no");
        return response;
}

enum MHD_Result events_answer(struct events *e, struct MHD_Connection *connection) {
        struct MHD_Response *response;
        struct stream *s;

        if (e->n >= e->serve->streams_max)
                return answer_queue(connection, 503,
                                    answer_problem(503, "There are too many streams of events"));
        s = calloc(1, sizeof(*s));
        if (!s)
                return MHD_NO;
        s->events = e;
        s->connection = connection;
        response = stream_response(s);
        if (!response) {
                free(s);
                return MHD_NO;
        }
        DL_APPEND(e->streams, s);
        e->n++;
        http_server_unhurried(e->serve->http, connection);
        if (ask_changes(e, &s->slot, last_seen(connection), 0, on_missed, s) < 0)
                stream_put(s, "event: reset\ndata: {}\n\n");
        watch_changes(e);
        (void)sd_event_source_set_time_relative(e->bookmark, BOOKMARK_SEC * USEC_PER_SEC);
        (void)sd_event_source_set_enabled(e->bookmark, SD_EVENT_ONESHOT);
        return answer_queue(connection, 200, response);
}

/* ---- life ---- */

int events_new(struct serve *s, struct events **ret) {
        struct events *e = calloc(1, sizeof(*e));

        if (!e)
                return -ENOMEM;
        *ret = e; /* freed with what it belongs to */
        e->serve = s;
        TRY(sd_event_add_time(s->event, &e->again, CLOCK_BOOTTIME, 0, 0, on_again, e));
        TRY(sd_event_source_set_enabled(e->again, SD_EVENT_OFF));
        TRY(sd_event_add_time(s->event, &e->bookmark, CLOCK_BOOTTIME, 0, USEC_PER_SEC, on_bookmark, e));
        return sd_event_source_set_enabled(e->bookmark, SD_EVENT_OFF);
}

void events_bus_gone(struct events *e) {
        struct stream *s;

        if (e->slot)
                ask_again(e);
        e->slot = sd_bus_slot_unref(e->slot);
        DL_FOREACH (e->streams, s) {
                if (s->slot)
                        stream_put(s, "event: reset\ndata: {}\n\n");
                s->slot = sd_bus_slot_unref(s->slot);
        }
}

void events_end(struct events *e) {
        struct stream *s;

        if (!e)
                return;
        DL_FOREACH (e->streams, s) {
                s->closing = true;
                s->slot = sd_bus_slot_unref(s->slot);
                stream_wake(s);
        }
}

void events_free(struct events *e) {
        if (!e)
                return;
        sd_bus_slot_unref(e->slot);
        sd_event_source_disable_unref(e->again);
        sd_event_source_disable_unref(e->bookmark);
        free(e);
}
