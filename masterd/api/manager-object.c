/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Manager. */
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/changes-call.h"
#include "masterd/api/looking.h"
#include "masterd/api/options.h"
#include "masterd/caller/authorize.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/gpus-off.h"
#include "masterd/fleet/maintenance.h"
#include "masterd/fleet/removal.h"
#include "masterd/fleet/stuck.h"
#include "masterd/job/array.h"
#include "masterd/life/attempts.h"
#include "masterd/life/history.h"
#include "masterd/link/identity.h"
#include "masterd/link/link.h"
#include "masterd/providers/providers.h"
#include "masterd/queue/placement.h"
#include "masterd/relay/bundles.h"

/* ---- lists ---- */

struct list_filter {
        bool all, by_uid, elements;
        uint32_t uid, limit, array, before;
        uint64_t since;
        const char *name; /* in the call */
        int state;
};

static int read_uid(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        struct list_filter *f = target;

        f->by_uid = true;
        return sd_bus_message_read(call, "v", "u", &f->uid);
}

static int read_state(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        struct list_filter *f = target;
        const char *text;
        int r = sd_bus_message_read(call, "v", "s", &text);

        if (r >= 0 && (f->state = job_state_from_string(text)) < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "There is no job state '%.*s'",
                                         utf8_fit(text, 32), text);
        return r;
}

static const struct call_option list_filters[] = {
        { "all", 'b', offsetof(struct list_filter, all), NULL },
        { "uid", 0, 0, read_uid },
        { "limit", 'u', offsetof(struct list_filter, limit), NULL },
        { "state", 0, 0, read_state },
        { "elements", 'b', offsetof(struct list_filter, elements), NULL },
        { "array", 'u', offsetof(struct list_filter, array), NULL },
        { "before", 'u', offsetof(struct list_filter, before), NULL },
        { "since", 't', offsetof(struct list_filter, since), NULL },
        { "name", 's', offsetof(struct list_filter, name), NULL },
        { NULL },
};

static int read_filter(sd_bus_message *call, struct list_filter *f, sd_bus_error *error) {
        int r;

        *f = (struct list_filter){ .limit = 1000, .state = -1 };
        r = options_read(call, "ListJobs", "filter", list_filters, f, error);
        f->limit = MIN(MAX(f->limit, 1u), 10000u);
        return r;
}

/* What is known while it is in memory. */
static int append_place(sd_bus_message *reply, struct manager *m, const struct job *j) {
        int32_t priority = j->spec->waits.priority;
        int r = sd_bus_message_append(reply, "{sv}{sv}", "pool", "s", j->spec->queue, "priority", "i",
                                      priority == SPEC_PRIORITY_NONE ? 0 : priority);

        return r < 0 ? r : api_append_visible(reply, m, j);
}

static int append_job(sd_bus_message *reply, struct manager *m, const struct job_record *r,
                      const struct job *j, bool visible) {
        uint32_t running = j ? job_running(j) : 0, wanted = j ? j->n_executors : 0;
        char summary[ARRAY_SUMMARY_MAX];
        const char *reason = r->reason ? r->reason : "";
        int k = sd_bus_message_open_container(reply, 'r', "ussutttuusa{sv}");

        if (j && j->array) {
                running = j->array->n_state[ELEMENT_RUNS];
                wanted = j->array->range.n;
                if (j->state == JOB_RUNNING)
                        reason = array_text(j->array, summary, sizeof(summary));
        }
        if (k >= 0)
                k = sd_bus_message_append(reply, "ussutttuus", r->number, r->name,
                                          job_state_to_string((enum job_state)r->state), r->owner,
                                          r->submitted_real, r->started_real, r->ended_real, running, wanted,
                                          visible ? reason : "");
        if (k >= 0)
                k = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (k >= 0 && j && feeding_progress(j) >= 0)
                k = sd_bus_message_append(reply, "{sv}", "progress", "d", feeding_progress(j));
        if (k >= 0 && j)
                k = append_place(reply, m, j);
        if (k >= 0 && j && j->parent > 0)
                k = sd_bus_message_append(reply, "{sv}", "parent", "u", j->parent);
        if (k >= 0 && r->array > 0)
                k = api_append_place(reply, "array", r->array, r->index);
        if (k >= 0 && j && j->array)
                k = sd_bus_message_append(reply, "{sv}", "elements", "u", j->array->range.n);
        if (k >= 0)
                k = sd_bus_message_close_container(reply);
        return k < 0 ? k : sd_bus_message_close_container(reply);
}

struct list_request {
        struct manager *manager;
        sd_bus_message *call;
        uint32_t uid;
};

