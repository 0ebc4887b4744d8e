/* SPDX-License-Identifier: Apache-2.0 */
/* What people are told of providers and their hosts, and what they ask for. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/hosts.h"
#include "masterd/providers/deciding.h"

/* ---- looked up ---- */

struct provider *providers_next(struct manager *m, const struct provider *p) {
        return p ? p->next : m->providers->all;
}

struct instance *providers_next_instance(struct provider *p, const struct instance *i) {
        return i ? i->next : p->instances;
}

struct instance *providers_find_instance(struct manager *m, const char *name) {
        struct instance *i;

        HASH_FIND_STR(m->providers->by_token, name, i);
        return i ? i : instance_of_node(m, name);
}

struct instance *providers_of_node(struct manager *m, const struct node *node) {
        return instance_of_node(m, node->name);
}

/* ---- sentences ---- */

char *providers_instance_text(struct instance *i, char *buf, size_t size) {
        const struct provider_conf *c = i->provider->conf;
        const struct node *node = instance_node(i);
        char for_long[FORMAT_DURATION_MAX], limit[FORMAT_DURATION_MAX];
        uint64_t now = now_real();

        switch (i->state) {
        case INSTANCE_WANTED:
        case INSTANCE_STARTING:
                snprintf(buf, size, "%s %s of %s%s%s",
                         i->state == INSTANCE_WANTED ? "asked for since" : "starting",
                         format_duration(usec_sub(now, i->made_real), for_long, sizeof(for_long)),
                         format_duration(c ? c->policy.start_usec : 0, limit, sizeof(limit)),
                         *i->reason ? ": " : "", i->reason);
                break;
        case INSTANCE_JOINED:
                snprintf(buf, size, "has joined, and takes nothing yet");
                break;
        case INSTANCE_READY:
                if (i->held)
                        snprintf(buf, size, "kept: a person holds it");
                else if (node && node->n_executors > 0)
                        snprintf(buf, size, "kept: %u executor%s there", node->n_executors,
                                 node->n_executors == 1 ? " is" : "s are");
                else if (i->wanted)
                        snprintf(buf, size, "kept: a job that waits would be placed there");
                else
                        snprintf(buf, size, "idle for %s of %s",
                                 format_duration(i->idle_since ? usec_sub(now, i->idle_since) : 0, for_long,
                                                 sizeof(for_long)),
                                 format_duration(c ? c->policy.idle_usec : 0, limit, sizeof(limit)));
                break;
        default:
                snprintf(buf, size, "leaving: %s", i->reason);
                break;
        }
        return buf;
}

bool providers_job_text(struct manager *m, const struct job *j, char *buf, size_t size) {
        const struct instance *i, *first = NULL;
        const struct job_word *w;
        char text[PROVISION_WHY_MAX + 96];
        unsigned n = 0;

        for (const struct provider *p = m->providers->all; p; p = p->next)
                DL_FOREACH (p->instances, i)
                        if (i->job == j->number && i->state < INSTANCE_READY) {
                                first = first ? first : i;
                                n++;
                        }
        if (first) {
                (void)providers_instance_text((struct instance *)first, text, sizeof(text));
                snprintf(buf, size, "waits for %s (%s)", first->node, text);
                if (n > 1)
                        snprintf(buf + strlen(buf), size - strlen(buf), " and %u more", n - 1);
                return true;
        }
        HASH_FIND(hh, m->providers->words, &j->number, sizeof(j->number), w);
        if (w)
                snprintf(buf, size, "%s", w->text);
        return w != NULL;
}

/* ---- rows ---- */

static int append_shape(sd_bus_message *reply, const struct provider *p, uint32_t k) {
        const struct provider_shape_conf *s = p->conf->shapes[k];
        const struct provision_trouble *t = p->trouble + k;
        uint64_t now = now_real();
        bool blocked = provision_blocked(t, now);
        uint32_t n = 0;
        struct instance *i;

        DL_FOREACH (p->instances, i)
                n += instance_shape(i) == k;
        return sd_bus_message_append(reply, "(suttuutsts)", s->name, s->cpus, s->memory, s->limits.cost,
                                     s->gpus, n, (uint64_t)s->limits.max, s->gpu_model ? s->gpu_model : "",
                                     blocked ? t->blocked_until : UINT64_C(0), blocked ? t->why : "");
}

int providers_append(sd_bus_message *reply, struct provider *p) {
        const struct provision_conf *c = p->conf ? &p->conf->policy : NULL;

        TRY(sd_bus_message_open_container(reply, 'a', "{sv}"));
        TRY(sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "name", "s", p->name, "held", "b",
                                  (int)p->held, "instances", "u", p->n, "foreign", "u", p->foreign, "listed",
                                  "t", p->listed_real, "error", "s",
                                  c ? p->list_error : "it has no settings, or there is a mistake in them",
                                  "cost", "t", p->cost));
        if (c)
                TRY(sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}", "min", "u", c->min, "max", "u",
                                          c->max, "spare", "u", c->spare, "maxCost", "t", c->cost_max, "idle",
                                          "t", c->idle_usec));
        TRY(reply_open_array(reply, "shapes", "a(suttuutsts)"));
        for (uint32_t k = 0; c && k < p->conf->n_shapes; k++)
                TRY(append_shape(reply, p, k));
        TRY(reply_close_array(reply));
        return sd_bus_message_close_container(reply);
}

