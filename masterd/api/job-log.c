/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job.ReadLog. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/looking.h"
#include "masterd/api/options.h"
#include "masterd/core/manager.h"
#include "masterd/link/orders.h"
#include "masterd/relay/logs.h"

#define READ_LOG_WAIT_MAX (20 * USEC_PER_SEC)

/* What ReadLog is called with; borrowed from the call. */
struct log_arguments {
        const char *role;
        uint32_t index, attempt;
        struct log_wish wish;
};

static const struct call_option log_options[] = {
        { "tail", 't', offsetof(struct log_arguments, wish.tail), NULL },
        { "identifier", 's', offsetof(struct log_arguments, wish.identifier), NULL },
        { NULL },
};

static int read_log_arguments(sd_bus_message *call, struct log_arguments *a, sd_bus_error *error) {
        *a = (struct log_arguments){ .wish.tail = UINT64_MAX };
        TRY(sd_bus_message_read(call, "suu", &a->role, &a->index, &a->attempt));
        TRY(sd_bus_message_read_array(call, 'y', &a->wish.cursor, &a->wish.cursor_size));
        TRY(sd_bus_message_read_basic(call, 't', &a->wish.wait_usec));
        TRY(options_read(call, "ReadLog", "option", log_options, a, error));
        if (a->wish.identifier && (!*a->wish.identifier || strlen(a->wish.identifier) > LOG_IDENTIFIER_MAX))
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "identifier: a text of at most %u bytes", LOG_IDENTIFIER_MAX);
        if (a->wish.identifier && a->wish.tail != UINT64_MAX)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "tail is of all lines, and identifier of some: give one of them");
        return 0;
}

static int read_log_at(struct manager *m, const struct job *j, struct node *node, uint32_t attempt,
                       struct log_arguments *a, uint32_t uid, sd_bus_message *call) {
        bool looks = uid != 0 && uid != j->owner && api_sees(m, uid, j);
        struct executor_id id = {
                .job_uid = j->uid, .job = j->number, .index = a->index, .attempt = attempt
        };

        snprintf(id.role, sizeof(id.role), "%s", a->role);
        a->wish.wait_usec = MIN(a->wish.wait_usec, READ_LOG_WAIT_MAX);
        a->wish.looker = looks ? uid : LOOKER_NONE;
        return logs_read(m, j, node, &id, &a->wish, call);
}

struct log_request {
        struct manager *manager;
        uint32_t uid;
        sd_bus_message *call;
};

/* Where an earlier attempt ran, or one that the job goes on without, only the store knows. */
static void on_attempts(void *userdata, int error, const struct executor_record *list, size_t n) {
        struct log_request *q = userdata;
        sd_bus_error failure = SD_BUS_ERROR_NULL;
        struct job *j = api_job_or_error(q->manager, q->call, &failure);
        const struct executor_record *found = NULL;
        struct log_arguments a;
        int r = error;

        if (r >= 0)
                r = j ? sd_bus_message_rewind(q->call, true) : -ENOENT;
        if (r >= 0)
                r = read_log_arguments(q->call, &a, &failure);
        for (size_t i = 0; r >= 0 && i < n; i++)
                if (list[i].index == a.index && strcmp(list[i].role, a.role) == 0 &&
                    (a.attempt ? list[i].attempt == a.attempt : !found || list[i].attempt > found->attempt))
                        found = list + i;
        if (r >= 0 && found)
                r = read_log_at(q->manager, j, nodes_get(&q->manager->nodes, found->node), found->attempt, &a,
                                q->uid, q->call);
        else if (r >= 0 && job_executor(j, a.role, a.index))
                r = sd_bus_error_setf(&failure, ERROR_NOT_FOUND,
                                      a.attempt ? "%s/%u has no such attempt"
                                                : "%s/%u has not been started yet",
                                      a.role, a.index);
        else if (r >= 0)
                r = sd_bus_error_setf(&failure, ERROR_NOT_FOUND, "Job %u has no executor %.*s/%u", j->number,
                                      utf8_fit(a.role, 33), a.role, a.index);
        caller_answer(q->call, r, &failure);
        sd_bus_error_free(&failure);
        sd_bus_message_unref(q->call);
        free(q);
}

int api_read_log(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        struct log_request *q;
        struct log_arguments a;
        struct executor *e;
        int r;

        if (!j)
                return -ENOENT;
        r = read_log_arguments(call, &a, error);
        if (r < 0)
                return r;
        e = job_executor(j, a.role, a.index);
        if (e && e->attempt > 0 && a.attempt > e->attempt)
                return sd_bus_error_setf(error, ERROR_NOT_FOUND, "%s/%u has no such attempt", a.role,
                                         a.index);
        if (e && e->attempt > 0 && (a.attempt == 0 || a.attempt == e->attempt))
                return read_log_at(m, j, e->node, e->attempt, &a, uid, call);
        q = malloc(sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = (struct log_request){ m, uid, sd_bus_message_ref(call) };
        r = store_query_executors(m->store, j->number, true, 0, on_attempts, q);
        if (r < 0) {
                sd_bus_message_unref(call);
                free(q);
        }
        return r;
}
