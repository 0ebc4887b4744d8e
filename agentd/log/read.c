/* SPDX-License-Identifier: Apache-2.0 */
/* Serving ReadLog. Invariant: a request is on exactly one of three lists: waiting and done are shared under
 * the lock, active is the thread's. "end" is said only when journald has written everything it had when the
 * unit was known to have ended, and a look after that found nothing. */
#include "agentd/log/read.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <utlist.h>

#include "agentd/log/journal.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "lib/wire/messages.h"

#define PAGE_MIN (4u << 10)
#define LAST_ENTRIES_MAX 65536u     /* looked through for the last lines: an entry need not have a message */
#define IDLE_MAX (5 * USEC_PER_SEC) /* the journal stays open for so long after the last request */

struct request {
        struct request *prev, *next;         /* waiting, active or done */
        struct request *all_prev, *all_next; /* every request, the loop's */
        uint64_t ticket;
        bool cancelled;          /* shared */
        char *unit, *identifier; /* the latter: or NULL */
        sd_id128_t invocation;
        char cursor[LOG_CURSOR_MAX + 1];
        uint32_t max;
        uint64_t deadline, ended, settled;
        bool last;
        bool look; /* something has changed since it was looked at */
        log_page_handler handler;
        void *userdata;
        /* the answer */
        struct log_buffer data;
        char *next_cursor;
        int error;
        bool end;
};

struct log_reader {
        sd_event_source *source;
        char *directory, *sync_socket;
        pthread_t thread;
        bool started;
        int wake_thread, wake_loop;

        pthread_mutex_t lock; /* of the following */
        struct request *waiting, *done;
        char **ended;
        size_t n_ended;
        bool stop;

        /* the loop's */
        uint64_t tickets;
        struct request *all;
        size_t n_requests;

        /* the thread's */
        struct request *active;
        sd_journal *journal;
        unsigned n_read; /* entries since it was opened */
        bool deaf;       /* journald has not answered in time, in this round of looks */
        uint64_t heard;  /* when something of a unit that has ended was read last */
        uint64_t synced, idle_since;
};

static void request_free(struct request *q) {
        free(q->unit);
        free(q->identifier);
        free(q->next_cursor);
        log_buffer_done(&q->data);
        free(q);
}

static void notify(int fd) {
        (void)eventfd_write(fd, 1);
}

/* ---- the thread ---- */

/* Whether the current entry is of another life of the unit's name. It is no match, since entries of a unit
 * that was gone before journald got to its output do not have the field at all. */
static bool other_invocation(sd_journal *j, const struct request *q) {
        static const size_t name = sizeof("_SYSTEMD_INVOCATION_ID=") - 1;
        char id[SD_ID128_STRING_MAX];
        const char *data;
        size_t size;

        if (sd_id128_is_null(q->invocation) ||
            sd_journal_get_data(j, "_SYSTEMD_INVOCATION_ID", (const void **)&data, &size) < 0)
                return false;
        return size != name + SD_ID128_STRING_MAX - 1 ||
               memcmp(data + name, sd_id128_to_string(q->invocation, id), SD_ID128_STRING_MAX - 1) != 0;
}

/* Back from the end, to the first of the entries that fill a page. */
static int seek_last(struct log_reader *l, const struct request *q) {
        sd_journal *j = l->journal;
        size_t sum = 0, size;
        const void *data;
        int r = sd_journal_seek_tail(j);

        for (unsigned n = 0; r >= 0 && (r = sd_journal_previous(j)) > 0; n++) {
                l->n_read++;
                if (!other_invocation(j, q))
                        sum += sd_journal_get_data(j, "MESSAGE", &data, &size) < 0 ? 0 : size;
                /* This one has no room any more; the latest alone is cut. */
                if (sum > q->max || n >= LAST_ENTRIES_MAX)
                        return n == 0 ? r : sd_journal_next(j);
        }
        return r < 0 || (r = sd_journal_seek_head(j)) < 0 ? r : sd_journal_next(j);
}

/* Fields of entries: values of two of them have to be met both. */
static int add_match(sd_journal *j, const char *field, const char *value) {
        char match[LOG_IDENTIFIER_MAX + 64];

        if (snprintf(match, sizeof(match), "%s=%s", field, value) >= (int)sizeof(match))
                return -EINVAL;
        return sd_journal_add_match(j, match, 0);
}

