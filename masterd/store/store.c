/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's side of the store: batches are put together, queued, and their outcomes delivered in order.
 * Invariant: an effect runs exactly once for every successful store_commit(), in the order of the calls,
 * whatever becomes of the batch. */
#include "masterd/store/store.h"

#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/store/internal.h"

#define DELIVER_MAX 512 /* outcomes in one turn of the loop */
#define QUEUE_HARD 4    /* times the limit: refused even to those who do not ask store_full() */

char *store_bytes_text(const struct store_bytes *b) {
        char *text = malloc(b->size + 1);

        if (!text)
                return NULL;
        if (b->size > 0)
                memcpy(text, b->data, b->size);
        text[b->size] = 0;
        return text;
}

static const struct store_limits default_limits = {
        .queue_bytes = 64 << 20,
        .queue_records = 100000,
        .retry_usec = 30 * USEC_PER_SEC,
};

void item_list_append(struct item_list *l, struct item_list *more) {
        if (!more->first)
                return;
        if (l->first)
                l->last->next = more->first;
        else
                l->first = more->first;
        l->last = more->last;
        *more = (struct item_list){};
}

void item_free(struct item *i) {
        struct op *next;

        if (!i)
                return;
        for (struct op *o = i->first; o; o = next) {
                next = o->next;
                free(o);
        }
        query_done(i->kind, &i->query);
        free(i);
}

static void deliver(struct store *s, struct item *i) {
        size_t answer = i->kind != ITEM_BATCH ? i->query.bytes : 0;

        s->queue_bytes -= i->bytes;
        s->queue_records -= i->records;
        if (i->kind != ITEM_BATCH)
                query_deliver(s, i);
        else if (i->effect)
                i->effect(i->userdata, i->error);
        item_free(i);
        if (answer == 0)
                return;
        (void)pthread_mutex_lock(&s->lock);
        s->answer_bytes -= answer;
        (void)pthread_cond_signal(&s->reading);
        (void)pthread_mutex_unlock(&s->lock);
}

/* Delivers at most max outcomes. Returns whether there are more. */
static bool deliver_some(struct store *s, size_t max) {
        struct item *i;

        (void)pthread_mutex_lock(&s->lock);
        item_list_append(&s->ready, &s->done);
        (void)pthread_mutex_unlock(&s->lock);
        for (; max > 0 && (i = s->ready.first); max--) {
                s->ready.first = i->next; /* off the list first: the effect may come back to us */
                deliver(s, i);
        }
        return s->ready.first;
}

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        struct store *s = userdata;
        eventfd_t count;

        (void)eventfd_read(fd, &count);
        if (deliver_some(s, DELIVER_MAX))
                (void)eventfd_write(fd, 1); /* the rest in the next turn, so that others get theirs */
        return 0;
}

static int load_counters(struct store *s) {
        int64_t number;
        int r = sqlite_integer(s->db,
                               "SELECT max(coalesce((SELECT value FROM counter WHERE name = 'last_job'), 0),"
                               " coalesce((SELECT max(number) FROM job), 0))",
                               &number);

        if (r < 0)
                return r;
        if (number < 0 || number > UINT32_MAX)
                return -EUCLEAN;
        s->last_job = (uint32_t)number;
        r = sqlite_integer(s->db,
                           "SELECT coalesce((SELECT value FROM counter WHERE name = 'last_savepoint'), 0)",
                           &number);
        if (r < 0)
                return r;
        if (number < 0)
                return -EUCLEAN;
        s->last_savepoint = MAX((uint64_t)number, (uint64_t)UINT32_MAX); /* behind every job's number */
        return 0;
}

int store_open(const char *path, sd_event *event, const struct store_limits *limits, struct store **ret) {
        struct store *s = calloc(1, sizeof(*s));
        bool unclean;
        int r;

        if (!s)
                return log_oom();
        s->limits = limits ? *limits : default_limits;
        s->event_fd = s->lock_fd = -EBADF;
        s->asker = STORE_NOBODY;
        (void)pthread_mutex_init(&s->lock, NULL);
        (void)pthread_cond_init(&s->work, NULL);
        (void)pthread_cond_init(&s->reading, NULL);
        r = sqlite_open(path, &s->db, &s->lock_fd, &unclean);
        if (r >= 0)
                r = sqlite_open_reader(path, &s->reader);
        if (r < 0) {
                store_close(s);
                return r;
        }
        if (unclean)
                log_notice("The store %s was not closed by its last user; recovered", path);
        store_measure(s);
        r = load_counters(s);
        if (r >= 0) {
                s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
                r = s->event_fd < 0 ? -errno
                                    : sd_event_add_io(event, &s->source, s->event_fd, EPOLLIN, on_done, s);
        }
        if (r < 0) {
                store_close(s);
                return log_error_errno(r, "Cannot set up the store %s", path);
        }
        (void)sd_event_source_set_description(s->source, "store");
        *ret = s;
        return 0;
}

