/* SPDX-License-Identifier: Apache-2.0 */
/* Data of active jobs, from the store, before the loop runs. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding-parts.h"

static struct data_file file_of(const struct data_file_record *r, const char *path) {
        return (struct data_file){ .path = path,
                                   .size = r->size,
                                   .mtime_nsec = r->mtime_nsec,
                                   .inode = r->inode,
                                   .first = r->first,
                                   .last = r->last,
                                   .batch = r->batch,
                                   .split = r->split };
}

int feeding_file_of(const struct data_file_record *r, struct data_file *ret) {
        char *path = store_bytes_text(&r->path);

        if (!path)
                return -ENOMEM;
        *ret = file_of(r, path);
        return 0;
}

static struct job *job_of(struct manager *m, uint64_t number) {
        struct job *j = number <= UINT32_MAX ? manager_job(m, (uint32_t)number) : NULL;

        return j && j->data ? j : NULL;
}

/* The path of a row, ended by a NUL. */
static int path_of(const struct data_file_record *r, char path[static TASK_PATH_MAX + 1]) {
        if (r->path.size > TASK_PATH_MAX)
                return -EUCLEAN;
        if (r->path.size > 0)
                memcpy(path, r->path.data, r->path.size);
        path[r->path.size] = 0;
        return 0;
}

static int load_file(void *userdata, const struct data_file_record *r) {
        struct job *j = job_of(userdata, r->key);
        char path[TASK_PATH_MAX + 1];
        struct data_file f;
        int k;

        if (!j)
                return 0;
        if (r->source >= j->data->input->n_sources || r->file != data_n_files(j->data->data, r->source))
                return -EUCLEAN;
        k = path_of(r, path);
        if (k < 0)
                return k;
        f = file_of(r, path);
        j->data->sources[r->source].batch = r->batch;
        return data_add(j->data->data, r->source, &f);
}

static int load_source(void *userdata, const struct data_source_record *r) {
        struct job *j = job_of(userdata, r->key);
        struct source *s;

        if (!j)
                return 0;
        if (r->source >= j->data->input->n_sources)
                return -EUCLEAN;
        s = j->data->sources + r->source;
        s->scanned = r->scanned;
        s->passed = r->passed;
        if (r->cursor.size > 0 && !(s->cursor = store_bytes_text(&r->cursor)))
                return -ENOMEM;
        if (s->passed > 0)
                data_passed(j->data->data, r->source, s->passed);
        if (s->scanned)
                data_scanned(j->data->data, r->source);
        return 0;
}

static int load_block(void *userdata, const struct data_block_record *r) {
        struct job *j = job_of(userdata, r->job);

        return j ? data_restore_block(j->data->data, r->block, r->state.data, r->state.size, r->over.data,
                                      r->over.size)
                 : 0;
}

static int load_task(void *userdata, const struct data_task_record *r) {
        struct job *j = job_of(userdata, r->job);

        return j ? data_restore_task(j->data->data, &(struct task){ .id = r->task,
                                                                    .source = r->source,
                                                                    .file = r->file,
                                                                    .epoch = r->epoch,
                                                                    .place = (enum task_place)r->state,
                                                                    .start = r->start,
                                                                    .end = r->end,
                                                                    .acked = r->acked,
                                                                    .skip = r->skip,
                                                                    .records = r->records,
                                                                    .records_before = r->records_before,
                                                                    .failures = r->failures,
                                                                    .error = (char *)r->error })
                 : 0;
}

static int load_state(void *userdata, const struct data_state_record *r) {
        struct job *j = job_of(userdata, r->job);

        return j ? data_restore_state(j->data->data, r->state.data, r->state.size) : 0;
}

struct filling {
        struct data_file files[FILES_ROWS_MAX];
        size_t n;
};

static int fill(void *userdata, const struct data_file_record *r) {
        struct filling *f = userdata;
        int k = f->n < FILES_ROWS_MAX ? feeding_file_of(r, f->files + f->n) : -EUCLEAN;

        if (k >= 0)
                f->n++;
        return k;
}

static int fill_missing(struct manager *m, struct job *j) {
        struct data *d = j->data->data;
        uint32_t source, n;
        uint64_t first;
        int r = 0;

        while (r >= 0 && data_missing(d, &source, &first, &n)) {
                struct filling f = { .n = 0 };
                r = store_load_data_file_range(m->store, j->number, source, first, n, fill, &f);
                if (r >= 0)
                        r = data_filled(d, source, first, f.files, f.n);
                for (size_t i = 0; i < f.n; i++)
                        free((char *)f.files[i].path);
        }
        return r;
}

static int restore(struct manager *m, struct job *j) {
        int r;

        while ((r = data_restored(j->data->data)) == DATA_MISSING) {
                r = fill_missing(m, j);
                if (r < 0)
                        break;
        }
        if (r < 0)
                return log_full(LOG_ERR, r, &(struct log_fields){ .job = j->number },
                                "What is stored of the data of job %u does not fit together", j->number);
        /* The configuration had them, and their step was not on disk. */
        r = data_append_rest(j->data->data);
        j->data->finished = feeding_over(j);
        return r;
}

int feeding_load(struct manager *m) {
        struct job *j, *next;
        int r = store_load_data_files(m->store, load_file, m);

        if (r >= 0)
                r = store_load_data_sources(m->store, load_source, m);
        if (r >= 0)
                r = store_load_data_states(m->store, load_state, m);
        if (r >= 0)
                r = store_load_data_blocks(m->store, load_block, m);
        if (r >= 0)
                r = store_load_data_tasks(m->store, load_task, m);
        if (r < 0)
                return r;
        HASH_ITER (hh, m->jobs.by_number, j, next)
                if (j->data && (r = restore(m, j)) < 0)
                        return r;
        return 0;
}
