/* SPDX-License-Identifier: Apache-2.0 */
/* Reads logs. Invariant: every attempt that has a log is read exactly once from its start (or tail) to its
 * end, whatever happens to masterd in between: the cursor is moved only by an answer. */
#include "tools/primusctl/logstream.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tools/primusctl/text.h"

#define WAIT_LONG (20 * USEC_PER_SEC)     /* the master's maximum */
#define WAIT_SHARED (250 * USEC_PER_MSEC) /* when more executors than the window want to be read in turn */
#define SOON (50 * USEC_PER_MSEC)
#define TAIL_BYTES_PER_LINE 4096u

enum stream_state {
        STREAM_IDLE,    /* nothing to read yet, or masterd is away */
        STREAM_QUEUED,  /* wants to be read */
        STREAM_READING, /* a call is on its way */
        STREAM_DONE,
};

struct stream {
        struct logstream *logs;
        struct watch *watch;
        struct logsource source;
        char *role;
        enum stream_state state;
        bool started; /* the attempt has got as far as having a log */
        bool ended;   /* and is over */
        bool changed; /* since the last call went out */
        bool tailing; /* tail: collects until nothing more is there */
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
        (void)sd_event_exit(sd_bus_get_event(l->cli->bus), status);
}

bool logstream_done(const struct logstream *l) {
        return l->done_told;
}

static void check_done(struct logstream *l, struct watch *w) {
        if (l->done_told || !l->synced || l->n_done < l->n_streams || (l->options.follow && !watch_ended(w)))
                return;
        l->done_told = true;
        if (l->done)
                l->done(l->userdata);
}

static void pump(struct logstream *l);

/* One attempt after the other: a later one waits for the end of those before it. */
static void queue(struct stream *s) {
        struct logstream *l = s->logs;

        s->state = STREAM_IDLE;
        if (s->earlier && s->earlier->state != STREAM_DONE)
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

/* Shows the last lines of what was kept. */
static int show_tail(struct stream *s) {
        size_t start = s->n_kept, lines = 0;
        int r;

        if (s->n_kept > 0 && s->kept[s->n_kept - 1] != '\n')
                lines = 1;
        for (; start > 0; start--)
                if (s->kept[start - 1] == '\n' && ++lines > s->logs->options.tail)
                        break;
        r = show(s, s->kept + start, s->n_kept - start);
        free(s->kept);
        s->kept = NULL;
        s->n_kept = 0;
        s->tailing = false;
        return r;
}

static void finish(struct stream *s) {
        struct logstream *l = s->logs;

        if (s->state == STREAM_DONE)
                return;
        s->state = STREAM_DONE;
        l->n_done++;
        if ((s->tailing && show_tail(s) < 0) || logview_end(l->view, &s->source) < 0)
                quit(l, cli_fail(l->cli, "cannot write the log of %s/%" PRIu32, s->role, s->source.index));
        if (s->later && s->later->state == STREAM_IDLE && s->later->started)
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
                return 0;
        }
        return show_tail(s);
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
                r = sd_event_add_time_relative(sd_bus_get_event(l->cli->bus), &l->retry, CLOCK_BOOTTIME,
                                               500 * USEC_PER_MSEC, 0, on_retry, l);
        if (r < 0)
                quit(l, cli_oom(l->cli));
}

