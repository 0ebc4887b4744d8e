/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a job that is over: its sums, all that is left of it. On disk they are where its state was. */
#include <endian.h>
#include <string.h>

#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding-parts.h"

#define SUMS_MAGIC UINT64_C(0x314d5553) /* "SUM1": no state of a living job begins so */
#define SUMS_FIELDS 13u

struct sums {
        struct data_totals totals;
        uint64_t scanned;
};

static uint64_t *field(struct sums *s, size_t i) {
        struct data_totals *n = &s->totals;
        uint64_t *const fields[SUMS_FIELDS] = {
                &n->files, &n->tasks, &n->pending, &n->leased,  &n->done,         &n->failed,  &n->skipped,
                &n->bytes, &n->read,  &n->acked,   &n->records, &n->bytes_failed, &s->scanned,
        };

        return fields[i];
}

/* The rest is on disk: hundreds of jobs that have ended are kept, each of which may have had millions of
 * files, or of tasks that failed. */
static void forget(struct job *j) {
        struct executor *e;

        JOB_FOREACH (j, e) {
                takers_out(&j->data->takers, &e->feed.taker);
                e->feed.leases = NULL;
                e->feed.n_leases = e->feed.taker.n_unread = 0;
        }
        j->data->limbo = NULL;
        j->data->data = data_free(j->data->data);
}

void feeding_ended(struct manager *m, struct job *j) {
        struct job_data *d = j->data;
        _cleanup_free_ uint64_t *words = NULL;
        size_t n = 0;

        if (!d)
                return;
        feeding_flush(m, j);
        d->flush_timer = sd_event_source_disable_unref(d->flush_timer);
        d->wake_timer = sd_event_source_disable_unref(d->wake_timer);
        feeding_control_free(j);
        words = calloc(d->input->n_sources * SUMS_FIELDS + 2, sizeof(*words));
        if (!words) /* without its sums, rather than not at all */
                (void)log_oom();
        else {
                words[n++] = htole64(SUMS_MAGIC);
                words[n++] = htole64(d->input->n_sources);
                for (size_t i = 0; i < d->input->n_sources; i++) {
                        struct sums s = { .scanned = d->sources[i].scanned };
                        data_source_totals(d->data, (uint32_t)i, &s.totals);
                        for (size_t k = 0; k < SUMS_FIELDS; k++)
                                words[n++] = htole64(*field(&s, k));
                }
                store_put_data_state(m->store,
                                     &(struct data_state_record){ .job = j->number,
                                                                  .state = { words, n * sizeof(*words) } });
                if (feeding_restore_sums(
                            j, &(struct data_state_record){ .state = { words, n * sizeof(*words) } }) >= 0)
                        forget(j);
        }
        store_trim_data(m->store, j->number);
        manager_touch(m);
}

int feeding_restore_sums(struct job *j, const struct data_state_record *r) {
        struct job_data *d = j->data;
        const uint8_t *p = r->state.data;
        uint64_t head[2];
        struct sums *sums;

        if (!d || r->state.size < sizeof(head))
                return -EUCLEAN;
        memcpy(head, p, sizeof(head));
        p += sizeof(head);
        if (le64toh(head[0]) != SUMS_MAGIC || le64toh(head[1]) != d->input->n_sources ||
            r->state.size != sizeof(head) + d->input->n_sources * SUMS_FIELDS * sizeof(uint64_t))
                return -EUCLEAN;
        sums = calloc(d->input->n_sources, sizeof(*sums));
        if (!sums)
                return -ENOMEM;
        for (size_t i = 0; i < d->input->n_sources; i++) {
                for (size_t k = 0; k < SUMS_FIELDS; k++, p += sizeof(uint64_t)) {
                        uint64_t word;
                        memcpy(&word, p, sizeof(word));
                        *field(sums + i, k) = le64toh(word);
                }
                d->sources[i].scanned = sums[i].scanned;
        }
        free(d->sums);
        d->sums = sums;
        return 0;
}

void feeding_source_totals(const struct job *j, uint32_t source, struct data_totals *ret) {
        if (j->data->sums)
                *ret = j->data->sums[source].totals;
        else
                data_source_totals(j->data->data, source, ret);
}

int feeding_totals(const struct job *j, struct data_totals *ret) {
        struct sums all = {};

        if (!j->data)
                return -ENODATA;
        if (!j->data->sums) {
                data_totals(j->data->data, ret);
                return 0;
        }
        for (size_t i = 0; i < j->data->input->n_sources; i++)
                for (size_t k = 0; k < SUMS_FIELDS; k++)
                        *field(&all, k) += *field(j->data->sums + i, k);
        *ret = all.totals;
        return 0;
}

bool feeding_scanned_all(const struct job *j) {
        for (size_t i = 0; j->data && i < j->data->input->n_sources; i++)
                if (!j->data->sources[i].scanned)
                        return false;
        return true;
}