/* Puts the journal on the first entry that the request wants; *ret_mark is that of the entry before it. */
static int request_seek(struct log_reader *l, const struct request *q, const void **ret_mark) {
        sd_journal *j = l->journal;
        int r;

        *ret_mark = NULL;
        sd_journal_flush_matches(j);
        TRY(add_match(j, "_SYSTEMD_UNIT", q->unit));
        if (q->identifier)
                TRY(add_match(j, "SYSLOG_IDENTIFIER", q->identifier));
        if (q->last)
                return seek_last(l, q);
        if (!q->cursor[0]) {
                r = sd_journal_seek_head(j);
                return r < 0 ? r : sd_journal_next(j);
        }
        r = sd_journal_seek_cursor(j, q->cursor);
        if (r < 0)
                return r;
        r = sd_journal_next(j);
        /* Where the cursor's own entry has been vacuumed, what comes next is new already. */
        if (r > 0 && sd_journal_test_cursor(j, q->cursor) > 0) {
                *ret_mark = journal_mark(j);
                r = sd_journal_next(j);
        }
        return r;
}

/* Reads a page. 1: the journal has more, 0: that is all there is, < 0. */
static int request_page(struct log_reader *l, struct request *q) {
        sd_journal *j = l->journal;
        const void *mark;
        int r = request_seek(l, q, &mark);

        while (r > 0) {
                size_t before = q->data.size;
                const void *mark_before = TAKE_PTR(mark);
                char *cursor;
                int n = other_invocation(j, q) ? 0 : journal_append_entry(j, &q->data, q->max);

                l->n_read++;
                if (q->ended > 0)
                        l->heard = now_boot();
                /* What a vacuuming journald takes away under our hands is no reason to fail. */
                if (n < 0 && n != -EBADMSG && n != -EADDRNOTAVAIL)
                        return n;
                if (q->data.size > q->max && before > 0) {
                        q->data.size = before;
                        return 1;
                }
                r = sd_journal_get_cursor(j, &cursor);
                if (r < 0)
                        return r;
                mark = journal_mark(j);
                if (journal_repeated(q->next_cursor ? q->next_cursor : q->cursor, mark_before, cursor, mark))
                        q->data.size = before;
                free(q->next_cursor);
                q->next_cursor = cursor;
                if (q->data.size >= q->max)
                        return 1;
                r = sd_journal_next(j);
        }
        return r;
}

/* Whether everything that the unit has printed is in the journal by now. */
static bool is_complete(struct log_reader *l, struct request *q, uint64_t now) {
        int r;

        if (q->ended == 0)
                return false;
        if (l->synced < q->ended) {
                if (q->settled > 0)
                        return now >= q->settled;
                if (l->deaf) {
                        q->look = true; /* the others come first, who may have something to read */
                        return false;
                }
                r = journal_sync(l->sync_socket, JOURNAL_SYNC_MAX);
                l->deaf = r == -ETIMEDOUT;
                /* One that is there and does not come to it is asked again when the journal has changed, or
                 * by the next request. It may be far behind, and stand still for a while as its host does. */
                if (l->deaf && now_boot() < MAX(q->ended, l->heard) + JOURNAL_DEAF_MAX)
                        return false;
                if (r < 0) {
                        q->settled = now_boot() + JOURNAL_SETTLE_MAX;
                        return false;
                }
                l->synced = now; /* when it was asked, not when it answered */
                (void)sd_journal_process(l->journal);
        }
        return true;
}

static bool request_look(struct log_reader *l, struct request *q, uint64_t now) {
        bool synced = q->ended > 0 && l->synced >= q->ended,
             silent = q->ended > 0 && q->settled > 0 && now >= q->settled;
        int r;

        q->look = false;
        if (q->last && !synced && !silent) {
                synced = is_complete(l, q, now);
                if (!synced && now < q->deadline)
                        return false;
        }
        r = request_page(l, q);
        if (r == 0 && q->data.size == 0 && !synced && !silent && is_complete(l, q, now)) {
                synced = true;
                r = request_page(l, q);
        }
        /* A journald that has not answered and still writes is behind: the next request asks it again. */
        q->end = r == 0 && (synced || (silent && q->data.size == 0));
        q->error = MIN(r, 0);
        return r < 0 || q->data.size > 0 || q->end || now >= q->deadline;
}

/* Takes what the loop has left. False: stop. */
static bool take_orders(struct log_reader *l) {
        struct request *q, *next;
        uint64_t now = now_boot();
        bool stop;

        pthread_mutex_lock(&l->lock);
        DL_CONCAT(l->active, l->waiting);
        l->waiting = NULL;
        DL_FOREACH_SAFE (l->active, q, next) {
                for (size_t i = 0; i < l->n_ended; i++)
                        if (strcmp(l->ended[i], q->unit) == 0) {
                                q->ended = q->ended ? q->ended : now;
                                q->look = true;
                        }
                if (q->cancelled) {
                        /* Back to the loop, which forgets it. */
                        DL_DELETE(l->active, q);
                        DL_APPEND(l->done, q);
                        l->idle_since = now;
                        notify(l->wake_loop);
                }
        }
        for (size_t i = 0; i < l->n_ended; i++)
                free(l->ended[i]);
        l->n_ended = 0;
        stop = l->stop;
        pthread_mutex_unlock(&l->lock);
        return !stop;
}

