/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1: the queue and the pools (Manager.ListQueue, ListPools, GetJobDefaults), why a job
 * waits, and putting it back (Job.Why, Requeue). That a job waits is for all to see, as in ListJobs; why is
 * for whoever may look at it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "lib/wire/errors.h"
#include "masterd/api/api-parts.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/looking.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding.h"
#include "masterd/life/requeue.h"
#include "masterd/providers/providers.h"
#include "masterd/queue/queueing.h"
#include "masterd/queue/why.h"

#define QUEUE_MAX 10000u

/* ---- ListQueue ---- */

static int append_waiting(sd_bus_message *reply, struct manager *m, struct job *j, uint64_t position,
                          bool visible) {
        const char *reason = j->reason ?: "";
        struct policy_amount needs = {};
        struct policy_why why;
        char line[QUEUEING_WHY_MAX];
        uint64_t starts;
        uint32_t wanted = 0;
        int r;

        for (size_t i = 0; i < j->spec->n_roles; i++) {
                const struct role_spec *s = j->spec->roles + i;
                uint32_t n = j->roles[i].n_state[EXECUTOR_PENDING];
                wanted += n;
                needs.cpu_milli += (uint64_t)n * s->cpu_milli;
                needs.memory += (uint64_t)n * s->memory;
                needs.gpus += n * s->gpus;
        }
        if (queueing_last_why(m, j, &why) < 0)
                why = (struct policy_why){ .starts_by = UINT64_MAX };
        else if (j->state != JOB_QUEUED) /* of one that runs, some wait */
                reason = queueing_why_text(m, j, &why, line, sizeof(line));
        starts = queueing_real(why.starts_by);
        r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(
                        reply, "{sv}{sv}{sv}{sv}{sv}{sv}", "job", "u", j->number, "name", "s", j->name,
                        "user", "u", j->owner, "pool", "s", j->spec->queue, "priority", "i",
                        j->spec->waits.priority == SPEC_PRIORITY_NONE ? 0 : j->spec->waits.priority, "state",
                        "s", job_state_to_string(j->state));
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "position", "t",
                                          position, "since", "t", j->queue.waits_real ?: j->submitted_real,
                                          "executors", "u", wanted, "cpus", "d",
                                          (double)needs.cpu_milli / 1000, "memory", "t", needs.memory, "gpus",
                                          "u", needs.gpus, "startsBy", "t", starts == UINT64_MAX ? 0 : starts,
                                          "reason", "s", visible ? reason : "");
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int list_queue(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        _cleanup_free_ uint64_t *order = NULL;
        sd_bus_message *reply = NULL;
        struct job *j, *next;
        size_t n, held = 0;
        int r = api_know(m, call, uid, list_queue);

        if (r != 0)
                return r;
        order = calloc(QUEUE_MAX, sizeof(*order));
        r = order ? sd_bus_message_new_method_return(call, &reply) : -ENOMEM;
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "a{sv}");
        n = r >= 0 ? queueing_order(m, order, QUEUE_MAX) : 0;
        for (size_t i = 0; r >= 0 && i < n; i++) {
                j = manager_job(m, (uint32_t)order[i]);
                if (j)
                        r = append_waiting(reply, m, j, i + 1, api_sees(m, uid, j));
        }
        /* Those that are not tried yet: for others to end, for a time, for their back-off. */
        HASH_ITER (hh, m->jobs.by_number, j, next) {
                struct policy_why why;
                if (r >= 0 && j->state == JOB_QUEUED && held < QUEUE_MAX &&
                    queueing_last_why(m, j, &why) < 0) {
                        held++;
                        r = append_waiting(reply, m, j, 0, api_sees(m, uid, j));
                }
        }
        return reply_list_send(reply, r);
}

int api_on_list_queue(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, list_queue, error);
}

/* ---- GetJobDefaults ---- */

static int append_files(sd_bus_message *m, const struct layers *l) {
        TRY(sd_bus_message_open_container(m, 'a', "(ss)"));
        for (size_t i = 0; i < layers_n(l); i++)
                TRY(sd_bus_message_append(m, "(ss)", layers_name(l, i), layers_text(l, i)));
        return 0;
}

static int get_job_defaults(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(call, &reply);

        return reply_list_send(reply, r < 0 ? r : append_files(reply, m->conf.layers));
}

int api_on_get_job_defaults(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, get_job_defaults, error);
}

/* ---- ListPools ---- */

struct listing_pools {
        sd_bus_message *reply;
        struct manager *manager;
        const struct pool *pool;
        int r;
};

static int append_amount(sd_bus_message *m, const char *key, const struct policy_amount *a) {
        return sd_bus_message_append(m, "{sv}", key, "(ttu)", a->cpu_milli, a->memory, a->gpus);
}

static int append_share(sd_bus_message *m, const struct policy_share *s) {
        int r = sd_bus_message_append(m, "{sv}{sv}{sv}", "usage", "d", s->usage, "running", "u", s->running,
                                      "waiting", "u", s->waiting);

        return r < 0 ? r : append_amount(m, "held", &s->held);
}

static void append_pool_share(void *arg, const struct policy_share *s) {
        struct listing_pools *l = arg;

        if (l->r >= 0 && s->pool == l->pool->index && s->user == UINT32_MAX)
                l->r = append_share(l->reply, s);
}