int providers_append_instance(sd_bus_message *reply, struct instance *i) {
        char text[PROVISION_WHY_MAX + 96];

        TRY(sd_bus_message_open_container(reply, 'a', "{sv}"));
        TRY(sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}", "node", "s", i->node, "provider", "s",
                                  i->provider->name, "shape", "s", i->shape, "token", "s", i->token, "id",
                                  "s", i->id, "state", "s", instance_state_to_string(i->state)));
        TRY(sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}", "job", "u", i->job, "made", "t",
                                  i->made_real, "since", "t", i->since_real, "held", "b", (int)i->held,
                                  "listed", "s", instance_seen_to_string(i->seen), "text", "s",
                                  providers_instance_text(i, text, sizeof(text))));
        return sd_bus_message_close_container(reply);
}

int providers_append_kept(sd_bus_message *reply, struct instance *i) {
        char text[PROVISION_WHY_MAX + 96];

        return sd_bus_message_append(reply, "{sv}{sv}{sv}", "provider", "s", i->provider->name, "shape", "s",
                                     i->shape, "kept", "s", providers_instance_text(i, text, sizeof(text)));
}

struct plan_reply {
        sd_bus_message *reply;
        int r;
};

static void append_act(void *userdata, struct provider *p, struct instance **instances,
                       const struct provision_action *a, uint64_t now) {
        static const char *const verbs[_PROVISION_VERB_MAX] = { "up", "drain", "keep", "stop", "forget" };
        struct plan_reply *x = userdata;
        bool up = a->verb == PROVISION_UP;

        if (x->r >= 0)
                x->r = sd_bus_message_append(
                        x->reply, "a{sv}", 6, "act", "s", verbs[a->verb], "provider", "s", p->name, "shape",
                        "s", up ? p->conf->shapes[a->shape]->name : instances[a->instance]->shape, "node",
                        "s", up ? "" : instances[a->instance]->node, "job", "u", a->job, "why", "s", a->why);
}

int providers_append_plan(struct manager *m, sd_bus_message *reply) {
        struct plan_reply x = { reply, 0 };
        const struct job_word *w;
        uint64_t next;
        int r = deciding_each(m, append_act, &x, &next);

        r = r < 0 ? r : x.r;
        for (w = m->providers->words; w && r >= 0; w = w->hh.next)
                r = sd_bus_message_append(reply, "a{sv}", 3, "act", "s", "none", "job", "u", w->job, "why",
                                          "s", w->text);
        return r;
}

/* ---- what people ask for ---- */

void providers_hold(struct manager *m, struct provider *p, bool held) {
        p->held = held;
        store_put_provider(m->store, &(struct provider_record){ p->name, p->last, p->held });
        manager_touch(m);
        providers_poke(m);
}

void providers_hold_instance(struct manager *m, struct instance *i, bool held) {
        i->held = held;
        if (held)
                i->leaves = false;
        instance_put(i);
        providers_poke(m);
}

int providers_up(struct manager *m, struct provider *p, const char *shape, uint32_t uid,
                 char why[static PROVIDERS_WHY_MAX]) {
        const struct provision_conf *c = p->conf ? &p->conf->policy : NULL;
        struct provider_tally has;
        uint32_t k = 0;

        if (!c || p->held) {
                snprintf(why, PROVIDERS_WHY_MAX, "Provider %s %s", p->name,
                         c ? "is held" : "has no settings, or there is a mistake in them");
                return -EHOSTDOWN;
        }
        while (k < p->conf->n_shapes && strcmp(p->conf->shapes[k]->name, shape) != 0)
                k++;
        if (k == p->conf->n_shapes) {
                snprintf(why, PROVIDERS_WHY_MAX, "Provider %s has no shape of that name; it has %s%s",
                         p->name, p->conf->shapes[0]->name, p->conf->n_shapes > 1 ? " and others" : "");
                return -ENOENT;
        }
        has = provider_tally(p, k, now_real());
        if (has.of_shape >= c->shapes[k].max) {
                snprintf(why, PROVIDERS_WHY_MAX,
                         "Provider %s has as many of shape %s as may be (Max= of [Shape %s]); raise it, and: "
                         "systemctl reload primus-masterd",
                         p->name, shape, shape);
                return -EBUSY;
        }
        if (has.all >= c->max || (c->cost_max > 0 && has.cost + c->shapes[k].cost > c->cost_max)) {
                snprintf(why, PROVIDERS_WHY_MAX,
                         "Provider %s is at its %s; raise it, and: systemctl reload primus-masterd", p->name,
                         has.all >= c->max ? "Max=" : "MaxCostPerHour=");
                return -EBUSY;
        }
        snprintf(why, PROVIDERS_WHY_MAX, "uid %u asked for it", uid);
        TRY(instance_make(p, k, 0, why));
        providers_poke(m);
        return 0;
}

int providers_down(struct manager *m, struct instance *i, uint32_t uid) {
        char why[PROVISION_WHY_MAX];
        struct node *node = instance_node(i);

        snprintf(why, sizeof(why), "uid %u asked for it", uid);
        if (i->state == INSTANCE_STOPPING)
                return 0;
        i->held = false;
        i->leaves = true;
        if (!node || node->n_executors == 0) {
                instance_give_back(i, why);
                return 0;
        }
        if (i->state == INSTANCE_READY)
                TRY(instance_go(i, INSTANCE_LEAVES, why));
        else
                instance_put(i);
        providers_poke(m);
        return instance_empty(i, uid, HOLD_THEN_NOTHING, why);
}
