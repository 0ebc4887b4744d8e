/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1: arrays and their elements, and jobs that are run again. */
#include <jansson.h>
#include <string.h>

#include "lib/base/heap.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/wire/errors.h"
#include "masterd/admit/submit.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/job/footprint.h"
#include "masterd/life/arrays.h"
#include "masterd/life/history.h"
#include "masterd/life/holdings.h"
#include "masterd/life/searches.h"
#include "masterd/relay/bundles.h"
#include "masterd/spec/edit.h"

/* ---- GetStatus ---- */

static int append_counts(sd_bus_message *reply, const struct array *a) {
        const uint32_t *n = a->n_state;
        int r = 0;

        for (uint32_t i = 0; n[ELEMENT_FAILED] > 0 && i < a->range.n; i++)
                if (a->states[i] == ELEMENT_FAILED) {
                        r = sd_bus_message_append(reply, "{sv}", "firstFailed", "u", a->range.indices[i]);
                        break;
                }
        if (r < 0)
                return r;
        if (a->searcher.job > 0)
                TRY(sd_bus_message_append(reply, "{sv}", "searcher", "u", a->searcher.job));
        return sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}", "size", "u", array_total(a),
                                     "waiting", "u", array_waiting(a), "running", "u", n[ELEMENT_RUNS],
                                     "succeeded", "u", n[ELEMENT_SUCCEEDED], "failed", "u", n[ELEMENT_FAILED],
                                     "killed", "u", n[ELEMENT_KILLED]);
}

int api_append_place(sd_bus_message *reply, const char *key, uint32_t array, uint32_t index) {
        TRY(sd_bus_message_append(reply, "{sv}", key, "u", array));
        return index == ELEMENT_SEARCHER ? 0 : sd_bus_message_append(reply, "{sv}", "index", "u", index);
}

int api_append_array(sd_bus_message *reply, struct manager *m, const struct job *j) {
        int r;

        if (!j->array && j->element.array == 0)
                return 0;
        r = reply_open_array(reply, "array", "a{sv}");
        if (r >= 0)
                r = j->array ? append_counts(reply, j->array)
                             : api_append_place(reply, "of", j->element.array, j->element.index);
        return r < 0 ? r : reply_close_array(reply);
}

/* ---- GetElement ---- */

struct element_request {
        struct manager *manager;
        sd_bus_message *call;
        uint32_t array, index;
};

static void refuse(struct element_request *q, int error) {
        char index[ELEMENT_TEXT_MAX];

        if (error < 0)
                (void)reply_failed(q->call, error, NULL);
        else
                (void)reply_errorf(q->call, ERROR_NO_SUCH_JOB,
                                   "There is no job %u[%s]: %u is no array, or that element is "
                                   "not in it or was not made yet "
                                   "(primusctl status %u)",
                                   q->array, element_text(q->index, index), q->array, q->array);
        sd_bus_message_unref(q->call);
        free(q);
}

static void on_got(struct job *j, int error, void *userdata) {
        struct element_request *q = userdata;
        char path[64];

        if (!j) {
                refuse(q, error);
                return;
        }
        (void)reply_return(q->call, "o", notice_job_path(j->number, path));
        sd_bus_message_unref(q->call);
        free(q);
}

static void on_elements(void *userdata, int error, const struct element_record *elements, size_t n) {
        struct element_request *q = userdata;

        /* It comes into memory, so that its object is there. */
        if (error >= 0 && n > 0) {
                error = history_get(q->manager, elements[0].job, on_got, q);
                if (error >= 0)
                        return;
        }
        refuse(q, error);
}

static int get_element(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct element_request *q = malloc(sizeof(*q));
        int r;

        if (!q)
                return -ENOMEM;
        *q = (struct element_request){ .manager = m, .call = sd_bus_message_ref(call) };
        r = sd_bus_message_read(call, "uu", &q->array, &q->index);
        if (r >= 0 && q->index > ARRAY_INDEX_MAX && q->index != ELEMENT_SEARCHER) {
                refuse(q, 0);
                return 1;
        }
        if (r >= 0)
                r = store_query_elements(m->store, q->array, q->index, on_elements, q);
        if (r < 0) {
                sd_bus_message_unref(call);
                free(q);
        }
        return r;
}

int api_on_get_element(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, get_element, error);
}

/* ---- Rerun ---- */

struct rerun_options {
        struct submission *submission;
        bool failed, goes_on;
        uint32_t trials;                      /* goes_on: so many altogether; 0: as many as it was to have */
        struct spec_edit set[SPEC_EDITS_MAX]; /* their strings are the message's */
        size_t n_set;
};

static int read_given(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        return api_read_submit_option(call, key, ((struct rerun_options *)target)->submission, error);
}

