/* SPDX-License-Identifier: Apache-2.0 */
/* Reads logs. Invariant: every attempt that has a log is read exactly once from its start (or tail) to its
 * end, whatever happens to masterd in between: the cursor is moved only by an answer. The tail of an executor
 * is gathered from its latest attempt backwards, as far as its lines last. */
#include "tools/primusctl/commands/logstream.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/element.h"
#include "lib/base/try.h"
#include "tools/primusctl/bus/logfile.h"
#include "tools/primusctl/cli/text.h"

#define WAIT_LONG (20 * USEC_PER_SEC)     /* the master's maximum */
#define WAIT_SHARED (250 * USEC_PER_MSEC) /* when more executors than the window want to be read in turn */
#define SOON (50 * USEC_PER_MSEC)
#define TAIL_BYTES_PER_LINE 4096u
#define TAIL_KEPT_MAX (16u << 20) /* then what is more than the tail is dropped while it is gathered */

enum stream_state {
        STREAM_IDLE,    /* nothing to read yet, or masterd is away */
        STREAM_QUEUED,  /* wants to be read */
        STREAM_READING, /* a call is on its way */
        STREAM_HELD, /* tail: what there was is gathered; earlier attempts may have to be shown before it */
        STREAM_DONE,
};

struct stream {
        struct logstream *logs;
        struct watch *watch;
        struct logsource source;
        char *role;
        enum stream_state state;
        bool started;   /* the attempt has got as far as having a log */
        bool ended;     /* and is over */
        bool changed;   /* since the last call went out */
        bool tailing;   /* tail: collects until nothing more is there, and the later attempts have theirs */
        bool over;      /* while tailing: the end of the log has been read */
        bool named;     /* it was asked for by name: not to have it is a failure */
        uint32_t lines; /* so many are left to it of the executor's tail */
        void *cursor;
        size_t cursor_size;
        uint64_t asked_at;
        char *kept; /* while tailing */
        size_t n_kept;
        struct stream *next;            /* in the queue */
        struct stream *earlier, *later; /* attempts of the same executor */
};

struct logstream {
        struct cli *cli;
        struct logstream_options options;
        struct logview *view;
        struct stream **streams;
        size_t n_streams, n_shown, n_done;
        struct stream *head, *tail;
        unsigned reading;
        bool synced, done_told, missing;
        sd_event_source *retry;
        void (*done)(void *userdata);
        void *userdata;
};

static void stream_free(struct stream *s) {
        logsource_done(&s->source);
        free(s->role);
        free(s->cursor);
        free(s->kept);
        free(s);
}

void logstream_free(struct logstream *l) {
        if (!l)
                return;
        sd_event_source_disable_unref(l->retry);
        for (size_t i = 0; i < l->n_streams; i++)
                stream_free(l->streams[i]);
        free(l->streams);
        free(l);
}

int logstream_new(struct cli *c, const struct logstream_options *options, struct logview *view,
                  struct logstream **ret) {
        struct logstream *l = calloc(1, sizeof(*l));

        if (!l)
                return cli_oom(c);
        l->cli = c;
        l->options = *options;
        l->view = view;
        *ret = l;
        return 0;
}

void logstream_on_done(struct logstream *l, void (*done)(void *userdata), void *userdata) {
        l->done = done;
        l->userdata = userdata;
}

static void quit(struct logstream *l, int status) {
        (void)sd_event_exit(l->cli->loop, status);
}

bool logstream_done(const struct logstream *l) {
        return l->done_told;
}

size_t logstream_shown(const struct logstream *l) {
        return l->n_shown;
}

static void check_done(struct logstream *l, struct watch *w) {
        if (l->done_told || !l->synced || l->n_done < l->n_streams || (l->options.follow && !watch_ended(w)))
                return;
        l->done_told = true;
        if (l->done)
                l->done(l->userdata);
}

static void pump(struct logstream *l);

/* One attempt after the other: a later one waits for the end of those before it; of a tail, the other way
 * round. */
static void queue(struct stream *s) {
        struct logstream *l = s->logs;

        s->state = STREAM_IDLE;
        if (s->tailing ? s->later && s->later->tailing && s->later->state != STREAM_HELD
                       : s->earlier && s->earlier->state != STREAM_DONE)
                return;
        s->state = STREAM_QUEUED;
        s->next = NULL;
        if (l->tail)
                l->tail->next = s;
        else
                l->head = s;
        l->tail = s;
}

static void unqueue(struct stream *s) {
        struct logstream *l = s->logs;
        struct stream *before = NULL;

        for (struct stream *i = l->head; i != s; i = i->next)
                before = i;
        if (before)
                before->next = s->next;
        else
                l->head = s->next;
        if (l->tail == s)
                l->tail = before;
        s->state = STREAM_IDLE;
}