static void answer_request(struct log_reader *l, struct request *q) {
        DL_DELETE(l->active, q);
        l->idle_since = now_boot();
        pthread_mutex_lock(&l->lock);
        DL_APPEND(l->done, q);
        pthread_mutex_unlock(&l->lock);
        notify(l->wake_loop);
}

static void look_at_requests(struct log_reader *l) {
        struct request *q, *next;
        int r;

        l->deaf = false;
        r = l->journal ? 0 : journal_open(l->directory, &l->journal);
        if (r < 0)
                l->journal = NULL;
        else {
                int changed = sd_journal_process(l->journal);

                if (changed > 0)
                        DL_FOREACH (l->active, q)
                                q->look = true;
        }
        DL_FOREACH_SAFE (l->active, q, next) {
                uint64_t now = now_boot();

                if (!l->journal) {
                        q->error = r;
                        answer_request(l, q);
                } else if (q->look || now >= q->deadline || (q->settled > 0 && now >= q->settled)) {
                        if (request_look(l, q, now))
                                answer_request(l, q);
                }
        }
}

static void wait_for_change(struct log_reader *l) {
        struct pollfd fds[2] = { { .fd = l->wake_thread, .events = POLLIN }, { .fd = -1, .events = POLLIN } };
        uint64_t now = now_boot(), until = USEC_INFINITY, timeout;
        struct request *q;
        eventfd_t value;

        if (!l->active && l->journal && now >= l->idle_since + IDLE_MAX) {
                sd_journal_close(l->journal);
                l->journal = NULL;
        }
        if (l->journal) {
                int fd = sd_journal_get_fd(l->journal);

                fds[1].fd = fd >= 0 ? fd : -1;
                until = l->active ? USEC_INFINITY : l->idle_since + IDLE_MAX;
                /* A journal on a network file system says nothing of its own accord. */
                if (l->active && (fd < 0 || sd_journal_reliable_fd(l->journal) == 0))
                        until = now + USEC_PER_SEC;
        }
        DL_FOREACH (l->active, q) {
                until = MIN(until, q->deadline);
                if (q->settled > 0)
                        until = MIN(until, q->settled);
                if (q->look)
                        until = now;
        }
        timeout = until == USEC_INFINITY ? 0 : (usec_sub(until, now) + 999) / 1000;
        (void)poll(fds, 2, until == USEC_INFINITY ? -1 : (int)MIN(timeout, UINT64_C(3600000)));
        if (fds[0].revents)
                (void)eventfd_read(l->wake_thread, &value);
        if (until != USEC_INFINITY && fds[1].fd >= 0 && l->journal && sd_journal_reliable_fd(l->journal) == 0)
                DL_FOREACH (l->active, q)
                        q->look = true;
        /* Nobody looks: what has changed is taken note of here, or the poll would return for ever. */
        if (fds[1].revents && l->journal && !l->active)
                (void)sd_journal_process(l->journal);
}

static void *reader_thread(void *userdata) {
        struct log_reader *l = userdata;
        struct request *q, *next;

        while (take_orders(l)) {
                if (l->active)
                        look_at_requests(l);
                wait_for_change(l);
        }
        if (l->journal)
                sd_journal_close(l->journal);
        DL_FOREACH_SAFE (l->active, q, next)
                request_free(q);
        return NULL;
}

/* ---- the loop ---- */

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        struct log_reader *l = userdata;
        eventfd_t value;

        (void)eventfd_read(fd, &value);
        for (;;) {
                struct request *q;
                struct log_page page;

                pthread_mutex_lock(&l->lock);
                q = l->done;
                if (q)
                        DL_DELETE(l->done, q);
                pthread_mutex_unlock(&l->lock);
                if (!q)
                        return 0;
                page = (struct log_page){ .error = q->error };
                if (q->error >= 0)
                        page = (struct log_page){ .data = q->data.data ? q->data.data : "",
                                                  .size = q->data.size,
                                                  .cursor = q->next_cursor ? q->next_cursor : q->cursor,
                                                  .end = q->end };
                DL_DELETE2(l->all, q, all_prev, all_next);
                l->n_requests--;
                if (!q->cancelled)
                        q->handler(q->userdata, &page);
                request_free(q);
        }
}