static int read_set(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        struct rerun_options *o = target;
        const char *path, *value;
        int r;

        TRY(sd_bus_message_enter_container(call, 'v', "a(ss)"));
        TRY(sd_bus_message_enter_container(call, 'a', "(ss)"));
        while ((r = sd_bus_message_read(call, "(ss)", &path, &value)) > 0) {
                if (o->n_set == SPEC_EDITS_MAX)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                                 "At most %u changes at once", SPEC_EDITS_MAX);
                o->set[o->n_set++] = (struct spec_edit){ EDIT_SET, path, value };
        }
        TRY(r);
        TRY(sd_bus_message_exit_container(call));
        return sd_bus_message_exit_container(call);
}

static int read_goes_on(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        struct rerun_options *o = target;

        o->goes_on = true;
        return sd_bus_message_read(call, "v", "u", &o->trials);
}

static const struct call_option rerun_options[] = {
        { "continue", 0, 0, read_goes_on },
        { "set", 0, 0, read_set },
        { "failed", 'b', offsetof(struct rerun_options, failed), NULL },
        { "env", 0, 0, read_given },
        { "secrets", 0, 0, read_given },
        { NULL },
};

/* Secrets and the submitter's variables have ended with the job. */
static int refuse_lost(const struct job *j, const struct submission *s, sd_bus_error *error) {
        bool secrets = j->given.had_secrets && s->given.n_secrets == 0;

        if (!secrets && !(j->given.had_env && !s->given.env))
                return 0;
        return sd_bus_error_setf(
                error, ERROR_REFUSED,
                "Job %u had %s, which ended with it: give them again (primusctl rerun --%s %u)%s", j->number,
                secrets ? "secrets" : "variables of its submitter",
                secrets ? "secret NAME=FILE" : "env NAME[=VALUE]", j->number,
                secrets ? "" : "; what 'primusctl run' began has all of its caller's, and is best run anew");
}

static int refuse_again(const struct job *j, sd_bus_error *error) {
        if (!j->array)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "Job %u is no array: there are no failed elements of it to run again (without "
                        "--failed it runs again as a whole)",
                        j->number);
        if (j->array->trials)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "Job %u is a search, which has decided by how its trials ended; without --failed it "
                        "runs again as a whole",
                        j->number);
        if (!job_state_ended(j->state))
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "Array %u is %s: what failed of it runs again when all of it has ended", j->number,
                        job_state_to_string(j->state));
        if (j->state == JOB_SUCCEEDED)
                return sd_bus_error_setf(error, ERROR_REFUSED, "Every element of array %u has succeeded",
                                         j->number);
        return 0;
}

/* It comes back under its number, and takes so many bytes more than before: what that takes, and what it
 * needs, is there. */
static int admit_again(struct manager *m, const struct job *j, const struct submission *s, size_t more,
                       sd_bus_error *error) {
        int r = holdings_admit_job(m, j->owner, error);

        if (r >= 0)
                r = holdings_admit(m, j->owner,
                                   footprint_of_job(j) + heap_of_strings(s->given.env) +
                                           footprint_of_secrets(s->given.secrets, s->given.n_secrets) + more,
                                   error);
        if (r >= 0 && j->given.bundle[0] && !bundles_have(m, j->owner, j->given.bundle))
                r = sd_bus_error_setf(error, ERROR_REFUSED, "The files of job %u are gone; submit it again",
                                      j->number);
        return r;
}

static void take_private(struct job *j, struct submission *s) {
        job_forget_private(j);
        j->given.env = TAKE_PTR(s->given.env);
        j->given.secrets = TAKE_PTR(s->given.secrets);
        j->given.n_secrets = s->given.n_secrets;
        s->given.n_secrets = 0;
}

static int again(struct manager *m, sd_bus_message *call, struct job *j, const struct rerun_options *o,
                 uint32_t uid, sd_bus_error *error) {
        if (o->n_set > 0)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "What failed of array %u runs again as what it was: without --failed "
                        "all of it runs again, and may be changed",
                        j->number);
        TRY(refuse_again(j, error));
        TRY(refuse_lost(j, o->submission, error));
        TRY(admit_again(m, j, o->submission, 0, error));
        take_private(j, o->submission);
        TRY(arrays_again(m, j, uid));
        return api_submitted(m, call, j);
}

/* ---- a search goes on ---- */

static int refuse_trials(const struct job *j, uint32_t trials, sd_bus_error *error) {
        const struct trials *t = j->array->trials;
        uint32_t most = search_trials_max(&t->settings);

        if (t->settings.searcher)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Which trials search %u has says its searcher: submit it anew, and "
                                         "let that know what is known already",
                                         j->number);
        if (t->settings.method == SEARCH_GRID || t->settings.method == SEARCH_LIST)
                return trials == 0 ? 0
                                   : sd_bus_error_setf(error, ERROR_REFUSED,
                                                       "Search %u is a %s: it has a trial for each of its %u "
                                                       "points, and no others",
                                                       j->number, search_method_to_string(t->settings.method),
                                                       t->settings.max_trials);
        if (trials > most)
                return sd_bus_error_setf(error, ERROR_REFUSED, "Search %u may have %u trials, not %u",
                                         j->number, most, trials);
        if (trials > 0 && trials <= t->settings.max_trials)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Search %u is to have %u trials already: give more than that",
                                         j->number, t->settings.max_trials);
        return 0;
}

