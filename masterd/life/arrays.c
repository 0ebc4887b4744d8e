/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays. Invariants: an element that is on disk is never made again, and whoever is not will be; an array is
 * active as long as one of its elements is. */
#include "masterd/life/arrays.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/life/depend.h"
#include "masterd/life/history.h"
#include "masterd/life/holdings.h"
#include "masterd/life/life-parts.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/revive.h"
#include "masterd/life/searcher.h"
#include "masterd/life/searches.h"
#include "masterd/life/suspension.h"
#include "masterd/queue/queueing.h"

#define MADE_AT_ONCE 32u /* elements in one batch, so that nobody waits long for the loop */

/* Whose arrays have so many elements under way. */
struct array_owner {
        uint32_t uid;
        struct array_share share;
        UT_hash_handle hh;
};

static void strv_done(char ***list, size_t *n) {
        for (size_t i = 0; *list && i < *n; i++)
                free((*list)[i]);
        if (*list)
                **list = NULL;
        *n = 0;
}

/* Without what is for the array as a whole. */
static int element_spec(const char *config, size_t size, uint32_t index, struct job_spec **ret) {
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        struct job_spec *spec;
        int r = spec_load(config, size, &spec, &d);

        if (r < 0)
                return r;
        strv_done(&spec->array.after, &spec->array.n_after);
        free(spec->array.array);
        free(spec->array.begin);
        spec->array.array = spec->array.begin = NULL;
        if (index == ELEMENT_SEARCHER)
                spec_make_searcher(spec);
        else
                spec_make_trial(spec);
        *ret = spec;
        return 0;
}

/* The one of all elements (but the searcher), made for the first. */
static int share_spec(struct job *array, uint32_t index, struct job_spec **ret) {
        struct job_spec **one =
                index == ELEMENT_SEARCHER ? &array->array->searcher.spec : &array->array->element;
        _cleanup_free_ char *config = NULL;
        int r = 0;

        if (!*one) {
                r = spec_effective(array->spec, &config);
                if (r >= 0)
                        r = element_spec(config, strlen(config), index, one);
        }
        if (r < 0)
                return r;
        *ret = spec_ref(*one);
        return 0;
}

int arrays_load_spec(struct manager *m, const struct job_record *r, struct job_spec **ret) {
        struct job *array = manager_job(m, r->array);

        if (array && array->array)
                return share_spec(array, r->index, ret);
        return element_spec(r->body->config.data, r->body->config.size, r->index, ret);
}

int arrays_prepare(struct job *j) {
        if (search_spec_given(&j->spec->search))
                return array_new_search(&j->spec->search, &j->array);
        return j->spec->array.array ? array_new(j->spec->array.array, &j->array) : 0;
}

static struct job *array_of(struct manager *m, const struct job *element, uint32_t *ret_position) {
        struct job *j = element->element.array > 0 ? manager_job(m, element->element.array) : NULL;

        return j && j->array && array_find(j->array, element->element.index, ret_position) >= 0 ? j : NULL;
}

struct job *arrays_of(struct manager *m, const struct job *element, uint32_t *ret_position) {
        struct job *j = array_of(m, element, ret_position);

        return j && j->array->jobs[*ret_position] == element->number ? j : NULL;
}

static bool is_searcher(const struct job *element) {
        return element->element.array > 0 && element->element.index == ELEMENT_SEARCHER;
}

struct job *arrays_of_searcher(struct manager *m, const struct job *element) {
        struct job *j = is_searcher(element) ? manager_job(m, element->element.array) : NULL;

        return j && j->array && j->array->trials && j->array->searcher.job == element->number ? j : NULL;
}

/* ---- making ---- */

static int copy_secrets(const struct job *from, struct job *to) {
        to->given.secrets = calloc(from->given.n_secrets + 1, sizeof(*to->given.secrets));
        if (!to->given.secrets)
                return -ENOMEM;
        for (size_t i = 0; i < from->given.n_secrets; i++) {
                const struct job_secret *s = from->given.secrets + i;
                to->given.secrets[i] = (struct job_secret){ strdup(s->name), malloc(s->size + 1), s->size };
                to->given.n_secrets++;
                if (!to->given.secrets[i].name || !to->given.secrets[i].data)
                        return -ENOMEM;
                memcpy(to->given.secrets[i].data, s->data, s->size);
        }
        return 0;
}

