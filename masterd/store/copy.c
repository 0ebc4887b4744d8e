/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the database while it is written to. The thread that writes copies as well: a few pages at a time
 * between its transactions, which SQLite writes to the copy too, so that the copy never begins anew.
 * Invariant: what was durable when the copy was asked for is in it, and nobody's commit waits for more than
 * one piece. */
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/base/cleanup.h"
#include "masterd/store/internal.h"

/* 1 MiB; and at least twice what the last transaction wrote, or it would never end. */
#define PIECE_PAGES 256

struct copy {
        struct item *item; /* tells the loop; made beforehand, so that the end is always told */
        sqlite3 *to;
        sqlite3_backup *backup;
        char path[];
};

int store_copy(struct store *s, const char *path, store_effect effect, void *userdata) {
        size_t n = strlen(path) + 1;
        struct copy *c = calloc(1, sizeof(*c) + n);
        bool busy;
        int r = 0;

        if (c)
                c->item = calloc(1, sizeof(*c->item));
        if (!c || !c->item)
                r = -ENOMEM;
        else if (s->closing)
                r = -ESHUTDOWN;
        else if (!s->running)
                r = store_start_thread(s);
        if (r < 0) {
                if (c)
                        free(c->item);
                free(c);
                return r;
        }
        memcpy(c->path, path, n);
        c->item->kind = ITEM_BATCH;
        c->item->effect = effect;
        c->item->userdata = userdata;
        (void)pthread_mutex_lock(&s->lock);
        busy = s->copy;
        if (!busy)
                s->copy = c;
        (void)pthread_cond_signal(&s->work);
        (void)pthread_mutex_unlock(&s->lock);
        if (busy) {
                free(c->item);
                free(c);
        }
        return busy ? -EBUSY : 0;
}

static int begin(struct store *s, struct copy *c) {
        /* Created here for its mode, and new: nobody else has it open. */
        int fd = open(c->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), r;

        if (fd < 0)
                return -errno;
        (void)close(fd);
        r = sqlite3_open_v2(c->path, &c->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
        if (r != SQLITE_OK)
                return sqlite_error(c->to, r);
        /* Whoever takes the copy syncs what he makes of it. */
        r = sqlite_exec(
                c->to, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;"
                       "PRAGMA cache_size = -1024");
        if (r < 0)
                return r;
        c->backup = sqlite3_backup_init(c->to, "main", s->db, "main");
        return c->backup ? 0 : sqlite_error(c->to, sqlite3_errcode(c->to));
}

/* One file without a log beside it. */
static int finish(struct copy *c) {
        int r = sqlite3_backup_finish(TAKE_PTR(c->backup));

        return r != SQLITE_OK ? sqlite_error(c->to, r) : sqlite_exec(c->to, "PRAGMA journal_mode = DELETE");
}

static void end(struct store *s, struct copy *c, int error) {
        struct item_list one = { c->item, c->item };

        if (c->backup)
                (void)sqlite3_backup_finish(c->backup);
        (void)sqlite3_close(c->to);
        if (error < 0)
                (void)unlink(c->path);
        c->item->error = error;
        (void)pthread_mutex_lock(&s->lock);
        s->copy = NULL;
        item_list_append(&s->done, &one);
        (void)pthread_mutex_unlock(&s->lock);
        (void)eventfd_write(s->event_fd, 1);
        free(c);
}

void copy_step(struct store *s, struct copy *c) {
        int r = c->to ? 0 : begin(s, c);

        if (r < 0) {
                end(s, c, r);
                return;
        }
        r = sqlite3_backup_step(c->backup, MAX(PIECE_PAGES, (int)(2 * s->transaction_bytes / 4096)));
        if (r == SQLITE_DONE)
                end(s, c, finish(c));
        else if (r != SQLITE_OK)
                end(s, c, sqlite_error(c->to, r));
}

void copy_cancel(struct store *s, struct copy *c) {
        end(s, c, -ESHUTDOWN);
}
