/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes: takes what has gathered, writes it as one transaction, hands it back, and moves the
 * log into the database when nobody waits. Invariant: an item is handed back with error 0 only when its
 * transaction is on disk. */
#include <string.h>
#include <sys/eventfd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/store/internal.h"

/* No more than that and one batch in a transaction: whoever comes next waits for it. */
#define TRANSACTION_BYTES (4u << 20)
#define TRANSACTION_RECORDS 4000u
#define MEASURE_BYTES (4u << 20) /* written, until the size is looked up again */
#define CHECKPOINT_IDLE 250      /* pages of log that are moved when there is nothing else to do */
#define CHECKPOINT_NOW 8000      /* ... and those that are moved all the same */
#define RETRY_USEC (100 * USEC_PER_MSEC)
#define REST_USEC (2 * USEC_PER_SEC) /* that the reader rests for it, at most */
#define WIPE_USEC (5 * USEC_PER_SEC) /* from the deletion of secrets to that of their traces in the log */

static int write_op(struct store *s, const struct op *o) {
        const struct op_definition *d = &op_definitions[o->kind];
        int r;

        for (size_t i = 0; i < OP_STATEMENTS_MAX && d->sql[i]; i++) {
                sqlite3_stmt **statement = &s->statements[o->kind][i];
                if (!*statement) {
                        r = sqlite3_prepare_v3(s->db, d->sql[i], -1, SQLITE_PREPARE_PERSISTENT, statement,
                                               NULL);
                        if (r != SQLITE_OK)
                                return sqlite_error(s->db, r);
                }
                r = fields_bind(d->fields, o->record, *statement);
                if (r == SQLITE_OK)
                        r = sqlite3_step(*statement);
                r = r == SQLITE_DONE ? 0 : sqlite_error(s->db, r);
                (void)sqlite3_reset(*statement);
                (void)sqlite3_clear_bindings(*statement);
                if (r < 0)
                        return r;
        }
        return 0;
}

void store_measure(struct store *s) {
        int64_t used;

        if (sqlite_integer(s->db, "SELECT " STORE_BYTES_USED, &used) >= 0)
                atomic_store(&s->used, (uint64_t)used);
        s->unmeasured = 0;
}

static int write_items(struct store *s, const struct item *first) {
        int r = sqlite_exec(s->db, "BEGIN IMMEDIATE");
        bool private = false;

        for (const struct item *i = first; i && r >= 0; i = i->next)
                for (const struct op *o = i->first; o && r >= 0; o = o->next) {
                        private = private || o->kind == OP_DELETE_SECRETS || o->kind == OP_DELETE_JOB ||
                                  o->kind == OP_FORGET_JOB;
                        s->unmeasured += o->kind == OP_PRUNE ? MEASURE_BYTES : o->size;
                        r = write_op(s, o);
                }
        if (r >= 0)
                r = sqlite_exec(s->db, "COMMIT");
        if (r >= 0 && s->unmeasured >= MEASURE_BYTES)
                store_measure(s);
        if (r >= 0 && private && s->wipe_at == 0)
                s->wipe_at = usec_add(now_boot(), WIPE_USEC);
        if (r < 0 && !sqlite3_get_autocommit(s->db))
                (void)sqlite_exec(s->db, "ROLLBACK");
        return r;
}

/* Waits for work, until the given time (UINT64_MAX: as long as it takes). Called with the lock held. */
static void wait_for_work(struct store *s, uint64_t boot) {
        struct timespec until;
        uint64_t t;

        if (boot == UINT64_MAX) {
                (void)pthread_cond_wait(&s->work, &s->lock);
                return;
        }
        t = usec_add(now_real(), usec_sub(boot, now_boot()));
        until = (struct timespec){ (time_t)(t / USEC_PER_SEC), (long)(t % USEC_PER_SEC) * 1000 };
        (void)pthread_cond_timedwait(&s->work, &s->lock, &until);
}

/* Sleeps a while, or until the store is being closed. Returns whether it is. */
static bool pause_writing(struct store *s) {
        struct timespec until;
        uint64_t t = clock_usec(CLOCK_REALTIME) + RETRY_USEC; /* the clock of pthread_cond_timedwait() */
        bool stop;

        until = (struct timespec){ (time_t)(t / USEC_PER_SEC), (long)(t % USEC_PER_SEC) * 1000 };
        (void)pthread_mutex_lock(&s->lock);
        if (!s->stop)
                (void)pthread_cond_timedwait(&s->work, &s->lock, &until);
        stop = s->stop;
        (void)pthread_mutex_unlock(&s->lock);
        return stop;
}

/* Writes the batches among the items, waiting for space as long as allowed. After an error that stays,
 * nothing is written any more: a later batch may rest on one that was lost. */
static int write_durably(struct store *s, const struct item *first) {
        uint64_t deadline = usec_add(now_boot(), s->limits.retry_usec);
        int r;

        if (s->failed < 0)
                return s->failed;
        while (sqlite_error_is_space(r = write_items(s, first))) {
                if (atomic_exchange(&s->trouble, r) == 0)
                        log_warning_errno(r, "The store cannot write; trying again for a while");
                if (now_boot() >= deadline || pause_writing(s))
                        break;
        }
        if (r < 0) {
                log_error_errno(r, "The store cannot write: %s", sqlite3_errmsg(s->db));
                atomic_store(&s->trouble, r);
                s->failed = r;
        } else if (atomic_exchange(&s->trouble, 0) != 0)
                log_notice("The store writes again");
        return r;
}

