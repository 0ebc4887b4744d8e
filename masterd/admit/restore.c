/* SPDX-License-Identifier: Apache-2.0 */
/* A job from a savepoint. Invariant: job, files and progress are one transaction; until then nobody knows the
 * job, and the savepoint cannot be deleted. */
#include "masterd/admit/restore.h"

#include <string.h>

#include "lib/base/log.h"
#include "lib/wire/errors.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/life/depend.h"
#include "masterd/life/kept-progress.h"
#include "masterd/life/revive.h"
#include "masterd/life/savepoints.h"

#define ROWS_MAX 4096u /* files in one answer of the store */

struct restore {
        struct manager *manager;
        struct savepoint *savepoint; /* stays: readers counts us */
        struct submission submission;
        char *config; /* of the savepoint */
        char *data;   /* of its manifest */
        struct job *job;
        uint32_t source; /* whose files are being read */
        uint64_t first;  /* from here on */
        uint32_t n;      /* so many at most */
        restore_done_t done;
        void *userdata;
};

static void restore_free(struct restore *q) {
        q->savepoint->readers--;
        q->manager->jobs.n_restoring--;
        revive_job_free(q->job);
        submission_done(&q->submission);
        free(q->config);
        free(q->data);
        free(q);
}

static void refuse(struct restore *q, const sd_bus_error *error) {
        q->done(q->userdata, NULL, error);
        restore_free(q);
}

static void refuse_text(struct restore *q, const char *name, const char *text) {
        refuse(q, &SD_BUS_ERROR_MAKE_CONST(name, text));
}

static void refuse_errno(struct restore *q, int r) {
        char text[256];

        snprintf(text, sizeof(text), "Savepoint '%s' cannot be read: %s", q->savepoint->name, strerror(-r));
        refuse_text(q, r == -ENOMEM || r == -ENOBUFS ? ERROR_BUSY : ERROR_REFUSED, text);
}

static void refuse_damaged(struct restore *q, const char *why) {
        char text[1024];

        snprintf(text, sizeof(text), "Savepoint '%s' does not fit its files or this configuration: %s",
                 q->savepoint->name, why ? why : "it is damaged");
        refuse_text(q, ERROR_REFUSED, text);
}

/* ---- everything fits ---- */

static void on_asked(void *userdata, int error, const char *unknown) {
        struct restore *q = userdata;
        struct manager *m = q->manager;
        struct job *j;
        char text[96];

        if (error < 0) {
                refuse_errno(q, error);
                return;
        }
        if (unknown) {
                snprintf(text, sizeof(text), "after: there is no job %s (primusctl list -a shows all)",
                         unknown);
                refuse_text(q, ERROR_NO_SUCH_JOB, text);
                return;
        }
        j = TAKE_PTR(q->job);
        submit_admit(m, j);
        store_copy_files(m->store, q->savepoint->key, j->number);
        record_event(m, j, "restored", NULL,
                     "goes on from savepoint %s of job %u: %llu tasks done, %llu begun, %llu failed",
                     q->savepoint->name, q->savepoint->job, (unsigned long long)q->savepoint->done,
                     (unsigned long long)q->savepoint->partial, (unsigned long long)q->savepoint->failed);
        j->data->finished = feeding_over(j);
        feeding_changed(m, j);
        q->done(q->userdata, j, NULL);
        restore_free(q);
}

static void admit(struct restore *q) {
        int r = depend_ask(q->manager, q->job, on_asked, q);

        if (r < 0)
                refuse_errno(q, r);
}

/* ---- tasks that are begun: the rows of their files ---- */

static void settle(struct restore *q);

static void files_free(struct data_file *files, size_t n) {
        for (size_t i = 0; files && i < n; i++)
                free((char *)files[i].path);
        free(files);
}