void store_close(struct store *s) {
        if (!s)
                return;
        s->closing = true;
        if (s->running) {
                (void)pthread_mutex_lock(&s->lock);
                s->stop = true;
                (void)pthread_cond_signal(&s->work);
                (void)pthread_cond_signal(&s->reading);
                (void)pthread_mutex_unlock(&s->lock);
                (void)pthread_join(s->reading_thread, NULL);
                (void)pthread_join(s->thread, NULL);
                (void)deliver_some(s, SIZE_MAX);
        }
        item_free(s->open);
        query_askers_free(s);
        sd_event_source_disable_unref(s->source);
        close_fd(s->event_fd);
        for (size_t i = 0; i < _OP_MAX; i++)
                for (size_t k = 0; k < OP_STATEMENTS_MAX; k++)
                        (void)sqlite3_finalize(s->statements[i][k]);
        (void)sqlite3_close(s->reader);
        (void)sqlite3_close(s->db); /* moves the log into the database and removes it */
        close_fd(s->lock_fd);
        (void)pthread_cond_destroy(&s->reading);
        (void)pthread_cond_destroy(&s->work);
        (void)pthread_mutex_destroy(&s->lock);
        free(s);
}

void store_close_p(struct store **s) {
        store_close(*s);
}

/* Signals are the loop's affair: the threads start with all of them blocked. */
int store_start_thread(struct store *s) {
        sigset_t all, before;
        int r;

        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&s->thread, NULL, writer_main, s);
        if (r == 0) {
                r = pthread_create(&s->reading_thread, NULL, reader_main, s);
                if (r != 0) { /* nothing is queued yet */
                        (void)pthread_mutex_lock(&s->lock);
                        s->stop = true;
                        (void)pthread_cond_signal(&s->work);
                        (void)pthread_mutex_unlock(&s->lock);
                        (void)pthread_join(s->thread, NULL);
                        s->stop = false;
                }
        }
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r != 0)
                return -r;
        (void)pthread_setname_np(s->thread, "store");
        (void)pthread_setname_np(s->reading_thread, "store-reader");
        s->running = true;
        return 0;
}

int store_enqueue(struct store *s, struct item *i) {
        struct item_list one = { i, i };
        int r = 0;

        if (s->closing)
                r = -ESHUTDOWN;
        else if (s->queue_bytes / QUEUE_HARD >= s->limits.queue_bytes ||
                 s->queue_records / QUEUE_HARD >= s->limits.queue_records)
                r = -ENOBUFS;
        else if (!s->running)
                r = store_start_thread(s);
        if (r < 0) {
                item_free(i);
                return r;
        }
        i->bytes += sizeof(*i);
        i->records++;
        s->queue_bytes += i->bytes;
        s->queue_records += i->records;
        i->serial = i->kind == ITEM_BATCH ? ++s->serial : s->serial;
        (void)pthread_mutex_lock(&s->lock);
        item_list_append(i->kind == ITEM_BATCH ? &s->queue : &s->questions, &one);
        (void)pthread_cond_signal(i->kind == ITEM_BATCH ? &s->work : &s->reading);
        (void)pthread_mutex_unlock(&s->lock);
        return 0;
}

/* Adds a record to the open batch. */
static void put(struct store *s, enum op_kind kind, const void *record) {
        const struct op_definition *d = &op_definitions[kind];
        size_t flat = sizeof(struct op) + d->size, size = flat + fields_extra(d->fields, record);
        struct op *o;

        if (!s->open)
                s->open = calloc(1, sizeof(*s->open));
        o = s->open ? malloc(size) : NULL;
        if (!o) {
                s->open_error = -ENOMEM;
                return;
        }
        o->next = NULL;
        o->kind = kind;
        o->size = size;
        memcpy(o->record, record, d->size);
        fields_move(d->fields, o->record, (char *)o + flat);
        if (s->open->last)
                s->open->last->next = o;
        else
                s->open->first = o;
        s->open->last = o;
        s->open->bytes += size;
        s->open->records++;
}

uint32_t store_next_job(struct store *s) {
        return s->last_job == UINT32_MAX ? 0 : ++s->last_job;
}

uint64_t store_next_savepoint(struct store *s) {
        return ++s->last_savepoint;
}

