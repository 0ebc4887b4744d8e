/* SPDX-License-Identifier: Apache-2.0 */
/* Reading for the tail. Invariants: the position (cursor) and every executor's counted bytes belong to the
 * same place in the journal; held is the sum of all buffers. */
#include "agentd/log/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <uthash.h>

#include "agentd/log/journal.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "lib/base/unitname.h"

#define TURN_MAX 2000u                    /* entries read before orders are looked at */
#define SYNC_PERIOD (500 * USEC_PER_MSEC) /* each makes journald write to the disk */
#define RETRY USEC_PER_SEC
#define CLOCK_SLACK USEC_PER_SEC /* the wall clock may have been set back a little since */
#define STATE_MAX (16u << 20)

struct executor {
        char unit[UNIT_NAME_MAX];
        struct executor_id id;
        uint64_t offset; /* of the first byte in held */
        struct log_buffer held;
        uint64_t ended; /* when; 0: it runs */
        UT_hash_handle hh;
};

/* A position from the state file, until its executor is added. */
struct saved {
        char unit[UNIT_NAME_MAX];
        uint64_t offset;
        UT_hash_handle hh;
};

struct follow {
        char *directory, *sync_socket, *state;
        sd_journal *journal;
        struct executor *executors;
        struct saved *saved;
        char *cursor;        /* of the last entry read; NULL: none yet, */
        const void *mark;    /* its journal_mark() while the journal is open */
        uint64_t since_real; /* entries from then on */
        bool stale;          /* the position has to be set anew */
        bool idle;           /* nobody is followed: what is printed meanwhile is nobody's */
        bool at_end;
        unsigned n_read; /* entries since it was opened */
        size_t held, n_ended;
        uint64_t held_since; /* boot time of the oldest undelivered byte; 0: none */
        uint64_t synced;     /* boot time of the last synchronisation's start */
        uint64_t asked;      /* and of the end of the last try */
        uint64_t deaf_since; /* boot time of the first that was not answered; 0: the last one was */
        uint64_t read_at;    /* boot time at which something new was there */
        uint64_t retry;      /* boot time before which the journal is left alone; 0: none */
        struct log_buffer line;
};

void delivery_free(struct delivery *d) {
        if (!d)
                return;
        for (size_t i = 0; i < d->n; i++)
                free((char *)d->chunks[i].data);
        free(d->chunks);
        free(d->state);
        free(d);
}

/* ---- state ---- */

static int state_line(struct follow *f, char *line) {
        struct saved *s;
        char *value = strchr(line, ' ');
        uint64_t offset;

        if (!value)
                return 0;
        *value++ = 0;
        if (strcmp(line, "cursor") == 0) {
                free(f->cursor);
                f->cursor = strdup(value);
                return f->cursor ? 0 : -ENOMEM;
        }
        if (strlen(line) >= UNIT_NAME_MAX || parse_u64(value, 0, UINT64_MAX, &offset) < 0)
                return 0;
        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        strcpy(s->unit, line);
        s->offset = offset;
        HASH_ADD_STR(f->saved, unit, s);
        return 0;
}

static int state_read(struct follow *f) {
        _cleanup_free_ char *text = NULL;
        char *rest, *line;
        int r;

        r = f->state ? read_file(f->state, STATE_MAX, &text, NULL) : -ENOENT;
        if (r < 0)
                return r == -ENOMEM ? r : 0; /* whoever has none begins with what is printed from now on */
        for (rest = text; (line = strsep(&rest, "\n"));) {
                r = state_line(f, line);
                if (r < 0)
                        return r;
        }
        return 0;
}

