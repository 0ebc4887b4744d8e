/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/trial-talk.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/question.h"

#define EVENTS_MAX 200u          /* of one answer, */
#define EVENTS_BYTES (16u << 10) /* and bytes of what their trials were given, but for the last */

/* ---- questions ---- */

static const struct question_op ops[_TALK_OP_MAX + 1] = {
        [TALK_HELLO] = { "hello", { NULL } },
        [TALK_EVENTS] = { "events", { "after" } },
        [TALK_CREATE] = { "create", { "trial", "params" } },
        [TALK_STOP] = { "stop", { "trial" } },
};

static int read_given(json_t *j, char **ret, char why[static TALK_WHY_MAX]) {
        char names[SPACE_WHY_MAX];
        int r = space_check_given(json_object_get(j, "params"), names);

        if (r == -EINVAL)
                snprintf(why, TALK_WHY_MAX, "params: %s", names);
        if (r < 0)
                return r;
        *ret = json_dumps(json_object_get(j, "params"), JSON_COMPACT | JSON_SORT_KEYS);
        return *ret ? 0 : -ENOMEM;
}

int talk_read(const char *text, struct talk *ret, char why[static TALK_WHY_MAX]) {
        _cleanup_(question_unref) json_t *j = NULL;
        uint64_t trial = 0;
        struct talk t = {};
        unsigned op;
        int r = question_read(text, TALK_TEXT_MAX, ops, &j, &op, why);

        if (r == -EBADMSG)
                return question_refuse(why, "a question is a JSON object");
        if (r == -ENOENT)
                return question_refuse(why, "op must be hello, events, create or stop");
        if (r < 0)
                return r;
        t.op = op;
        if (t.op == TALK_EVENTS)
                TRY(question_number(j, "after", INT64_MAX, &t.after, why));
        if (t.op == TALK_CREATE || t.op == TALK_STOP)
                TRY(question_number(j, "trial", 3 * (uint64_t)SEARCH_TRIALS_MAX, &trial, why));
        t.trial = (uint32_t)trial;
        if (t.op == TALK_CREATE)
                TRY(read_given(j, &t.given, why));
        *ret = t;
        return 0;
}

/* ---- answers ---- */

int talk_hello(const struct trials *t, const struct search_spec *s, char **ret) {
        json_t *space = s->space ? json_loads(s->space, 0, NULL) : json_null();

        return question_answer(
                json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:o*}", "metric", s->metric ?: "", "smaller",
                          (int)s->smaller, "maxTrials", (json_int_t)s->max_trials, "maxTime",
                          (json_int_t)s->max_time, "maxConcurrent", (json_int_t)s->max_concurrent, "seed",
                          (json_int_t)s->seed, "events", (json_int_t)t->n_events, "space", space),
                ret);
}

static const char *exit_name(const struct trials *t, const struct trial_note *n) {
        struct search_trial seen;

        if (n->kind == TRIAL_CLOSED || !search_trial(t->search, n->trial, &seen))
                return n->exit == SEARCH_SUCCEEDED ? "succeeded" : "failed";
        return search_trial_state_to_string(seen.state);
}

static json_t *write_event(const struct trials *t, uint64_t i) {
        static const char *const names[_TRIAL_EVENT_MAX] = {
                [TRIAL_CREATED] = "created", [TRIAL_VALIDATED] = "result", [TRIAL_EXITED] = "exited",
                [TRIAL_STOPPED] = "stopped", [TRIAL_CLOSED] = "closed",
        };
        const struct trial_note *n = t->notes + i;
        json_t *j = json_pack("{s:I, s:s, s:I}", "seq", (json_int_t)(i + 1), "event", names[n->kind], "trial",
                              (json_int_t)n->trial);

        if (n->kind == TRIAL_CREATED && n->trial < t->n_given)
                (void)json_object_set_new(j, "params", json_loads(t->given[n->trial], 0, NULL));
        if (n->kind == TRIAL_VALIDATED) {
                (void)json_object_set_new(j, "step", json_integer((json_int_t)n->time));
                (void)json_object_set_new(j, "metric",
                                          isfinite(n->metric) ? json_real(n->metric) : json_null());
                (void)json_object_set_new(j, "stops", json_boolean(n->verdict == SEARCH_STOP));
        }
        if (n->kind == TRIAL_EXITED || n->kind == TRIAL_CLOSED)
                (void)json_object_set_new(j, "state", json_string(exit_name(t, n)));
        return j;
}

int talk_events(const struct trials *t, uint64_t after, char **ret) {
        json_t *list = json_array();
        size_t bytes = 0;

        for (uint64_t i = after; i < t->n_events && i - after < EVENTS_MAX && bytes < EVENTS_BYTES; i++) {
                bytes += t->notes[i].kind == TRIAL_CREATED && t->notes[i].trial < t->n_given
                                 ? strlen(t->given[t->notes[i].trial])
                                 : 0;
                if (json_array_append_new(list, write_event(t, i)) < 0) {
                        json_decref(list);
                        return -ENOMEM;
                }
        }
        return question_answer(json_pack("{s:o}", "events", list), ret);
}

int talk_created(uint32_t trial, const char *full, char **ret) {
        return question_answer(full ? json_pack("{s:s}", "full", full)
                                    : json_pack("{s:I}", "trial", (json_int_t)trial),
                               ret);
}