/* Rows as the data wants them. */
static int convert(const struct data_file_record *rows, size_t n, struct data_file **ret) {
        struct data_file *files = calloc(n + 1, sizeof(*files));
        int r = files ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < n; i++) {
                r = feeding_file_of(rows + i, files + i);
                if (r < 0)
                        files_free(files, i);
        }
        if (r >= 0)
                *ret = files;
        return r;
}

static void on_rows(void *userdata, int error, const struct data_file_record *rows, size_t n) {
        struct restore *q = userdata;
        struct data_file *files;

        if (error >= 0)
                error = convert(rows, n, &files);
        if (error >= 0) {
                error = data_filled(q->job->data->data, q->source, q->first, files, n);
                files_free(files, n);
        }
        if (error == -EUCLEAN)
                refuse_damaged(q, "files of it are missing");
        else if (error < 0)
                refuse_errno(q, error);
        else
                settle(q);
}

static void settle(struct restore *q) {
        struct data *d = q->job->data->data;
        int r = data_restored(d);

        if (r == DATA_MISSING && data_missing(d, &q->source, &q->first, &q->n)) {
                r = store_query_files(q->manager->store, q->savepoint->key, q->source, q->first, q->n,
                                      on_rows, q);
                if (r < 0)
                        refuse_errno(q, r);
        } else if (r == -EUCLEAN)
                refuse_damaged(q, "its tasks are not those of its files");
        else if (r < 0)
                refuse_errno(q, r);
        else
                admit(q);
}

/* ---- files and sources ---- */

static int take_source(struct restore *q, const struct data_source_record *r) {
        struct job_data *d = q->job->data;
        struct source *s;

        if (r->source >= d->input->n_sources)
                return -EUCLEAN;
        s = d->sources + r->source;
        free(s->cursor);
        s->cursor = NULL;
        if (r->cursor.size > 0 && !(s->cursor = store_bytes_text(&r->cursor)))
                return -ENOMEM;
        s->scanned = r->scanned;
        s->passed = r->passed;
        if (r->passed > 0)
                data_passed(d->data, r->source, r->passed);
        if (r->scanned)
                data_scanned(d->data, r->source);
        return 0;
}

static void on_sources(void *userdata, int error, const struct data_source_record *sources, size_t n) {
        struct restore *q = userdata;
        _cleanup_free_ char *why = NULL;

        for (size_t i = 0; error >= 0 && i < n; i++)
                error = take_source(q, sources + i);
        if (error < 0) {
                refuse_errno(q, error);
                return;
        }
        error = data_load(q->job->data->data, q->data, strlen(q->data), &why);
        if (error == -EBADMSG)
                refuse_damaged(q, why);
        else if (error < 0)
                refuse_errno(q, error);
        else
                settle(q);
}

static void on_files(void *userdata, int error, const struct data_file_record *rows, size_t n);

static void read_on(struct restore *q) {
        struct store *store = q->manager->store;
        int r = q->source < q->job->data->input->n_sources
                        ? store_query_files(store, q->savepoint->key, q->source, q->first, ROWS_MAX, on_files,
                                            q)
                        : store_query_sources(store, q->savepoint->key, on_sources, q);

        if (r < 0)
                refuse_errno(q, r);
}

static void on_files(void *userdata, int error, const struct data_file_record *rows, size_t n) {
        struct restore *q = userdata;
        struct job_data *d = q->job->data;
        struct data_file *files;

        if (error >= 0 && (error = convert(rows, n, &files)) >= 0) {
                for (size_t i = 0; error >= 0 && i < n; i++) {
                        error = rows[i].file == q->first + i ? data_add(d->data, q->source, files + i)
                                                             : -EUCLEAN;
                        d->sources[q->source].batch = files[i].batch;
                }
                files_free(files, n);
        }
        if (error == -EINVAL || error == -EUCLEAN)
                refuse_damaged(q, "files of it are missing");
        else if (error < 0)
                refuse_errno(q, error);
        else {
                q->first += n;
                if (n < ROWS_MAX) {
                        q->source++;
                        q->first = 0;
                }
                read_on(q);
        }
}

