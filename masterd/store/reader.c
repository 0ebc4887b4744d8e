/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that reads, on a connection of its own. Invariant: an answer has everything that was committed
 * before it was asked for; nothing that is written waits for it. */
#include <string.h>
#include <sys/eventfd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "masterd/store/internal.h"

#define ANSWERS_BYTES_MAX ((size_t)64 << 20) /* that wait for the loop; then no more is read */
#define QUESTION_USEC (20 * USEC_PER_SEC)    /* others wait for their answers meanwhile */
#define LOOK_STEPS 20000                     /* of SQLite's machine, between two looks at the clock */

struct looking {
        struct store *store;
        uint64_t until;
        bool late;
};

static int on_progress(void *userdata) {
        struct looking *l = userdata;

        l->late = now_boot() > l->until;
        return l->late || atomic_load(&l->store->stop);
}

static int read_one(struct store *s, struct item *i) {
        struct looking l = { .store = s, .until = usec_add(now_boot(), QUESTION_USEC) };
        int r;

        sqlite3_progress_handler(s->reader, LOOK_STEPS, on_progress, &l);
        r = query_run(s->reader, i->kind, &i->query);
        sqlite3_progress_handler(s->reader, 0, NULL, NULL);
        return r < 0 && l.late ? -ETIMEDOUT : r < 0 && s->stop ? -ESHUTDOWN : r;
}

/* Called with the lock held. */
static bool may_read(const struct store *s) {
        return s->questions.first && s->written >= s->questions.first->serial && !s->rest &&
               s->answer_bytes < ANSWERS_BYTES_MAX;
}

void *reader_main(void *store) {
        struct store *s = store;

        (void)pthread_mutex_lock(&s->lock);
        for (;;) {
                struct item_list one = { s->questions.first, s->questions.first };
                if (!s->stop && !may_read(s)) {
                        (void)pthread_cond_wait(&s->reading, &s->lock);
                        continue;
                }
                if (!one.first)
                        break;
                s->questions.first = one.first->next;
                if (!s->questions.first)
                        s->questions.last = NULL;
                one.first->next = NULL;
                s->reads = true;
                (void)pthread_mutex_unlock(&s->lock);
                one.first->error = s->stop ? -ESHUTDOWN : read_one(s, one.first);
                (void)pthread_mutex_lock(&s->lock);
                s->reads = false;
                s->answer_bytes += one.first->query.bytes;
                item_list_append(&s->done, &one);
                if (s->rest)
                        (void)pthread_cond_signal(&s->work);
                (void)eventfd_write(s->event_fd, 1);
        }
        (void)pthread_mutex_unlock(&s->lock);
        return NULL;
}
