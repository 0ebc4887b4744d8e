/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Node: what people want of a host. */
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/names.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/caller/authorize.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/fleet/blaming.h"
#include "masterd/fleet/conditions.h"
#include "masterd/fleet/gpus-off.h"
#include "masterd/fleet/hosts.h"
#include "masterd/fleet/labels.h"
#include "masterd/fleet/maintenance.h"
#include "masterd/fleet/stuck.h"
#include "masterd/link/link.h"
#include "masterd/providers/providers.h"
#include "masterd/queue/placement.h"

/* The node of the object that was called, or NULL with an error. */
static struct node *node_of(struct manager *m, sd_bus_message *call, sd_bus_error *error) {
        _cleanup_free_ char *name = NULL;
        struct node *node = NULL;

        if (sd_bus_path_decode(sd_bus_message_get_path(call), MASTER_NODE_PREFIX, &name) > 0)
                node = nodes_get(&m->nodes, name);
        if (!node)
                (void)sd_bus_error_set(error, ERROR_NO_SUCH_NODE, "The node is not there any more");
        return node;
}

/* ---- cordon, drain, uncordon ---- */

static int cordon(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct node *node = node_of(m, call, error);
        const char *reason;
        int r;

        if (!node)
                return -ENXIO;
        r = sd_bus_message_read(call, "s", &reason);
        if (r < 0)
                return r;
        if (node->holds[HOLD_ADMIN].set && node->holds[HOLD_ADMIN].drain)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Node %s drains already; 'primusctl node uncordon %s' ends that",
                                         node->name, node->name);
        r = hosts_hold(m, node, HOLD_ADMIN, &(struct node_hold){ .uid = uid, .grace_usec = UINT64_MAX },
                       reason);
        return r < 0 ? r : manager_answer_later(m, call, "");
}

struct drain_options {
        struct node_hold hold;
        const char *reason;
};

static int read_then(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        struct drain_options *o = target;
        enum hold_then then;
        const char *text;
        int r = sd_bus_message_read(call, "v", "s", &text);

        if (r < 0)
                return r;
        then = hold_then_from_string(text);
        if (then < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "then: reboot, poweroff or none, not '%.*s'", utf8_fit(text, 32),
                                         text);
        o->hold.then = then;
        return 0;
}

static const struct call_option drain_options[] = {
        { "reason", 's', offsetof(struct drain_options, reason), NULL },
        { "grace", 't', offsetof(struct drain_options, hold.grace_usec), NULL },
        { "deadline", 't', offsetof(struct drain_options, hold.deadline_real), NULL },
        { "then", 0, 0, read_then },
        { NULL },
};

static int drain(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct node *node = node_of(m, call, error);
        struct drain_options o = { .hold = { .drain = true, .uid = uid, .grace_usec = UINT64_MAX },
                                   .reason = "" };
        int r;

        if (!node)
                return -ENXIO;
        r = options_read(call, "Drain", "option", drain_options, &o, error);
        if (r < 0)
                return r;
        if (o.hold.grace_usec != UINT64_MAX && o.hold.grace_usec > 7 * 86400 * USEC_PER_SEC)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "grace: at most 7 days");
        r = hosts_hold(m, node, HOLD_ADMIN, &o.hold, o.reason);
        return r < 0 ? r : manager_answer_later(m, call, "");
}

/* What a person may lift: all but what still is the case. */
static const enum hold_cause lifted[] = { HOLD_ADMIN, HOLD_HEALTH, HOLD_HOOK, HOLD_QUARANTINE,
                                          HOLD_CONDITION };

static int uncordon(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct node *node = node_of(m, call, error);
        char why[64], left[HOLDS_TEXT_MAX];
        sd_bus_message *reply = NULL;
        int r;

        if (!node)
                return -ENXIO;
        snprintf(why, sizeof(why), "uncordoned by uid %u", uid);
        blaming_forgive(m, node);
        conditions_wave(node);
        for (size_t i = 0; i < ELEMENTSOF(lifted); i++)
                (void)hosts_release(m, node, lifted[i], why);
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append(reply, "s", holds_text(node->holds, left, sizeof(left)));
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        return manager_reply_later(m, reply);
}

