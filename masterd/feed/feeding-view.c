/* SPDX-License-Identifier: Apache-2.0 */
/* What people are shown of a job's data. */
#include <string.h>

#include "lib/base/clock.h"
#include "masterd/feed/feeding-parts.h"

#define SAMPLE_USEC USEC_PER_SEC
#define RATE_USEC (30 * USEC_PER_SEC)

void feeding_sample(struct job *j) {
        struct job_data *d = j->data;
        uint64_t now = now_boot();

        if (now < usec_add(d->sampled_usec, SAMPLE_USEC))
                return;
        d->sampled_usec = now;
        for (size_t i = 0; i < d->input->n_sources; i++) {
                struct source *s = d->sources + i;
                struct data_totals n;
                data_source_totals(d->data, (uint32_t)i, &n);
                s->samples[s->n_samples++ % RATE_SAMPLES] =
                        (struct rate_sample){ .usec = now, .bytes = n.acked, .records = n.records };
        }
}

/* Against the oldest sample that is not older than the time that a rate is taken over; where there is none,
 * the latest, so that a rate goes down when nothing is said any more. */
static void rate_of(const struct source *s, const struct data_totals *n, uint64_t now, double *ret_bytes,
                    double *ret_records) {
        const struct rate_sample *from = NULL;
        double seconds;

        for (uint32_t k = MIN(s->n_samples, RATE_SAMPLES); k > 0; k--) {
                from = s->samples + (s->n_samples - k) % RATE_SAMPLES;
                if (usec_add(from->usec, RATE_USEC) >= now)
                        break;
        }
        seconds = from ? (double)usec_sub(now, from->usec) / USEC_PER_SEC : 0;
        /* Counts go back when tasks are tried again from the start. */
        *ret_bytes = seconds > 0 && n->acked > from->bytes ? (double)(n->acked - from->bytes) / seconds : 0;
        *ret_records = seconds > 0 && n->records > from->records
                               ? (double)(n->records - from->records) / seconds
                               : 0;
}

uint64_t *feeding_time_points(const struct job *j) {
        const struct job_data *d = j->data;
        uint64_t *batches;

        if (!d || !d->data || job_state_ended(j->state))
                return NULL;
        batches = calloc(d->input->n_sources, sizeof(*batches));
        if (batches && !data_at(d->data, batches)) {
                free(batches);
                batches = NULL;
        }
        return batches;
}

char *feeding_time_point(const struct job *j, uint32_t source, uint64_t batch,
                         char buf[static TIME_POINT_MAX]) {
        const struct input_source *in = j->data->input->sources + source;
        struct time_point t;

        buf[0] = 0;
        if (!in->has_range || time_point_from_batch(batch, &t) < 0)
                return buf;
        if (!strstr(in->path_pattern, "{{HH}}"))
                t.hour = -1;
        return time_point_format(&t, buf);
}

int feeding_source_view(struct job *j, uint32_t source, struct feeding_source_view *ret) {
        const struct job_data *d = j->data;
        const struct source *s;
        struct data_totals n;
        double left;

        if (!d || source >= d->input->n_sources)
                return -ENODATA;
        s = d->sources + source;
        feeding_source_totals(j, source, &n);
        *ret = (struct feeding_source_view){
                .name = d->input->sources[source].name,
                .kind = source_kind_to_string(d->input->sources[source].kind),
                .files = n.files,
                .tasks = n.tasks,
                .done = n.done + n.skipped,
                .failed = n.failed,
                .leased = n.leased,
                .bytes = n.bytes,
                .acked = n.acked,
                .records = n.records,
                .eta_usec = UINT64_MAX,
                .scanned = s->scanned,
                .waiting_for = s->waiting_for ? s->waiting_for : "",
        };
        if (job_state_ended(j->state) || !d->data)
                return 0;
        data_steering(d->data, source, &ret->steering);
        rate_of(s, &n, now_boot(), &ret->rate, &ret->record_rate);
        if (s->scanned && n.bytes > n.acked && ret->rate > 0) {
                left = (double)(n.bytes - n.acked) / ret->rate * USEC_PER_SEC;
                if (left < (double)UINT64_MAX / 2)
                        ret->eta_usec = (uint64_t)left;
        }
        return 0;
}

double feeding_progress(const struct job *j) {
        struct data_totals n;

        return feeding_totals(j, &n) >= 0 && n.tasks > 0
                       ? (double)(n.done + n.failed + n.skipped) / (double)n.tasks
                       : -1;
}