static int describe(struct job *e, const struct job *array) {
        char **env = calloc(8, sizeof(*env));

        if (!env)
                return -ENOMEM;
        e->element.env = env;
        if (asprintf(env + 0, "PRIMUS_ARRAY_JOB=%u", array->number) < 0)
                env[0] = NULL;
        if (asprintf(env + 1, "PRIMUS_ARRAY_INDEX=%u", e->element.index) < 0)
                env[1] = NULL;
        if (asprintf(env + 2, "PRIMUS_ARRAY_SIZE=%u", array_total(array->array)) < 0)
                env[2] = NULL;
        if (!env[0] || !env[1] || !env[2])
                return -ENOMEM;
        return array->array->trials ? searches_describe(array, e->element.index, env + 3) : 0;
}

static void weigh(struct job *array, struct job *e) {
        holdings_weigh(e);
        if (array->array->element_bytes == 0 && !is_searcher(e)) {
                array_weigh(array->array,
                            e->bytes + (array->array->trials ? trials_given_max(array->array->trials) : 0));
                holdings_weigh(array);
        }
}

static int make(struct manager *m, struct job *array, uint32_t index, struct job **ret) {
        struct job_spec *spec;
        struct job *e = NULL;
        sd_id128_t uid;
        uint32_t number;
        int r = sd_id128_randomize(&uid);

        if (r >= 0)
                r = share_spec(array, index, &spec);
        if (r < 0)
                return r;
        number = store_next_job(m->store);
        if (number == 0) {
                spec_free(spec);
                return -EOVERFLOW;
        }
        r = job_new(number, uid, array->owner, spec, &e);
        if (r < 0)
                return r;
        e->manager = m;
        e->element.array = array->number;
        e->element.index = index;
        memcpy(e->given.bundle, array->given.bundle, sizeof(e->given.bundle));
        r = text_set(&e->name, "%s", array->name);
        if (r >= 0)
                r = text_set(&e->given.cwd, "%s", array->given.cwd);
        if (r >= 0)
                r = array->given.env
                            ? strings_copy(array->given.env, strings_count(array->given.env), &e->given.env)
                            : 0;
        if (r >= 0)
                r = copy_secrets(array, e);
        if (r >= 0)
                r = describe(e, array);
        if (r >= 0)
                r = feeding_new(e);
        if (r < 0) {
                revive_job_free(e);
                return r;
        }
        weigh(array, e);
        *ret = e;
        return 0;
}

static void admit(struct manager *m, struct job *array, struct job *e) {
        e->submitted_real = e->attempt_real = e->queue.waits_real = now_real();
        (void)job_transition(e, JOB_EVENT_RECORDED);
        HASH_ADD(hh, m->jobs.by_number, number, sizeof(e->number), e);
        record_job(m, e, false);
        if (is_searcher(e))
                record_event(m, e, "submitted", NULL, "searcher of search %u", array->number);
        else
                record_event(m, e, "submitted", NULL, "element %u of array %u", e->element.index,
                             array->number);
        notice_job_new(m, e);
        placement_enqueue(m, e);
}

static int make_element(struct manager *m, struct job *array, uint32_t position) {
        struct job *e;

        if (position == array->array->range.n)
                TRY(searches_created(m, array, NULL));
        TRY(make(m, array, array->array->range.indices[position], &e));
        array->array->jobs[position] = e->number;
        array_set(array->array, position, ELEMENT_WAITS);
        admit(m, array, e);
        return 0;
}

/* Once for each search that has one: where it ends the search does. */
static int make_searcher(struct manager *m, struct job *array) {
        struct job *e;

        if (!array->array->trials || !array->array->trials->settings.searcher ||
            array->array->searcher.job > 0)
                return 0;
        TRY(make(m, array, ELEMENT_SEARCHER, &e));
        array->array->searcher.job = e->number;
        array->array->searcher.state = ELEMENT_WAITS;
        admit(m, array, e);
        return 0;
}