static int refuse_continue(const struct job *j, const struct rerun_options *o, sd_bus_error *error) {
        char broken[SEARCH_BROKEN_MAX];

        if (!j->array || !j->array->trials)
                return sd_bus_error_setf(error, ERROR_REFUSED, "Job %u is no search", j->number);
        if (searches_broken_text(j, broken, sizeof(broken)))
                return sd_bus_error_set(error, ERROR_REFUSED, broken);
        if (o->n_set > 0 || o->failed)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Search %u goes on as what it was: neither set nor failed go with "
                                         "continue",
                                         j->number);
        if (j->state == JOB_STOPPING)
                return sd_bus_error_setf(error, ERROR_REFUSED, "Search %u is being stopped", j->number);
        TRY(refuse_trials(j, o->trials, error));
        if (o->trials > 0)
                return 0;
        if (!job_state_ended(j->state))
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Search %u is %s: say how many trials it is to have altogether",
                                         j->number, job_state_to_string(j->state));
        if (!search_to_come(j->array->trials->search))
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "All %u trials of search %u were made: say how many there are to be "
                                         "altogether",
                                         j->array->trials->settings.max_trials, j->number);
        return 0;
}

static int go_on(struct manager *m, sd_bus_message *call, struct job *j, const struct rerun_options *o,
                 uint32_t uid, sd_bus_error *error) {
        struct submission *s = o->submission;
        size_t more;

        TRY(refuse_continue(j, o, error));
        more = trials_growth(j->array->trials, o->trials);
        if (job_state_ended(j->state)) {
                TRY(refuse_lost(j, s, error));
                TRY(admit_again(m, j, s, more, error));
                take_private(j, s);
        } else if (s->given.env || s->given.n_secrets > 0)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Search %u has not ended: it has the variables and secrets that it "
                                         "was given",
                                         j->number);
        else
                TRY(holdings_admit(m, j->owner, more, error));
        TRY(arrays_continue(m, j, o->trials, uid));
        return api_submitted(m, call, j);
}

/* Whoever may run it again may not say what runs as its owner. */
static int change_first(const struct job *j, const struct rerun_options *o, uint32_t uid,
                        sd_bus_error *error) {
        char why[SPEC_EDIT_TEXT_MAX];
        int r;

        if (o->n_set == 0)
                return spec_effective(j->spec, &o->submission->of_its_own);
        if (uid != j->owner && uid != 0)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Only its owner runs job %u again as something else", j->number);
        r = spec_edit_anew(j->spec, o->set, o->n_set, &o->submission->of_its_own, why);
        return r == -EINVAL ? sd_bus_error_setf(error, ERROR_BAD_CONFIG, "%s", why) : r;
}

static bool sets_name(const struct rerun_options *o) {
        for (size_t i = 0; i < o->n_set; i++)
                if (strcmp(o->set[i].path, "name") == 0)
                        return true;
        return false;
}

static int anew(struct manager *m, sd_bus_message *call, const struct job *j, const struct rerun_options *o,
                uint32_t uid, sd_bus_error *error) {
        struct submission *s = o->submission;

        if (!job_state_ended(j->state))
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Job %u is %s: only what has ended can be run again", j->number,
                                         job_state_to_string(j->state));
        TRY(refuse_lost(j, s, error));
        TRY(change_first(j, o, uid, error));
        s->config = s->of_its_own;
        s->config_size = strlen(s->config);
        s->name = sets_name(o) ? NULL : strdup(j->name);
        s->given.cwd = *j->given.cwd ? strdup(j->given.cwd) : NULL;
        if ((!s->name && !sets_name(o)) || (*j->given.cwd && !s->given.cwd))
                return -ENOMEM;
        memcpy(s->given.bundle, j->given.bundle, sizeof(s->given.bundle));
        /* What it was to wait for then is over. */
        s->overrides = json_pack("{s:[], s:n}", "after", "begin");
        if (!s->overrides)
                return -ENOMEM;
        return api_admit(m, call, s, error);
}

int api_rerun(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        struct submission s = {};
        struct rerun_options o = { .submission = &s };
        int r;

        if (!j)
                return API_JOB_GONE;
        s.owner = j->owner; /* whoever asks may do that for its owner */
        r = options_read(call, "Rerun", "option", rerun_options, &o, error);
        if (r >= 0 && o.goes_on)
                r = go_on(m, call, j, &o, uid, error);
        else if (r >= 0)
                r = o.failed ? again(m, call, j, &o, uid, error) : anew(m, call, j, &o, uid, error);
        submission_done(&s);
        return r;
}