/* ---- GPUs out of use ---- */

/* The GPU that the call names first, and its node; NULL with an error. */
static const char *gpu_of(struct manager *m, sd_bus_message *call, struct node **ret, sd_bus_error *error) {
        struct node *node = *ret = node_of(m, call, error);
        const char *word, *uuid;

        if (!node || sd_bus_message_read_basic(call, 's', &word) < 0)
                return NULL;
        uuid = gpus_off_find(node, word);
        if (!uuid)
                (void)sd_bus_error_setf(
                        error, ERROR_NOT_FOUND,
                        "Node %s has no GPU '%.*s': expected is its number, from 0, or its uuid "
                        "(it has %zu; 'primusctl node show %s' lists them)",
                        node->name, utf8_fit(word, 64), word, node->inventory.n_gpus, node->name);
        return uuid;
}

static int disable_gpu(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct node *node;
        const char *uuid = gpu_of(m, call, &node, error), *reason;
        int r;

        if (!uuid)
                return -ENXIO;
        r = sd_bus_message_read_basic(call, 's', &reason);
        if (r < 0)
                return r;
        r = gpus_off_add(m, node, uuid, uid, reason);
        if (r == -EALREADY)
                return sd_bus_error_setf(error, ERROR_REFUSED, "GPU %s of node %s is out of use already",
                                         uuid, node->name);
        if (r == -E2BIG)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "%u GPUs of node %s are out of use, also some that it has no more; put "
                        "those back in use first",
                        GPUS_OFF_MAX, node->name);
        return r < 0 ? r : manager_answer_later(m, call, "");
}

static int enable_gpu(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct node *node;
        const char *uuid = gpu_of(m, call, &node, error);

        if (!uuid)
                return -ENXIO;
        if (!gpus_off_remove(m, node, uuid, uid))
                return sd_bus_error_setf(error, ERROR_REFUSED, "GPU %s of node %s is in use", uuid,
                                         node->name);
        return manager_answer_later(m, call, "");
}

/* ---- labels ---- */

struct label_change {
        char *key;
        const char *value; /* NULL: goes */
};

static int read_labels(sd_bus_message *call, struct label_change *list, size_t *ret_n, sd_bus_error *error) {
        const char *word;
        size_t n = 0;
        int r = sd_bus_message_enter_container(call, 'a', "s");

        while (r >= 0 && (r = sd_bus_message_read_basic(call, 's', &word)) > 0) {
                size_t l = strcspn(word, "=");
                struct label_change *c = list + n;
                if (n == NODE_LABELS_MAX)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                                 "More than %u labels at once", NODE_LABELS_MAX);
                c->value = word[l] == '=' ? word + l + 1 : NULL;
                c->key = strndup(word, !c->value && l > 0 && word[l - 1] == '-' ? l - 1 : l);
                if (!c->key)
                        return -ENOMEM;
                *ret_n = ++n;
                if (!node_label_key_valid(c->key) || (c->value && !node_label_value_valid(c->value)) ||
                    (!c->value && (l == 0 || word[l - 1] != '-')))
                        return sd_bus_error_setf(
                                error, SD_BUS_ERROR_INVALID_ARGS,
                                "Not a label: '%.*s'; expected KEY=VALUE, or KEY- to take it away, of up to "
                                "63 letters, digits and . _ / - in between",
                                utf8_fit(word, 160), word);
        }
        return r;
}