static int share(struct manager *m, struct job *j) {
        struct array_owner *o;

        if (j->array->share)
                return 0;
        HASH_FIND(hh, m->life->array_owners, &j->owner, sizeof(j->owner), o);
        if (!o) {
                o = calloc(1, sizeof(*o));
                if (!o)
                        return -ENOMEM;
                o->uid = j->owner;
                HASH_ADD(hh, m->life->array_owners, uid, sizeof(o->uid), o);
        }
        array_join(j->array, &o->share);
        return 0;
}

static void run_fill(struct manager *m, void *data);

static void fill(struct manager *m, struct job *j) {
        /* The other half is for what is submitted meanwhile. */
        size_t bytes_max = j->owner == 0 ? SIZE_MAX : m->conf.bytes_per_user_max / 2;
        struct array *a = j->array;
        uint32_t position, *number;
        char reason[SEARCH_BROKEN_MAX];
        int r;

        if (searches_broken_text(j, reason, sizeof(reason))) {
                lifecycle_stop_job(m, j, JOB_EVENT_FAILED, reason);
                return;
        }
        if (j->held.mode > 0)
                return; /* until it is resumed */
        if (share(m, j) < 0)
                (void)log_oom(); /* its own window holds */
        r = make_searcher(m, j);
        if (r < 0) {
                snprintf(reason, sizeof(reason), "cannot make its searcher: %s", strerror(-r));
                lifecycle_stop_job(m, j, JOB_EVENT_FAILED, reason);
                return;
        }
        for (uint32_t n = 0; array_wants(a, bytes_max, &position); n++) {
                if (n == MADE_AT_ONCE) {
                        number = a->filling ? NULL : malloc(sizeof(*number));
                        if (number) { /* else: when the next element ends */
                                *number = j->number;
                                a->filling = true;
                                (void)manager_effect(m, run_fill, number);
                        }
                        return;
                }
                r = make_element(m, j, position);
                if (r < 0) {
                        snprintf(reason, sizeof(reason), "cannot make its element %u: %s",
                                 position < a->range.n ? a->range.indices[position] : position, strerror(-r));
                        lifecycle_stop_job(m, j, JOB_EVENT_FAILED, reason);
                        return;
                }
        }
}

static void run_fill(struct manager *m, void *data) {
        uint32_t *number = data;
        struct job *j = manager_job(m, *number);

        if (j && j->array) {
                j->array->filling = false;
                if (j->state == JOB_QUEUED || j->state == JOB_RUNNING)
                        fill(m, j);
        }
        free(number);
}

bool arrays_take(struct manager *m, struct job *j) {
        if (!j->array)
                return false;
        if (j->state == JOB_QUEUED || j->state == JOB_RUNNING)
                fill(m, j);
        return true;
}

/* ---- what elements do ---- */

static void run(struct manager *m, struct job *j) {
        if (j->state != JOB_QUEUED || job_transition(j, JOB_EVENT_PLACED) < 0 ||
            job_transition(j, JOB_EVENT_UP) < 0)
                return;
        if (j->started_real == 0)
                j->started_real = now_real();
        if (j->array->searcher.state == ELEMENT_RUNS)
                record_event(m, j, "running", NULL, "its searcher runs");
        else
                record_event(m, j, "running", NULL, "the first of its %u element%s runs",
                             array_total(j->array), PLURAL(array_total(j->array)));
        lifecycle_job_changed(m, j);
}

void arrays_job_changed(struct manager *m, struct job *e) {
        uint32_t position;
        bool ended = job_state_ended(e->state);
        struct job *j = ended ? NULL : arrays_of(m, e, &position),
                   *searched = ended ? NULL : arrays_of_searcher(m, e);

        if (searched) {
                searched->array->searcher.state = element_state_of(e->state);
                if (searched->array->searcher.state == ELEMENT_RUNS)
                        run(m, searched);
        }
        if (!j)
                return;
        if (job_parked(e) && j->array->states[position] != ELEMENT_PARKED)
                placement_enqueue(m, j); /* another may take its place */
        array_set(j->array, position, job_parked(e) ? ELEMENT_PARKED : element_state_of(e->state));
        if (j->array->states[position] == ELEMENT_RUNS)
                run(m, j);
        suspension_element_runs(m, j, e);
}

