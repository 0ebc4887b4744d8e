/* SPDX-License-Identifier: Apache-2.0 */
/* A job's data and the disk. Invariant: nothing is granted before the block that it is of is on disk, and
 * what an executor reported is there before its agent may forget it. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding-parts.h"

/* Progress that is not on disk when masterd dies is reported again by who made it; it waits for more. */
#define FLUSH_USEC (100 * USEC_PER_MSEC)

struct sinking {
        struct manager *manager;
        uint32_t job;
};

static void put_block(void *userdata, uint64_t block, const void *state, size_t state_size, const void *over,
                      size_t over_size) {
        struct sinking *s = userdata;

        store_put_data_block(s->manager->store, &(struct data_block_record){ .job = s->job,
                                                                             .block = block,
                                                                             .state = { state, state_size },
                                                                             .over = { over, over_size } });
}

static void delete_block(void *userdata, uint64_t block) {
        struct sinking *s = userdata;

        store_delete_data_block(s->manager->store, s->job, block);
}

static void put_task(void *userdata, const struct task *t) {
        struct sinking *s = userdata;

        store_put_data_task(s->manager->store,
                            &(struct data_task_record){
                                    .job = s->job,
                                    .task = t->id,
                                    .source = t->source,
                                    .file = t->file,
                                    .epoch = t->epoch,
                                    .start = t->start,
                                    .end = t->end,
                                    .acked = t->acked,
                                    .skip = t->skip,
                                    .records = t->records,
                                    .records_before = t->records_before,
                                    .state = (uint8_t)(t->place == TASK_LEASED ? TASK_PENDING : t->place),
                                    .failures = t->failures,
                                    .error = t->error });
}

static void delete_task(void *userdata, uint64_t id) {
        struct sinking *s = userdata;

        store_delete_data_task(s->manager->store, s->job, id);
}

static void put_state(void *userdata, const void *state, size_t size) {
        struct sinking *s = userdata;

        store_put_data_state(s->manager->store,
                             &(struct data_state_record){ .job = s->job, .state = { state, size } });
}

/* What an effect remembers: the job may be gone when the disk has answered. */
struct flushed {
        uint32_t job;
        sd_id128_t uid;
        uint64_t mark;
};

static struct job *flushed_job(struct manager *m, const struct flushed *f) {
        struct job *j = manager_job(m, f->job);

        return j && j->data && j->data->data && sd_id128_equal(j->uid, f->uid) ? j : NULL;
}

static void run_flushed(struct manager *m, void *data) {
        struct flushed *f = data;
        struct job *j = flushed_job(m, f);

        if (j) {
                data_durable(j->data->data, f->mark);
                feeding_run(m, j);
        }
        free(f);
}

static void run_later(struct manager *m, void *data) {
        struct flushed *f = data;
        struct job *j = flushed_job(m, f);

        if (j) {
                j->data->durable_wanted = false;
                feeding_run(m, j);
        }
        free(f);
}

static void effect_of(struct manager *m, const struct job *j, uint64_t mark, effect_fn run) {
        struct flushed *f = malloc(sizeof(*f));

        if (!f) { /* as for any effect that is dropped */
                (void)sd_event_exit(m->event, log_oom());
                return;
        }
        *f = (struct flushed){ .job = j->number, .uid = j->uid, .mark = mark };
        (void)manager_effect(m, run, f);
}

void feeding_run_later(struct manager *m, struct job *j) {
        if (j->data->durable_wanted)
                return;
        j->data->durable_wanted = true;
        effect_of(m, j, 0, run_later);
}

void feeding_flush(struct manager *m, struct job *j) {
        static const struct data_sink sink = { put_block, delete_block, put_task, delete_task, put_state };
        struct job_data *d = j->data;

        if (!d->data || (!data_dirty(d->data) && !data_urgent(d->data)))
                return;
        (void)sd_event_source_set_enabled(d->flush_timer, SD_EVENT_OFF);
        effect_of(m, j, data_flush(d->data, &sink, &(struct sinking){ m, j->number }), run_flushed);
}

