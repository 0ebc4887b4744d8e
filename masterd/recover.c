/* SPDX-License-Identifier: Apache-2.0 */
/* After a restart. Invariants: what the agent reports wins over what we remember about its units; what we
 * remember wins over the agent about what should be: a unit of an attempt that is over for us is stopped. */
#include "masterd/recover.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/cpulist.h"
#include "lib/base/log.h"
#include "masterd/api/api.h"
#include "masterd/arrays.h"
#include "masterd/blaming.h"
#include "masterd/change.h"
#include "masterd/conditions.h"
#include "masterd/depend.h"
#include "masterd/epochs.h"
#include "masterd/feeding.h"
#include "masterd/healing.h"
#include "masterd/holdings.h"
#include "masterd/hosts.h"
#include "masterd/job/peers.h"
#include "masterd/job/reshape.h"
#include "masterd/lifecycle.h"
#include "masterd/limits.h"
#include "masterd/link.h"
#include "masterd/liveness.h"
#include "masterd/manager.h"
#include "masterd/node/gpus.h"
#include "masterd/orders.h"
#include "masterd/ownhost.h"
#include "masterd/placement-describe.h"
#include "masterd/placement.h"
#include "masterd/queueing.h"
#include "masterd/record.h"
#include "masterd/requeue.h"
#include "masterd/restarts.h"
#include "masterd/savepoints.h"
#include "masterd/sched/sched.h"
#include "masterd/scopes.h"
#include "masterd/serving.h"
#include "masterd/stuck.h"
#include "masterd/suspension.h"
#include "masterd/usage.h"

/* ---- from the store
 * ------------------------------------------------------------------------------------------------- */

static int add_gpu(struct node *node, const char *uuid, size_t size) {
        struct gpu_info *bigger =
                reallocarray(node->inventory.gpus, node->inventory.n_gpus + 1, sizeof(*bigger));

        if (!bigger)
                return -ENOMEM;
        node->inventory.gpus = bigger;
        bigger[node->inventory.n_gpus++] =
                (struct gpu_info){ .uuid = strndup(uuid, size), .model = strdup(""), .nodes = strdup("") };
        return 0;
}