static void finish(struct manager *m, struct job *j) {
        char summary[ARRAY_SUMMARY_MAX], best[SEARCH_BEST_MAX],
                reason[ARRAY_SUMMARY_MAX + SEARCH_BEST_MAX + 1024];
        const struct trials *t = j->array->trials;
        bool good = t ? j->array->n_state[ELEMENT_SUCCEEDED] > 0 && !search_gave_up(t->search) && !t->failed
                      : j->array->n_state[ELEMENT_SUCCEEDED] == j->array->range.n;

        (void)array_text(j->array, summary, sizeof(summary));
        snprintf(reason, sizeof(reason), "%s%s%s%s%.*s", summary, searches_best_text(j, best, sizeof(best)),
                 t && search_gave_up(t->search) ? "; too many of its trials were invalid: look at its space"
                                                : "",
                 !good && j->reason ? "; first: " : "",
                 !good && j->reason ? (int)strnlen(j->reason, 1000) : 0, j->reason ? j->reason : "");
        lifecycle_stop_job(m, j, good ? JOB_EVENT_SUCCEEDED : JOB_EVENT_FAILED, reason);
}

#define ELEMENT_NAME_MAX 32
static const char *element_name(const struct job *e, char buf[static ELEMENT_NAME_MAX]) {
        char index[ELEMENT_TEXT_MAX];

        snprintf(buf, ELEMENT_NAME_MAX, "%u[%s]", e->element.array, element_text(e->element.index, index));
        return buf;
}

/* Whatever of it the job is; of the searcher there is no position. */
static struct job *array_or_search(struct manager *m, const struct job *e, uint32_t *ret_position) {
        return arrays_of_searcher(m, e) ?: arrays_of(m, e, ret_position);
}

void arrays_first_error(struct manager *m, const struct job *e) {
        uint32_t position;
        struct job *j = e->state == JOB_FAILED && e->first_error ? array_or_search(m, e, &position) : NULL;
        char name[ELEMENT_NAME_MAX];

        if (!j || j->first_error ||
            text_set(&j->first_error, "%s: %s", element_name(e, name), e->first_error) < 0)
                return;
        record_job(m, j, false);
        notice_job_changed(m, j);
}

void arrays_job_ended(struct manager *m, struct job *e) {
        uint32_t position;
        struct job *j = array_or_search(m, e, &position);
        char name[ELEMENT_NAME_MAX];

        if (!j)
                return;
        if (is_searcher(e))
                j->array->searcher.state = element_state_of(e->state);
        else
                array_set(j->array, position, element_state_of(e->state));
        if (is_searcher(e) && j->array->trials->broken == 0)
                searches_closed(m, j, e);
        else if (j->array->trials && j->array->trials->broken == 0)
                searches_ended(m, j, e);
        arrays_first_error(m, e);
        if (e->state != JOB_SUCCEEDED) {
                record_event(m, j, "element-failed", NULL, "%s %s: %s", element_name(e, name),
                             job_state_to_string(e->state), e->reason ? e->reason : "");
                /* That of the searcher ends the search, whatever became of trials. */
                if ((!j->reason || is_searcher(e)) && j->state != JOB_STOPPING) {
                        (void)text_set(&j->reason, "%s %s: %s", name, job_state_to_string(e->state),
                                       e->reason ? e->reason : "");
                        lifecycle_job_changed(m, j);
                }
        }
        if (j->state == JOB_STOPPING)
                lifecycle_review(m, j); /* it may be over */
        else if (array_over(j->array))
                finish(m, j);
        else
                fill(m, j);
}

static void stop_element(struct manager *m, const struct job *j, struct job *e, const char *text) {
        if (e && j->kill_grace > 0)
                lifecycle_kill_job(m, e, j->kill_grace - 1, text);
        else if (e)
                lifecycle_stop_job(m, e, JOB_EVENT_KILLED, text);
}

