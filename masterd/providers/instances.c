/* SPDX-License-Identifier: Apache-2.0 */
/* Instances as rows. Invariant: a state is in the open batch before anything is done for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/fleet/hosts.h"
#include "masterd/fleet/removal.h"
#include "masterd/link/identity.h"
#include "masterd/providers/providers-parts.h"

#define STUCK_USEC (600 * USEC_PER_SEC) /* so long `down` may take */

int instance_token(const struct manager *m, char ret[static TOKEN_MAX]) {
        char cluster[SD_ID128_STRING_MAX];
        uint64_t random;

        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return -EIO;
        snprintf(ret, TOKEN_MAX, "%.8s-%016llx", sd_id128_to_string(m->cluster, cluster),
                 (unsigned long long)random);
        return 0;
}

struct instance *instance_new(struct provider *p, const char *token) {
        struct providers *ps = p->manager->providers;
        struct instance *i = calloc(1, sizeof(*i));

        if (!i)
                return NULL;
        i->provider = p;
        snprintf(i->token, sizeof(i->token), "%s", token);
        DL_APPEND(p->instances, i);
        p->n++;
        HASH_ADD_STR(ps->by_token, token, i);
        return i;
}

void instance_set_node(struct instance *i, const char *name) {
        struct providers *ps = i->provider->manager->providers;

        if (*i->node)
                HASH_DELETE(hh_node, ps->by_node, i);
        snprintf(i->node, sizeof(i->node), "%s", name);
        if (*i->node)
                HASH_ADD(hh_node, ps->by_node, node, strlen(i->node), i);
}

void instance_free(struct instance *i) {
        struct provider *p = i->provider;

        if (i->request)
                verbs_drop(i->request);
        instance_set_node(i, "");
        HASH_DEL(p->manager->providers->by_token, i);
        DL_DELETE(p->instances, i);
        p->n--;
        free(i);
}

uint32_t instance_shape(const struct instance *i) {
        const struct provider_conf *c = i->provider->conf;

        for (uint32_t k = 0; c && k < c->n_shapes; k++)
                if (strcmp(c->shapes[k]->name, i->shape) == 0)
                        return k;
        return UINT32_MAX;
}

struct node *instance_node(const struct instance *i) {
        return nodes_get(&i->provider->manager->nodes, i->node);
}

bool instance_lives(const struct instance *i) {
        const struct node *node = instance_node(i);

        if (i->state == INSTANCE_STOPPING)
                return node && node->link;
        return node && (node->state == NODE_READY || node->state == NODE_SUSPECT);
}

struct instance *instance_of_node(struct manager *m, const char *node) {
        struct instance *i;

        HASH_FIND(hh_node, m->providers->by_node, node, strlen(node), i);
        return i;
}

bool instance_counts(const struct instance *i, uint64_t now) {
        return i->state != INSTANCE_STOPPING || usec_sub(now, i->since_real) >= STUCK_USEC;
}

struct provider_tally provider_tally(const struct provider *p, uint32_t shape, uint64_t now) {
        const struct provision_conf *c = &p->conf->policy;
        struct provider_tally t = {};
        const struct instance *i;

        DL_FOREACH (p->instances, i) {
                uint32_t k = instance_shape(i);
                if (!instance_counts(i, now))
                        continue;
                t.all++;
                t.of_shape += k == shape;
                t.cost += k < c->n_shapes ? c->shapes[k].cost : 0;
        }
        return t;
}

void instance_put(struct instance *i) {
        struct manager *m = i->provider->manager;

        store_put_instance(m->store, &(struct instance_record){ .token = i->token,
                                                                .provider = i->provider->name,
                                                                .shape = i->shape,
                                                                .node = i->node,
                                                                .id = i->id,
                                                                .state = (uint8_t)i->state,
                                                                .job = i->job,
                                                                .made_real = i->made_real,
                                                                .since_real = i->since_real,
                                                                .ready_real = i->ready_real,
                                                                .held = i->held,
                                                                .woken = i->woken,
                                                                .leaves = i->leaves,
                                                                .reason = i->reason });
        manager_touch(m);
}

