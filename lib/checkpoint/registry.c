/* SPDX-License-Identifier: Apache-2.0 */
/* Tells masterd of checkpoints, through agentd (primus(3), CHECKPOINTS). Invariant: no trainer waits for it
 * but at its end, and there not for long. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/checkpoint/store.h"
#include "lib/primus/agent.h"

#define WAITING_MAX 1000u
#define END_SECONDS 10
/* What masterd takes of metrics. */
#define NAMES_MAX 32u
#define METRICS_BYTES 1000u

/* The store's and its thread's. */
struct teller {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        char *waiting[WAITING_MAX]; /* questions; the first one is being asked */
        uint32_t first, n;
        unsigned owners;
        bool over; /* the store is closed */
        pid_t pid; /* of a forked child's it is a copy without a thread */
};

static void release_teller(struct teller *t) {
        bool last;

        pthread_mutex_lock(&t->lock);
        last = --t->owners == 0;
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->lock);
        if (!last)
                return;
        for (uint32_t i = 0; i < t->n; i++)
                free(t->waiting[(t->first + i) % WAITING_MAX]);
        pthread_cond_destroy(&t->changed);
        pthread_mutex_destroy(&t->lock);
        free(t);
}

/* NULL: there will be no more. */
static const char *next_question(struct teller *t) {
        const char *question;

        pthread_mutex_lock(&t->lock);
        while (t->n == 0 && !t->over)
                pthread_cond_wait(&t->changed, &t->lock);
        question = t->n > 0 ? t->waiting[t->first] : NULL;
        pthread_mutex_unlock(&t->lock);
        return question;
}

static void drop_question(struct teller *t) {
        pthread_mutex_lock(&t->lock);
        free(t->waiting[t->first]);
        t->first = (t->first + 1) % WAITING_MAX;
        t->n--;
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->lock);
}

static void *tell_all(void *userdata) {
        struct primus_searcher *asking = NULL;
        struct teller *t = userdata;
        const char *question, *answer;

        if (primus_questions_open(&asking) >= 0) {
                while ((question = next_question(t))) {
                        if (primus_searcher_ask(asking, question, &answer) < 0)
                                fprintf(stderr, "primus: masterd does not know of all checkpoints: %s\n",
                                        primus_searcher_error(asking));
                        drop_question(t);
                }
                primus_searcher_close(asking);
        }
        release_teller(t);
        return NULL;
}

static struct teller *teller_new(void) {
        struct teller *t = calloc(1, sizeof(*t));
        pthread_condattr_t clock;
        pthread_t thread;

        if (!t)
                return NULL;
        t->pid = getpid();
        t->owners = 2;
        pthread_mutex_init(&t->lock, NULL);
        pthread_condattr_init(&clock);
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        pthread_cond_init(&t->changed, &clock);
        pthread_condattr_destroy(&clock);
        if (agent_thread(&thread, tell_all, t) != 0) {
                t->owners = 1;
                release_teller(t);
                return NULL;
        }
        (void)pthread_detach(thread);
        return t;
}

void teller_end(struct teller *t) {
        struct timespec end;

        if (!t || t->pid != getpid())
                return;
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec += END_SECONDS;
        pthread_mutex_lock(&t->lock);
        t->over = true;
        pthread_cond_broadcast(&t->changed);
        while (t->n > 0 && t->owners > 1)
                if (pthread_cond_timedwait(&t->changed, &t->lock, &end) == ETIMEDOUT)
                        break;
        pthread_mutex_unlock(&t->lock);
        release_teller(t);
}

/* ---- what is said ---- */

static void put_question(struct primus_store *s, json_t *question) {
        char *text = json_dumps(question, JSON_COMPACT);
        struct teller *t = s->teller;

        if (t && t->pid != getpid())
                t = NULL;
        if (!t)
                t = s->teller = teller_new();
        if (!t || !text) {
                free(text);
                return;
        }
        pthread_mutex_lock(&t->lock);
        if (t->n < WAITING_MAX) {
                t->waiting[(t->first + t->n++) % WAITING_MAX] = TAKE_PTR(text);
                pthread_cond_broadcast(&t->changed);
        }
        pthread_mutex_unlock(&t->lock);
        if (text)
                fprintf(stderr, "primus: masterd does not know of all checkpoints: %u wait to be told of\n",
                        WAITING_MAX);
        free(text);
}

static size_t json_length(const json_t *value) {
        return json_dumpb(value, NULL, 0, JSON_COMPACT);
}

/* As many as masterd takes, the one that counts before the others. */
static json_t *some_metrics(const json_t *metrics, const char *first) {
        json_t *some = json_object(), *value = first ? json_object_get(metrics, first) : NULL;
        const char *name;

        if (some && value)
                (void)json_object_set(some, first, value);
        json_object_foreach ((json_t *)(uintptr_t)metrics, name, value) {
                if (!some || json_object_size(some) >= NAMES_MAX)
                        break;
                (void)json_object_set(some, name, value);
                if (json_length(some) > METRICS_BYTES && (!first || strcmp(name, first) != 0)) {
                        (void)json_object_del(some, name);
                        break;
                }
        }
        return some;
}

struct size {
        uint64_t files, bytes;
};

static int add_sizes(const char *path, uint32_t world, struct size *ret) {
        for (uint32_t rank = 0; rank < world; rank++) {
                struct manifest m;
                char why[WHY_MAX];
                const char *file;
                json_t *is;

                TRY(manifest_read(path, rank, &m, why));
                json_object_foreach (m.files, file, is) {
                        ret->files++;
                        ret->bytes += (uint64_t)json_integer_value(json_object_get(is, "size"));
                }
                manifest_clear(&m);
        }
        return 0;
}

static bool tells_masterd(const struct primus_store *s) {
        return s->rank == 0 && getenv("PRIMUS_SOCKET");
}

void store_tell_saved(struct primus_store *s, uint64_t step) {
        _cleanup_free_ char *path = tells_masterd(s) ? store_path(s, step) : NULL;
        char name[STEP_NAME_MAX], why[WHY_MAX];
        json_auto_t *question = NULL;
        struct size size = {};
        struct manifest m;

        step_name(step, name);
        if (!path || strcmp(s->told, name) == 0)
                return;
        if (manifest_read(path, 0, &m, why) < 0)
                return; /* it is gone again */
        strcpy(s->told, name);
        if (add_sizes(path, m.world, &size) >= 0)
                question = json_pack("{s:s,s:s,s:I,s:f,s:I,s:I,s:o,s:s,s:b}", "op", "checkpoint", "path",
                                     path, "step", (json_int_t)step, "time", m.time, "files",
                                     (json_int_t)size.files, "bytes", (json_int_t)size.bytes, "metrics",
                                     some_metrics(m.metrics, s->metric), "metric", s->metric ? s->metric : "",
                                     "smaller", !s->larger);
        manifest_clear(&m);
        if (question)
                put_question(s, question);
}

void store_tell_gone(struct primus_store *s, uint64_t step) {
        _cleanup_free_ char *path = tells_masterd(s) ? store_path(s, step) : NULL;
        json_auto_t *question = path ? json_pack("{s:s,s:s}", "op", "checkpointGone", "path", path) : NULL;

        if (question)
                put_question(s, question);
}
