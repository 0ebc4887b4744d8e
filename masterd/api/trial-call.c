/* SPDX-License-Identifier: Apache-2.0 */
/* Manager.TrySubmit: a submission as far as it goes without one. Invariant: nothing is recorded, and the job
 * that is made is known to nobody and freed. */
#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "lib/wire/errors.h"
#include "masterd/admit/submit.h"
#include "masterd/api/api-parts.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/job/array.h"
#include "masterd/life/depend.h"
#include "masterd/life/revive.h"
#include "masterd/queue/why.h"

struct trying {
        struct manager *manager;
        sd_bus_message *call;
        struct job *job;
        char *savepoint; /* that it would go on from; or NULL */
};

static void trying_free(struct trying *q) {
        revive_job_free(q->job);
        sd_bus_message_unref(q->call);
        free(q->savepoint);
        free(q);
}

static int append_trial(const struct trying *q, sd_bus_message *reply) {
        _cleanup_free_ struct why *w = malloc(sizeof(*w));
        struct manager *m = q->manager;
        struct job *j = q->job;
        char text[DEPEND_TEXT_MAX];
        uint32_t placed;
        bool never;

        TRY(w ? why_try(m, j, w, &placed) : -ENOMEM);
        (void)depend_foresee(m, j, text, sizeof(text), &never);
        TRY(sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}", "starts", "b", (int)(placed > 0 && !*text),
                                  "executors", "u", placed, "pool", "s", j->spec->queue, "priority", "i",
                                  j->spec->waits.priority == SPEC_PRIORITY_NONE ? 0 : j->spec->waits.priority,
                                  "reason", "s", text));
        if (never)
                TRY(sd_bus_message_append(reply, "{sv}", "ends", "b", true));
        if (j->array)
                TRY(sd_bus_message_append(reply, "{sv}", "elements", "u", array_total(j->array)));
        TRY(api_append_search(reply, j));
        if (q->savepoint)
                TRY(sd_bus_message_append(reply, "{sv}", "savepoint", "s", q->savepoint));
        return placed > 0 ? 0 : api_append_why(reply, m, j, w);
}

static int answer_trial(const struct trying *q) {
        sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(q->call, &reply);

        r = r < 0 ? r : reply_append_words(reply, q->job->warnings, "\n");
        r = r < 0 ? r : sd_bus_message_open_container(reply, 'a', "{sv}");
        r = r < 0 ? r : append_trial(q, reply);
        return reply_list_send(reply, r);
}

static void on_asked(void *userdata, int error, const char *unknown) {
        _cleanup_(sd_bus_error_free) sd_bus_error why = SD_BUS_ERROR_NULL;
        struct trying *q = userdata;

        if (error >= 0)
                error = unknown ? api_no_such_dependency(&why, unknown) : answer_trial(q);
        if (error < 0)
                caller_answer(q->call, error, &why);
        trying_free(q);
}

int api_try_submit(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct submission s = { .owner = uid, .trial = true };
        struct trying *q = calloc(1, sizeof(*q));
        int r = q ? api_read_submission(m, call, &s, error) : -ENOMEM;

        if (r >= 0 && s.savepoint && s.config_size == 0)
                r = sd_bus_error_set(
                        error, ERROR_REFUSED,
                        "A trial needs the configuration: that of the savepoint is read when the "
                        "job is submitted");
        r = r < 0 ? r : submit_make(m, &s, &q->job, error);
        if (r >= 0) {
                q->manager = m;
                q->call = sd_bus_message_ref(call);
                q->savepoint = TAKE_PTR(s.savepoint);
                q->job->submitted_real = q->job->queue.waits_real = now_real();
                r = depend_ask(m, q->job, on_asked, q);
        }
        if (r < 0 && q)
                trying_free(q);
        submission_done(&s);
        return r < 0 ? r : 1;
}