int instance_go(struct instance *i, enum instance_event event, const char *why) {
        enum instance_state next = instance_next(i->state, event);

        if (next == _INSTANCE_STATE_INVALID)
                return log_error_errno(-EINVAL, "Host %s is %s: event %d does not go with that", i->node,
                                       instance_state_to_string(i->state), (int)event);
        if (i->state != next)
                i->since_real = now_real();
        i->state = next;
        i->tries = 0;
        i->retry_real = 0;
        snprintf(i->reason, sizeof(i->reason), "%s", why);
        if (next == INSTANCE_READY && i->ready_real == 0)
                i->ready_real = i->since_real;
        instance_put(i);
        log_full(LOG_INFO, 0, &(struct log_fields){ .node = i->node }, "Host %s of provider %s is %s%s%s",
                 i->node, i->provider->name, instance_state_to_string(next), *why ? ": " : "", why);
        return 0;
}

void instance_name(struct instance *i) {
        struct provider *p = i->provider;
        struct manager *m = p->manager;
        char name[sizeof(i->node)];

        do
                snprintf(name, sizeof(name), "%s-%llu", p->name, (unsigned long long)++p->last);
        while (nodes_get(&m->nodes, name));
        instance_set_node(i, name);
        store_put_provider(m->store, &(struct provider_record){ p->name, p->last, p->held });
}

int instance_make(struct provider *p, uint32_t shape, uint32_t job, const char *why) {
        struct manager *m = p->manager;
        struct job *j = job > 0 ? manager_job(m, job) : NULL;
        char token[TOKEN_MAX];
        struct instance *i;
        int r = instance_token(m, token);

        i = r < 0 ? NULL : instance_new(p, token);
        if (!i)
                return r < 0 ? r : -ENOMEM;
        instance_name(i);
        snprintf(i->shape, sizeof(i->shape), "%s", p->conf->shapes[shape]->name);
        i->state = INSTANCE_WANTED;
        i->job = job;
        i->made_real = i->since_real = now_real();
        snprintf(i->reason, sizeof(i->reason), "%s", why);
        p->asked[p->n_asked++ % PACE_MAX] = i->made_real;
        instance_put(i);
        log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = i->node },
                 "Provider %s is asked for %s (shape %s): %s", p->name, i->node, i->shape, why);
        if (j)
                record_event(m, j, "host-wanted", NULL,
                             "host %s (provider %s, shape %s) is asked for, for this job", i->node, p->name,
                             i->shape);
        verbs_ask_later(i, VERB_UP);
        return 0;
}

void instance_revoke_tokens(struct instance *i) {
        struct manager *m = i->provider->manager;
        char id[TOKEN_ID_TEXT_MAX];
        struct token *t, *next;

        for (t = identity_tokens(m); t; t = next) {
                next = t->hh.next;
                if (strcmp(t->name, i->node) == 0)
                        (void)identity_token_revoke(m, token_id_format(t, id));
        }
}

int instance_empty(struct instance *i, uint32_t uid, enum hold_then then, const char *why) {
        struct node *node = instance_node(i);

        return !node ? 0
                     : hosts_hold(i->provider->manager, node, HOLD_PROVIDER,
                                  &(struct node_hold){ .drain = true,
                                                       .deadline_real = HOLD_AT_ONCE,
                                                       .grace_usec = UINT64_MAX,
                                                       .uid = uid,
                                                       .then = then },
                                  why);
}

void instance_give_back(struct instance *i, const char *why) {
        struct node *node = instance_node(i);
        bool power = i->provider->conf && i->provider->conf->power_off && node && node->state == NODE_READY;

        if (instance_go(i, INSTANCE_GIVEN_BACK, why) < 0)
                return;
        i->seen = SEEN_NOT_ASKED; /* what was listed before says nothing of this */
        i->absent = 0;
        instance_revoke_tokens(i);
        (void)instance_empty(i, 0, power ? HOLD_THEN_POWEROFF : HOLD_THEN_NOTHING,
                             power ? "powered off until it is wanted" : "it is given back");
        if (i->request)
                verbs_drop(i->request); /* an `up` that still runs; `down` is behind it */
        verbs_ask_later(i, VERB_DOWN);
}

void instance_forget(struct instance *i, const char *why) {
        struct manager *m = i->provider->manager;
        struct node *node = instance_node(i);

        log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = i->node }, "Host %s of provider %s is gone: %s",
                 i->node, i->provider->name, why);
        instance_revoke_tokens(i);
        store_delete_instance(m->store, i->token);
        manager_touch(m);
        if (node && !i->woken) {
                int r = removal_of_node(m, node);
                if (r < 0)
                        log_error_errno(r, "Cannot remove node %s, which is gone", i->node);
        }
        instance_free(i);
}