static void read_failed(struct stream *s, const sd_bus_error *error) {
        struct logstream *l = s->logs;

        s->state = STREAM_IDLE;
        if (s->source.attempt == 0 && sd_bus_error_has_name(error, MASTER_ERROR_NOT_FOUND))
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
        bool empty, end, was_tailing = s->tailing;
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
        if (end || (empty && !l->options.follow && !was_tailing))
                finish(s);
        else if (empty && !was_tailing && usec_sub(now_boot(), s->asked_at) < SOON) {
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

static int ask(struct stream *s) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        struct logstream *l = s->logs;
        uint64_t wait = l->options.follow && !s->tailing
                                ? l->n_streams - l->n_done > LOGSTREAM_WINDOW ? WAIT_SHARED : WAIT_LONG
                                : 0;
        int r;

        if (cli_job_call(l->cli, watch_job(s->watch), "ReadLog", &m))
                return -ENOMEM;
        r = sd_bus_message_append(m, "suu", s->role, s->source.index, s->source.attempt);
        if (r >= 0)
                r = sd_bus_message_append_array(m, 'y', s->cursor, s->cursor_size);
        if (r >= 0)
                r = sd_bus_message_append(m, "t", wait);
        if (r >= 0 && s->tailing && s->cursor_size == 0)
                r = sd_bus_message_append(m, "a{sv}", 1, "tail", "t",
                                          (uint64_t)l->options.tail * TAIL_BYTES_PER_LINE);
        else if (r >= 0)
                r = sd_bus_message_append(m, "a{sv}", 0);
        if (r < 0)
                return r;
        s->state = STREAM_READING;
        s->changed = false;
        s->asked_at = now_boot();
        l->reading++;
        return watch_call(s->watch, m, on_read, s, WAIT_LONG + 20 * USEC_PER_SEC);
}

static void pump(struct logstream *l) {
        /* Without -f, one executor after the other: its output stays together. */
        unsigned window = l->options.follow ? LOGSTREAM_WINDOW : 1;

        while (l->head && l->reading < window) {
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

static FILE *open_output(const struct logstream *l, const struct watch *w, const struct executor *e) {
        _cleanup_free_ char *path = NULL;
        size_t size;
        FILE *f = open_memstream(&path, &size);

        if (!f)
                return NULL;
        for (const char *p = l->options.output; *p; p++) {
                if (*p != '%' || !p[1]) {
                        putc(*p, f);
                        continue;
                }
                switch (*++p) {
                case 'j':
                        fprintf(f, "%" PRIu32, watch_job(w)->number);
                        break;
                case 'x':
                        for (const char *name = watch_properties(w)->name; name && *name; name++)
                                putc(*name == '/' ? '_' : *name, f);
                        break;
                case 'r':
                        fputs(e->role, f);
                        break;
                case 'i':
                        fprintf(f, "%" PRIu32, e->index);
                        break;
                case 'a':
                        fprintf(f, "%" PRIu32, e->attempt);
                        break;
                case 'n':
                        fprintf(f, "%" PRIu32, e->rank);
                        break;
                case '%':
                        putc('%', f);
                        break;
                default:
                        fprintf(f, "%%%c", *p);
                }
        }
        if (fclose(f) == EOF)
                return NULL;
        f = fopen(path, "we");
        if (!f)
                cli_fail(l->cli, "%s: %s", path, strerror(errno));
        return f;
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
                if (s->later->state == STREAM_QUEUED)
                        unqueue(s->later);
        }
        memmove(l->streams + at + 1, l->streams + at, (l->n_streams - at) * sizeof(*l->streams));
        l->streams[at] = s;
        l->n_streams++;
}

static struct stream *new_stream(struct logstream *l, struct watch *w, const struct executor *e) {
        struct stream *s, **bigger = realloc(l->streams, (l->n_streams + 1) * sizeof(*bigger));
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
        s->source = (struct logsource){
                .role = s->role,
                .index = e->index,
                .attempt = e->attempt,
                .color = color_of_rank(l->n_shown),
        };
        if (l->options.by_rank)
                r = asprintf(&s->source.prefix, "[%" PRIu32 "] ", e->index);
        else if (e->attempt > 1)
                r = asprintf(&s->source.prefix, "%s/%" PRIu32 ".%" PRIu32 " | ", e->role, e->index,
                             e->attempt);
        else
                r = asprintf(&s->source.prefix, "%s/%" PRIu32 " | ", e->role, e->index);
        if (r < 0 || !s->role) {
                s->source.prefix = NULL;
                stream_free(s);
                return NULL;
        }
        if (l->options.output) {
                s->source.file = open_output(l, w, e);
                if (!s->source.file) {
                        stream_free(s);
                        return NULL;
                }
        }
        l->n_shown++;
        insert(l, s);
        return s;
}

static bool wanted(const struct logstream *l, const struct executor *e) {
        return e->attempt > 0 && (!l->options.role || strcmp(l->options.role, e->role) == 0) &&
               (!l->options.has_index || l->options.index == e->index);
}

void logstream_executor(struct logstream *l, struct watch *w, const struct executor *e) {
        static const char *const without[] = { "PENDING", "PLACED" };
        struct stream *s = NULL;

        if (!wanted(l, e))
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
        if (s->state == STREAM_IDLE) {
                queue(s);
                if (l->synced)
                        pump(l);
        }
}

void logstream_left(struct logstream *l, struct watch *w, const char *role, uint32_t index) {
        struct executor e = { .role = (char *)role, .index = index }; /* attempt 0: the master knows which */
        struct stream *s;

        for (size_t i = 0; i < l->n_streams; i++)
                if (same_executor(l->streams[i], role, index))
                        return;
        s = new_stream(l, w, &e);
        if (s)
                s->started = s->ended = true;
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