static void append_user_share(void *arg, const struct policy_share *s) {
        struct listing_pools *l = arg;

        if (l->r < 0 || s->pool != l->pool->index || s->user == UINT32_MAX)
                return;
        l->r = sd_bus_message_open_container(l->reply, 'a', "{sv}");
        if (l->r >= 0)
                l->r = sd_bus_message_append(l->reply, "{sv}", "user", "u", s->user);
        if (l->r >= 0)
                l->r = append_share(l->reply, s);
        if (l->r >= 0)
                l->r = sd_bus_message_close_container(l->reply);
}

static int append_pool(struct listing_pools *l) {
        const struct pool *p = l->pool;
        struct policy *policy = queueing_policy(l->manager);
        sd_bus_message *m = l->reply;
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "name", "s", p->policy.name,
                                          "open", "b", (int)p->defined, "weight", "u", p->policy.weight,
                                          "priority", "i", p->priority, "maxPriority", "i", p->max_priority,
                                          "preempts", "b", (int)p->policy.preempts, "preemptible", "b",
                                          (int)p->preemptible);
        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}{sv}", "defaultTime", "t", p->default_time_usec, "maxTime",
                                          "t", p->max_time_usec);
        if (r >= 0)
                r = append_amount(m, "guarantee", &p->policy.guarantee);
        if (r >= 0)
                r = append_amount(m, "limit", &p->policy.limit);
        if (r >= 0)
                r = append_amount(m, "userLimit", &p->policy.user_limit);
        l->r = r;
        if (r >= 0)
                policy_shares(policy, queueing_now(), append_pool_share, l);
        r = l->r;
        if (r >= 0)
                r = reply_open_array(m, "users", "aa{sv}");
        l->r = r;
        if (r >= 0)
                policy_shares(policy, queueing_now(), append_user_share, l);
        r = l->r;
        if (r >= 0)
                r = reply_close_array(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int list_pools(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct listing_pools l = { .manager = m };
        int r = sd_bus_message_new_method_return(call, &l.reply);

        if (r >= 0)
                r = sd_bus_message_open_container(l.reply, 'a', "a{sv}");
        for (size_t i = 0; r >= 0 && i < m->conf.pools.n; i++) {
                l.pool = m->conf.pools.items[i];
                r = append_pool(&l);
        }
        return reply_list_send(l.reply, r);
}

int api_on_list_pools(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, list_pools, error);
}

/* ---- Why ---- */

int api_append_why(sd_bus_message *reply, struct manager *m, struct job *j, const struct why *w) {
        char line[QUEUEING_WHY_MAX];
        uint64_t starts = queueing_real(w->policy.starts_by);
        int r;

        r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}", "summary", "s",
                                  queueing_why_text(m, j, &w->policy, line, sizeof(line)), "position", "t",
                                  w->policy.position + 1, "startsBy", "t", starts == UINT64_MAX ? 0 : starts,
                                  "ahead", "t", w->policy.ahead, "victims", "u", w->policy.victims);
        if (r >= 0 && w->n_groups > 0) {
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}", "role", "s", w->role, "wanted", "u",
                                          w->wanted, "fits", "u", w->fits);
                if (r >= 0)
                        r = reply_open_array(reply, "hosts", "a(us)");
                for (size_t i = 0; r >= 0 && i < w->n_groups; i++)
                        r = sd_bus_message_append(reply, "(us)", w->groups[i].hosts, w->groups[i].text);
                if (r >= 0)
                        r = reply_close_array(reply);
        }
        if (r >= 0)
                r = reply_open_array(reply, "suggestions", "as");
        for (size_t i = 0; r >= 0 && i < w->n_suggestions; i++)
                r = sd_bus_message_append(reply, "s", w->suggestions[i]);
        return r < 0 ? r : reply_close_array(reply);
}

int api_why(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        _cleanup_free_ struct why *w = NULL;
        sd_bus_message *reply = NULL;
        char data[1024];
        int r, waits;

        if (!j)
                return API_JOB_GONE;
        w = malloc(sizeof(*w));
        if (!w)
                return -ENOMEM;
        waits = why_job(m, j, w);
        if (waits < 0 && waits != -ENOENT)
                return waits;
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(
                        reply, "{sv}{sv}{sv}{sv}{sv}", "state", "s", job_state_to_string(j->state), "pool",
                        "s", j->spec->queue, "priority", "i",
                        j->spec->waits.priority == SPEC_PRIORITY_NONE ? 0 : j->spec->waits.priority,
                        "requeues", "u", j->requeue.n, "reason", "s",
                        j->reason && *j->reason                 ? j->reason
                        : feeding_why(m, j, data, sizeof(data)) ? data
                        : why_not_tried(j, data, sizeof(data))  ? data
                                                                : "");
        if (r >= 0 && waits >= 0)
                r = api_append_why(reply, m, j, w);
        if (r >= 0 && waits >= 0 && providers_job_text(m, j, data, sizeof(data)))
                r = sd_bus_message_append(reply, "{sv}", "comes", "s", data);
        return reply_list_send(reply, r);
}

/* ---- Requeue ---- */

int api_requeue(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        char text[REQUEUE_TEXT_MAX];
        const char *reason;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read_basic(call, 's', &reason);
        if (r < 0)
                return r;
        r = requeue_person(m, j, uid, reason, text);
        return r < 0 ? sd_bus_error_set(error, ERROR_REFUSED, text) : manager_answer_later(m, call, "");
}