static int show(struct stream *s, const char *data, size_t n) {
        return logview_data(s->logs->view, &s->source, data, n);
}

/* Drops what is more than the last n lines of what was kept; returns how many there are then. */
static uint32_t cut_tail(struct stream *s, uint32_t n) {
        size_t start = s->n_kept;
        uint32_t lines = 0;

        for (; start > 0; start--)
                if ((s->kept[start - 1] == '\n' || start == s->n_kept) && lines++ == n)
                        break;
        s->n_kept -= start;
        memmove(s->kept, s->kept + start, s->n_kept);
        return lines > n ? n : lines;
}

static void finish(struct stream *s);

/* Shows what was kept of an attempt, and of those behind it, which waited for that. */
static void show_tails(struct stream *s) {
        struct logstream *l = s->logs;

        for (struct stream *next; s && s->tailing; s = next) {
                int r = s->n_kept > 0 ? show(s, s->kept, s->n_kept) : 0;

                next = s->later;
                free(s->kept);
                s->kept = NULL;
                s->n_kept = 0;
                s->tailing = false;
                if (r < 0) {
                        quit(l, cli_fail(l->cli, "cannot write the log of %s/%" PRIu32, s->role,
                                         s->source.index));
                        return;
                }
                if (s->over)
                        finish(s);
                else
                        queue(s);
        }
}

/* All that there is of an attempt has been gathered. What is left of the tail is the attempt's before it. */
static void gathered(struct stream *s, bool over) {
        uint32_t lines = cut_tail(s, s->lines);
        struct stream *e = s->earlier;

        s->over = over;
        s->state = STREAM_HELD;
        if (lines < s->lines && e && e->tailing) {
                e->lines = s->lines - lines;
                if (e->started)
                        queue(e);
                return;
        }
        for (; e && e->tailing; e = e->earlier) /* none of it is in the tail */
                if (e->state != STREAM_DONE) {
                        e->tailing = false;
                        e->state = STREAM_DONE;
                        s->logs->n_done++;
                        (void)logview_end(s->logs->view, &e->source);
                }
        show_tails(s);
}

static void finish(struct stream *s) {
        struct logstream *l = s->logs;

        if (s->state == STREAM_DONE)
                return;
        s->state = STREAM_DONE;
        l->n_done++;
        if (logview_end(l->view, &s->source) < 0)
                quit(l, cli_fail(l->cli, "cannot write the log of %s/%" PRIu32, s->role, s->source.index));
        if (s->later && s->later->state == STREAM_IDLE && s->later->started && !s->later->tailing)
                queue(s->later);
        check_done(l, s->watch);
}

static int take(struct stream *s, sd_bus_message *m, bool *ret_empty, bool *ret_end) {
        const void *data, *next;
        size_t n, n_next;
        void *cursor;
        int end, r;

        r = sd_bus_message_read_array(m, 'y', &data, &n);
        if (r >= 0)
                r = sd_bus_message_read_array(m, 'y', &next, &n_next);
        if (r >= 0)
                r = sd_bus_message_read(m, "b", &end);
        if (r < 0)
                return r;
        cursor = malloc(n_next + 1);
        if (!cursor)
                return -ENOMEM;
        if (n_next > 0)
                memcpy(cursor, next, n_next);
        free(s->cursor);
        s->cursor = cursor;
        s->cursor_size = n_next;
        *ret_empty = n == 0;
        *ret_end = end;
        if (!s->tailing)
                return n > 0 ? show(s, data, n) : 0;
        if (n > 0) {
                char *bigger = realloc(s->kept, s->n_kept + n);
                if (!bigger)
                        return -ENOMEM;
                s->kept = bigger;
                memcpy(s->kept + s->n_kept, data, n);
                s->n_kept += n;
                if (s->n_kept > TAIL_KEPT_MAX)
                        (void)cut_tail(s, s->lines);
        }
        return 0;
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        struct logstream *l = userdata;

        for (size_t i = 0; i < l->n_streams; i++)
                if (l->streams[i]->state == STREAM_IDLE && l->streams[i]->started)
                        queue(l->streams[i]);
        pump(l);
        return 0;
}

/* The master is busy, or an attempt that is over has no log where there should be one: once more a little
 * later. */
static void retry_later(struct logstream *l) {
        int r;

        if (l->retry) {
                r = sd_event_source_set_time_relative(l->retry, 500 * USEC_PER_MSEC);
                if (r >= 0)
                        r = sd_event_source_set_enabled(l->retry, SD_EVENT_ONESHOT);
        } else
                r = sd_event_add_time_relative(l->cli->loop, &l->retry, CLOCK_BOOTTIME, 500 * USEC_PER_MSEC,
                                               0, on_retry, l);
        if (r < 0)
                quit(l, cli_oom(l->cli));
}