/* ---- the savepoint itself ---- */

static int make(struct restore *q, sd_bus_error *error) {
        struct submission *s = &q->submission;
        _cleanup_free_ char *difference = NULL, *own = NULL;
        int r;

        if (s->config_size == 0) {
                s->config = q->config;
                s->config_size = strlen(q->config);
                if (!s->name && !(s->name = strdup(q->savepoint->job_name)))
                        return -ENOMEM;
                if (!s->given.bundle[0] && s->owner == q->savepoint->owner)
                        memcpy(s->given.bundle, q->savepoint->bundle, sizeof(s->given.bundle));
        }
        r = submit_make(q->manager, s, &q->job, error);
        if (r < 0)
                return r;
        if (q->job->array)
                return sd_bus_error_set(
                        error, ERROR_BAD_CONFIG,
                        "1:1: array: an array cannot go on from a savepoint; submit its elements "
                        "one by one");
        r = spec_effective(q->job->spec, &own);
        if (r >= 0)
                r = savepoint_same_data(q->config, own, &difference);
        if (r > 0)
                return sd_bus_error_setf(
                        error, ERROR_BAD_CONFIG,
                        "1:1: savepoint '%s' is of other data: %s; leave this as it was, or leave the "
                        "configuration out and the savepoint's own is taken",
                        q->savepoint->name, difference);
        if (r >= 0 && !q->job->data)
                r = -EBADMSG;
        return r;
}

static void on_savepoint(void *userdata, int error, const struct savepoint_record *record, size_t n) {
        _cleanup_(sd_bus_error_free) sd_bus_error why = SD_BUS_ERROR_NULL;
        struct restore *q = userdata;
        int r = error;

        if (r >= 0 && n == 0)
                r = -ENOENT;
        if (r >= 0 && !(q->config = store_bytes_text(&record->config)))
                r = -ENOMEM;
        if (r >= 0)
                r = savepoint_manifest_data(record->manifest.data, record->manifest.size, &q->data);
        if (r >= 0)
                r = make(q, &why);
        if (r >= 0)
                read_on(q);
        else if (sd_bus_error_is_set(&why))
                refuse(q, &why);
        else if (r == -EBADMSG)
                refuse_damaged(q, NULL);
        else
                refuse_errno(q, r);
}

int restore_job(struct manager *m, struct submission *s, restore_done_t done, void *userdata,
                sd_bus_error *error) {
        struct savepoint *savepoint = savepoint_get(m, s->savepoint);
        struct restore *q;
        uint32_t keeper;
        int r;

        if (!savepoint || (s->owner != savepoint->owner && s->owner != 0))
                return sd_bus_error_setf(error, ERROR_NOT_FOUND,
                                         "You have no savepoint '%.*s' (primusctl savepoint list)",
                                         (int)SAVEPOINT_NAME_MAX, s->savepoint);
        keeper = kept_progress_keeper(m, s->savepoint);
        if (keeper > 0)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Job %u goes on from savepoint '%s' and replaces it when it ends; "
                                         "wait for it (primusctl wait %u), or kill it",
                                         keeper, s->savepoint, keeper);
        if (m->jobs.n_restoring >= RESTORES_MAX)
                return sd_bus_error_setf(error, ERROR_BUSY,
                                         "%u jobs are being made of savepoints; try again in a moment",
                                         m->jobs.n_restoring);
        q = calloc(1, sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = (struct restore){ .manager = m, .savepoint = savepoint, .done = done, .userdata = userdata };
        r = savepoint_read(m, savepoint, on_savepoint, q);
        if (r < 0) {
                free(q);
                return r;
        }
        q->submission = *s;
        *s = (struct submission){};
        savepoint->readers++;
        m->jobs.n_restoring++;
        return 0;
}