/* What record_node() wrote: "FIRST LAST\n" of the port range, then the name of a GPU a line. */
static int load_inventory(struct node *node, const struct store_bytes *text) {
        const char *p = text->data, *end = p + text->size, *stop;
        unsigned first, last;
        int r;

        if (text->size == 0)
                return 0;
        stop = memchr(p, '\n', text->size);
        if (!stop || sscanf(p, "%u %u\n", &first, &last) != 2 || first > UINT16_MAX || last > UINT16_MAX)
                return -EUCLEAN;
        node->inventory.port_first = (uint16_t)first;
        node->inventory.port_last = (uint16_t)last;
        for (p = stop + 1; p < end; p = stop + 1) {
                stop = memchr(p, '\n', (size_t)(end - p));
                if (!stop)
                        return -EUCLEAN;
                r = add_gpu(node, p, (size_t)(stop - p));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int load_node(void *userdata, const struct node_record *r) {
        struct manager *m = userdata;
        struct node *node;
        int k = nodes_add(&m->nodes, r->name, &node);

        if (k < 0)
                return k;
        snprintf(node->serial, sizeof(node->serial), "%s", r->serial);
        node->epoch = r->epoch;
        if (sd_id128_from_string(r->boot_id, &node->boot_id) < 0)
                node->boot_id = SD_ID128_NULL;
        /* One that was well has the LOST time to come back; see liveness_start(). */
        node->state = r->state == NODE_JOINING || r->state == NODE_LOST || r->state >= _NODE_STATE_MAX
                              ? (enum node_state)(r->state % _NODE_STATE_MAX)
                              : NODE_SUSPECT;
        if (*r->address)
                (void)addr_parse(r->address, 0, &node->address);
        node->inventory.cpus = r->cpus;
        node->inventory.memory = r->memory;
        node->last_seen_real = r->seen_real;
        node->joined_real = r->joined_real;
        if (*r->joined_from)
                (void)addr_parse(r->joined_from, 0, &node->joined_from);
        node->joined_by = r->joined_by;
        node->taken_over = r->taken_over;
        k = load_inventory(node, &r->inventory);
        if (k >= 0)
                k = placement_node_changed(m, node);
        return k;
}

static int load_env(struct job *j, const struct store_bytes *env) {
        const char *p = env->data;
        size_t n = 0, k = 0;

        if (env->size == 0)
                return 0;
        for (size_t i = 0; i < env->size; i++)
                n += p[i] == 0;
        j->env = calloc(n + 1, sizeof(*j->env));
        if (!j->env)
                return -ENOMEM;
        for (size_t i = 0; i < env->size && k < n; i += strlen(p + i) + 1)
                if (!(j->env[k++] = strdup(p + i)))
                        return -ENOMEM;
        return 0;
}

void recover_job_free(struct job *j) {
        if (!j)
                return;
        feeding_free(j);
        change_free(j);
        healing_forget(j);
        job_free(j);
}

static void recover_job_free_p(struct job **j) {
        recover_job_free(*j);
}

int recover_job(struct manager *m, const struct job_record *r, struct job **ret) {
        _cleanup_(recover_job_free_p) struct job *j = NULL;
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        struct job_state_data data = {};
        struct job_spec *spec;
        int k;

        if (!r->body)
                return -EUCLEAN;
        k = r->array > 0 ? arrays_load_spec(m, r, &spec)
                         : spec_load(r->body->config.data, r->body->config.size, &spec, &d);
        if (k < 0)
                return log_full(LOG_ERR, k, &(struct log_fields){ .job = r->number },
                                "The stored configuration of job %u cannot be read", r->number);
        k = job_new(r->number, r->uid, r->owner, spec, &j);
        if (k < 0)
                return k;
        j->array_number = r->array;
        j->array_index = r->index;
        j->manager = m;
        k = text_set(&j->name, "%s", r->name);
        if (k < 0)
                return k;
        free(j->cwd);
        j->cwd = store_bytes_text(&r->body->cwd);
        if (!j->cwd)
                return -ENOMEM;
        k = load_env(j, &r->body->env);
        if (k < 0)
                return k;
        snprintf(j->bundle, sizeof(j->bundle), "%s", r->body->bundle);
        j->state = r->state < _JOB_STATE_MAX ? (enum job_state)r->state : JOB_FAILED;
        j->attempt = r->attempt;
        j->submitted_real = r->submitted_real;
        j->started_real = r->started_real;
        j->ended_real = r->ended_real;
        j->event_seq = r->last_event;
        if (*r->reason && text_set(&j->reason, "%s", r->reason) < 0)
                return -ENOMEM;
        if (*r->first_error && text_set(&j->first_error, "%s", r->first_error) < 0)
                return -ENOMEM;
        memcpy(&data, r->state_data.data ? r->state_data.data : "", MIN(r->state_data.size, sizeof(data)));
        j->verdict = (enum job_event)data.verdict;
        j->saving = data.saving;
        j->order_step = data.order_step;
        j->attempt_real = data.attempt_real;
        j->requeueing = data.requeueing;
        j->requeues = data.requeues;
        j->asked = data.asked;
        j->slot_real = data.version >= 2 ? data.slot_real : j->started_real;
        j->waits_real = data.waits_real ?: j->submitted_real;
        j->not_before_real = data.not_before_real;
        j->leave_real = data.leave_real;
        j->leave_for = data.leave_for;
        j->leave_why = data.leave_why;
        j->limits_real = data.limits_real;
        j->epoch = data.epoch;
        j->membership = data.membership;
        j->rolling = (struct rolling){ .since_real = data.rolling_real,
                                       .batch = data.rolling_batch,
                                       .index = data.rolling_index };
        snprintf(j->rolling.role, sizeof(j->rolling.role), "%.32s", data.rolling_role);
        j->held.mode = data.held_mode;
        j->held.by = data.held_by;
        j->held.since_real = data.held_real;
        j->held.froze_real = data.froze_real;
        j->after_met = data.after_met;
        j->array_since = data.array_since;
        j->had_env = data.had_env;
        j->had_secrets = data.had_secrets;
        k = arrays_prepare(j);
        if (k >= 0)
                k = depend_prepare(j);
        if (k >= 0 && !j->array)
                k = feeding_new(j);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(j);
        return 0;
}

static int load_job(void *userdata, const struct job_record *r) {
        struct manager *m = userdata;
        struct job *j;
        int k = recover_job(m, r, &j);

        if (k < 0)
                return k;
        j->usage_known = true;
        HASH_ADD(hh, m->jobs, number, sizeof(j->number), j);
        m->n_active += j->array_number == 0;
        return 0;
}

static int load_usage(void *userdata, const struct usage_record *r) {
        struct job *j = manager_job(userdata, r->job);

        return j ? usage_loaded(j, r) : 0;
}

static int load_element(void *userdata, const struct element_record *r) {
        struct job *j = manager_job(userdata, r->array);

        if (j)
                arrays_loaded(j, r);
        return 0;
}

/* The executor has another attempt behind the one that was loaded last: what that one left behind. */
static void remember_attempt(struct job *j, struct executor *e) {
        blaming_remember(e);
        if (executor_scope(e)) /* what is counted there is stored with it */
                return;
        if (e->placed_real < j->attempt_real) /* of an earlier attempt of the job */
                return;
        if (e->state == EXECUTOR_KILLED && e->stop_ordered) /* it was moved */
                return;
        if (e->started_real > 0 && usec_sub(e->ended_real, e->started_real) > j->spec->backoff.max_usec)
                e->history.consecutive = 0;
        e->history.consecutive++;
        if (e->state == EXECUTOR_FAILED && fate_counts(e->fate))
                failover_remember(&e->history, usec_sub(now_boot(), usec_sub(now_real(), e->ended_real)));
}

int recover_executor(struct manager *m, struct job *j, const struct executor_record *r) {
        struct executor *e = job_executor(j, r->role, r->index);
        int k;
        enum executor_state state =
                r->state < _EXECUTOR_STATE_MAX ? (enum executor_state)r->state : EXECUTOR_LOST;

        if (change_has_left(j, r->role, r->index, r->attempt)) {
                const struct role_spec *role = job_role_known(j, r->role);
                if (!executor_state_holds(state) || !role)
                        return 0;
                k = job_add_leaving(j, role, r->index, &e);
                if (k < 0)
                        return k;
        }
        if (!e)
                return 0;
        if (e->attempt > 0)
                remember_attempt(j, e);
        executor_number(e, r->attempt);
        e->bounced = state == EXECUTOR_KILLED && r->started_real == 0 && !r->stop_requested;
        executor_move(e, nodes_get(&m->nodes, r->node));
        executor_restore_state(e, state);
        e->invocation = r->invocation;
        e->placed_real = r->placed_real;
        e->started_real = r->started_real;
        /* What has ended is asked for how long it ran, by the clock of its host alone. */
        e->started_boot = r->started_real
                                  ? usec_sub(now_boot(), usec_sub(r->ended_real ? r->ended_real : now_real(),
                                                                  r->started_real))
                                  : 0;
        e->ended_real = r->ended_real;
        e->status = r->status;
        e->stop_ordered = r->stop_requested;
        e->fate = r->fate < _FATE_MAX ? (enum fate)r->fate : FATE_NONE;
        e->memory = r->memory;
        e->memory_peak = r->memory_peak;
        e->cpu_usec = r->cpu_usec;
        e->io_read = r->io_read;
        e->io_write = r->io_write;
        snprintf(e->result, sizeof(e->result), "%s", r->result);
        if (text_set(&e->reason, *r->reason ? "%s" : NULL, r->reason) < 0)
                return -ENOMEM;
        free(e->ports);
        e->ports = NULL;
        e->n_ports = 0;
        if (r->n_ports > 0) {
                e->ports = calloc(r->n_ports, sizeof(*e->ports));
                if (!e->ports)
                        return -ENOMEM;
                memcpy(e->ports, r->ports, r->n_ports * sizeof(*e->ports));
                e->n_ports = r->n_ports;
        }
        free(TAKE_PTR(e->cpus));
        if (r->cpus && *r->cpus) {
                e->cpus = calloc(1, sizeof(*e->cpus));
                if (!e->cpus)
                        return -ENOMEM;
                if (cpulist_parse(r->cpus, e->cpus->bits, ELEMENTSOF(e->cpus->bits)) < 0)
                        return -EBADMSG;
        }
        e->gpus = e->node ? gpus_of_text(&e->node->inventory, r->gpus) : 0;
        return 0;
}

static int load_change(void *userdata, const struct change_record *r) {
        struct job *j = manager_job(userdata, r->job);

        return j ? change_load(j, r) : 0;
}

static int load_executor(void *userdata, const struct executor_record *r) {
        struct manager *m = userdata;
        struct job *j = manager_job(m, r->job);

        return j ? recover_executor(m, j, r) : 0;
}

static int load_secret(void *userdata, const struct secret_record *r) {
        struct job *j = manager_job(userdata, r->job);
        struct job_secret *bigger, *s;

        if (!j)
                return 0;
        bigger = reallocarray(j->secrets, j->n_secrets + 1, sizeof(*bigger));
        if (!bigger)
                return -ENOMEM;
        j->secrets = bigger;
        s = bigger + j->n_secrets;
        *s = (struct job_secret){ strdup(r->name), malloc(r->data.size + 1), r->data.size };
        if (!s->name || !s->data)
                return -ENOMEM;
        memcpy(s->data, r->data.data, r->data.size);
        j->n_secrets++;
        return 0;
}

/* What executors of the job hold. Those of its hosts come first, since what follows from the ends of others
 * may stop them. */
static void resume_places(struct manager *m, struct job *j) {
        struct executor *e;

        JOB_FOREACH (j, e) {
                if (!executor_state_holds(e->state))
                        continue;
                if (!e->node || placement_restore(m, e) < 0) /* its node was removed meanwhile */
                        executor_restore_state(e, EXECUTOR_LOST);
                else
                        feeding_unknown(e);
        }
}

/* What follows from the loaded states. */
static void resume_job(struct manager *m, struct job *j) {
        struct executor *e, *next;

        for (uint32_t i = 0; i < j->n_executors; i++)
                blaming_remember(j->executors[i]);
        scopes_resume(m, j);
        for (uint32_t i = 0; i < j->n_executors; i++) {
                e = j->executors[i];
                if (executor_state_ended(e->state)) {
                        if (e->placed_real < j->attempt_real)
                                executor_restore_state(e, EXECUTOR_PENDING);
                        else
                                restarts_redecide(m, e);
                }
                if (e->state == EXECUTOR_PENDING &&
                    j->state == JOB_STOPPING) /* stopped before it was placed */
                        lifecycle_cancel(e);
                else if (e->state == EXECUTOR_PENDING && e->attempt > 0)
                        feeding_between(e);
        }
        DL_FOREACH_SAFE2 (j->leaving, e, next, leaving_next)
                if (!executor_state_holds(e->state))
                        change_gone(m, e);
        job_retired_trim(j);
        lifecycle_arm_limit(m, j);
        suspension_restored(m, j);
        depend_watch(m, j);
        placement_enqueue(m, j);
        requeue_restored(m, j);
        lifecycle_review(m, j);
}

int recover_load(struct manager *m) {
        struct job *j, *next;
        int r = store_load_nodes(m->store, load_node, m);

        if (r >= 0)
                r = hosts_load_nodes(m);
        if (r >= 0)
                r = blaming_load(m);
        if (r >= 0)
                r = savepoints_load(m);
        if (r >= 0)
                r = store_load_jobs(m->store, true, load_job, m);
        if (r >= 0)
                r = hosts_load_jobs(m);
        if (r >= 0)
                r = store_load_scopes(m->store, scopes_load, m);
        if (r >= 0)
                r = store_load_changes(m->store, load_change, m);
        if (r >= 0)
                r = store_load_executors(m->store, load_executor, m);
        if (r >= 0)
                r = healing_load(m);
        if (r >= 0)
                r = store_load_secrets(m->store, load_secret, m);
        if (r >= 0)
                r = store_load_elements(m->store, load_element, m);
        if (r >= 0)
                r = store_load_usage(m->store, load_usage, m);
        if (r >= 0)
                r = feeding_load(m);
        if (r >= 0)
                r = queueing_load(m);
        if (r < 0)
                return r;
        r = stuck_load(m);
        if (r < 0)
                return r;
        HASH_ITER (hh, m->jobs, j, next)
                holdings_weigh(j);
        HASH_ITER (hh, m->jobs, j, next)
                if (j->array_number > 0 && (r = arrays_adopt(m, j)) < 0)
                        return r;
        HASH_ITER (hh, m->jobs, j, next)
                resume_places(m, j);
        HASH_ITER (hh, m->jobs, j, next)
                resume_job(m, j);
        manager_touch(m);
        return 0;
}

/* ---- against what an agent reports
 * ------------------------------------------------------------------------------------ */

/* GPUs are held by position; the agent may list them in another order than last time. */
static void remap_gpus(struct node *node, const struct inventory *old, const struct inventory *new) {
        struct executor *e;

        DL_FOREACH2 (node->executors, e, node_next) {
                uint64_t mask = 0;
                for (size_t i = 0; i < old->n_gpus && i < 64; i++)
                        for (size_t k = 0; (e->gpus & (UINT64_C(1) << i)) && k < new->n_gpus &&k < 64; k++)
                                if (strcmp(old->gpus[i].uuid, new->gpus[k].uuid) == 0)
                                        mask |= UINT64_C(1) << k;
                e->gpus = mask;
        }
}

/* NULL-ended; of NULL an empty list. NULL: no memory. */
static char **copy_texts(char *const *texts) {
        size_t n = 0;
        char **copy;

        while (texts && texts[n])
                n++;
        copy = calloc(n + 1, sizeof(*copy));
        for (size_t i = 0; copy && i < n; i++)
                if (!(copy[i] = strdup(texts[i]))) {
                        while (i > 0)
                                free(copy[--i]);
                        free(copy);
                        return NULL;
                }
        return copy;
}

static int take_inventory(struct manager *m, struct node *node, const struct inventory *new) {
        struct inventory copy = *new;
        struct addr before = node->address;
        struct executor *e;
        int r;

        copy.labels = copy.numa = NULL;
        copy.networks = NULL;
        r = serving_copy(&copy.serves, &new->serves);
        copy.hostname = strdup(new->hostname);
        copy.kernel = strdup(new->kernel);
        copy.os = strdup(new->os);
        copy.gpus = calloc(new->n_gpus + 1, sizeof(*copy.gpus));
        copy.n_gpus = 0;
        if (r < 0 || !copy.hostname || !copy.kernel || !copy.os || !copy.gpus) {
                inventory_done(&copy);
                return -ENOMEM;
        }
        for (size_t i = 0; i < new->n_gpus; i++, copy.n_gpus++)
                copy.gpus[i] =
                        (struct gpu_info){ .uuid = strdup(new->gpus[i].uuid),
                                           .model = strdup(new->gpus[i].model),
                                           .memory = new->gpus[i].memory,
                                           .nodes = strdup(new->gpus[i].nodes),
                                           .mig = new->gpus[i].mig ? strdup(new->gpus[i].mig) : NULL,
                                           .parent = new->gpus[i].parent ? strdup(new->gpus[i].parent) : NULL,
                                           .links = new->gpus[i].links,
                                           .numa = new->gpus[i].numa };
        copy.networks = calloc(new->n_networks + 1, sizeof(*copy.networks));
        if (copy.networks && new->n_networks > 0)
                memcpy(copy.networks, new->networks, new->n_networks * sizeof(*copy.networks));
        copy.labels = copy_texts(new->labels);
        copy.numa = copy_texts(new->numa);
        if (!copy.networks || !copy.labels || !copy.numa || placement_add_labels(node->name, &copy) < 0 ||
            node_merge_labels(node, copy.labels) < 0) {
                inventory_done(&copy);
                return -ENOMEM;
        }
        remap_gpus(node, &node->inventory, &copy);
        inventory_done(&node->inventory);
        node->inventory = copy;
        serving_registered(m, node);
        if (copy.address.family != AF_UNSPEC)
                node->address = ownhost_address(m, node, &copy.address);
        else if (node->link)
                peer_address(node->link->peer, &node->address);
        node->address.port = 0;
        if (!addr_equal(&before, &node->address))
                DL_FOREACH2 (node->executors, e, node_next)
                        job_peers_drop(e->job);
        return 0;
}

static void unit_reported(struct manager *m, struct node *node, const struct unit_report *u, uint64_t epoch) {
        struct job *j = manager_job(m, u->id.job);
        struct executor *e;

        if (stuck_reported(node, &u->id))
                return;
        if (j && !sd_id128_equal(j->uid, u->id.job_uid))
                j = NULL;
        if (j && strcmp(u->id.role, SCAN_ROLE) == 0) {
                if (!feeding_scan_reported(j, node, &u->id))
                        (void)orders_stop_stale_later(m, node, &u->id);
                return;
        }
        e = j ? job_attempt(j, u->id.role, u->id.index, u->id.attempt) : NULL;
        if (!e || !executor_state_holds(e->state) || e->node != node) {
                if (node_may_log(node, now_boot()))
                        log_full(LOG_NOTICE, 0, &(struct log_fields){ .job = u->id.job, .node = node->name },
                                 "%s still runs job %u %s/%u attempt %u, which is over: stopping it",
                                 node->name, u->id.job, u->id.role, u->id.index, u->id.attempt);
                (void)orders_stop_stale_later(m, node, &u->id);
                return;
        }
        e->confirmed = true;
        e->epoch = epoch;
        if (e->state == EXECUTOR_STOPPING)
                (void)orders_stop_later(m, e);
        else if (u->state == UNIT_STARTING)
                (void)orders_start_later(m, e); /* idempotent; its answer tells when it runs */
        else
                lifecycle_found_running(m, e, u->invocation, u->started_real);
}

/* Ends of jobs that the host has missed: its files of them can go. */
static void drop_ended(struct manager *m, struct node *node, const struct registration *g) {
        for (size_t i = 0; i < g->n_work; i++) {
                const struct work *w = g->work + i;
                struct job *j = manager_job(m, w->job);

                if (!j || job_state_ended(j->state) || memcmp(&j->uid, &w->uid, 4) != 0)
                        (void)orders_drop_job_later(m, node, w->uid, w->job);
        }
}

int recover_registered(struct manager *m, struct node *node, struct link *link,
                       const struct registration *g) {
        bool rebooted = !sd_id128_equal(node->boot_id, g->boot_id);
        enum node_state was = node->state;
        struct executor *e, *next;
        int r = take_inventory(m, node, &g->inventory);

        if (r < 0)
                return r;
        node->boot_id = g->boot_id;
        link->registered = true;
        /* It is here: what ends below on a host that was LOST is stopped by its agent, not given up. */
        node->state = NODE_READY;
        DL_FOREACH2 (node->executors, e, node_next) {
                e->confirmed = false;
                e->ordered = false;
        }
        for (size_t i = 0; i < g->n_exits; i++)
                lifecycle_exited(m, node, g->exits + i);
        for (size_t i = 0; i < g->n_units; i++)
                unit_reported(m, node, g->units + i, g->epochs ? g->epochs[i] : 0);
        DL_FOREACH_SAFE2 (node->executors, e, next, node_next) {
                if (e->confirmed)
                        continue;
                if ((e->state == EXECUTOR_PLACED || e->state == EXECUTOR_STARTING) && !rebooted) {
                        /* Never begun there. After a reboot nobody knows: the order may have arrived before,
                         * and an attempt does not run twice. */
                        e->confirmed = true;
                        (void)orders_start_later(m, e);
                } else
                        lifecycle_vanished(m, e);
        }
        liveness_watch(m, node);
        record_node(m, node);
        r = placement_node_changed(m, node);
        if (r < 0)
                return r;
        api_node_changed(m, node);
        if (node_may_log(node, now_boot()))
                log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = node->name },
                         "Node %s registered (%s, %u CPUs, %zu units, %zu endings%s)", node->name,
                         was == NODE_READY || was == NODE_SUSPECT ? "back" : "new", node->inventory.cpus,
                         g->n_units, g->n_exits, rebooted ? ", new boot" : "");
        feeding_node_gone(m, node, true);
        requeue_registered(m, node);
        stuck_registered(m, node);
        conditions_registered(m, node, g->conditions, g->n_conditions);
        hosts_registered(m, node);
        limits_registered(m, node);
        suspension_registered(m, node);
        epochs_registered(m, node);
        ownhost_registered(m, node);
        drop_ended(m, node, g);
        /* What waited for this node's word may go on. */
        DL_FOREACH2 (node->executors, e, node_next)
                if (!e->node_next || e->node_next->job != e->job) {
                        feeding_start(m, e->job);
                        feeding_run(m, e->job);
                }
        manager_schedule(m);
        return 0;
}