static int on_flush(sd_event_source *s, uint64_t usec, void *userdata) {
        struct job *j = userdata;

        feeding_flush(j->manager, j);
        return 0;
}

void feeding_flush_soon(struct manager *m, struct job *j) {
        struct job_data *d = j->data;
        int r = 0;

        if (data_urgent(d->data)) {
                feeding_flush(m, j);
                return;
        }
        if (!data_dirty(d->data) || (d->flush_timer && sd_event_source_get_enabled(d->flush_timer, NULL) > 0))
                return;
        if (!d->flush_timer)
                r = sd_event_add_time_relative(m->event, &d->flush_timer, CLOCK_BOOTTIME, FLUSH_USEC,
                                               10 * USEC_PER_MSEC, on_flush, j);
        else {
                r = sd_event_source_set_time_relative(d->flush_timer, FLUSH_USEC);
                if (r >= 0)
                        r = sd_event_source_set_enabled(d->flush_timer, SD_EVENT_ONESHOT);
        }
        if (r < 0)
                feeding_flush(m, j); /* rather early than never */
}

void feeding_put_source(struct manager *m, struct job *j, uint32_t source) {
        const struct source *s = j->data->sources + source;

        store_put_data_source(m->store, &(struct data_source_record){
                                                .key = j->number,
                                                .source = source,
                                                .scanned = s->scanned,
                                                .cursor = { s->cursor, s->cursor ? strlen(s->cursor) : 0 },
                                                .passed = s->passed });
        manager_touch(m);
}

/* ---- rows of files ---- */

struct asked {
        struct manager *manager;
        uint32_t job;
        sd_id128_t uid;
        uint32_t source, n;
        uint64_t first;
};

static void cannot_read(struct manager *m, struct job *j, const struct asked *q, int error) {
        char reason[256];

        snprintf(reason, sizeof(reason),
                 "the list of files of the data source '%s' cannot be read back from the store: %s",
                 j->data->input->sources[q->source].name, strerror(-error));
        m->up->job_stop(m, j, JOB_EVENT_FAILED, reason);
}

static void on_files(void *userdata, int error, const struct data_file_record *rows, size_t n) {
        _cleanup_free_ struct asked *q = userdata;
        _cleanup_free_ struct data_file *files = calloc(n + 1, sizeof(*files));
        struct job *j = manager_job(q->manager, q->job);

        if (!j || !j->data || !sd_id128_equal(j->uid, q->uid) || job_state_ended(j->state))
                return;
        if (error >= 0 && !files)
                error = -ENOMEM;
        for (size_t i = 0; error >= 0 && i < n; i++)
                error = feeding_file_of(rows + i, files + i);
        if (error >= 0)
                error = data_filled(j->data->data, q->source, q->first, files, n);
        for (size_t i = 0; files && i < n; i++)
                free((char *)files[i].path);
        if (error < 0) {
                cannot_read(q->manager, j, q, error);
                return;
        }
        feeding_run(q->manager, j);
}

static void run_ask(struct manager *m, void *data) {
        struct asked *q = data;
        struct job *j = manager_job(m, q->job);
        int r;

        if (!j || !j->data || !sd_id128_equal(j->uid, q->uid) || job_state_ended(j->state)) {
                free(q);
                return;
        }
        r = store_query_files(m->store, q->job, q->source, q->first, q->n, on_files, q);
        if (r < 0) {
                cannot_read(m, j, q, r);
                free(q);
        }
}

void feeding_ask_files(struct manager *m, struct job *j) {
        struct asked q = { .manager = m, .job = j->number, .uid = j->uid }, *mine;

        while (data_missing(j->data->data, &q.source, &q.first, &q.n)) {
                mine = malloc(sizeof(*mine));
                if (!mine) {
                        cannot_read(m, j, &q, -ENOMEM);
                        return;
                }
                *mine = q;
                /* Rows that this turn has put are read behind its commit. */
                if (manager_batch_open(m))
                        (void)manager_effect(m, run_ask, mine);
                else
                        run_ask(m, mine);
        }
}
