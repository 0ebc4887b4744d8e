/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of jobs that have ended: how long, how many, how much (Keep*= of masterd.conf). Invariant: a
 * kept log goes only when the store, asked behind the pruning, no longer knows its job. */
#include "masterd/relay/prune.h"

#include <dirent.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "masterd/core/manager.h"
#include "masterd/relay/logs.h"
#include "masterd/relay/relay-parts.h"

#define PRUNE_USEC (600 * USEC_PER_SEC)
#define PRUNE_AGAIN_USEC USEC_PER_SEC /* while the store has more than KeepBytes= */

struct forgotten {
        struct manager *manager;
        uint32_t number;
};

static void on_known(void *userdata, int error, const struct job_record *jobs, size_t n) {
        struct forgotten *f = userdata;

        if (error >= 0 && n == 0)
                logs_forget(f->manager, f->number);
        free(f);
}

/* Kept logs of jobs that the store has forgotten. The directory's names say which jobs there are; the store,
 * which answers behind the pruning, which of them it still knows. */
static void prune_logs(struct manager *m) {
        _cleanup_free_ char *path = NULL;
        struct dirent *entry;
        DIR *d;

        if (asprintf(&path, "%s/logs", m->conf.state_directory) < 0)
                return;
        d = opendir(path);
        while (d && (entry = readdir(d))) {
                struct forgotten *f;
                uint32_t number;
                if (parse_u32(entry->d_name, 1, UINT32_MAX, &number) < 0 || manager_job(m, number))
                        continue;
                f = malloc(sizeof(*f));
                if (!f)
                        break;
                *f = (struct forgotten){ m, number };
                if (store_query_job(m->store, number, on_known, f) < 0) {
                        free(f);
                        break; /* the rest at the next time */
                }
        }
        if (d)
                closedir(d);
}

static int on_prune(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;

        uint64_t used = store_bytes_used(m->store);

        store_prune(m->store,
                    &(struct store_keep){ .older_than_real = usec_sub(now_real(), m->conf.keep_usec),
                                          .newest = m->conf.keep_jobs,
                                          .now_real = now_real(),
                                          .bytes = m->conf.keep_bytes });
        manager_touch(m);
        prune_logs(m);
        /* As long as it becomes less. */
        (void)sd_event_source_set_time_relative(
                s, used > m->conf.keep_bytes && used < m->relay->pruned_used ? PRUNE_AGAIN_USEC : PRUNE_USEC);
        m->relay->pruned_used = used;
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

void prune_soon(struct manager *m) {
        uint64_t used = store_bytes_used(m->store), due;

        /* It has grown since. */
        if (used <= m->conf.keep_bytes || used <= m->relay->pruned_used || !m->relay->prune_timer ||
            sd_event_source_get_time(m->relay->prune_timer, &due) < 0 ||
            due <= usec_add(now_boot(), PRUNE_AGAIN_USEC))
                return;
        m->relay->pruned_used = UINT64_MAX;
        (void)sd_event_source_set_time_relative(m->relay->prune_timer, PRUNE_AGAIN_USEC);
}

int prune_start(struct manager *m) {
        return sd_event_add_time_relative(m->event, &m->relay->prune_timer, CLOCK_BOOTTIME, PRUNE_USEC,
                                          USEC_PER_SEC, on_prune, m);
}
