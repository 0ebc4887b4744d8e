/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of providers, as units: primus-provider@NAME.VERB.TOKEN.service, whose program comes for its
 * request and brings the answer. Invariants: a verb is asked for when what led to it is on disk; the unit's
 * name says all of it, so that a verb that a former master asked for is waited for, and not run beside
 * itself. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/link/identity.h"
#include "masterd/link/link.h"
#include "masterd/providers/providers-parts.h"

#define RUNNING_MAX 8u /* of a provider */
#define NOBODY "0"     /* in place of a token, of `list` */
/* Behind what its unit is given: systemd's word may be lost. */
#define GIVE_UP_USEC (60 * USEC_PER_SEC)
#define RETRY_AT_MOST_USEC (600 * USEC_PER_SEC) /* beyond that it is a clock that was put back */
/* The host has so long to use its join token behind the time in which it is to be there. */
#define LATE_USEC (60 * USEC_PER_SEC)

static const char *const names[_VERB_MAX] = { "list", "up", "down" };

static uint64_t limit_of(const struct request *r) {
        return r->verb == VERB_LIST ? LIST_LIMIT_USEC : r->provider->conf->verb_usec;
}

#define REQUEST_NAME_MAX (PROVIDER_NAME_MAX + 8u + TOKEN_MAX)

static char *name_of(const struct request *r, char buf[static REQUEST_NAME_MAX]) {
        snprintf(buf, REQUEST_NAME_MAX, "%s.%s.%s", r->provider->name, names[r->verb],
                 r->instance ? r->instance->token : NOBODY);
        return buf;
}

static void start_next(struct provider *p);

void verbs_drop(struct request *r) {
        struct provider *p = r->provider;

        if (r->run)
                p->running--;
        unit_run_free(r->run);
        DL_DELETE(p->requests, r);
        if (r->instance)
                r->instance->request = NULL;
        else
                p->list = NULL;
        free(r->output);
        free(r);
}

static void on_ended(void *userdata, const char *why) {
        struct request *r = userdata;
        struct provider *p = r->provider;
        struct manager *m = p->manager;

        answers_take(r, why); /* drops it */
        start_next(p);
        providers_poke(m);
}

static int start_unit(struct request *r) {
        struct provider *p = r->provider;
        char name[REQUEST_NAME_MAX], unit[REQUEST_NAME_MAX + 32];
        int k;

        snprintf(unit, sizeof(unit), "primus-provider@%s.service", name_of(r, name));
        r->begun_real = now_real();
        k = unit_run_start(p->manager, unit, limit_of(r) + GIVE_UP_USEC, on_ended, r, &r->run);
        p->running += k >= 0;
        return k;
}

static void start_next(struct provider *p) {
        struct request *r, *next;

        DL_FOREACH_SAFE (p->requests, r, next) {
                if (p->running >= RUNNING_MAX || !p->conf || !p->manager->providers->serving)
                        return;
                if (r->run)
                        continue;
                if (start_unit(r) < 0)
                        answers_take(r, "its unit cannot be started");
        }
}

void verbs_ask(struct provider *p, enum verb verb, struct instance *i) {
        struct request *r;

        if (!p->conf || !p->manager->providers->serving || (i ? i->request != NULL : p->list != NULL))
                return;
        r = calloc(1, sizeof(*r));
        if (!r) {
                log_oom(); /* asked for again when it is due */
                return;
        }
        *r = (struct request){ .provider = p, .instance = i, .verb = verb };
        if (i)
                i->request = r;
        else
                p->list = r;
        DL_APPEND(p->requests, r);
        start_next(p);
}

struct later {
        enum verb verb;
        char token[TOKEN_MAX];
};

static void run_later(struct manager *m, void *data) {
        struct later *l = data;
        struct instance *i;

        HASH_FIND_STR(m->providers->by_token, l->token, i);
        if (i && (l->verb == VERB_UP) == (i->state == INSTANCE_WANTED))
                verbs_ask(i->provider, l->verb, i);
        free(l);
}

void verbs_ask_later(struct instance *i, enum verb verb) {
        struct later *l = malloc(sizeof(*l));

        if (!l) {
                log_oom();
                return;
        }
        l->verb = verb;
        memcpy(l->token, i->token, sizeof(l->token));
        (void)manager_effect(i->provider->manager, run_later, l);
}