void arrays_stop(struct manager *m, struct job *j, const char *reason) {
        char text[512];

        if (!j->array)
                return;
        snprintf(text, sizeof(text), "array %u is being stopped: %.400s", j->number, reason);
        for (uint32_t i = 0; i < j->array->range.n && array_under_way(j->array) > 0; i++)
                stop_element(m, j, array_goes(j->array, i) ? manager_job(m, j->array->jobs[i]) : NULL, text);
        if (array_searcher_active(j->array))
                stop_element(m, j, manager_job(m, j->array->searcher.job), text);
        searcher_forget(m, j);
}

/* ---- from the store ---- */

int arrays_adopt(struct manager *m, struct job *e) {
        uint32_t position;
        struct job *j = arrays_of_searcher(m, e) ?: array_of(m, e, &position);
        int r;

        if (!j)
                return log_full(LOG_ERR, -EUCLEAN, &(struct log_fields){ .job = e->number },
                                "Job %u is an element of job %u, which is no active array", e->number,
                                e->element.array);
        r = copy_secrets(j, e);
        if (r >= 0)
                r = describe(e, j);
        if (r >= 0)
                weigh(j, e);
        if (job_parked(e))
                array_set(j->array, position, ELEMENT_PARKED);
        if (r >= 0 && is_searcher(e))
                holdings_weigh(j);
        return r;
}

void arrays_loaded(struct job *j, const struct element_record *r) {
        enum element_state state;
        uint32_t position;

        if (j->array && j->array->trials && r->index == ELEMENT_SEARCHER) {
                j->array->searcher.job = r->job;
                j->array->searcher.state =
                        element_state_of(r->state < _JOB_STATE_MAX ? (enum job_state)r->state : JOB_FAILED);
        }
        if (!j->array || array_find(j->array, r->index, &position) < 0)
                return;
        state = element_state_of(r->state < _JOB_STATE_MAX ? (enum job_state)r->state : JOB_FAILED);
        if (r->job <= j->array_since && state != ELEMENT_SUCCEEDED)
                state = ELEMENT_UNMADE;
        j->array->jobs[position] = r->job;
        array_set(j->array, position, state);
}

/* ---- again ---- */

static int reopen(struct manager *m, struct job *j) {
        if (job_transition(j, JOB_EVENT_RERUN) < 0)
                return -EPROTO;
        history_job_again(m, j);
        j->ended_real = 0;
        j->kill_grace = 0;
        j->kill_status = 0;
        j->attempt++;
        j->attempt_real = now_real();
        (void)text_set(&j->first_error, NULL);
        (void)text_set(&j->reason, NULL);
        j->given.had_env = j->given.env && *j->given.env;
        j->given.had_secrets = j->given.n_secrets > 0;
        return 0;
}

static void wait_again(struct manager *m, struct job *j) {
        holdings_weigh(j);
        record_job(m, j, true);
        record_secrets(m, j);
        lifecycle_job_changed(m, j);
        placement_enqueue(m, j);
}

int arrays_again(struct manager *m, struct job *j, uint32_t uid) {
        uint32_t n;

        TRY(reopen(m, j));
        n = array_again(j->array);
        j->array_since = store_next_job(m->store); /* stays unused */
        record_event(m, j, "rerun", NULL, "%u element%s that did not succeed to run again (uid %u)", n,
                     PLURAL(n), uid);
        wait_again(m, j);
        return 0;
}

int arrays_continue(struct manager *m, struct job *j, uint32_t max_trials, uint32_t uid) {
        bool ended = job_state_ended(j->state);

        if (max_trials > 0)
                TRY(searches_grow(m, j, max_trials));
        if (ended)
                TRY(reopen(m, j));
        record_event(m, j, "continued", NULL, "%s: %u trials altogether, %u are there (uid %u)",
                     ended ? "begun again" : "more", j->array->trials->settings.max_trials, j->array->range.n,
                     uid);
        if (ended)
                wait_again(m, j);
        else if (!depend_holds_back(j))
                (void)arrays_take(m, j);
        return 0;
}

void arrays_free_owners(struct manager *m) {
        struct array_owner *o, *next;

        HASH_ITER (hh, m->life->array_owners, o, next) {
                HASH_DEL(m->life->array_owners, o);
                free(o);
        }
}
