/* SPDX-License-Identifier: Apache-2.0 */
/* What providers say. Invariants: an answer that is not wholly understood is none; a `list` that is not
 * complete changes nothing; of a host that is heard of, the provider's word that it is gone is not taken. */
#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/names.h"
#include "lib/base/utf8.h"
#include "masterd/core/manager.h"
#include "masterd/providers/providers-parts.h"

#define RETRY_USEC (10 * USEC_PER_SEC) /* doubled each time */
#define RETRY_MAX_USEC (300 * USEC_PER_SEC)
#define AGAIN_USEC (120 * USEC_PER_SEC) /* a `down` that was said to have worked, of what is still there */
#define LATER_USEC (60 * USEC_PER_SEC)
#define CONFIG_USEC (1800 * USEC_PER_SEC)

#define STALE_USEC (300 * USEC_PER_SEC) /* the last complete list says nothing any more */

/* Exit statuses, of sysexits.h. */
enum {
        STATUS_UNAVAILABLE = 69,
        STATUS_LATER = 75,
        STATUS_CONFIG = 78,
};

#define ID_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@/+-"

static bool id_valid(const char *s) {
        size_t n = strlen(s);

        return n > 0 && n <= INSTANCE_ID_MAX && isalnum((unsigned char)*s) && strspn(s, ID_CHARACTERS) == n;
}

static bool token_valid(const char *s) {
        return strlen(s) == TOKEN_MAX - 1 && s[8] == '-' && strspn(s, "0123456789abcdef") == 8 &&
               strspn(s + 9, "0123456789abcdef") == 16;
}

/* A member that is a text; "" where it is missing; NULL: it is something else. */
static const char *text_of(const json_t *o, const char *name) {
        const json_t *x = json_object_get(o, name);

        return !x || json_is_null(x) ? "" : json_string_value(x);
}

/* Of a verb that did not end well. */
static void say_failed(char *buf, size_t size, const char *verb, int32_t status, const char *why) {
        if (status > 0)
                snprintf(buf, size, "`%s` failed with exit status %d", verb, status);
        else
                snprintf(buf, size, "`%s` gave no answer: %.64s", verb, why);
}

/* ---- up ---- */

static uint64_t back_off(struct instance *i) {
        uint64_t usec = MIN(RETRY_USEC << MIN(i->tries, 6u), RETRY_MAX_USEC);

        i->tries++;
        return now_real() + usec;
}

/* A host that was a node before and is woken, not made: of a provider that has hosts switched off, and nobody
 * else's. One that is heard of, and was not put to sleep by a provider, was not woken by this one. */
static void take_node(struct instance *i, const char *name) {
        const struct provider *p = i->provider;
        struct manager *m = p->manager;
        struct node *node = *name ? nodes_get(&m->nodes, name) : NULL;

        if (!node || strcmp(i->node, name) == 0 || !p->conf || !p->conf->power_off ||
            i->state > INSTANCE_STARTING || node->n_executors > 0 ||
            (node->link && !node->holds[HOLD_PROVIDER].set) || instance_of_node(m, name))
                return;
        instance_set_node(i, name);
        i->woken = true;
        instance_put(i);
        if (node->state == NODE_READY) /* it was quicker than the provider */
                providers_node_registered(m, node);
}

/* {"id":..., "node":...}; false: it is something else. */
static bool take_id(struct instance *i, const char *output) {
        json_t *o = json_loads(output, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, NULL);
        const char *id = text_of(o, "id"), *node = text_of(o, "node");
        bool good = o && json_is_object(o) && id && id_valid(id) && node && (!*node || node_name_valid(node));

        if (good) {
                snprintf(i->id, sizeof(i->id), "%s", id);
                take_node(i, node);
        }
        json_decref(o);
        return good;
}