static int set_labels(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct node *node = node_of(m, call, error);
        struct label_change list[NODE_LABELS_MAX];
        size_t n = 0, have = 0;
        int r;

        if (!node)
                return -ENXIO;
        r = read_labels(call, list, &n, error);
        while (node->set_labels && node->set_labels[have])
                have++;
        if (r >= 0 && have + n > NODE_LABELS_MAX)
                r = sd_bus_error_setf(error, ERROR_REFUSED, "Node %s would have more than %u labels",
                                      node->name, NODE_LABELS_MAX);
        for (size_t i = 0; i < n; i++) {
                r = r < 0 ? r : labels_set(m, node, list[i].key, list[i].value);
                free(list[i].key);
        }
        r = r < 0 ? r : labels_apply(m, node);
        if (r < 0)
                return r;
        log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = node->name },
                 "Labels of node %s are changed by uid %u", node->name, uid);
        return manager_answer_later(m, call, "");
}

/* ---- maintenance ---- */

static int set_maintenance(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct node *node = node_of(m, call, error);
        uint64_t from, to;
        const char *reason;
        int r;

        if (!node)
                return -ENXIO;
        r = sd_bus_message_read(call, "tts", &from, &to, &reason);
        if (r < 0)
                return r;
        r = maintenance_add(m, node, from, to, reason, uid);
        if (r == -EINVAL)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "A maintenance window ends after it begins, and in the future");
        if (r == -EEXIST)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Node %s has a maintenance window in that time already ('primusctl "
                                         "node maintenance' lists them)",
                                         node->name);
        if (r == -E2BIG)
                return sd_bus_error_setf(error, ERROR_REFUSED, "There are %u maintenance windows already",
                                         WINDOWS_MAX);
        if (r < 0)
                return r;
        log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = node->name },
                 "Node %s gets a maintenance window from uid %u", node->name, uid);
        return manager_answer_later(m, call, "");
}

static int cancel_maintenance(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct node *node = node_of(m, call, error);
        uint64_t from;
        int r;

        if (!node)
                return -ENXIO;
        r = sd_bus_message_read(call, "t", &from);
        if (r < 0)
                return r;
        if (maintenance_cancel(m, node, from) < 0)
                return sd_bus_error_setf(error, ERROR_NOT_FOUND,
                                         "Node %s has no maintenance window that begins then", node->name);
        return manager_answer_later(m, call, "");
}

/* ---- another host for a job ---- */

int api_replace(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        sd_bus_message *reply = NULL;
        struct node *node;
        const char *name;
        char text[256];
        int r, moved;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read(call, "s", &name);
        if (r < 0)
                return r;
        node = nodes_get(&m->nodes, name);
        if (!node)
                return sd_bus_error_setf(error, ERROR_NO_SUCH_NODE,
                                         "There is no node '%.*s' ('primusctl nodes' lists them)",
                                         utf8_fit(name, 64), name);
        moved = hosts_replace(m, j, node, uid, text);
        if (moved == -ESRCH || moved == -EINVAL)
                return sd_bus_error_set(error, ERROR_REFUSED, text);
        if (moved < 0)
                return moved;
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append(reply, "u", (uint32_t)moved);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        return manager_reply_later(m, reply);
}

int api_allow_node(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        const char *name;
        char text[256];
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read(call, "s", &name);
        if (r < 0)
                return r;
        if (!node_name_valid(name))
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "node: not a node's name");
        r = hosts_allow(m, j, name, uid, text);
        if (r == -ESRCH)
                return sd_bus_error_set(error, ERROR_REFUSED, text);
        return r < 0 ? r : manager_answer_later(m, call, "");
}

/* ---- everything about one ---- */

static int append_holds(sd_bus_message *reply, const struct node *node) {
        int r = reply_open_array(reply, "holds", "a(sbsuttts)");

        for (int i = 0; r >= 0 && i < _HOLD_MAX; i++) {
                const struct node_hold *h = node->holds + i;
                if (h->set)
                        r = sd_bus_message_append(reply, "(sbsuttts)",
                                                  hold_cause_to_string((enum hold_cause)i), (int)h->drain,
                                                  h->reason, h->uid, h->since_real, h->deadline_real,
                                                  h->grace_usec, hold_then_to_string(h->then));
        }
        return r < 0 ? r : reply_close_array(reply);
}

