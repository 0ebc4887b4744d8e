/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and frees the state of watch. */
#include "masterd/watch/watch.h"

#include <errno.h>
#include <stdlib.h>

#include "masterd/core/manager.h"
#include "masterd/watch/healing.h"
#include "masterd/watch/telemetry.h"
#include "masterd/watch/training.h"
#include "masterd/watch/watch-parts.h"

int watch_new(struct manager *m) {
        m->watch = calloc(1, sizeof(*m->watch));
        if (!m->watch)
                return -ENOMEM;
        m->watch->histories.max = TELEMETRY_HISTORY_MAX;
        m->watch->metrics.max = m->conf.metrics_max;
        return checkpoints_new(&m->watch->checkpoints) < 0 ? -ENOMEM : models_new(&m->watch->models);
}

void watch_free(struct manager *m) {
        if (!m->watch)
                return;
        healing_stop(m);
        training_stop(m);
        checkpoints_free(m->watch->checkpoints);
        models_free(m->watch->models);
        free(m->watch);
        m->watch = NULL;
}
