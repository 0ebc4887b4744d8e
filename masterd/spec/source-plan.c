/* SPDX-License-Identifier: Apache-2.0 */
/* Sources by their names. Invariant: what is wanted has passed the same rules as a configuration that is
 * submitted with it. */
#include "masterd/spec/source-plan.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "masterd/spec/layers-parts.h"

void source_plan_done(struct source_plan *p) {
        for (size_t i = 0; i < p->n; i++) {
                free(p->wishes[i].name);
                free(p->wishes[i].add);
        }
        free(p->wishes);
        *p = (struct source_plan){};
}

_printf_(2, 3) static int refuse_plan(char *error, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        vsnprintf(error, SPEC_EDIT_TEXT_MAX, format, ap);
        va_end(ap);
        error[utf8_fit(error, SPEC_EDIT_TEXT_MAX - 1)] = 0;
        return -EINVAL;
}

/* "inputs" or "topics" of the configuration, NULL: it has none. */
static json_t *list_of(json_t *root, bool topics) {
        json_t *manager = json_object_get(root, "inputManager");

        return topics ? json_object_get(json_object_get(manager, "kafkaConfig"), "topics")
                      : json_object_get(json_object_get(manager, "fileConfig"), "inputs");
}

static const char *name_of(json_t *source) {
        return json_string_value(json_object_get(source, "topic"))
                       ?: json_string_value(json_object_get(source, "name")) ?: "";
}

static json_t *source_called(json_t *list, const char *name, size_t *ret_n) {
        json_t *source, *found = NULL;
        size_t i;

        json_array_foreach (list, i, source)
                if (strcmp(name_of(source), name) == 0) {
                        found = source;
                        (*ret_n)++;
                }
        return found;
}

/* The list as it is to be, in a configuration that is otherwise that of now. */
static int put_list(json_t *root, bool topics, json_t *wanted, char *error) {
        json_t *now = list_of(root, topics), *source;
        size_t i, n = 0;

        json_array_foreach (wanted, i, source)
                n += (json_object_get(source, "topic") != NULL) == topics;
        if (!now && n > 0)
                return refuse_plan(error, "the job has no %s that a source could be added to",
                                   topics ? "inputManager.kafkaConfig" : "inputManager.fileConfig");
        if (!now)
                return 0;
        if (n == 0)
                return json_object_del(json_object_get(root, "inputManager"),
                                       topics ? "kafkaConfig" : "fileConfig");
        if (json_array_clear(now) < 0)
                return -ENOMEM;
        json_array_foreach (wanted, i, source)
                if ((json_object_get(source, "topic") != NULL) == topics) {
                        _cleanup_(json_unref_p) json_t *copy = json_deep_copy(source);

                        if (!copy || json_array_append(now, copy) < 0)
                                return -ENOMEM;
                }
        return 0;
}

/* What a configuration of these sources would be, with all defaults. */
static int make_wanted(const char *old, json_t *wanted, json_t **ret, char *error) {
        _cleanup_(json_unref_p) json_t *root = json_loads(old, 0, NULL);
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_(spec_free_p) struct job_spec *spec = NULL;
        _cleanup_free_ char *text = NULL, *effective = NULL;
        const struct diagnostic *first;
        int r;

        if (!root)
                return -ENOMEM;
        r = put_list(root, false, wanted, error);
        r = r < 0 ? r : put_list(root, true, wanted, error);
        if (r < 0)
                return r;
        text = json_dumps(root, JSON_COMPACT);
        if (!text)
                return -ENOMEM;
        r = spec_load(text, strlen(text), &spec, &d);
        if (r == -EBADMSG) {
                first = diagnostics_first_error(&d);
                return refuse_plan(error, "%s%s%s", first && first->path ? first->path : "",
                                   first && *first->path ? ": " : "",
                                   first ? first->message : "the configuration would not be valid");
        }
        r = r < 0 ? r : spec_effective(spec, &effective);
        if (r < 0)
                return r;
        *ret = json_loads(effective, 0, NULL);
        return *ret ? 0 : -ENOMEM;
}

/* Where the weight of a source stands. */
static json_t *weight_holder(json_t *source) {
        return json_object_get(source, "topic") ? source : json_object_get(source, "spec");
}

static bool same_but_weight(json_t *a, json_t *b) {
        _cleanup_(json_unref_p) json_t *x = json_deep_copy(a), *y = json_deep_copy(b);

        (void)json_object_del(weight_holder(x), "weight");
        (void)json_object_del(weight_holder(y), "weight");
        return json_equal(x, y);
}

static int add_wish(struct source_plan *p, const struct source_wish *w) {
        struct source_wish *more = reallocarray(p->wishes, p->n + 1, sizeof(*more));

        if (!more || !w->name) {
                p->wishes = more ?: p->wishes;
                free(w->name);
                free(w->add);
                return -ENOMEM;
        }
        p->wishes = more;
        p->wishes[p->n++] = *w;
        return 0;
}