static void up_refused(struct instance *i, int32_t status) {
        struct provider *p = i->provider;
        uint32_t shape = instance_shape(i);
        char why[PROVISION_WHY_MAX];

        snprintf(why, sizeof(why), "%s",
                 status == STATUS_UNAVAILABLE ? "there are none of this shape to be had"
                 : status == STATUS_LATER     ? "it asks to be asked later"
                                              : "it is not set up rightly; its journal says more");
        if (status == STATUS_CONFIG)
                log_error("Provider %s is not set up rightly (exit status 78 of its `up`): journalctl -u "
                          "'primus-provider@%s.*'",
                          p->name, p->name);
        if (shape < PROVISION_SHAPES_MAX && status == STATUS_UNAVAILABLE)
                provision_unavailable(p->trouble + shape, why, now_real());
        else if (shape < PROVISION_SHAPES_MAX)
                provision_later(p->trouble + shape, status == STATUS_LATER ? LATER_USEC : CONFIG_USEC, why,
                                now_real());
        instance_forget(i, why);
}

static void take_up(struct instance *i, int32_t status, const char *output, const char *why) {
        if (i->state == INSTANCE_STOPPING)
                return;
        if (status == 0 && take_id(i, output)) {
                if (i->state == INSTANCE_WANTED)
                        (void)instance_go(i, INSTANCE_ACCEPTED, "");
                else
                        instance_put(i);
                i->provider->list_next = MIN(i->provider->list_next, now_real() + LIST_EVERY_USEC);
                return;
        }
        if (i->state != INSTANCE_WANTED) /* its host has come, whatever is said */
                return;
        if (status == STATUS_UNAVAILABLE || status == STATUS_LATER || status == STATUS_CONFIG) {
                up_refused(i, status);
                return;
        }
        /* It may have made one all the same: the same token again, until its time is over. */
        i->retry_real = back_off(i);
        if (status == 0)
                snprintf(i->reason, sizeof(i->reason), "`up` printed no {\"id\": ...} that could be taken");
        else
                say_failed(i->reason, sizeof(i->reason), "up", status, why);
        log_warning("Provider %s, host %s: %s", i->provider->name, i->node, i->reason);
        instance_put(i);
}

/* ---- down ---- */

static void take_down(struct instance *i, int32_t status, const char *why) {
        if (status == 0) {
                i->retry_real = now_real() + AGAIN_USEC;
                i->provider->list_next = now_real();
                return;
        }
        i->retry_real = back_off(i);
        say_failed(i->reason, sizeof(i->reason), "down", status, why);
        log_warning("Provider %s, host %s: %s; it is asked again", i->provider->name, i->node, i->reason);
        instance_put(i);
}

/* ---- list ---- */

struct listed {
        char id[INSTANCE_ID_MAX + 1], token[TOKEN_MAX], node[65], shape[SECTION_NAME_MAX + 1];
        enum instance_seen seen;
};

struct listing {
        struct listed *items;
        size_t n;
};

static const char *take_line(struct listing *l, const char *line, size_t size) {
        _cleanup_free_ char *copy = strndup(line, size);
        const char *id, *token, *node, *state, *shape, *wrong = NULL;
        struct listed *x;
        json_t *o = copy ? json_loads(copy, JSON_REJECT_DUPLICATES, NULL) : NULL;

        id = text_of(o, "id");
        token = text_of(o, "token");
        node = text_of(o, "node");
        state = text_of(o, "state");
        shape = text_of(o, "shape");
        if (!json_is_object(o))
                wrong = "no JSON object";
        else if (!id || !id_valid(id))
                wrong = "without an id as ids are";
        else if (!token || (*token && !token_valid(token)))
                wrong = "with a token that is none";
        else if (!node || (*node && !node_name_valid(node)))
                wrong = "with a node's name that is none";
        else if (!state || instance_seen_from_string(state) == _SEEN_MAX)
                wrong = "without one of the states that there are";
        else if (!shape || (*shape && !conf_name_valid(shape)))
                wrong = "with a shape that is none";
        else if (l->n >= PROVISION_INSTANCES_MAX)
                wrong = "one too many";
        else {
                x = l->items + l->n++;
                snprintf(x->id, sizeof(x->id), "%s", id);
                snprintf(x->token, sizeof(x->token), "%s", token);
                snprintf(x->node, sizeof(x->node), "%s", node);
                snprintf(x->shape, sizeof(x->shape), "%s", shape);
                x->seen = instance_seen_from_string(state);
        }
        json_decref(o);
        return wrong;
}

