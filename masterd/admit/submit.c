/* SPDX-License-Identifier: Apache-2.0 */
/* From a submission to a job. Invariant: what was refused leaves nothing behind. */
#include "masterd/admit/submit.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/heap.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/wire/errors.h"
#include "masterd/admit/submit-options.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/core/space.h"
#include "masterd/feed/feeding.h"
#include "masterd/job/footprint.h"
#include "masterd/life/arrays.h"
#include "masterd/life/depend.h"
#include "masterd/life/family.h"
#include "masterd/life/holdings.h"
#include "masterd/life/kept-progress.h"
#include "masterd/life/revive.h"
#include "masterd/queue/queueing.h"
#include "masterd/queue/serving.h"
#include "masterd/queue/submit-layers.h"
#include "masterd/queue/submit-placement.h"
#include "masterd/queue/submit-pool.h"
#include "masterd/relay/bundles.h"
#include "masterd/relay/prune.h"

void submission_done(struct submission *s) {
        job_given_done(&s->given);
        free(s->name);
        free(s->savepoint);
        free(s->key);
        free(s->of_its_own);
        json_decref(s->overrides);
        *s = (struct submission){};
}

static int refuse_load(struct manager *m, const struct submission *s, sd_bus_error *error) {
        int r;

        if (store_full(m->store))
                return sd_bus_error_set(
                        error, ERROR_BUSY,
                        "The master's store is slow or its disk is full; try again in a moment");
        if (m->jobs.n_active >= m->conf.jobs_max)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "%u jobs are active, which is the most this cluster takes (JobsMax=)",
                        m->jobs.n_active);
        r = space_admit_disk(m, s->config_size, error);
        if (r >= 0)
                r = space_admit_memory(m, error);
        if (r >= 0)
                r = holdings_admit_job(m, s->owner, error);
        return r < 0 ? r : holdings_admit(m, s->owner, 0, error);
}

/* Before executors are made of it. */
static int refuse_size(struct manager *m, const struct submission *s, const struct job_spec *spec,
                       sd_bus_error *error) {
        return holdings_admit(m, s->owner,
                              footprint_of_spec(spec) + heap_of_strings(s->given.env) +
                                      footprint_of_secrets(s->given.secrets, s->given.n_secrets),
                              error);
}

static int parse(const struct manager *m, const struct submission *s, struct job_spec **ret,
                 char **ret_warnings, sd_bus_error *error) {
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_free_ char *warnings = NULL;
        size_t size;
        FILE *f;
        int r = spec_parse_layered(s->config, s->config_size, m->conf.layers,
                                   json_string_value(json_object_get(s->overrides, "queue")), ret, &d);

        if (r < 0) {
                const struct diagnostic *first = diagnostics_first_error(&d);
                _cleanup_free_ char *text = first ? diagnostic_format(first) : NULL;
                return sd_bus_error_set(error, ERROR_BAD_CONFIG,
                                        text ? text : "1:1: the configuration cannot be read");
        }
        f = open_memstream(&warnings, &size);
        for (size_t i = 0; f && i < d.n; i++) {
                _cleanup_free_ char *text = diagnostic_format(d.items + i);
                if (text)
                        fprintf(f, "%s\n", text);
        }
        if (!f || fclose(f) != 0) {
                *ret = spec_free(*ret);
                return -ENOMEM;
        }
        *ret_warnings = TAKE_PTR(warnings);
        return 0;
}

static bool has_secret(const struct submission *s, const char *name) {
        for (size_t i = 0; i < s->given.n_secrets; i++)
                if (strcmp(s->given.secrets[i].name, name) == 0)
                        return true;
        return false;
}

/* The configuration's word on the work directory goes first. */
static void take_given(struct job *j, struct job_given *g) {
        if (!g->cwd || *j->given.cwd) {
                free(g->cwd);
                g->cwd = TAKE_PTR(j->given.cwd);
        }
        free(j->given.cwd);
        j->given = *g;
        *g = (struct job_given){};
        j->given.had_env = j->given.env && *j->given.env;
        j->given.had_secrets = j->given.n_secrets > 0;
}

