/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what is marked and the jobs that remove it are one batch of the store. */
#include "masterd/admit/collect.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "masterd/admit/submit.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/watch/checkpoints.h"

/* It runs as the owner, who has Primus for Python where its trainers do. host NULL: anywhere; what is shared
 * it finds there as well. */
static char *collector_config(const char *host, const char *queue) {
        json_t *j =
                json_pack("{s:s, s:s*, s:s*, s:[{s:s, s:f, s:i, s:[s, s, s, s]}]}", "name", "checkpoints-gc",
                          "nodes", host, "queue", queue, "role", "roleName", "collect", "vcores", 0.1,
                          "memoryMb", 128, "argv", "python3", "-m", "primus.checkpoints", "collect");
        char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;

        json_decref(j);
        return text;
}

static int submit_collector(struct manager *m, uint32_t owner, const char *host, const char *queue,
                            uint32_t *ret_job, sd_bus_error *error) {
        struct submission s = { .owner = owner, .of_its_own = collector_config(host, queue) };
        struct job *j;
        int r;

        if (!s.of_its_own)
                return -ENOMEM;
        s.config = s.of_its_own;
        s.config_size = strlen(s.config);
        r = submit_job(m, &s, &j, error);
        submission_done(&s);
        if (r >= 0)
                *ret_job = j->number;
        return r;
}

static bool is_new(const char *const *hosts, size_t n, const char *host) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(hosts[i], host) == 0)
                        return false;
        return true;
}

static int submit_collectors(struct manager *m, uint32_t owner, uint32_t job, struct collected *c,
                             sd_bus_error *error) {
        const struct checkpoints *all = checkpoints_of(m);
        const struct job *of = manager_job(m, job);
        const char *hosts[COLLECT_JOBS_MAX];

        for (const struct checkpoint *x = checkpoints_after(all, owner, 0); x && c->n_jobs < COLLECT_JOBS_MAX;
             x = checkpoints_after(all, owner, x->id)) {
                int r;

                if (!x->marked || !checkpoint_is_of(x, job) || !is_new(hosts, c->n_jobs, x->facts.host))
                        continue;
                r = submit_collector(m, owner, nodes_get(&m->nodes, x->facts.host) ? x->facts.host : NULL,
                                     of ? of->spec->queue : NULL, c->jobs + c->n_jobs, error);
                if (r < 0)
                        return r;
                hosts[c->n_jobs++] = x->facts.host;
        }
        return 0;
}

int collect_checkpoints(struct manager *m, uint32_t owner, uint32_t job, const struct checkpoint_policy *p,
                        bool dry, struct collected *ret, sd_bus_error *error) {
        *ret = (struct collected){};
        TRY(checkpoints_collect(m, owner, job, p, dry, &ret->ids, &ret->n_ids));
        return dry ? 0 : submit_collectors(m, owner, job, ret, error);
}

void collected_done(struct collected *c) {
        free(c->ids);
        *c = (struct collected){};
}

void collect_job_ended(struct manager *m, struct job *j) {
        const struct checkpoints_spec *s = &j->spec->checkpoints;
        struct checkpoint_policy p = { s->best, s->trial_best, s->trial_latest };
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(collected_done) struct collected c = {};
        int r;

        /* Of an element its array decides. */
        if (j->element.array > 0 || !checkpoints_spec_given(s))
                return;
        /* Whoever runs again what did not succeed finds where it was. */
        if (j->state != JOB_SUCCEEDED && p.trial_latest == 0)
                p.trial_latest = 1;
        r = collect_checkpoints(m, j->owner, j->number, &p, false, &c, &error);
        if (c.n_ids > 0)
                record_event(m, j, "checkpoints", NULL,
                             "%zu checkpoints are removed, as its key checkpoints says", c.n_ids);
        if (r < 0)
                record_event(
                        m, j, "checkpoints", NULL,
                        "the job that removes them was not submitted: %s; 'primusctl checkpoints gc %u' does",
                        error.message ?: strerror(-r), j->number);
}