void store_put_job(struct store *s, const struct job_record *r) {
        put(s, OP_PUT_JOB, r);
        if (r->body)
                put(s, OP_PUT_JOB_BODY, &(struct body_row){ .body = *r->body, .number = r->number });
        if (r->number > s->last_job_put) { /* so that the number stays used when the job is deleted */
                put(s, OP_LAST_JOB, &(struct key_row){ .job = r->number });
                s->last_job_put = r->number;
        }
}

void store_put_executor(struct store *s, const struct executor_record *r) {
        put(s, OP_PUT_EXECUTOR, r);
}

void store_put_event(struct store *s, const struct event_record *r) {
        put(s, OP_PUT_EVENT, r);
}

void store_put_usage(struct store *s, const struct usage_record *r) {
        put(s, OP_PUT_USAGE, r);
}

void store_put_node(struct store *s, const struct node_record *r) {
        put(s, OP_PUT_NODE, r);
}

void store_put_hold(struct store *s, const struct hold_record *r) {
        put(s, OP_PUT_HOLD, r);
}

void store_put_node_event(struct store *s, const struct node_event_record *r) {
        put(s, OP_PUT_NODE_EVENT, r);
}

void store_put_label(struct store *s, const struct label_record *r) {
        put(s, OP_PUT_LABEL, r);
}

void store_put_window(struct store *s, const struct window_record *r) {
        put(s, OP_PUT_WINDOW, r);
}

void store_put_gpu_off(struct store *s, const struct gpu_off_record *r) {
        put(s, OP_PUT_GPU_OFF, r);
}

void store_put_stuck(struct store *s, const struct stuck_record *r) {
        put(s, OP_PUT_STUCK, r);
}

void store_put_avoid(struct store *s, const struct avoid_record *r) {
        put(s, OP_PUT_AVOID, r);
}

void store_delete_hold(struct store *s, const struct hold_record *r) {
        put(s, OP_DELETE_HOLD, r);
}

void store_delete_label(struct store *s, const struct label_record *r) {
        put(s, OP_DELETE_LABEL, r);
}

void store_delete_window(struct store *s, const struct window_record *r) {
        put(s, OP_DELETE_WINDOW, r);
}

void store_delete_gpu_off(struct store *s, const struct gpu_off_record *r) {
        put(s, OP_DELETE_GPU_OFF, r);
}

void store_delete_stuck(struct store *s, const struct stuck_record *r) {
        put(s, OP_DELETE_STUCK, r);
}

void store_put_token(struct store *s, const struct token_record *r) {
        put(s, OP_PUT_TOKEN, r);
}

void store_put_share(struct store *s, const struct share_record *r) {
        put(s, OP_PUT_SHARE, r);
}

void store_put_submit_key(struct store *s, const struct submit_key_record *r) {
        put(s, OP_PUT_SUBMIT_KEY, r);
}

void store_put_series(struct store *s, const struct series_record *r) {
        put(s, OP_PUT_SERIES, r);
}

void store_put_metric(struct store *s, const struct metric_record *r) {
        put(s, OP_PUT_METRIC, r);
}

void store_put_trial(struct store *s, const struct trial_record *r) {
        put(s, OP_PUT_TRIAL, r);
}

void store_put_checkpoint(struct store *s, const struct checkpoint_record *r) {
        put(s, OP_PUT_CHECKPOINT, r);
}

void store_delete_checkpoint(struct store *s, uint64_t id) {
        put(s, OP_DELETE_CHECKPOINT, &(struct checkpoint_record){ .id = id });
}

void store_put_model(struct store *s, const struct model_record *r) {
        put(s, OP_PUT_MODEL, r);
}

void store_put_provider(struct store *s, const struct provider_record *r) {
        put(s, OP_PUT_PROVIDER, r);
}

void store_put_instance(struct store *s, const struct instance_record *r) {
        put(s, OP_PUT_INSTANCE, r);
}

void store_delete_instance(struct store *s, const char *token) {
        put(s, OP_DELETE_INSTANCE, &(struct instance_record){ .token = token });
}

void store_put_revoked(struct store *s, const struct revoked_record *r) {
        put(s, OP_PUT_REVOKED, r);
}

void store_put_secret(struct store *s, const struct secret_record *r) {
        put(s, OP_PUT_SECRET, r);
}

void store_put_verdict(struct store *s, const struct verdict_record *r) {
        put(s, OP_PUT_VERDICT, r);
}

void store_delete_verdict(struct store *s, const struct verdict_record *r) {
        put(s, OP_DELETE_VERDICT, r);
}

void store_put_scope(struct store *s, const struct scope_record *r) {
        put(s, OP_PUT_SCOPE, r);
}

void store_put_blame(struct store *s, const struct blame_record *r) {
        put(s, OP_PUT_BLAME, r);
}

void store_put_data_file(struct store *s, const struct data_file_record *r) {
        put(s, OP_PUT_DATA_FILE, r);
}

