/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a job, from its submission to its end. */
#include "masterd/feed/feeding.h"

#include <string.h>

#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding-parts.h"

static struct job_data *job_data_free(struct job_data *d) {
        if (!d)
                return NULL;
        for (size_t i = 0; d->sources && d->input && i < d->input->n_sources; i++) {
                free(d->sources[i].cursor);
                free(d->sources[i].text);
                free(d->sources[i].waiting_for);
                sd_event_source_disable_unref(d->sources[i].retry);
        }
        free(d->sources);
        sd_event_source_disable_unref(d->flush_timer);
        sd_event_source_disable_unref(d->wake_timer);
        data_free(d->data);
        input_free(d->input);
        free(d->sums);
        free(d->input_text);
        free(d);
        return NULL;
}

/* What executors are told is what we go by, so that both sides mean the same. */
static int read_input(const struct job *j, struct job_data *d) {
        _cleanup_free_ char *error = NULL;
        int r = spec_input_json(j->spec, &d->input_text);

        if (r >= 0)
                r = input_read(d->input_text, strlen(d->input_text), &d->input, &error);
        if (r == -EBADMSG)
                return log_full(LOG_ERR, r, &(struct log_fields){ .job = j->number },
                                "The data of job %u cannot be described to executors: %s", j->number,
                                error ? error : "");
        return r;
}

static int make_data(const struct job *j, struct job_data *d) {
        _cleanup_free_ uint32_t *weights = calloc(d->input->n_sources, sizeof(*weights));
        struct data_config c = { .weights = weights,
                                 .n_sources = d->input->n_sources,
                                 .order = d->input->order,
                                 .seed = d->input->seed,
                                 .epochs = j->spec->epochs,
                                 .sample_ppm = j->spec->sample_ppm,
                                 .max_attempts = MAX(j->spec->max_task_attempts, 1u) };

        if (!weights)
                return -ENOMEM;
        for (size_t i = 0; i < c.n_sources; i++)
                weights[i] = d->input->sources[i].weight;
        return data_new(&c, &d->data);
}

int feeding_new(struct job *j) {
        size_t n = spec_n_sources(j->spec);
        struct job_data *d;
        int r;

        if (n == 0 || j->spec->lockstep != LOCKSTEP_OFF) /* ranks in lockstep list and read it themselves */
                return 0;
        d = calloc(1, sizeof(*d));
        if (!d)
                return -ENOMEM;
        d->sources = calloc(n, sizeof(*d->sources));
        r = d->sources ? read_input(j, d) : -ENOMEM;
        if (r >= 0)
                r = d->input->n_sources == n ? make_data(j, d) : -EBADMSG;
        if (r < 0) {
                job_data_free(d);
                return r;
        }
        j->data = d;
        return 0;
}

void feeding_free(struct job *j) {
        if (!j->data)
                return;
        feeding_control_free(j);
        j->data = job_data_free(j->data);
}

void feeding_restart(struct manager *m, struct job *j) {
        /* What scans still run belongs to the attempt that is over. */
        feeding_stop(m, j);
}

void feeding_changed(struct manager *m, struct job *j) {
        if (!j->data)
                return;
        feeding_flush(m, j);
        feeding_run_later(m, j);
}