int submit_make(struct manager *m, struct submission *s, struct job **ret, sd_bus_error *error) {
        char text[KEPT_PROGRESS_TEXT_MAX], kept[SAVEPOINT_NAME_MAX + 1];
        _cleanup_free_ char *warnings = NULL;
        struct job_spec *spec = NULL;
        struct job *j = NULL;
        sd_id128_t uid;
        uint32_t number;
        int r;

        r = refuse_load(m, s, error);
        if (r >= 0)
                r = serving_admit(m, s->owner, error);
        r = r < 0 ? r : family_admit(m, s->parent, s->owner, s->with_parent, error);
        if (r >= 0)
                r = parse(m, s, &spec, &warnings, error);
        if (r >= 0)
                r = submit_options_apply(&spec, s->overrides, error);
        if (r >= 0)
                r = submit_pool_admit(&m->conf.pools, s->owner, spec, error);
        if (r >= 0)
                r = submit_placement_admit(m, spec, error);
        if (r >= 0)
                r = refuse_size(m, s, spec, error);
        if (r < 0) {
                spec_free(spec);
                return r;
        }
        r = submit_layers_admit(m->conf.layers, NULL, spec, error);
        if (r < 0) {
                spec_free(spec);
                return r;
        }
        if (!s->savepoint && kept_progress_find(m, s->owner, spec, kept)) {
                s->savepoint = strdup(kept);
                if (!s->savepoint || !s->trial) {
                        spec_free(spec);
                        return s->savepoint ? SUBMIT_GOES_ON : -ENOMEM;
                }
        }
        if (spec->n_files > 0 && !s->given.bundle[0] && !s->trial)
                r = sd_bus_error_set(
                        error, ERROR_REFUSED,
                        "The configuration names files[], but none were uploaded; submit with primusctl");
        else if (s->given.bundle[0] && !bundles_have(m, s->owner, s->given.bundle))
                r = sd_bus_error_set(error, ERROR_REFUSED,
                                     "The files of this job have not been uploaded completely");
        else if (spec_role(spec, SCAN_ROLE))
                r = sd_bus_error_setf(error, ERROR_BAD_CONFIG, "1:1: role: the name %s is reserved",
                                      SCAN_ROLE);
        else if (has_secret(s, INPUT_FILE))
                r = sd_bus_error_set(error, ERROR_REFUSED,
                                     "No secret may be named " INPUT_FILE
                                     ": that is the description of the job's data. Choose another name");
        else
                r = sd_id128_randomize(&uid);
        if (r < 0) {
                spec_free(spec);
                return r;
        }
        number = s->trial ? TRIAL_JOB : store_next_job(m->store);
        if (number == 0) {
                spec_free(spec);
                return sd_bus_error_set(error, ERROR_REFUSED, "The cluster has used up its job numbers");
        }
        r = job_new(number, uid, s->owner, spec, &j);
        if (r < 0)
                return r;
        j->manager = m;
        j->usage_known = true;
        j->parent = s->parent;
        j->with_parent = s->with_parent;
        r = 0;
        if (s->name)
                r = text_set(&j->name, "%s", s->name);
        take_given(j, &s->given);
        if (r >= 0)
                r = arrays_prepare(j);
        if (r >= 0)
                r = depend_prepare(j);
        if (r >= 0 && !j->array)
                r = feeding_new(j);
        if (r >= 0 && (s->trial ? kept_progress_admit(m, j, s->savepoint, text)
                                : kept_progress_take(m, j, s->savepoint, text)) < 0)
                r = sd_bus_error_set(error, ERROR_REFUSED, text);
        if (r < 0) {
                revive_job_free(j);
                return r;
        }
        if (*warnings)
                j->warnings = TAKE_PTR(warnings);
        holdings_weigh(j);
        *ret = j;
        return 0;
}

struct job *submit_admit(struct manager *m, struct job *j) {
        j->submitted_real = j->attempt_real = j->queue.waits_real = now_real();
        (void)job_transition(j, JOB_EVENT_RECORDED); /* the reply and every order wait for the disk */
        HASH_ADD(hh, m->jobs.by_number, number, sizeof(j->number), j);
        m->jobs.n_active++;

        record_job(m, j, true);
        record_secrets(m, j);
        prune_soon(m);
        record_event(m, j, "submitted", NULL, "submitted by uid %u: %u executor%s in %zu role%s", j->owner,
                     j->n_executors, PLURAL(j->n_executors), j->spec->n_roles, PLURAL(j->spec->n_roles));
        if (j->array)
                record_event(m, j, "array", NULL, "an array of %u element%s", array_total(j->array),
                             PLURAL(array_total(j->array)));
        depend_watch(m, j);
        placement_enqueue(m, j);
        family_admitted(m, j);
        return j;
}

int submit_job(struct manager *m, struct submission *s, struct job **ret, sd_bus_error *error) {
        int r = submit_make(m, s, ret, error);

        if (r == 0)
                submit_admit(m, *ret);
        return r;
}