void store_put_data_source(struct store *s, const struct data_source_record *r) {
        put(s, OP_PUT_DATA_SOURCE, r);
}

void store_put_data_block(struct store *s, const struct data_block_record *r) {
        put(s, OP_PUT_DATA_BLOCK, r);
}

void store_put_data_task(struct store *s, const struct data_task_record *r) {
        put(s, OP_PUT_DATA_TASK, r);
}

void store_put_data_state(struct store *s, const struct data_state_record *r) {
        put(s, OP_PUT_DATA_STATE, r);
}

void store_put_change(struct store *s, const struct change_record *r) {
        put(s, OP_PUT_CHANGE, r);
}

void store_put_cut(struct store *s, const struct cut_record *r) {
        put(s, OP_PUT_CUT, r);
}

void store_put_savepoint(struct store *s, const struct savepoint_record *r) {
        put(s, OP_PUT_SAVEPOINT, r);
}

void store_set_meta(struct store *s, const char *key, const void *data, size_t size) {
        put(s, OP_SET_META, &(struct meta_row){ .key = key, .value = { data, size } });
}

void store_delete_job(struct store *s, uint32_t number) {
        put(s, OP_DELETE_JOB, &(struct key_row){ .job = number });
}

void store_delete_secrets(struct store *s, uint32_t job) {
        put(s, OP_DELETE_SECRETS, &(struct key_row){ .job = job });
}

void store_delete_data_block(struct store *s, uint32_t job, uint64_t block) {
        put(s, OP_DELETE_DATA_BLOCK, &(struct data_key_row){ job, block });
}

void store_delete_data_task(struct store *s, uint32_t job, uint64_t task) {
        put(s, OP_DELETE_DATA_TASK, &(struct data_key_row){ job, task });
}

void store_trim_data(struct store *s, uint32_t job) {
        put(s, OP_TRIM_DATA, &(struct key_row){ .job = job });
}

void store_copy_files(struct store *s, uint64_t from, uint64_t to) {
        put(s, OP_COPY_FILES, &(struct copy_row){ from, to });
}

void store_delete_savepoint(struct store *s, const char *name, uint64_t key) {
        put(s, OP_DELETE_SAVEPOINT, &(struct savepoint_key_row){ key, name });
}

void store_delete_node(struct store *s, const char *name) {
        put(s, OP_DELETE_NODE, &(struct key_row){ .name = name });
}

void store_delete_token(struct store *s, const uint8_t id[static 8]) {
        struct key_row row = {};

        memcpy(row.id, id, sizeof(row.id));
        put(s, OP_DELETE_TOKEN, &row);
}

void store_prune(struct store *s, const struct store_keep *keep) {
        put(s, OP_PRUNE,
            &(struct prune_row){ keep->older_than_real, keep->newest, keep->now_real,
                                 MIN(keep->bytes, (uint64_t)INT64_MAX) });
}

void store_forget_job(struct store *s, uint32_t number) {
        put(s, OP_FORGET_JOB, &(struct key_row){ .job = number });
}

uint64_t store_bytes_used(const struct store *s) {
        return atomic_load(&s->used);
}

void store_abandon(struct store *s) {
        item_free(TAKE_PTR(s->open));
        s->open_error = 0;
        s->last_job_put = 0; /* it may have been in the batch */
}

int store_commit(struct store *s, store_effect effect, void *userdata) {
        struct item *i = NULL;
        int r = s->open_error;

        if (r >= 0) {
                i = s->open ? TAKE_PTR(s->open) : calloc(1, sizeof(*i));
                if (!i)
                        r = -ENOMEM;
        }
        if (r >= 0) {
                i->kind = ITEM_BATCH;
                i->effect = effect;
                i->userdata = userdata;
                r = store_enqueue(s, i);
        }
        if (r < 0)
                store_abandon(s);
        return r;
}

size_t store_open_bytes(const struct store *s) {
        return s->open ? s->open->bytes : 0;
}

bool store_full(const struct store *s) {
        return s->queue_bytes >= s->limits.queue_bytes || s->queue_records >= s->limits.queue_records ||
               atomic_load(&s->trouble) != 0;
}

void store_get_stats(struct store *s, struct store_stats *ret) {
        (void)pthread_mutex_lock(&s->lock);
        *ret = (struct store_stats){
                .queue_bytes = s->queue_bytes,
                .queue_records = s->queue_records,
                .transactions = s->transactions,
                .records = s->records,
                .commit_usec_max = s->commit_usec_max,
                .trouble = atomic_load(&s->trouble),
        };
        s->commit_usec_max = 0;
        (void)pthread_mutex_unlock(&s->lock);
}