/* -EINVAL with a sentence: it is not wholly understood. */
static int read_listing(const char *output, struct listing *l, char why[static PROVISION_WHY_MAX]) {
        size_t line = 0, n = 1;

        for (const char *s = output; *s; s++)
                n += *s == '\n';
        l->items = calloc(MIN(n, (size_t)PROVISION_INSTANCES_MAX), sizeof(*l->items));
        if (!l->items)
                return -ENOMEM;
        for (const char *s = output; *s;) {
                size_t size = strcspn(s, "\n");
                const char *wrong;
                line++;
                wrong = strspn(s, " \t\r") >= size ? NULL : take_line(l, s, size);
                if (wrong) {
                        snprintf(why, PROVISION_WHY_MAX, "line %zu of what `list` printed is %s", line,
                                 wrong);
                        return -EINVAL;
                }
                s += size + (s[size] == '\n');
        }
        return 0;
}

static struct instance *find_listed(struct provider *p, struct instance *by_id, const struct listed *x) {
        struct instance *i;

        HASH_FIND_STR(p->manager->providers->by_token, x->token, i);
        if (!i)
                HASH_FIND(hh_id, by_id, x->id, strlen(x->id), i);
        return i;
}

/* With a token of this cluster's that is in no row: of a store that was restored, or a row that is gone.
 * Nobody could use it, and nobody else will give it back. */
static void adopt_orphan(struct provider *p, const struct listed *x) {
        struct instance *i;

        if (p->n >= PROVISION_INSTANCES_MAX) { /* when others are gone */
                p->foreign++;
                return;
        }
        i = instance_new(p, x->token);
        if (!i) {
                log_oom();
                return;
        }
        log_warning(
                "Provider %s lists %s, which carries a token of this cluster and is in no record: it is given back",
                p->name, x->id);
        snprintf(i->id, sizeof(i->id), "%s", x->id);
        instance_name(i);
        i->made_real = i->since_real = now_real();
        i->state = INSTANCE_STOPPING;
        snprintf(i->reason, sizeof(i->reason), "it was in no record");
        i->listed = true;
        instance_put(i);
        verbs_ask_later(i, VERB_DOWN);
}

/* A host that is a node already and that the provider can wake: from now on it is put to sleep as well. Of
 * one that has hosts switched off alone: another would destroy it. */
static void adopt_node(struct provider *p, const struct listed *x) {
        char token[TOKEN_MAX];
        struct instance *i;

        if (instance_token(p->manager, token) < 0)
                return;
        i = instance_new(p, token);
        if (!i) {
                log_oom();
                return;
        }
        snprintf(i->id, sizeof(i->id), "%s", x->id);
        instance_set_node(i, x->node);
        snprintf(i->shape, sizeof(i->shape), "%s", *x->shape ? x->shape : p->conf->shapes[0]->name);
        i->made_real = i->since_real = i->ready_real = now_real();
        i->state = INSTANCE_READY;
        i->woken = true;
        snprintf(i->reason, sizeof(i->reason), "it was there");
        i->listed = true;
        instance_put(i);
        log_notice("Host %s is provider %s's from now on: it is put to sleep and woken by demand", x->node,
                   p->name);
}