static void on_listed(void *userdata, int error, const struct job_record *jobs, size_t n) {
        struct list_request *q = userdata;
        sd_bus_message *reply = NULL;
        int r = error < 0 ? error : reply_list_new(q->call, "ussutttuusa{sv}", &reply);

        for (size_t i = 0; r >= 0 && i < n; i++) {
                const struct job *j = manager_job(q->manager, jobs[i].number);
                r = append_job(reply, q->manager, jobs + i, j,
                               q->uid == 0 || q->uid == jobs[i].owner ||
                                       (j && api_sees(q->manager, q->uid, j)));
        }
        reply_list_answer(q->call, reply, r);
        free(q);
}

static int list_jobs(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct store_job_filter filter;
        struct list_filter f = {};
        struct list_request *q;
        int r = api_know(m, call, uid, list_jobs);

        if (r == 0)
                r = read_filter(call, &f, error);
        else if (r > 0)
                return r;
        if (r < 0)
                return r;
        filter = (struct store_job_filter){
                .all = f.all,
                .elements = f.elements,
                .array = f.array,
                .by_owner = f.by_uid,
                .owner = f.uid,
                .state = f.state,
                .since = f.since,
                .name = f.name,
                .before = f.before,
                .limit = f.limit,
        };
        q = malloc(sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = (struct list_request){ m, sd_bus_message_ref(call), uid };
        r = store_query_jobs(m->store, &filter, on_listed, q);
        if (r < 0) {
                sd_bus_message_unref(call);
                free(q);
        }
        return r;
}

struct get_request {
        struct manager *manager;
        sd_bus_message *call;
        uint32_t number;
};

static void on_got(struct job *j, int error, void *userdata) {
        struct get_request *q = userdata;
        char path[64];

        if (j)
                (void)reply_return(q->call, "o", notice_job_path(j->number, path));
        else if (error < 0)
                (void)reply_failed(q->call, error, NULL);
        else
                (void)reply_errorf(q->call, ERROR_NO_SUCH_JOB,
                                   "There is no job %u (primusctl list -a shows all)", q->number);
        sd_bus_message_unref(q->call);
        free(q);
}

static int get_by_number(struct manager *m, sd_bus_message *call, uint32_t number) {
        struct get_request *q = malloc(sizeof(*q));
        int r;

        if (!q)
                return -ENOMEM;
        *q = (struct get_request){ m, sd_bus_message_ref(call), number };
        r = history_get(m, number, on_got, q);
        if (r < 0) {
                sd_bus_message_unref(call);
                free(q);
        }
        return r;
}

static void on_latest(void *userdata, int error, const struct job_record *jobs, size_t n) {
        struct get_request *q = userdata;

        if (error >= 0 && n > 0)
                error = get_by_number(q->manager, q->call, jobs[0].number);
        else if (error >= 0)
                (void)reply_errorf(q->call, ERROR_NO_SUCH_JOB, "You have submitted no job yet");
        if (error < 0)
                (void)reply_failed(q->call, error, NULL);
        sd_bus_message_unref(q->call);
        free(q);
}

static int get_job(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct get_request *q;
        uint32_t number;
        int r = sd_bus_message_read_basic(call, 'u', &number);

        if (r < 0)
                return r;
        if (number != 0)
                return get_by_number(m, call, number);
        q = malloc(sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = (struct get_request){ m, sd_bus_message_ref(call), 0 };
        r = store_query_jobs(m->store,
                             &(struct store_job_filter){ /* not an element: people submit arrays */
                                                         .all = true,
                                                         .by_owner = true,
                                                         .owner = uid,
                                                         .state = -1,
                                                         .limit = 1 },
                             on_latest, q);
        if (r < 0) {
                sd_bus_message_unref(call);
                free(q);
        }
        return r;
}

static int append_node(struct manager *m, sd_bus_message *reply, const struct node *node) {
        const struct inventory *v = &node->inventory;
        char address[ADDR_TEXT_MAX], boot[SD_ID128_STRING_MAX], held[NODE_REASON_MAX], text[512] = "";
        uint64_t cpu, memory;
        uint32_t gpus;
        int r;

        placement_free_of(m, node, &cpu, &memory, &gpus);
        /* What it is held for stands in the reason. */
        if (!node->holds[HOLD_CONDITION].set)
                (void)node_conditions_text(node, m->conf.conditions, CONDITION_WARN, false, text,
                                           sizeof(text));
        r = sd_bus_message_open_container(reply, 'r', "sssddttuuuta{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "sssddttuuut", node->name, node_shown_state(node),
                                          node->address.family ? addr_format(&node->address, address) : "",
                                          (double)v->cpus, (double)cpu / 1000, v->memory, memory,
                                          (uint32_t)v->n_gpus, gpus, node->n_executors, node->seen.real);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = api_append_labels(reply, node);
        if (r >= 0)
                r = sd_bus_message_append(
                        reply, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "conditions", "s", text, "reason", "s",
                        node_reason(node, held), "kernel", "s", v->kernel ? v->kernel : "", "os", "s",
                        v->os ? v->os : "", "version", "s", node->version ? node->version : "", "limits", "b",
                        (int)v->controllers, "boot", "s", sd_id128_to_string(node->boot_id, boot));
        if (r >= 0 && node->joined.taken_over)
                r = sd_bus_message_append(reply, "{sv}", "takenOver", "t", node->joined.real);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int by_name(struct node *a, struct node *b) {
        return strverscmp(a->name, b->name);
}

static int list_nodes(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        sd_bus_message *reply = NULL;
        struct node *node, *next;
        int r;

        HASH_SORT(m->nodes.by_name, by_name);
        r = reply_list_new(call, "sssddttuuuta{sv}", &reply);
        HASH_ITER (hh, m->nodes.by_name, node, next)
                if (r >= 0)
                        r = append_node(m, reply, node);
        return reply_list_send(reply, r);
}

/* ---- cluster ---- */

static int remove_node(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        sd_bus_message *reply = NULL;
        struct node *node;
        const char *name;
        int r = sd_bus_message_read_basic(call, 's', &name);

        if (r < 0)
                return r;
        node = nodes_get(&m->nodes, name);
        if (!node)
                return sd_bus_error_setf(error, ERROR_NO_SUCH_NODE, "There is no node '%.*s'",
                                         utf8_fit(name, 64), name);
        r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        log_notice("Node %s is removed by uid %u", node->name, uid);
        r = removal_of_node(m, node);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        providers_node_removed(m, name, uid);
        return manager_reply_later(m, reply);
}

static int put_bundle(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return bundles_put(userdata, uid, call);
}

static int on_list_nodes(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, list_nodes, error);
}

static int on_submit(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, api_submit, error);
}

static int on_try_submit(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, api_try_submit, error);
}