struct planner {
        const struct job_spec *now;
        const bool *removed;
        json_t *old, *wanted; /* configurations */
        bool weighted;        /* the sources of now have weights in their configuration */
        struct source_plan plan;
        char *error;
};

/* The entry to add: with a weight exactly where the others have one. What it is to be follows. */
static char *entry_to_add(const struct planner *p, json_t *source, uint32_t weight) {
        _cleanup_(json_unref_p) json_t *copy = json_deep_copy(source);
        json_t *holder = copy ? weight_holder(copy) : NULL;

        if (!holder)
                return NULL;
        (void)json_object_del(holder, "weight");
        if (p->weighted && json_object_set_new(holder, "weight", json_integer(weight ?: 1)) < 0)
                return NULL;
        return json_dumps(copy, JSON_COMPACT);
}

/* Files come before topics. */
static const char *name_now(const struct job_spec *s, size_t i) {
        return i < s->n_inputs ? s->inputs[i].name : s->topics[i - s->n_inputs].topic;
}

static int plan_one(struct planner *p, json_t *source, bool topics) {
        const char *name = name_of(source);
        size_t there = 0, wanted = 0;
        json_t *old = source_called(list_of(p->old, topics), name, &there);
        struct source_wish w = { .weight = (uint32_t)json_integer_value(
                                         json_object_get(weight_holder(source), "weight")) };

        (void)source_called(list_of(p->wanted, topics), name, &wanted);
        if (wanted > 1 || there > 1)
                return refuse_plan(p->error, "two sources are called %.64s: which is meant cannot be told",
                                   name);
        for (size_t i = 0; i < spec_n_sources(p->now); i++)
                if (strcmp(name_now(p->now, i), name) == 0 && p->removed[i])
                        return refuse_plan(p->error,
                                           "the source %.64s was removed, and that is for ever: give the new "
                                           "one another name",
                                           name);
        if (old && !same_but_weight(old, source))
                return refuse_plan(p->error,
                                   "the source %.64s is there, and is another one than that: what a source "
                                   "is does not change while it is read; give the new one another name",
                                   name);
        w.name = strdup(name);
        if (!old && !(w.add = entry_to_add(p, source, w.weight))) {
                free(w.name);
                return -ENOMEM;
        }
        return add_wish(&p->plan, &w);
}

static int plan_list(struct planner *p, bool topics) {
        json_t *source;
        size_t i;
        int r = 0;

        json_array_foreach (list_of(p->wanted, topics), i, source)
                if ((r = plan_one(p, source, topics)) < 0)
                        break;
        return r;
}

static int plan_removals(struct planner *p) {
        for (size_t i = 0; i < spec_n_sources(p->now); i++) {
                const char *name = name_now(p->now, i);
                size_t n = 0;
                int r;

                if (p->removed[i] || source_called(list_of(p->wanted, i >= p->now->n_inputs), name, &n))
                        continue;
                r = add_wish(&p->plan, &(struct source_wish){ .name = strdup(name), .remove = true });
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_wanted(const char *text, json_t **ret, char *error) {
        _cleanup_(json_unref_p) json_t *list = NULL;
        json_error_t e;
        json_t *source;
        size_t i;

        list = json_loads(text, JSON_REJECT_DUPLICATES, &e);
        if (!list)
                return refuse_plan(error, "%d:%d: %s", e.line, e.column, e.text);
        if (!json_is_array(list) || json_array_size(list) == 0)
                return refuse_plan(error, "an array of sources is expected, of one at least: what ends the "
                                          "job's data is 'data end'");
        json_array_foreach (list, i, source)
                if (!json_is_object(source) || !*name_of(source))
                        return refuse_plan(
                                error, "source %zu of the array: a source is an object, with a name", i + 1);
        *ret = TAKE_PTR(list);
        return 0;
}

int source_plan_make(const struct job_spec *now, const bool *removed, const char *text,
                     struct source_plan *ret, char ret_error[static SPEC_EDIT_TEXT_MAX]) {
        _cleanup_(json_unref_p) json_t *list = NULL, *old = NULL, *wanted = NULL;
        _cleanup_free_ char *effective = NULL;
        struct planner p = { .now = now, .removed = removed, .error = ret_error };
        int r = read_wanted(text, &list, ret_error);

        r = r < 0 ? r : spec_effective(now, &effective);
        r = r < 0 ? r : make_wanted(effective, list, &wanted, ret_error);
        if (r < 0)
                return r;
        old = json_loads(effective, 0, NULL);
        if (!old)
                return -ENOMEM;
        p.old = old;
        p.wanted = wanted;
        p.weighted = now->n_inputs > 0 ? now->inputs[0].weight > 0
                                       : now->n_topics > 0 && now->topics[0].weight > 0;
        r = plan_list(&p, false);
        r = r < 0 ? r : plan_list(&p, true);
        r = r < 0 ? r : plan_removals(&p);
        if (r < 0) {
                source_plan_done(&p.plan);
                return r;
        }
        *ret = p.plan;
        return 0;
}