static char *state_text(const struct follow *f) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        if (f->cursor)
                fprintf(out, "cursor %s\n", f->cursor);
        for (const struct executor *e = f->executors; e; e = e->hh.next)
                fprintf(out, "%s %" PRIu64 "\n", e->unit, e->offset + e->held.size);
        if (fclose(out) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

/* ---- who is followed ---- */

int follow_new(const char *directory, const char *sync_socket, const char *state, struct follow **ret) {
        struct follow *f = calloc(1, sizeof(*f));
        int r = 0;

        if (!f)
                return -ENOMEM;
        if ((directory && !(f->directory = strdup(directory))) ||
            (sync_socket && !(f->sync_socket = strdup(sync_socket))) ||
            (state && !(f->state = strdup(state))))
                r = -ENOMEM;
        f->since_real = now_real();
        f->stale = true;
        if (r >= 0)
                r = state_read(f);
        if (r < 0) {
                follow_free(f);
                return r;
        }
        f->idle = !f->cursor;
        *ret = f;
        return 0;
}

static void executor_free(struct follow *f, struct executor *e) {
        f->n_ended -= e->ended > 0;
        HASH_DEL(f->executors, e);
        log_buffer_done(&e->held);
        free(e);
        f->idle = !f->executors;
        if (f->idle && f->journal) { /* it maps megabytes of the files, and is soon open again */
                sd_journal_close(f->journal);
                f->journal = NULL;
        }
}

void follow_free(struct follow *f) {
        struct executor *e, *next;
        struct saved *s, *after;

        if (!f)
                return;
        HASH_ITER (hh, f->executors, e, next)
                executor_free(f, e);
        HASH_ITER (hh, f->saved, s, after) {
                HASH_DEL(f->saved, s);
                free(s);
        }
        if (f->journal)
                sd_journal_close(f->journal);
        log_buffer_done(&f->line);
        free(f->cursor);
        free(f->directory);
        free(f->sync_socket);
        free(f->state);
        free(f);
}

int follow_add(struct follow *f, const struct executor_id *id, uint64_t since_real) {
        char unit[UNIT_NAME_MAX];
        struct executor *e;
        struct saved *s;

        executor_unit_name(id->job, id->role, id->index, id->attempt, unit);
        HASH_FIND_STR(f->executors, unit, e);
        if (e)
                return 0;
        e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        if (f->idle) {
                free(f->cursor);
                f->cursor = NULL;
                f->since_real = usec_sub(since_real, CLOCK_SLACK);
                f->stale = true;
                f->idle = false;
        }
        strcpy(e->unit, unit);
        e->id = *id;
        HASH_FIND_STR(f->saved, unit, s);
        if (s) {
                e->offset = s->offset;
                HASH_DEL(f->saved, s);
                free(s);
        }
        HASH_ADD_STR(f->executors, unit, e);
        return 0;
}

void follow_ended(struct follow *f, const struct executor_id *id, uint64_t now) {
        char unit[UNIT_NAME_MAX];
        struct executor *e;

        executor_unit_name(id->job, id->role, id->index, id->attempt, unit);
        HASH_FIND_STR(f->executors, unit, e);
        if (!e || e->ended)
                return;
        e->ended = now;
        f->n_ended++;
}

/* ---- reading ---- */

int follow_keep(struct log_buffer *b, uint64_t *offset, const char *data, size_t size) {
        int r;

        if (size > TAIL_BYTES) {
                *offset += b->size + size - TAIL_BYTES;
                data += size - TAIL_BYTES;
                size = TAIL_BYTES;
                b->size = 0;
        } else if (b->size + size > 2 * TAIL_BYTES) {
                /* Moving what is kept only when as much again has come costs each byte one move. */
                size_t drop = b->size + size - TAIL_BYTES;

                memmove(b->data, b->data + drop, b->size - drop);
                b->size -= drop;
                *offset += drop;
        }
        r = log_buffer_append(b, data, size);
        if (r < 0)
                *offset += size; /* skipped, and counted */
        return r;
}

/* Sets the journal up for the present place. There are no matches: of a process that has ended before
 * journald gets to its output, an entry has the unit (by the stream) but no slice, and a match for each unit
 * is slower than leaving out what others log. Returns as sd_journal_next(): 1 when it is on an entry to be
 * read, 0 when there is none yet. */
static int position(struct follow *f) {
        int r;

        if (!f->journal || f->n_read > JOURNAL_ENTRIES_MAX) {
                if (f->journal)
                        sd_journal_close(f->journal);
                f->journal = NULL;
                r = journal_open(f->directory, &f->journal);
                if (r < 0) {
                        f->journal = NULL;
                        return r;
                }
                f->n_read = 0;
                (void)sd_journal_get_fd(f->journal);
        }
        if (f->cursor)
                r = sd_journal_seek_cursor(f->journal, f->cursor);
        else
                r = sd_journal_seek_realtime_usec(f->journal, f->since_real);
        if (r < 0)
                return r;
        f->stale = false;
        f->mark = NULL;
        r = sd_journal_next(f->journal);
        if (r > 0 && f->cursor && sd_journal_test_cursor(f->journal, f->cursor) > 0) {
                f->mark = journal_mark(f->journal);
                r = sd_journal_next(f->journal);
        }
        return r;
}

static struct executor *entry_executor(struct follow *f) {
        static const size_t name = sizeof("_SYSTEMD_UNIT=") - 1;
        struct executor *e = NULL;
        const char *data;
        size_t size;

        if (sd_journal_get_data(f->journal, "_SYSTEMD_UNIT", (const void **)&data, &size) < 0 ||
            size <= name || size - name >= UNIT_NAME_MAX)
                return NULL;
        HASH_FIND(hh, f->executors, data + name, (unsigned)(size - name), e);
        return e;
}

static void read_entry(struct follow *f, uint64_t now) {
        struct executor *e = entry_executor(f);
        size_t before;

        if (!e)
                return;
        f->line.size = 0;
        if (journal_append_entry(f->journal, &f->line, TAIL_BYTES) <= 0)
                return;
        before = e->held.size;
        (void)follow_keep(&e->held, &e->offset, f->line.data, f->line.size);
        f->held += e->held.size - before;
        if (e->ended > 0 && f->deaf_since > 0)
                f->deaf_since = now; /* it is behind, and goes on */
        if (f->held_since == 0)
                f->held_since = now;
}

/* Whether somebody has ended of whom not everything may have been written when the journal was last
 * synchronised. */
static bool wants_sync(const struct follow *f) {
        if (f->n_ended == 0)
                return false;
        for (const struct executor *e = f->executors; e; e = e->hh.next)
                if (e->ended > f->synced)
                        return true;
        return false;
}

/* Remembers where the journal is. Returns whether that is a new entry. */
static bool remember_place(struct follow *f) {
        const void *mark = journal_mark(f->journal);
        char *cursor;
        bool same;

        if (sd_journal_get_cursor(f->journal, &cursor) < 0)
                return true;
        same = journal_repeated(f->cursor, f->mark, cursor, mark);
        free(f->cursor);
        f->cursor = cursor;
        f->mark = mark;
        return !same;
}

/* Reads to the end, or for a turn. 1: a turn, 0: the end, < 0. */
static int read_entries(struct follow *f, uint64_t now) {
        int r = f->stale || !f->journal || f->n_read > JOURNAL_ENTRIES_MAX ? position(f)
                                                                           : sd_journal_next(f->journal);

        for (unsigned n = 0; r > 0; n++) {
                f->n_read++;
                if (remember_place(f)) {
                        f->read_at = now_boot();
                        read_entry(f, now);
                }
                if (n >= TURN_MAX || follow_full(f))
                        return 1;
                r = sd_journal_next(f->journal);
        }
        return r;
}

/* Whether all is there that was printed until now. Where journald cannot be asked, its silence is taken for
 * the end; one that is there and does not come to it is asked again, though not for ever. */
static bool ask_journald(struct follow *f) {
        int r = journal_sync(f->sync_socket, JOURNAL_SYNC_MAX);
        bool synced = r >= 0;

        f->asked = now_boot();
        if (synced)
                f->deaf_since = 0;
        else if (f->deaf_since == 0)
                f->deaf_since = f->asked;
        return synced ||
               (r != -ETIMEDOUT && f->asked >= f->read_at + JOURNAL_SYNC_MAX + JOURNAL_SETTLE_MAX) ||
               f->asked >= f->deaf_since + JOURNAL_DEAF_MAX;
}

bool follow_read(struct follow *f, uint64_t now) {
        int r;

        if (!f->executors || now < f->retry)
                return false;
        if (f->journal)
                (void)sd_journal_process(f->journal);
        if (now >= f->asked + SYNC_PERIOD && wants_sync(f)) {
                if (ask_journald(f))
                        f->synced = now;
                if (f->journal)
                        (void)sd_journal_process(f->journal);
        }
        r = read_entries(f, now);
        f->at_end = r == 0;
        f->retry = 0;
        if (r < 0) {
                /* A file that was vacuumed or is broken: begin again from the last good place, in a while. */
                f->stale = true;
                f->n_read = UINT_MAX;
                f->retry = now + RETRY;
        }
        return r > 0;
}

uint64_t follow_next(const struct follow *f) {
        uint64_t next = f->held_since > 0 ? f->held_since + TAIL_PERIOD_USEC : USEC_INFINITY;

        if (f->retry > 0)
                next = MIN(next, f->retry);
        if (wants_sync(f))
                next = MIN(next, f->asked + SYNC_PERIOD);
        return next;
}

int follow_fd(const struct follow *f) {
        int fd = f->journal ? sd_journal_get_fd(f->journal) : -1;

        return fd < 0 ? -1 : fd;
}

bool follow_full(const struct follow *f) {
        return f->held >= TAIL_TOTAL_MAX;
}

/* ---- deliveries ---- */

static bool is_complete(const struct follow *f, const struct executor *e) {
        return e->ended > 0 && f->at_end && f->synced >= e->ended;
}

bool follow_due(const struct follow *f, uint64_t now) {
        if (follow_full(f) || (f->held_since > 0 && now >= f->held_since + TAIL_PERIOD_USEC))
                return true;
        if (f->n_ended > 0)
                for (const struct executor *e = f->executors; e; e = e->hh.next)
                        if (is_complete(f, e))
                                return true;
        return false;
}

int follow_deliver(struct follow *f, struct delivery **ret) {
        struct delivery *d = calloc(1, sizeof(*d));
        struct executor *e, *next;

        if (!d || !(d->chunks = calloc(MAX(HASH_COUNT(f->executors), 1u), sizeof(*d->chunks)))) {
                free(d);
                return -ENOMEM;
        }
        d->state = f->state ? state_text(f) : NULL;
        HASH_ITER (hh, f->executors, e, next) {
                if (e->held.size > 0) {
                        size_t skip = e->held.size > TAIL_BYTES ? e->held.size - TAIL_BYTES : 0;

                        if (skip > 0)
                                memmove(e->held.data, e->held.data + skip, e->held.size - skip);
                        d->chunks[d->n++] = (struct tail_chunk){ .id = e->id,
                                                                 .offset = e->offset + skip,
                                                                 .data = e->held.data,
                                                                 .size = e->held.size - skip };
                        e->offset += e->held.size;
                        e->held = (struct log_buffer){ 0 };
                }
                if (is_complete(f, e))
                        executor_free(f, e);
        }
        f->held = 0;
        f->held_since = 0;
        if (d->n == 0) {
                delivery_free(d);
                d = NULL;
        }
        *ret = d;
        return 0;
}

void follow_taken(struct follow *f, struct delivery *d) {
        if (d->state)
                (void)write_file_atomic(f->state, d->state, strlen(d->state), 0600, false);
        delivery_free(d);
}