static int append_conditions(sd_bus_message *reply, struct manager *m, const struct node *node) {
        int r = reply_open_array(reply, "conditions", "a(sssst)");

        if (r >= 0)
                r = api_append_conditions(reply, m, node);
        return r < 0 ? r : reply_close_array(reply);
}

static int append_gpus_off(sd_bus_message *reply, const struct node *node) {
        int r = reply_open_array(reply, "gpusOff", "a(suts)");

        for (const struct gpu_off *g = node->gpus_off; r >= 0 && g; g = g->next)
                r = sd_bus_message_append(reply, "(suts)", g->uuid, g->uid, g->since_real, g->reason);
        return r < 0 ? r : reply_close_array(reply);
}

/* The bit of GPU number i is in what executors hold there. */
static int append_gpus(sd_bus_message *reply, const struct node *node) {
        int r = reply_open_array(reply, "gpuList", "a(sstsb)");
        const struct executor *e;
        uint64_t held = 0;

        DL_FOREACH2 (node->executors, e, node_next)
                held |= e->place.gpus;
        for (size_t i = 0; r >= 0 && i < node->inventory.n_gpus && i < 64; i++) {
                const struct gpu_info *g = node->inventory.gpus + i;
                r = sd_bus_message_append(reply, "(sstsb)", g->uuid, g->model ?: "", g->memory, g->mig ?: "",
                                          (int)(held >> i & 1));
        }
        r = r < 0 ? r : reply_close_array(reply);
        return r < 0 ? r : append_gpus_off(reply, node);
}

static int append_windows(sd_bus_message *reply, struct manager *m, const struct node *node) {
        const struct window *w;
        int r = reply_open_array(reply, "windows", "a(ttsu)");

        DL_FOREACH (maintenance_windows(m), w)
                if (r >= 0 && w->node == node)
                        r = sd_bus_message_append(reply, "(ttsu)", w->from_real, w->to_real, w->reason,
                                                  w->uid);
        return r < 0 ? r : reply_close_array(reply);
}

int api_append_labels(sd_bus_message *reply, const struct node *node) {
        int r = reply_open_array(reply, "labels", "as");

        for (char **p = node->labels; r >= 0 && p && *p; p++)
                r = sd_bus_message_append_basic(reply, 's', *p);
        return r < 0 ? r : reply_close_array(reply);
}

/* That a job runs there is for everybody to see; what it consists of is for its owner. */
static int append_executors(sd_bus_message *reply, struct manager *m, const struct node *node, uint32_t uid) {
        const struct executor *e;
        const struct stuck *s;
        int r = reply_open_array(reply, "executors", "a(usuusut)");

        DL_FOREACH2 (node->executors, e, node_next) {
                bool shown = uid == 0 || uid == e->job->owner;
                if (r >= 0)
                        r = sd_bus_message_append(reply, "(usuusut)", e->job->number,
                                                  shown ? executor_role(e)->name : "", shown ? e->index : 0,
                                                  shown ? e->attempt : 0, executor_state_to_string(e->state),
                                                  e->job->owner, e->started_real);
        }
        DL_FOREACH (node->stuck, s) {
                const struct job *j = manager_job(m, s->id.job);
                bool shown = uid == 0 || (j && uid == j->owner);
                if (r >= 0)
                        r = sd_bus_message_append(reply, "(usuusut)", s->id.job, shown ? s->id.role : "",
                                                  shown ? s->id.index : 0, shown ? s->id.attempt : 0,
                                                  executor_state_to_string(EXECUTOR_STOPPING),
                                                  j ? j->owner : 0, UINT64_C(0));
        }
        return r < 0 ? r : reply_close_array(reply);
}

