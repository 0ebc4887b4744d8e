/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1: checkpoints. They are their owner's, who is the owner of the job that told of them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/errors.h"
#include "masterd/admit/collect.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/caller/authorize.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/watch/checkpoints.h"

#define ROWS_MAX 1000u       /* of one answer, */
#define BYTES_MAX (1u << 20) /* and of their texts; then the caller asks for those behind it */

/* ---- ListCheckpoints ---- */

static int append_facts(sd_bus_message *reply, const struct checkpoint *x) {
        const struct checkpoint_facts *f = &x->facts;

        TRY(sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "checkpoint", "t", x->id,
                                  "owner", "u", f->owner, "job", "u", f->job, "run", "u", f->run, "path", "s",
                                  f->path, "host", "s", f->host, "step", "t", f->step, "saved", "t",
                                  f->saved_real));
        TRY(sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}", "bytes", "t", f->bytes, "files", "u",
                                  f->files, "metrics", "s", f->metrics, "smaller", "b", (int)f->smaller,
                                  "pinned", "b", (int)x->pinned, "marked", "b", (int)x->marked));
        if (f->trial != CHECKPOINT_NO_TRIAL)
                TRY(sd_bus_message_append(reply, "{sv}", "trial", "u", f->trial));
        if (*f->metric)
                TRY(sd_bus_message_append(reply, "{sv}", "metric", "s", f->metric));
        return isnan(f->value) ? 0 : sd_bus_message_append(reply, "{sv}", "value", "d", f->value);
}

static int append_checkpoint(sd_bus_message *reply, const struct checkpoint *x, size_t *bytes) {
        *bytes += strlen(x->facts.path) + strlen(x->facts.metrics);
        TRY(sd_bus_message_open_container(reply, 'a', "{sv}"));
        TRY(append_facts(reply, x));
        return sd_bus_message_close_container(reply);
}

static int list_checkpoints(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        const struct checkpoints *c = checkpoints_of(userdata);
        sd_bus_message *reply = NULL;
        size_t n = 0, bytes = 0;
        uint64_t after;
        uint32_t job;
        int r = 0;

        TRY(sd_bus_message_rewind(call, true));
        TRY(sd_bus_message_read(call, "ut", &job, &after));
        TRY(reply_dicts_new(call, &reply));
        while (r >= 0 && n < ROWS_MAX && bytes < BYTES_MAX) {
                const struct checkpoint *x =
                        uid == 0 ? checkpoints_after_of_all(c, after) : checkpoints_after(c, uid, after);

                if (!x)
                        break;
                after = x->id;
                if (job != 0 && !checkpoint_is_of(x, job))
                        continue;
                r = append_checkpoint(reply, x, &bytes);
                n++;
        }
        return reply_list_send(reply, r);
}

int api_on_list_checkpoints(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, list_checkpoints, error);
}

/* ---- CollectCheckpoints ---- */

struct collecting {
        struct checkpoint_policy policy;
        bool dry;
};

static const struct call_option collect_options[] = {
        { "best", 'u', offsetof(struct collecting, policy.best), NULL },
        { "trialBest", 'u', offsetof(struct collecting, policy.trial_best), NULL },
        { "trialLatest", 'u', offsetof(struct collecting, policy.trial_latest), NULL },
        { "dryRun", 'b', offsetof(struct collecting, dry), NULL },
        { NULL },
};

/* Of the caller's own alone, as whom they are removed. */
static int collect_of_caller(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        /* As Determined has it: the best and the latest of each trial. */
        struct collecting o = { .policy = { 0, 1, 1 } };
        struct manager *m = userdata;
        sd_bus_message *reply = NULL;
        _cleanup_(collected_done) struct collected c = {};
        uint32_t job;
        int r;

        TRY(sd_bus_message_rewind(call, true));
        TRY(sd_bus_message_read_basic(call, 'u', &job));
        TRY(options_read(call, "CollectCheckpoints", "option", collect_options, &o, error));
        TRY(collect_checkpoints(m, uid, job, &o.policy, o.dry, &c, error));
        TRY(sd_bus_message_new_method_return(call, &reply));
        if ((r = sd_bus_message_append_array(reply, 't', c.ids, c.n_ids * sizeof(*c.ids))) < 0 ||
            (r = sd_bus_message_append_array(reply, 'u', c.jobs, c.n_jobs * sizeof(*c.jobs))) < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        return manager_reply_later(m, reply);
}

int api_on_collect_checkpoints(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, collect_of_caller, error);
}

/* ---- one of them ---- */

/* The checkpoint that the call names, or the error. */
static struct checkpoint *find_called(struct manager *m, sd_bus_message *call, sd_bus_error *error,
                                      int *ret_error) {
        struct checkpoint *x;
        uint64_t id;

        *ret_error = sd_bus_message_rewind(call, true);
        if (*ret_error >= 0)
                *ret_error = sd_bus_message_read_basic(call, 't', &id);
        if (*ret_error < 0)
                return NULL;
        x = checkpoints_get(checkpoints_of(m), id);
        if (!x)
                *ret_error = sd_bus_error_setf(
                        error, ERROR_NOT_FOUND,
                        "There is no checkpoint %" PRIu64 "; 'primusctl checkpoints list' shows yours", id);
        return x;
}

int api_checkpoint_marked(uint64_t id, sd_bus_error *error) {
        return sd_bus_error_setf(error, ERROR_BUSY,
                                 "Checkpoint %" PRIu64 " is to be removed: a policy did not keep it", id);
}

static int pin_checkpoint(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        int r, pin;
        struct checkpoint *x = find_called(m, call, error, &r);

        if (!x)
                return r;
        TRY(sd_bus_message_read_basic(call, 'b', &pin));
        r = checkpoint_pin(m, x, pin);
        if (r == -EBUSY)
                return api_checkpoint_marked(x->id, error);
        return r < 0 ? r : manager_answer_later(m, call, "");
}

static int forget_checkpoint(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        int r;
        struct checkpoint *x = find_called(m, call, error, &r);

        if (!x)
                return r;
        if (x->held > 0)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "Checkpoint %" PRIu64 " is a model; 'primusctl model list' shows which", x->id);
        checkpoint_forget(m, x);
        return manager_answer_later(m, call, "");
}

/* As with_permission() of savepoints: whom polkit lets, it lets have any. */
static int with_permission(struct manager *m, sd_bus_message *call, uint32_t uid, caller_handler work,
                           sd_bus_error *error) {
        int r;
        struct checkpoint *x = find_called(m, call, error, &r);

        if (!x)
                return r;
        if (uid == 0 || uid == x->facts.owner)
                return work(call, uid, m, error);
        return api_with_permission(m, call, OWNER_ANOTHER, ACTION_MANAGE_JOBS, work, error);
}

static int pin_permitted(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return with_permission(userdata, call, uid, pin_checkpoint, error);
}

int api_on_pin_checkpoint(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, pin_permitted, error);
}

static int forget_permitted(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return with_permission(userdata, call, uid, forget_checkpoint, error);
}

int api_on_forget_checkpoint(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, forget_permitted, error);
}