int log_reader_new(sd_event *event, const struct log_reader_options *options, struct log_reader **ret) {
        struct log_reader *l = calloc(1, sizeof(*l));
        sigset_t all, old;
        int r;

        if (!l)
                return -ENOMEM;
        pthread_mutex_init(&l->lock, NULL);
        l->wake_thread = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        l->wake_loop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (l->wake_thread < 0 || l->wake_loop < 0) {
                r = -errno;
                goto fail;
        }
        r = -ENOMEM;
        if ((options && options->directory && !(l->directory = strdup(options->directory))) ||
            (options && options->sync_socket && !(l->sync_socket = strdup(options->sync_socket))))
                goto fail;
        r = sd_event_add_io(event, &l->source, l->wake_loop, POLLIN, on_done, l);
        if (r < 0)
                goto fail;
        /* Signals are the main thread's. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        r = -pthread_create(&l->thread, NULL, reader_thread, l);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (r < 0)
                goto fail;
        l->started = true;
        *ret = l;
        return 0;
fail:
        log_reader_free(l);
        return r;
}

void log_reader_free(struct log_reader *l) {
        struct request *q, *next;

        if (!l)
                return;
        if (l->started) {
                pthread_mutex_lock(&l->lock);
                l->stop = true;
                pthread_mutex_unlock(&l->lock);
                notify(l->wake_thread);
                pthread_join(l->thread, NULL);
        }
        DL_FOREACH_SAFE (l->waiting, q, next)
                request_free(q);
        DL_FOREACH_SAFE (l->done, q, next)
                request_free(q);
        for (size_t i = 0; i < l->n_ended; i++)
                free(l->ended[i]);
        free(l->ended);
        sd_event_source_disable_unref(l->source);
        (void)close_fd(l->wake_thread);
        (void)close_fd(l->wake_loop);
        pthread_mutex_destroy(&l->lock);
        free(l->directory);
        free(l->sync_socket);
        free(l);
}

int log_read(struct log_reader *l, const struct log_request *q, log_page_handler handler, void *userdata,
             uint64_t *ret_ticket) {
        struct request *n;

        if (q->cursor_size > LOG_CURSOR_MAX || memchr(q->cursor_size ? q->cursor : "", 0, q->cursor_size) ||
            !*q->unit || strlen(q->unit) > 255 ||
            (q->identifier && strlen(q->identifier) > LOG_IDENTIFIER_MAX))
                return -EINVAL;
        if (l->n_requests >= LOG_REQUESTS_MAX)
                return -EBUSY;
        n = calloc(1, sizeof(*n));
        if (!n)
                return -ENOMEM;
        n->unit = strdup(q->unit);
        n->identifier = q->identifier ? strdup(q->identifier) : NULL;
        if (!n->unit || (q->identifier && !n->identifier)) {
                request_free(n);
                return -ENOMEM;
        }
        n->ticket = ++l->tickets;
        n->invocation = q->invocation;
        memcpy(n->cursor, q->cursor_size ? q->cursor : "", q->cursor_size);
        n->max = q->max < PAGE_MIN ? PAGE_MIN : MIN(q->max, LINK_CHUNK_MAX);
        n->deadline = usec_add(now_boot(), q->wait_usec);
        n->ended = q->ended;
        n->last = q->last;
        n->look = true;
        n->handler = handler;
        n->userdata = userdata;
        DL_APPEND2(l->all, n, all_prev, all_next);
        l->n_requests++;
        if (ret_ticket)
                *ret_ticket = n->ticket;
        pthread_mutex_lock(&l->lock);
        DL_APPEND(l->waiting, n);
        pthread_mutex_unlock(&l->lock);
        notify(l->wake_thread);
        return 0;
}

void log_read_cancel(struct log_reader *l, uint64_t ticket) {
        struct request *q;

        DL_FOREACH2 (l->all, q, all_next)
                if (q->ticket == ticket) {
                        pthread_mutex_lock(&l->lock);
                        q->cancelled = true;
                        pthread_mutex_unlock(&l->lock);
                        notify(l->wake_thread);
                        return;
                }
}

void log_reader_ended(struct log_reader *l, const char *unit) {
        char *name = NULL, **bigger = NULL;
        struct request *q;

        DL_FOREACH2 (l->all, q, all_next)
                if (strcmp(q->unit, unit) == 0)
                        break;
        if (!q)
                return; /* nobody reads it; the next request says itself that it has ended */
        name = strdup(unit);
        pthread_mutex_lock(&l->lock);
        bigger = name ? reallocarray(l->ended, l->n_ended + 1, sizeof(char *)) : NULL;
        if (bigger) {
                l->ended = bigger;
                l->ended[l->n_ended++] = name;
        }
        pthread_mutex_unlock(&l->lock);
        if (!bigger) {
                free(name); /* the request ends at its deadline, and the next one says it */
                return;
        }
        notify(l->wake_thread);
}
