/* SPDX-License-Identifier: Apache-2.0 */
/* Providers as a whole: loaded, started, told what happens. Invariant: one decision a second at the most, and
 * one whenever something it depends on has changed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "masterd/core/host-event.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/hosts.h"
#include "masterd/fleet/labels.h"
#include "masterd/providers/deciding.h"
#include "masterd/sched/demand.h"

#define SOON_USEC (200 * USEC_PER_MSEC) /* what comes together is decided together */
#define PERIOD_USEC USEC_PER_SEC

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata);

static void arm(struct manager *m, uint64_t at_boot) {
        struct providers *ps = m->providers;
        int r;

        if (!ps->serving || (ps->due_boot != 0 && ps->due_boot <= at_boot))
                return;
        ps->due_boot = at_boot;
        r = ps->timer ? sd_event_source_set_time(ps->timer, at_boot)
                      : sd_event_add_time(m->event, &ps->timer, CLOCK_BOOTTIME, at_boot, 50 * USEC_PER_MSEC,
                                          on_timer, m);
        r = r < 0 ? r : sd_event_source_set_enabled(ps->timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_error_errno(r, "Hosts by demand: no timer");
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        struct providers *ps = m->providers;
        uint64_t next, due, now;

        ps->due_boot = 0;
        ps->decided_boot = now_boot();
        if (!ps->all)
                return 0;
        next = deciding_run(m);
        now = now_real();
        due = verbs_due(m, now);
        next = MIN(next, due);
        if (next != UINT64_MAX)
                arm(m, MAX(ps->decided_boot + PERIOD_USEC, now_boot() + usec_sub(next, now)));
        return 0;
}

void providers_poke(struct manager *m) {
        const struct providers *ps = m->providers;

        if (ps && ps->all)
                arm(m, MAX(now_boot() + SOON_USEC, ps->decided_boot + PERIOD_USEC));
}

/* ---- what happens ---- */

void providers_executor_placed(struct manager *m, struct executor *e) {
        struct instance *i = e->node ? instance_of_node(m, e->node->name) : NULL;

        if (!i)
                return;
        i->idle_since = 0;
        i->used = true;
        deciding_promote(i); /* else it could be taken for one on its way, and be stopped as that */
}

void providers_node_removed(struct manager *m, const char *node, uint32_t uid) {
        struct instance *i = instance_of_node(m, node);
        char why[PROVISION_WHY_MAX];

        if (!i || i->state == INSTANCE_STOPPING)
                return;
        snprintf(why, sizeof(why), "its node was removed by uid %u", uid);
        instance_give_back(i, why);
        providers_poke(m);
}

/* What it has is less than was thought: more of it would not do either. */
static void learn(struct instance *i, const struct node *node) {
        const struct inventory *v = &node->inventory;
        uint32_t k = instance_shape(i);
        struct provider_shape_conf *s;

        if (k == UINT32_MAX)
                return;
        s = i->provider->conf->shapes[k];
        if (v->cpus >= s->cpus && v->memory >= s->memory && v->n_gpus >= s->gpus)
                return;
        log_warning(
                "Host %s has %llu CPUs, %llu MiB and %zu GPUs, which is less than shape %s of provider %s says "
                "(%u, %llu, %u); what it has counts until the settings are read again",
                node->name, (unsigned long long)v->cpus, (unsigned long long)(v->memory >> 20), v->n_gpus,
                s->name, i->provider->name, s->cpus, (unsigned long long)(s->memory >> 20), s->gpus);
        s->cpus = (uint32_t)MIN((uint64_t)s->cpus, (uint64_t)v->cpus);
        s->memory = MIN(s->memory, v->memory);
        s->gpus = (uint32_t)MIN((size_t)s->gpus, v->n_gpus);
}

/* What its shape is said to have. */
static void label(struct instance *i, struct node *node) {
        struct manager *m = i->provider->manager;
        uint32_t k = instance_shape(i);
        int r = 0;

        if (k == UINT32_MAX || !i->provider->conf->shapes[k]->labels)
                return;
        for (char **l = i->provider->conf->shapes[k]->labels; *l && r >= 0; l++) {
                const char *equals = strchr(*l, '=');
                char key[LABEL_MAX + 1];
                snprintf(key, sizeof(key), "%.*s", equals ? (int)(equals - *l) : (int)LABEL_MAX, *l);
                if (strings_count(node->set_labels) >= NODE_LABELS_MAX)
                        break;
                r = labels_set(m, node, key, equals ? equals + 1 : "");
        }
        r = r < 0 ? r : labels_apply(m, node);
        if (r < 0)
                log_error_errno(r, "Node %s does not have the labels of its shape", node->name);
}

void providers_node_registered(struct manager *m, struct node *node) {
        struct instance *i = instance_of_node(m, node->name);

        if (!i)
                return;
        if (i->state <= INSTANCE_STARTING) /* later it may say whatever somebody has made of it */
                learn(i, node);
        label(i, node);
        if (i->state == INSTANCE_WANTED) /* its host is quicker than the answer of `up` */
                (void)instance_go(i, INSTANCE_ACCEPTED, "");
        if (i->state == INSTANCE_STARTING) {
                (void)instance_go(i, INSTANCE_REGISTERED, "");
                instance_revoke_tokens(i); /* `up` may have been asked twice, each time with one */
                (void)hosts_release(m, node, HOLD_PROVIDER, "it was woken");
        }
        providers_poke(m);
}

/* ---- settings ---- */

struct provider *providers_find(struct manager *m, const char *name) {
        struct provider *p;

        DL_FOREACH (m->providers->all, p)
                if (strcmp(p->name, name) == 0)
                        return p;
        return NULL;
}

static int by_name(const struct provider *a, const struct provider *b) {
        return strcmp(a->name, b->name);
}

static struct provider *provider_get(struct manager *m, const char *name) {
        struct provider *p = providers_find(m, name);

        if (p)
                return p;
        p = calloc(1, sizeof(*p));
        if (!p)
                return NULL;
        p->manager = m;
        snprintf(p->name, sizeof(p->name), "%s", name);
        DL_INSERT_INORDER(m->providers->all, p, by_name);
        return p;
}

static int take_settings(struct manager *m) {
        struct provider_confs confs;
        struct provider *p;
        size_t n_shapes = 0;
        int r = provider_confs_read(NULL, &confs, NULL);

        if (r < 0)
                return r;
        DL_FOREACH (m->providers->all, p) {
                provider_conf_free(p->conf);
                p->conf = NULL;
                memset(p->trouble, 0, sizeof(p->trouble)); /* they are by the number of the shape */
                p->n_misfits = 0;
                p->list_next = 0;
        }
        for (size_t i = 0; i < confs.n; i++) {
                p = provider_get(m, confs.items[i]->name);
                if (!p) {
                        provider_confs_done(&confs);
                        return -ENOMEM;
                }
                p->conf = confs.items[i];
                confs.items[i] = NULL;
        }
        DL_FOREACH (m->providers->all, p)
                n_shapes += p->conf ? p->conf->n_shapes : 0;
        if (n_shapes > DEMAND_SHAPES_MAX)
                log_warning(
                        "Providers have %zu shapes together: beyond %u, in the order of their names, none is made "
                        "for a job that waits",
                        n_shapes, DEMAND_SHAPES_MAX);
        DL_FOREACH (m->providers->all, p)
                if (!p->conf && p->n > 0)
                        log_warning(
                                "Provider %s has no settings, and %u hosts: they stay as they are until it has",
                                p->name, p->n);
        return 0;
}

void providers_reload(struct manager *m) {
        int r = take_settings(m);

        if (r < 0)
                log_error_errno(r, "The settings of providers cannot be read again");
        providers_poke(m);
}

/* ---- start and end ---- */

static int on_provider(void *userdata, const struct provider_record *r) {
        struct provider *p = provider_name_valid(r->name) ? provider_get(userdata, r->name) : NULL;

        if (!p)
                return provider_name_valid(r->name) ? -ENOMEM : -EBADMSG;
        p->last = r->last;
        p->held = r->held;
        return 0;
}

static int on_instance(void *userdata, const struct instance_record *r) {
        struct provider *p = provider_name_valid(r->provider) ? provider_get(userdata, r->provider) : NULL;
        struct instance *i;

        if (r->state >= _INSTANCE_STATE_MAX || strlen(r->token) != TOKEN_MAX - 1)
                return -EBADMSG;
        i = p ? instance_new(p, r->token) : NULL;
        if (!i)
                return -ENOMEM;
        snprintf(i->shape, sizeof(i->shape), "%s", r->shape);
        instance_set_node(i, r->node);
        snprintf(i->id, sizeof(i->id), "%s", r->id);
        snprintf(i->reason, sizeof(i->reason), "%s", r->reason);
        i->state = (enum instance_state)r->state;
        i->job = r->job;
        i->made_real = r->made_real;
        i->since_real = r->since_real;
        i->ready_real = r->ready_real;
        i->held = r->held;
        i->woken = r->woken;
        i->leaves = r->leaves;
        i->used = true; /* nobody knows any more */
        return 0;
}

int providers_new(struct manager *m) {
        m->providers = calloc(1, sizeof(*m->providers));
        if (m->providers)
                m->providers->manager = m;
        return m->providers ? 0 : -ENOMEM;
}

int providers_load(struct manager *m) {
        int r = store_load_providers(m->store, on_provider, m);

        r = r < 0 ? r : store_load_instances(m->store, on_instance, m);
        return r < 0 ? r : take_settings(m);
}

int providers_start(struct manager *m) {
        m->providers->serving = true;
        providers_poke(m);
        return 0;
}

void providers_stop(struct manager *m) {
        struct providers *ps = m->providers;

        if (!ps)
                return;
        ps->serving = false;
        ps->timer = sd_event_source_disable_unref(ps->timer);
        for (struct provider *p = ps->all; p; p = p->next)
                while (p->requests)
                        verbs_drop(p->requests);
}

void providers_free(struct manager *m) {
        struct providers *ps = m->providers;
        struct provider *p, *next;

        if (!ps)
                return;
        providers_stop(m);
        DL_FOREACH_SAFE (ps->all, p, next) {
                while (p->instances)
                        instance_free(p->instances);
                provider_conf_free(p->conf);
                DL_DELETE(ps->all, p);
                free(p);
        }
        deciding_words_drop(ps);
        free(ps);
        m->providers = NULL;
}