static void read_failed(struct stream *s, const sd_bus_error *error) {
        struct logstream *l = s->logs;

        s->state = STREAM_IDLE;
        if (s->named && sd_bus_error_has_name(error, MASTER_ERROR_NOT_FOUND))
                quit(l, cli_fail(l->cli, "%s", error->message)); /* it was asked for by name */
        else if (sd_bus_error_has_name(error, MASTER_ERROR_NOT_FOUND)) {
                /* No log (yet). */
                if (s->changed)
                        queue(s);
                else if (s->ended || !l->options.follow || watch_ended(s->watch)) {
                        /* One sentence for all: what is missing is usually a host's. */
                        if (!l->missing && s->ended)
                                cli_fail(l->cli, "%s", error->message);
                        l->missing = true;
                        if (s->tailing)
                                gathered(s, true);
                        else
                                finish(s);
                } else
                        retry_later(l); /* its host may have to come back first */
        } else if (sd_bus_error_has_name(error, MASTER_ERROR_BUSY))
                retry_later(l);
        else
                watch_call_failed(s->watch, error);
}

static int on_read(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct stream *s = userdata;
        struct logstream *l = s->logs;
        bool empty, end;
        int r;

        (void)ret_error;
        l->reading--;
        if (sd_bus_message_is_method_error(m, NULL)) {
                read_failed(s, sd_bus_message_get_error(m));
                pump(l);
                return 0;
        }
        r = take(s, m, &empty, &end);
        if (r < 0) {
                quit(l, r == -EBADMSG || r == -ENXIO
                                ? cli_bad_reply(l->cli, r)
                                : cli_fail(l->cli, "cannot show the log: %s", strerror(-r)));
                return 0;
        }
        if (s->tailing && (end || empty))
                gathered(s, end);
        else if (end || (empty && !l->options.follow))
                finish(s);
        else if (empty && !s->tailing && usec_sub(now_boot(), s->asked_at) < SOON) {
                /* The master did not wait. Not asking at once again keeps both of us idle. */
                s->state = STREAM_IDLE;
                retry_later(l);
        } else
                queue(s);
        r = logview_flush(l->view);
        if (r < 0) {
                quit(l, cli_fail(l->cli, "cannot write to standard output: %s", strerror(-r)));
                return 0;
        }
        pump(l);
        return 0;
}

static unsigned window(const struct logstream *l) {
        return l->options.window ? l->options.window : LOGSTREAM_WINDOW;
}

static int ask(struct stream *s) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        struct logstream *l = s->logs;
        uint64_t wait = l->options.follow && !s->tailing
                                ? l->n_streams - l->n_done > window(l) ? WAIT_SHARED : WAIT_LONG
                                : 0;

        if (cli_job_call(l->cli, watch_job(s->watch), "ReadLog", &m))
                return -ENOMEM;
        TRY(sd_bus_message_append(m, "suu", s->role, s->source.index, s->source.attempt));
        TRY(sd_bus_message_append_array(m, 'y', s->cursor, s->cursor_size));
        TRY(sd_bus_message_append(m, "t", wait));
        if (s->tailing && s->cursor_size == 0)
                TRY(sd_bus_message_append(m, "a{sv}", 1, "tail", "t",
                                          (uint64_t)s->lines * TAIL_BYTES_PER_LINE));
        else if (l->options.identifier)
                TRY(sd_bus_message_append(m, "a{sv}", 1, "identifier", "s", l->options.identifier));
        else
                TRY(sd_bus_message_append(m, "a{sv}", 0));
        s->state = STREAM_READING;
        s->changed = false;
        s->asked_at = now_boot();
        l->reading++;
        return watch_call(s->watch, m, on_read, s, WAIT_LONG + 20 * USEC_PER_SEC);
}

static void pump(struct logstream *l) {
        /* Without -f, one executor after the other: its output stays together. */
        unsigned most = l->options.follow ? window(l) : 1;

        while (l->head && l->reading < most) {
                struct stream *s = l->head;

                if (!l->options.follow) {
                        /* The queue puts a stream that is half read behind the others; take the first in
                         * order. */
                        for (size_t i = 0; i < l->n_streams; i++)
                                if (l->streams[i]->state == STREAM_QUEUED) {
                                        s = l->streams[i];
                                        break;
                                }
                }
                unqueue(s);
                if (ask(s) < 0) {
                        quit(l, cli_oom(l->cli));
                        return;
                }
        }
}

static bool same_executor(const struct stream *s, const char *role, uint32_t index) {
        return s->source.index == index && strcmp(s->role, role) == 0;
}