static int on_list_jobs(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, list_jobs, error);
}

static int on_get_job(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, get_job, error);
}

static int on_put_bundle(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, put_bundle, error);
}

static int on_remove_node(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, remove_node, error);
}

static int get_version(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", PRIMUS_VERSION);
}

static int get_cluster(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        char text[SD_ID128_STRING_MAX];

        return sd_bus_message_append(reply, "s", sd_id128_to_string(m->cluster, text));
}

static int get_nodes(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;

        return sd_bus_message_append(reply, "u", m->nodes.n);
}

const sd_bus_vtable api_manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("Submit", SD_BUS_ARGS("ay", config, "a{sv}", options),
                                SD_BUS_RESULT("u", number, "o", job, "as", warnings), on_submit,
                                SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_SENSITIVE),
        SD_BUS_METHOD_WITH_ARGS("TrySubmit", SD_BUS_ARGS("ay", config, "a{sv}", options),
                                SD_BUS_RESULT("as", warnings, "a{sv}", trial), on_try_submit,
                                SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_SENSITIVE),
        SD_BUS_METHOD_WITH_ARGS("ListJobs", SD_BUS_ARGS("a{sv}", filter),
                                SD_BUS_RESULT("a(ussutttuusa{sv})", jobs), on_list_jobs,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetJob", SD_BUS_ARGS("u", number), SD_BUS_RESULT("o", job), on_get_job,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetElement", SD_BUS_ARGS("u", array, "u", index), SD_BUS_RESULT("o", job),
                                api_on_get_element, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Usage", SD_BUS_ARGS("as", by, "a{sv}", filter),
                                SD_BUS_RESULT("a(uususttttttttt)", rows), api_on_usage,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListTelemetry", SD_BUS_ARGS("a{sv}", filter), SD_BUS_RESULT("aa{sv}", jobs),
                                api_on_list_telemetry, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListQueue", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", jobs), api_on_list_queue,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetJobDefaults", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(ss)", files),
                                api_on_get_job_defaults, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListPools", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", pools),
                                api_on_list_pools, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Changes", SD_BUS_ARGS("s", since, "t", wait, "a{sv}", options),
                                SD_BUS_RESULT("s", now, "b", reset, "au", jobs, "as", nodes), api_on_changes,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListNodes", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(sssddttuuuta{sv})", nodes),
                                on_list_nodes, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("PutBundle", SD_BUS_ARGS("s", sha256, "t", size, "t", offset, "ay", chunk),
                                SD_BUS_RESULT("t", next), on_put_bundle, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("CreateToken", SD_BUS_ARGS("a{sv}", options), SD_BUS_RESULT("s", token),
                                api_on_create_token, SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_SENSITIVE),
        SD_BUS_METHOD_WITH_ARGS("ListTokens", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(sutsua{sv})", tokens),
                                api_on_list_tokens, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("RevokeToken", SD_BUS_ARGS("s", id), SD_BUS_NO_RESULT, api_on_revoke_token,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("SetBanner", SD_BUS_ARGS("s", text), SD_BUS_NO_RESULT, api_on_set_banner,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListProviders", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", providers),
                                api_on_list_providers, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListInstances", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", instances),
                                api_on_list_instances, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("PlanInstances", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", acts),
                                api_on_plan_instances, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("HoldProvider", SD_BUS_ARGS("s", provider, "b", held), SD_BUS_NO_RESULT,
                                api_on_hold_provider, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("HoldInstance", SD_BUS_ARGS("s", instance, "b", held), SD_BUS_NO_RESULT,
                                api_on_hold_instance, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("StartInstance", SD_BUS_ARGS("s", provider, "s", shape), SD_BUS_NO_RESULT,
                                api_on_start_instance, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("StopInstance", SD_BUS_ARGS("s", instance), SD_BUS_NO_RESULT,
                                api_on_stop_instance, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("TakeProviderRequest", SD_BUS_ARGS("s", request),
                                SD_BUS_RESULT("t", limit, "s", json), api_on_take_provider_request,
                                SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_SENSITIVE),
        SD_BUS_METHOD_WITH_ARGS("AnswerProviderRequest", SD_BUS_ARGS("s", request, "i", status, "s", output),
                                SD_BUS_NO_RESULT, api_on_answer_provider_request, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("RemoveNode", SD_BUS_ARGS("s", name), SD_BUS_NO_RESULT, on_remove_node,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Backup", SD_BUS_ARGS("a{sv}", options),
                                SD_BUS_RESULT("h", database, "a{sv}", about), api_on_backup,
                                SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_SENSITIVE),
        SD_BUS_METHOD_WITH_ARGS("ListSavepoints", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(suuttta{sv})", savepoints),
                                api_on_list_savepoints, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetSavepoint", SD_BUS_ARGS("s", name), SD_BUS_RESULT("ay", manifest),
                                api_on_get_savepoint, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("DeleteSavepoint", SD_BUS_ARGS("s", name), SD_BUS_NO_RESULT,
                                api_on_delete_savepoint, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListCheckpoints", SD_BUS_ARGS("u", job, "t", after),
                                SD_BUS_RESULT("aa{sv}", checkpoints), api_on_list_checkpoints,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("CollectCheckpoints", SD_BUS_ARGS("u", job, "a{sv}", options),
                                SD_BUS_RESULT("at", marked, "au", jobs), api_on_collect_checkpoints,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("PinCheckpoint", SD_BUS_ARGS("t", checkpoint, "b", pinned), SD_BUS_NO_RESULT,
                                api_on_pin_checkpoint, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ForgetCheckpoint", SD_BUS_ARGS("t", checkpoint), SD_BUS_NO_RESULT,
                                api_on_forget_checkpoint, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListModels", SD_BUS_ARGS("s", name), SD_BUS_RESULT("aa{sv}", models),
                                api_on_list_models, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("RegisterModel", SD_BUS_ARGS("s", name, "t", checkpoint, "a{sv}", options),
                                SD_BUS_RESULT("u", version), api_on_register_model,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("EditModel", SD_BUS_ARGS("s", name, "u", version, "a{sv}", options),
                                SD_BUS_NO_RESULT, api_on_edit_model, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL_WITH_ARGS("JobNew", SD_BUS_ARGS("u", number, "o", job), 0),
        SD_BUS_SIGNAL_WITH_ARGS("JobRemoved", SD_BUS_ARGS("u", number, "o", job, "s", state), 0),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("ClusterId", "s", get_cluster, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Term", "t", NULL, offsetof(struct manager, term), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("NumJobs", "u", NULL, offsetof(struct manager, jobs.n_active), 0),
        SD_BUS_PROPERTY("NumNodes", "u", get_nodes, 0, 0),
        SD_BUS_PROPERTY("Banner", "s", api_get_banner, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_VTABLE_END,
};