static int append_provider(sd_bus_message *reply, struct manager *m, const struct node *node) {
        struct instance *i = providers_of_node(m, node);

        return i ? providers_append_kept(reply, i) : 0;
}

/* From whose jobs the host is kept; that others' fail is theirs to know. */
static int append_avoided(sd_bus_message *reply, const struct node *node, uint32_t uid) {
        int r = reply_open_array(reply, "avoidedFor", "a(ut)");
        uint64_t now = now_real();

        for (uint32_t i = 0; node->blame && i < node->blame->n_shuns; i++) {
                const struct shun *x = node->blame->shuns + i;
                if (r >= 0 && x->until > now && (uid == 0 || uid == x->user))
                        r = sd_bus_message_append(reply, "(ut)", x->user, x->until);
        }
        return r < 0 ? r : reply_close_array(reply);
}

/* The version that is spoken with its agent; "": none. */
static const char *link_of(const struct node *node, char text[static 16]) {
        *text = 0;
        if (node->link)
                snprintf(text, 16, "%u.%u", LINK_MAJOR, node->link->minor);
        return text;
}

static int describe(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct node *node = node_of(m, call, error);
        const struct inventory *v;
        char boot[SD_ID128_STRING_MAX], address[ADDR_TEXT_MAX], text[NODE_REASON_MAX], link[16];
        uint64_t cpu, memory;
        uint32_t gpus;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r;

        if (!node)
                return -ENXIO;
        v = &node->inventory;
        placement_free_of(m, node, &cpu, &memory, &gpus);
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(
                        reply, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "name", "s",
                        node->name, "state", "s", node_shown_state(node), "liveness", "s",
                        node_state_to_string(node->state), "reason", "s", node_reason(node, text), "address",
                        "s", node->address.family ? addr_format(&node->address, address) : "", "cpus", "u",
                        v->cpus, "cpusFree", "d", (double)cpu / 1000, "memory", "t", v->memory, "memoryFree",
                        "t", memory, "gpus", "u", (uint32_t)v->n_gpus, "gpusFree", "u", gpus, "heartbeat",
                        "t", node->seen.real, "boot", "s", sd_id128_to_string(node->boot_id, boot), "version",
                        "s", node->version ? node->version : "", "limits", "b", (int)v->controllers);
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}", "kernel", "s",
                                          v->kernel ? v->kernel : "", "os", "s", v->os ? v->os : "", "epoch",
                                          "t", node->epoch, "link", "s", link_of(node, link), "refused", "s",
                                          node->refused ? node->refused : "");
        if (r >= 0 && node->joined.real > 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}", "joined", "t", node->joined.real,
                                          "joinedFrom", "s", addr_format(&node->joined.from, address),
                                          "joinedBy", "u", node->joined.by, "takenOver", "b",
                                          (int)node->joined.taken_over);
        if (r >= 0)
                r = api_append_labels(reply, node);
        if (r >= 0)
                r = append_holds(reply, node);
        if (r >= 0)
                r = append_conditions(reply, m, node);
        if (r >= 0)
                r = append_avoided(reply, node, uid);
        if (r >= 0)
                r = append_gpus(reply, node);
        if (r >= 0)
                r = append_windows(reply, m, node);
        if (r >= 0)
                r = append_executors(reply, m, node, uid);
        r = r < 0 ? r : append_provider(reply, m, node);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : reply_send(reply);
}

#define DEFINE_CALL(name)                                                                                    \
        int api_on_node_##name(sd_bus_message *call, void *userdata, sd_bus_error *error) {                  \
                return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, name, error);    \
        }

DEFINE_CALL(cordon)
DEFINE_CALL(uncordon)
DEFINE_CALL(disable_gpu)
DEFINE_CALL(enable_gpu)
DEFINE_CALL(drain)
DEFINE_CALL(set_labels)
DEFINE_CALL(set_maintenance)
DEFINE_CALL(cancel_maintenance)

int api_on_node_describe(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, describe, error);
}