/* Puts s, for which there is room, behind the earlier attempts of its executor and before the later ones. */
static void insert(struct logstream *l, struct stream *s) {
        size_t at = l->n_streams;

        for (size_t i = 0; i < l->n_streams; i++) {
                struct stream *other = l->streams[i];

                if (!same_executor(other, s->role, s->source.index))
                        continue;
                if (other->source.attempt < s->source.attempt)
                        s->earlier = other;
                else if (!s->later) {
                        s->later = other;
                        at = i;
                }
        }
        if (s->earlier)
                s->earlier->later = s;
        if (s->later) {
                s->later->earlier = s;
                if (s->later->state == STREAM_QUEUED && !s->later->tailing)
                        unqueue(s->later);
        }
        memmove(l->streams + at + 1, l->streams + at, (l->n_streams - at) * sizeof(*l->streams));
        l->streams[at] = s;
        l->n_streams++;
}

static struct stream *new_stream(struct logstream *l, struct watch *w, const struct executor *e) {
        struct stream *s, **bigger = realloc(l->streams, (l->n_streams + 1) * sizeof(*bigger));
        char element[16] = "", attempt[16] = "";
        int r;

        if (!bigger)
                return NULL;
        l->streams = bigger;
        s = calloc(1, sizeof(*s));
        if (!s)
                return NULL;
        s->logs = l;
        s->watch = w;
        s->role = strdup(e->role);
        s->tailing = l->options.tail > 0 && !l->synced;
        s->lines = l->options.tail;
        s->source = (struct logsource){
                .role = s->role,
                .index = e->index,
                .attempt = e->attempt,
                .element = l->options.element,
                .has_element = l->options.has_element,
                .color = color_of_rank(l->options.has_element ? l->options.element : l->n_shown),
        };
        if (l->options.has_element && l->options.element != ELEMENT_SEARCHER)
                snprintf(element, sizeof(element), "[%" PRIu32 "] ", l->options.element);
        if (e->attempt > 1)
                snprintf(attempt, sizeof(attempt), ".%" PRIu32, e->attempt);
        if (l->options.by_rank)
                r = asprintf(&s->source.prefix, "[%" PRIu32 "] ", e->index);
        else
                r = asprintf(&s->source.prefix, "%s%s/%" PRIu32 "%s | ", element, e->role, e->index, attempt);
        if (r < 0 || !s->role) {
                s->source.prefix = NULL;
                stream_free(s);
                return NULL;
        }
        if (l->options.output) {
                s->source.file = logfile_open(l->cli, l->options.output, w, e);
                if (!s->source.file) {
                        stream_free(s);
                        return NULL;
                }
        }
        l->n_shown++;
        insert(l, s);
        return s;
}

bool logstream_wants(const struct logstream *l, const struct executor *e) {
        return e->attempt > 0 && (l->options.attempt == 0 || l->options.attempt == e->attempt) &&
               (!l->options.role || strcmp(l->options.role, e->role) == 0) &&
               (!l->options.has_index || l->options.index == e->index);
}

void logstream_executor(struct logstream *l, struct watch *w, const struct executor *e) {
        static const char *const without[] = { "PENDING", "PLACED" };
        struct stream *s = NULL;

        if (!logstream_wants(l, e))
                return;
        for (size_t i = 0; i < ELEMENTSOF(without); i++)
                if (strcmp(e->state, without[i]) == 0)
                        return;
        for (size_t i = 0; i < l->n_streams && !s; i++)
                if (l->streams[i]->source.attempt == e->attempt &&
                    same_executor(l->streams[i], e->role, e->index))
                        s = l->streams[i];
        if (!s)
                s = new_stream(l, w, e);
        if (!s) {
                quit(l, cli_fail(l->cli, "cannot follow %s/%" PRIu32, e->role, e->index));
                return;
        }
        s->started = true;
        s->ended = state_is_end(e->state);
        s->changed = true;
        if (s->state == STREAM_IDLE && l->synced) {
                queue(s);
                pump(l);
        }
}

void logstream_left(struct logstream *l, struct watch *w, const char *role, uint32_t index) {
        /* Attempt 0: the master knows which is the latest. */
        struct executor e = { .role = (char *)role, .index = index, .attempt = l->options.attempt };
        struct stream *s;

        for (size_t i = 0; i < l->n_streams; i++)
                if (same_executor(l->streams[i], role, index))
                        return;
        s = new_stream(l, w, &e);
        if (s)
                s->started = s->ended = s->named = true;
        else
                quit(l, cli_fail(l->cli, "cannot follow %s/%" PRIu32, role, index));
}

void logstream_synced(struct logstream *l, struct watch *w) {
        l->synced = true;
        for (size_t i = 0; i < l->n_streams; i++)
                if (l->streams[i]->state == STREAM_IDLE && l->streams[i]->started)
                        queue(l->streams[i]);
        pump(l);
        check_done(l, w);
}

void logstream_job_ended(struct logstream *l, struct watch *w) {
        if (l->synced)
                logstream_synced(l, w);
}
