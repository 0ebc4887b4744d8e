/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: of a search one question for events waits at most, and only behind the latest event; any other
 * is answered at once. */
#include "masterd/life/searcher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/core/manager.h"
#include "masterd/job/trial-talk.h"
#include "masterd/life/arrays.h"
#include "masterd/life/holdings.h"
#include "masterd/life/life-parts.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/searches.h"
#include "masterd/queue/queueing.h"

/* A question for events that there are none for yet. */
struct waiting_searcher {
        uint32_t number; /* of the search */
        uint64_t after;
        sd_bus_message *call;
        UT_hash_handle hh;
};

static int answer_later(struct manager *m, sd_bus_message *call, const char *text) {
        return manager_answer_later(m, call, "sa{sv}", text, 0);
}

/* ---- events ---- */

static int answer_events(struct manager *m, const struct job *array, sd_bus_message *call, uint64_t after) {
        _cleanup_free_ char *text = NULL;

        TRY(talk_events(array->array->trials, after, &text));
        return answer_later(m, call, text);
}

static void forget_waiting(struct manager *m, struct waiting_searcher *w) {
        HASH_DEL(m->life->searchers, w);
        sd_bus_message_unref(w->call);
        free(w);
}

static struct waiting_searcher *find_waiting(struct manager *m, uint32_t number) {
        struct waiting_searcher *w;

        HASH_FIND(hh, m->life->searchers, &number, sizeof(number), w);
        return w;
}

void searcher_tell(struct manager *m, const struct job *array) {
        struct waiting_searcher *w = find_waiting(m, array->number);

        if (!w || array->array->trials->n_events <= w->after)
                return;
        if (answer_events(m, array, w->call, w->after) < 0)
                (void)log_oom(); /* it asks again when its link is new */
        forget_waiting(m, w);
}

void searcher_forget(struct manager *m, const struct job *array) {
        struct waiting_searcher *w, *next;

        HASH_ITER (hh, m->life->searchers, w, next)
                if (!array || w->number == array->number)
                        forget_waiting(m, w);
}

static int ask_events(struct manager *m, const struct job *array, sd_bus_message *call, uint64_t after) {
        struct waiting_searcher *w = find_waiting(m, array->number);

        if (w) { /* of a connection that is gone, or another process of it */
                (void)answer_events(m, array, w->call, w->after);
                forget_waiting(m, w);
        }
        if (array->array->trials->n_events > after)
                return answer_events(m, array, call, after);
        w = malloc(sizeof(*w));
        if (!w)
                return -ENOMEM;
        *w = (struct waiting_searcher){ array->number, after, sd_bus_message_ref(call) };
        HASH_ADD(hh, m->life->searchers, number, sizeof(w->number), w);
        return 0;
}

/* ---- trials ---- */

static int made_already(const struct job *array, const struct talk *t, sd_bus_error *error) {
        const struct trials *trials = array->array->trials;

        if (t->trial > trials->n_given)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED,
                                         "the next trial is %" PRIu32 ", not %" PRIu32, trials->n_given,
                                         t->trial);
        if (strcmp(trials->given[t->trial], t->given) != 0)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED,
                                         "trial %" PRIu32 " is there already, with other parameters",
                                         t->trial);
        return 0;
}

static int ask_create(struct manager *m, struct job *array, sd_bus_message *call, const struct talk *t,
                      sd_bus_error *error) {
        const struct trials *trials = array->array->trials;
        const char *full = NULL;
        _cleanup_free_ char *text = NULL;
        int r = 0;

        if (strlen(t->given) > TRIAL_GIVEN_MAX)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED,
                                         "the parameters of a trial may have %u bytes; these have %zu",
                                         TRIAL_GIVEN_MAX, strlen(t->given));
        if (t->trial != trials->n_given)
                TRY(made_already(array, t, error));
        else if (job_state_ended(array->state) || array->state == JOB_STOPPING)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED, "search %u ends", array->number);
        else
                r = searches_created(m, array, t->given);
        if (r == -EAGAIN)
                full = search_gave_up(trials->search) ? "too many of its trials were invalid"
                                                      : "there are as many trials as maxTrials says";
        else if (r == -E2BIG)
                full = "what its trials were given is all that a search may give";
        else if (r < 0)
                return r;
        else
                placement_enqueue(m, array); /* its turn may have come */
        TRY(talk_created(t->trial, full, &text));
        return answer_later(m, call, text);
}

static int ask_stop(struct manager *m, struct job *array, sd_bus_message *call, const struct talk *t,
                    sd_bus_error *error) {
        int r = searches_stop(m, array, t->trial);

        if (r == -ENOENT)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED, "there is no trial %" PRIu32, t->trial);
        if (r == -EAGAIN)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED,
                                         "trial %" PRIu32 " has not begun: it waits for its turn", t->trial);
        return r < 0 ? r : answer_later(m, call, "{}");
}

static int ask_hello(struct manager *m, const struct job *array, sd_bus_message *call) {
        _cleanup_free_ char *text = NULL;

        TRY(talk_hello(array->array->trials, &array->spec->search, &text));
        return answer_later(m, call, text);
}

int searcher_asks(struct manager *m, const struct node *node, sd_bus_message *call,
                  const struct search_question *q, sd_bus_error *error) {
        struct executor *x;
        _cleanup_(talk_done) struct talk t = {};
        char why[TALK_WHY_MAX], clean[TALK_WHY_MAX];
        struct job *array;
        int r;

        TRY(manager_attempt_of(m, node, &q->id, &x, error));
        array = arrays_of_searcher(m, x->job);
        if (!array)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED, "job %u is no searcher of a search",
                                         x->job->number);
        if (array->array->trials->broken > 0)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED, "search %u is being stopped",
                                         array->number);
        r = talk_read(q->text, &t, why);
        if (r == -EINVAL)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED, "%s",
                                         utf8_clean(why, strlen(why), clean, sizeof(clean)));
        if (r < 0)
                return r;
        switch (t.op) {
        case TALK_HELLO:
                r = ask_hello(m, array, call);
                break;
        case TALK_EVENTS:
                r = ask_events(m, array, call, t.after);
                break;
        case TALK_CREATE:
                r = ask_create(m, array, call, &t, error);
                break;
        case TALK_STOP:
                r = ask_stop(m, array, call, &t, error);
                break;
        case _TALK_OP_MAX:
                break;
        }
        return r < 0 ? r : 1;
}