static void process(struct store *s, struct item_list *items) {
        uint64_t begin = now_boot(), records = 0, took;
        bool any = false;
        int r = 0;

        s->transaction_bytes = 0;
        for (struct item *i = items->first; i; i = i->next) {
                s->transaction_bytes += i->bytes;
                any = any || i->first;
                records += i->records;
        }
        if (any || s->failed < 0)
                r = write_durably(s, items->first);
        took = now_boot() - begin;
        for (struct item *i = items->first; i; i = i->next)
                i->error = r;

        (void)pthread_mutex_lock(&s->lock);
        if (any && r >= 0) {
                s->transactions++;
                s->records += records;
                s->commit_usec_max = MAX(s->commit_usec_max, took);
        }
        s->written = items->last->serial;
        item_list_append(&s->done, items);
        (void)pthread_cond_signal(&s->reading);
        (void)pthread_mutex_unlock(&s->lock);
        (void)eventfd_write(s->event_fd, 1);
}

/* Takes from the queue what makes one transaction. Called with the lock held. */
static struct item_list take(struct store *s) {
        struct item_list l = { s->queue.first, NULL };
        size_t bytes = 0;
        uint64_t records = 0;

        for (struct item *i = s->queue.first; i && bytes < TRANSACTION_BYTES && records < TRANSACTION_RECORDS;
             i = i->next) {
                bytes += i->bytes;
                records += i->records;
                l.last = i;
        }
        s->queue.first = l.last->next;
        if (!s->queue.first)
                s->queue.last = NULL;
        l.last->next = NULL;
        return l;
}

static void checkpoint(struct store *s) {
        int r = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

        /* On an error everything stays in the log, which is as durable; the next write will tell. */
        if (r != SQLITE_OK)
                log_debug("Checkpoint of the store: %s", sqlite3_errmsg(s->db));
        s->wal_pages = 0;
}

/* Deleted secrets are overwritten in the database, but the log has them still: it is emptied. The reader, who
 * may stand in the log, rests meanwhile; otherwise who always has something to read could keep them there. */
static void wipe(struct store *s) {
        int r;

        (void)pthread_mutex_lock(&s->lock);
        if (!s->rest)
                s->rest_until = usec_add(now_boot(), REST_USEC);
        s->rest = true;
        while (s->reads && !s->stop && !s->queue.first)
                (void)pthread_cond_wait(&s->work, &s->lock);
        if (s->reads) {
                (void)pthread_mutex_unlock(&s->lock);
                return; /* when there is nothing to write the next time; the reader rests until then */
        }
        (void)pthread_mutex_unlock(&s->lock);
        r = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

        if (r != SQLITE_OK)
                log_debug("Emptying the log of the store: %s", sqlite3_errmsg(s->db));
        else
                s->wal_pages = 0;
        s->wipe_at = r == SQLITE_OK ? 0 : usec_add(now_boot(), WIPE_USEC);
        (void)pthread_mutex_lock(&s->lock);
        s->rest = false;
        (void)pthread_cond_signal(&s->reading);
        (void)pthread_mutex_unlock(&s->lock);
}

static int on_wal(void *userdata, sqlite3 *db, const char *name, int pages) {
        struct store *s = userdata;

        s->wal_pages = pages;
        return SQLITE_OK;
}

void *writer_main(void *store) {
        struct store *s = store;
        struct item_list items;
        bool wrote_last = false; /* a copy and transactions take turns */

        (void)sqlite3_wal_hook(s->db, on_wal, s);
        (void)pthread_mutex_lock(&s->lock);
        for (;;) {
                bool idle = !s->queue.first;
                if (s->copy && (s->stop || idle || wrote_last)) {
                        struct copy *c = s->copy;
                        (void)pthread_mutex_unlock(&s->lock);
                        if (s->stop)
                                copy_cancel(s, c);
                        else
                                copy_step(s, c);
                        (void)pthread_mutex_lock(&s->lock);
                        wrote_last = false;
                        continue;
                }
                if (!s->stop && s->wal_pages >= (idle ? CHECKPOINT_IDLE : CHECKPOINT_NOW)) {
                        (void)pthread_mutex_unlock(&s->lock);
                        checkpoint(s);
                        (void)pthread_mutex_lock(&s->lock);
                        continue;
                }
                if (s->rest && !idle && now_boot() >= s->rest_until) { /* there is never nothing to write */
                        s->rest = false;
                        s->wipe_at = usec_add(now_boot(), WIPE_USEC);
                        (void)pthread_cond_signal(&s->reading);
                }
                if (idle && s->stop)
                        break;
                if (idle && s->wipe_at > 0 && now_boot() >= s->wipe_at && s->failed >= 0) {
                        (void)pthread_mutex_unlock(&s->lock);
                        wipe(s);
                        (void)pthread_mutex_lock(&s->lock);
                        continue;
                }
                if (idle) {
                        wait_for_work(s, s->wipe_at > 0 && s->failed >= 0 ? s->wipe_at : UINT64_MAX);
                        continue;
                }
                items = take(s);
                (void)pthread_mutex_unlock(&s->lock);
                process(s, &items);
                wrote_last = true;
                (void)pthread_mutex_lock(&s->lock);
        }
        (void)pthread_mutex_unlock(&s->lock);
        return NULL;
}