uint64_t verbs_due(struct manager *m, uint64_t now) {
        uint64_t next = UINT64_MAX;
        struct instance *i;

        for (struct provider *p = m->providers->all; p; p = p->next) {
                if (!p->conf)
                        continue;
                if (p->list_next > now + LIST_SELDOM_USEC) /* the clock was put back */
                        p->list_next = now;
                start_next(p); /* those that waited while it had no settings */
                if (p->list_next <= now)
                        verbs_ask(p, VERB_LIST, NULL);
                else
                        next = MIN(next, p->list_next);
                DL_FOREACH (p->instances, i) {
                        if (i->request || (i->state != INSTANCE_WANTED && i->state != INSTANCE_STOPPING))
                                continue;
                        if (i->retry_real <= now || i->retry_real > now + RETRY_AT_MOST_USEC)
                                verbs_ask_later(i, i->state == INSTANCE_WANTED ? VERB_UP : VERB_DOWN);
                        else
                                next = MIN(next, i->retry_real);
                }
        }
        return next;
}

/* ---- what the unit's program asks and says ---- */

static struct request *find_request(struct manager *m, const char *name) {
        char buf[REQUEST_NAME_MAX];
        struct request *r;

        for (struct provider *p = m->providers->all; p; p = p->next)
                DL_FOREACH (p->requests, r)
                        if (r->run && strcmp(name_of(r, buf), name) == 0)
                                return r;
        return NULL;
}

#define MASTER_MAX (HOST_NAME_MAX * 4u + 8u) /* a name of the DNS, and a port */

/* What the new host is told: where its master is, who it is, and the proof. */
static int join_text(struct request *r, char *buf, size_t size) {
        struct provider *p = r->provider;
        char token[TOKEN_TEXT_MAX], host[MASTER_MAX + 1] = "";
        const struct token_terms terms = { .uses = 1,
                                           .lifetime_usec = p->conf->policy.start_usec + LATE_USEC,
                                           .from = "",
                                           .name = r->instance->node };
        int k;

        if (!p->conf->master || !*p->conf->master) {
                if (gethostname(host, sizeof(host) - 1) < 0)
                        return -errno;
        } else
                snprintf(host, sizeof(host), "%s", p->conf->master);
        k = identity_token_new(p->manager, &terms, 0, token);
        if (k >= 0 && strchr(host, ':'))
                snprintf(buf, size, "%s %s %s", host, r->instance->node, token);
        else if (k >= 0)
                snprintf(buf, size, "%s:%u %s %s", host, link_port(p->manager), r->instance->node, token);
        explicit_bzero(token, sizeof(token));
        return k;
}

static json_t *shape_labels(const struct provider_conf *c, uint32_t shape) {
        json_t *labels = json_array();

        for (char **l = c->shapes[shape]->labels; l && *l; l++)
                (void)json_array_append_new(labels, json_string(*l));
        return labels;
}

static int up_request(struct request *r, json_t **ret) {
        const struct instance *i = r->instance;
        const struct provider_conf *c = r->provider->conf;
        uint32_t shape = instance_shape(i);
        char join[MASTER_MAX + 128 + TOKEN_TEXT_MAX];
        int k = shape < c->n_shapes ? join_text(r, join, sizeof(join)) : -ENOENT;

        if (k < 0)
                return k;
        *ret = json_pack("{s:s, s:s, s:s, s:s, s:o, s:I}", "token", i->token, "node", i->node, "shape",
                         i->shape, "join", join, "labels", shape_labels(c, shape), "deadline",
                         (json_int_t)((i->made_real + c->policy.start_usec) / USEC_PER_SEC));
        explicit_bzero(join, sizeof(join));
        return *ret ? 0 : -ENOMEM;
}

int providers_take(struct manager *m, const char *request, char **ret_json, uint64_t *ret_usec) {
        _cleanup_(json_decrefp) json_t *o = NULL;
        struct request *r = find_request(m, request);
        char cluster[SD_ID128_STRING_MAX];
        int k = 0;

        if (!r || !r->provider->conf)
                return -ENOENT;
        if (r->verb == VERB_UP)
                k = up_request(r, &o);
        else if (r->verb == VERB_DOWN)
                o = json_pack("{s:s, s:s, s:s}", "token", r->instance->token, "id", r->instance->id, "node",
                              r->instance->node);
        else
                o = json_object();
        if (k < 0)
                return k;
        if (!o || json_object_set_new(o, "cluster", json_string(sd_id128_to_string(m->cluster, cluster))) < 0)
                return -ENOMEM;
        *ret_json = json_dumps(o, JSON_COMPACT);
        *ret_usec = limit_of(r);
        return *ret_json ? 0 : -ENOMEM;
}

int providers_finish(struct manager *m, const char *request, int32_t status, const char *output) {
        struct request *r = find_request(m, request);
        char *copy;

        if (!r)
                return -ENOENT;
        copy = strndup(output, PROVIDERS_OUTPUT_MAX);
        if (!copy)
                return -ENOMEM;
        free(r->output);
        r->output = copy;
        r->answered = true;
        r->status = status;
        return 0;
}
