/* SPDX-License-Identifier: Apache-2.0 */
/* Sources of a running job that people pause, resume, end, remove or re-weight. */
#include <errno.h>
#include <string.h>

#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding-parts.h"

static int source_called(const struct job_data *d, const char *name, uint32_t *ret) {
        int r = -ENOENT;

        for (uint32_t i = 0; i < d->input->n_sources; i++) {
                if (strcmp(d->input->sources[i].name, name) != 0)
                        continue;
                if (r == 0)
                        return -ENOTUNIQ;
                *ret = i;
                r = 0;
        }
        return r;
}

/* As an event says it. */
static void tell_steered(struct manager *m, struct job *j, uint32_t source,
                         const struct data_steering *before, const struct data_steering *after) {
        const char *name = j->data->input->sources[source].name;

        if (after->removed)
                record_event(m, j, "source-removed", NULL,
                             "data source '%s': what nobody has begun of it is no part of the job any more",
                             name);
        else if (after->ended && !before->ended)
                record_event(m, j, "source-ended", NULL,
                             "data source '%s' is ended: it brings no more than it has by now", name);
        else if (after->paused != before->paused)
                record_event(m, j, after->paused ? "source-paused" : "source-resumed", NULL,
                             after->paused ? "data source '%s' is paused: no more of it is given out"
                                           : "data source '%s' goes on",
                             name);
        if (!after->removed && after->weight != before->weight)
                record_event(m, j, "source-weight", NULL, "data source '%s' has weight %u", name,
                             after->weight);
}

int feeding_steer(struct manager *m, struct job *j, const char *name, const struct feeding_steering *how) {
        struct job_data *d = j->data;
        struct data_steering before, after;
        uint32_t source;
        int r;

        if (feeding_is_gone(j) || d->finished)
                return -ENODATA;
        r = source_called(d, name, &source);
        if (r < 0)
                return r;
        data_steering(d->data, source, &before);
        after = (struct data_steering){
                .weight = how->weight,
                .paused = how->state == FEEDING_SOURCE_AS_IT_IS || how->state == FEEDING_SOURCE_ENDED
                                  ? before.paused
                                  : how->state == FEEDING_SOURCE_PAUSED,
                .removed = how->state == FEEDING_SOURCE_REMOVED,
                .ended = how->state == FEEDING_SOURCE_ENDED,
        };
        r = data_steer(d->data, source, &after);
        if (r < 0)
                return r;
        data_steering(d->data, source, &after);
        tell_steered(m, j, source, &before, &after);
        if (after.removed || after.ended)
                feeding_scan_over(m, j, source);
        feeding_changed(m, j);
        return 0;
}