static void take_listed(struct provider *p, struct instance *by_id, const struct listed *x) {
        struct manager *m = p->manager;
        struct instance *i = find_listed(p, by_id, x);
        char cluster[SD_ID128_STRING_MAX];

        if (i && i->provider == p) {
                i->absent = 0;
                i->listed = true;
                i->seen = instance_lives(i) && x->seen > SEEN_STOPPING ? SEEN_RUNNING : x->seen;
                if (x->seen == SEEN_STOPPING && i->state == INSTANCE_READY && !i->held &&
                    instance_go(i, INSTANCE_LEAVES, "its provider takes it back") >= 0)
                        (void)instance_empty(i, 0, HOLD_THEN_NOTHING, "its provider takes it back");
                if (!*i->id) {
                        snprintf(i->id, sizeof(i->id), "%s", x->id);
                        instance_put(i);
                }
                take_node(i, x->node);
        } else if (!i && *x->token && strncmp(x->token, sd_id128_to_string(m->cluster, cluster), 8) == 0 &&
                   x->seen <= SEEN_RUNNING)
                adopt_orphan(p, x);
        else if (!i && !*x->token && *x->node && x->seen == SEEN_RUNNING && nodes_get(&m->nodes, x->node) &&
                 !instance_of_node(m, x->node) && p->conf && p->conf->power_off && !p->held)
                adopt_node(p, x);
        else
                p->foreign++;
}

static void take_listing(struct provider *p, const struct listing *l, uint64_t begun) {
        struct instance *i, *by_id = NULL;

        p->list_error[0] = 0;
        p->listed_real = now_real();
        p->foreign = 0;
        DL_FOREACH (p->instances, i) {
                /* It could not be in it, or not yet be out of it. */
                i->listed =
                        i->made_real >= begun || (i->state == INSTANCE_STOPPING && i->since_real >= begun);
                if (*i->id)
                        HASH_ADD_KEYPTR(hh_id, by_id, i->id, strlen(i->id), i);
        }
        for (size_t k = 0; k < l->n; k++)
                take_listed(p, by_id, l->items + k);
        HASH_CLEAR(hh_id, by_id);
        DL_FOREACH (p->instances, i)
                if (!i->listed && !instance_lives(i)) {
                        i->seen = SEEN_ABSENT;
                        i->absent++;
                }
}

static void take_list(struct provider *p, uint64_t begun, int32_t status, const char *output,
                      const char *why) {
        struct listing l = {};
        struct instance *i;

        if (status != 0)
                say_failed(p->list_error, sizeof(p->list_error), "list", status, why);
        else if (read_listing(output, &l, p->list_error) >= 0)
                take_listing(p, &l, begun);
        free(l.items);
        if (!*p->list_error)
                return;
        log_warning("Provider %s: %s; nothing follows from it", p->name, p->list_error);
        if (usec_sub(now_real(), p->listed_real) > STALE_USEC) /* it may be this host that is cut off */
                DL_FOREACH (p->instances, i) {
                        i->seen = SEEN_NOT_ASKED;
                        i->absent = 0;
                }
}

void answers_take(struct request *r, const char *why) {
        struct provider *p = r->provider;
        struct instance *i = r->instance;
        const enum verb verb = r->verb;
        const int32_t status = r->answered ? r->status : -1;
        const uint64_t begun = r->begun_real;
        _cleanup_free_ char *output = TAKE_PTR(r->output);

        if (!why)
                why = "its unit ended without one";
        verbs_drop(r);
        if (output && !utf8_valid(output, strlen(output)))
                output[0] = 0;
        if (verb == VERB_LIST) {
                bool soon = false;
                take_list(p, begun, status, output ?: "", why);
                DL_FOREACH (p->instances, i)
                        soon |= i->state == INSTANCE_STOPPING || i->absent > 0;
                p->list_next = now_real() + (soon       ? LIST_SOON_USEC
                                             : p->n > 0 ? LIST_EVERY_USEC
                                                        : LIST_SELDOM_USEC);
        } else if (verb == VERB_UP)
                take_up(i, status, output ?: "", why);
        else
                take_down(i, status, why);
}
