/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Manager: Usage. What users and pools held is for all to see; jobs and roles are for
 * their owner, and jobs for whoever may look at them, while they are in memory. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/looking.h"
#include "masterd/api/options.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/job/held.h"
#include "masterd/life/usage.h"

#define ROW "uususttttttttt"

static const struct {
        const char *word;
        enum usage_key key;
} keys[] = {
        { "user", USAGE_USER }, { "pool", USAGE_POOL }, { "job", USAGE_JOB },
        { "day", USAGE_DAY },   { "role", USAGE_ROLE },
};

static int read_by(sd_bus_message *call, uint32_t *ret, sd_bus_error *error) {
        const char *word;
        size_t i;
        int r = sd_bus_message_enter_container(call, 'a', "s");

        while (r >= 0 && (r = sd_bus_message_read_basic(call, 's', &word)) > 0) {
                for (i = 0; i < ELEMENTSOF(keys); i++)
                        if (strcmp(keys[i].word, word) == 0)
                                break;
                if (i == ELEMENTSOF(keys))
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                                 "Usage is by user, pool, job, day or role, not by '%.*s'",
                                                 utf8_fit(word, 32), word);
                *ret |= (uint32_t)keys[i].key;
        }
        return r < 0 ? r : sd_bus_message_exit_container(call);
}

struct usage_filter {
        uint64_t since, until;
        uint32_t *owner;
};

static int read_owner(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        return sd_bus_message_read(call, "v", "u", ((struct usage_filter *)target)->owner);
}

static const struct call_option usage_filters[] = {
        { "since", 't', offsetof(struct usage_filter, since), NULL },
        { "until", 't', offsetof(struct usage_filter, until), NULL },
        { "uid", 0, 0, read_owner },
        { NULL },
};

static int read_filter(sd_bus_message *call, struct usage_question *q, sd_bus_error *error) {
        struct usage_filter f = { .until = now_real(), .owner = &q->owner };
        int r = options_read(call, "Usage", "filter", usage_filters, &f, error);

        if (r < 0)
                return r;
        if (f.until / DAY_USEC > UINT32_MAX || f.since > f.until)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "since: must not be behind until, and both a time");
        q->first = day_of_time(f.since);
        /* Whole days: the one in which it ends, but not the one that it only touches. */
        q->last = day_of_time(f.until > f.since ? f.until - 1 : f.until);
        return 0;
}

static int append_row(sd_bus_message *reply, const struct usage_row *row) {
        const struct usage_record *s = &row->sum;

        return sd_bus_message_append(reply, "(" ROW ")", s->day, s->owner, s->pool, s->job, s->role,
                                     s->cpu_held, s->cpu_used, s->memory_held, s->gpu_held, s->attempts,
                                     s->unmeasured, s->gpu_used, s->gpu_measured, row->running);
}

struct usage_request {
        struct manager *manager;
        sd_bus_message *call;
        uint32_t uid;
        bool others; /* rows are of jobs of somebody else: those that the caller may look at */
};

static bool is_shown(const struct usage_request *q, const struct usage_row *row) {
        const struct job *j = q->others ? manager_job(q->manager, row->sum.job) : NULL;

        return !q->others || (j && api_sees(q->manager, q->uid, j));
}

static void on_answer(void *userdata, int error, const struct usage_row *rows, size_t n) {
        struct usage_request *q = userdata;
        sd_bus_message *reply = NULL;
        int r;

        if (error == -E2BIG) {
                (void)reply_errorf(q->call, ERROR_REFUSED,
                                   "That is too much to add up at once; ask for fewer days");
                sd_bus_message_unref(q->call);
                free(q);
                return;
        }
        r = error < 0 ? error : reply_list_new(q->call, ROW, &reply);
        for (size_t i = 0; r >= 0 && i < n; i++)
                if (is_shown(q, rows + i))
                        r = append_row(reply, rows + i);
        reply_list_answer(q->call, reply, r);
        free(q);
}

static int usage(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct usage_question q = { .owner = UINT32_MAX };
        struct manager *m = userdata;
        struct usage_request *request;
        bool others = false;
        int r = api_know(m, call, uid, usage);

        if (r != 0)
                return r;
        r = read_by(call, &q.by, error);
        if (r >= 0)
                r = read_filter(call, &q, error);
        if (r < 0)
                return r;
        if ((q.by & (USAGE_JOB | USAGE_ROLE)) && uid != 0) {
                others = q.owner != UINT32_MAX && q.owner != uid;
                if (others && !(q.by & USAGE_JOB))
                        return sd_bus_error_set(
                                error, SD_BUS_ERROR_ACCESS_DENIED,
                                "Usage by role is for the jobs' owner and for root; by job it "
                                "tells of those of others that you may look at");
                q.owner = others ? q.owner : uid;
        }
        request = malloc(sizeof(*request));
        if (!request)
                return -ENOMEM;
        *request = (struct usage_request){ m, sd_bus_message_ref(call), uid, others };
        r = usage_ask(m, &q, on_answer, request);
        if (r < 0) {
                sd_bus_message_unref(call);
                free(request);
        }
        return r;
}

int api_on_usage(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, usage, error);
}
