/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: what a file holds has passed the schema as part of a job; a value that a job gives itself is
 * never touched, so that its own errors are told where it stands, and a forced value that it has otherwise is
 * found by comparing what the job is with what it would be (layers_check()). */
#include "masterd/spec/layers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "masterd/spec/env-text.h"
#include "masterd/spec/layers-parts.h"
#include "masterd/spec/short.h"
#include "masterd/spec/text.h"

#define POOLS_MAX 64u
#define SHOWN_MAX 80 /* bytes of a value in an error */

static const struct text_bounds bounds = { .size = LAYER_TEXT_MAX, .depth = SPEC_DEPTH_MAX, .values = 8192 };

/* job lacks "role"; role is what each role gets. */
struct part {
        json_t *job, *role;
};

struct layer {
        char *name, *text;
        char **pools; /* NULL-ended */
        struct part defaults, forced;
};

struct layers {
        struct layer items[LAYERS_MAX];
        size_t n;
};

struct layers *layers_new(void) {
        return calloc(1, sizeof(struct layers));
}

static void part_done(struct part *p) {
        json_decref(p->job);
        json_decref(p->role);
}

static void layer_done(struct layer *l) {
        free(l->name);
        free(l->text);
        strings_free(l->pools);
        part_done(&l->defaults);
        part_done(&l->forced);
}

struct layers *layers_free(struct layers *l) {
        for (size_t i = 0; l && i < l->n; i++)
                layer_done(l->items + i);
        free(l);
        return NULL;
}

size_t layers_n(const struct layers *l) {
        return l ? l->n : 0;
}

const char *layers_name(const struct layers *l, size_t i) {
        assert(i < l->n);
        return l->items[i].name;
}

const char *layers_text(const struct layers *l, size_t i) {
        assert(i < l->n);
        return l->items[i].text;
}

size_t layers_pools(const struct layers *l, size_t i, const char *const **ret) {
        assert(i < l->n);
        *ret = (const char *const *)l->items[i].pools;
        return strings_count(l->items[i].pools);
}

/* ---- reading a file ---- */

static int complain_of(char **ret_error, const char *format, ...) _printf_(2, 3);
static int complain_of(char **ret_error, const char *format, ...) {
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(ret_error, format, ap);
        va_end(ap);
        return r < 0 ? -ENOMEM : -EBADMSG;
}

/* What each role gets is one object in the file, and one role of a job here. Without it the keys of a role
 * stand beside the others, as in a job of one role. */
static int long_form(const char *name, const char *which, json_t *job, json_t **ret_role, char **ret_error) {
        static const char *const job_only[] = { "name", "queue", "array" };
        static const char *const no_role[] = { "roleName", "role_name", "name" };
        json_t *role = json_object_get(job, "role"), *roles;

        for (size_t i = 0; i < ELEMENTSOF(job_only); i++)
                if (json_object_get(job, job_only[i]))
                        return complain_of(ret_error, "%s: %s.%s: is for each job to say; remove it", name,
                                           which, job_only[i]);
        if (role && !json_is_object(role))
                return complain_of(ret_error,
                                   "%s: %s.role: must be an object, which holds for each role: { ... }", name,
                                   which);
        if (role)
                *ret_role = json_incref(role);
        else {
                if (short_form(job) < 0)
                        return -ENOMEM;
                roles = json_object_get(job, "role");
                *ret_role = roles ? json_incref(json_array_get(roles, 0)) : json_object();
                if (!*ret_role)
                        return -ENOMEM;
                (void)json_object_del(*ret_role, "roleName");
        }
        (void)json_object_del(job, "role");
        for (size_t i = 0; i < ELEMENTSOF(no_role); i++)
                if (json_object_get(*ret_role, no_role[i]))
                        return complain_of(ret_error, "%s: %s.role.%s: is for each job to say; remove it",
                                           name, which, no_role[i]);
        return 0;
}

/* As part of a job that says nothing else. */
static int hold_against_schema(const char *name, const char *which, const struct part *p, char **ret_error) {
        static const char first_role[] = "role[0]";
        _cleanup_(json_unref_p) json_t *job = json_deep_copy(p->job), *role = json_deep_copy(p->role);
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_(spec_free_p) struct job_spec *s = NULL;
        _cleanup_free_ char *text = NULL;
        const struct diagnostic *first;
        const char *path;
        bool of_role;
        int r;

        if (!job || !role || json_object_set_new(role, "roleName", json_string("x")) < 0)
                return -ENOMEM;
        if (!json_object_get(role, "command") && !json_object_get(role, "argv") &&
            !json_object_get(role, "actors") && json_object_set_new(role, "command", json_string("true")) < 0)
                return -ENOMEM;
        if (json_object_set_new(job, "role", json_pack("[O]", role)) < 0)
                return -ENOMEM;
        text = json_dumps(job, JSON_COMPACT | JSON_REAL_PRECISION(12));
        if (!text)
                return -ENOMEM;
        r = spec_parse(text, strlen(text), &s, &d);
        if (r != -EBADMSG)
                return r;
        first = diagnostics_first_error(&d);
        path = first && first->path ? first->path : "";
        of_role = strncmp(path, first_role, strlen(first_role)) == 0;
        return complain_of(ret_error, "%s: %s%s%s%s: %s", name, which, *path ? "." : "",
                           of_role ? "role" : "", of_role ? path + strlen(first_role) : path,
                           first ? first->message : "does not go together");
}

static int read_part(const char *name, const char *which, json_t *root, struct part *ret, char **ret_error) {
        json_t *v = json_object_get(root, which);

        if (v && !json_is_object(v))
                return complain_of(ret_error, "%s: %s: must be an object of a job's keys: { ... }", name,
                                   which);
        ret->job = v ? json_incref(v) : json_object();
        if (!ret->job)
                return -ENOMEM;
        TRY(long_form(name, which, ret->job, &ret->role, ret_error));
        return hold_against_schema(name, which, ret, ret_error);
}

static int read_pools(const char *name, json_t *v, struct layer *l, char **ret_error) {
        size_t n = json_array_size(v);

        if (v && (!json_is_array(v) || n == 0 || n > POOLS_MAX))
                return complain_of(ret_error, "%s: pools: must be a list of 1 to %u names of pools", name,
                                   POOLS_MAX);
        l->pools = calloc(n + 1, sizeof(*l->pools));
        if (!l->pools)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const char *pool = json_string_value(json_array_get(v, i));

                if (!pool || !*pool || strlen(pool) > SPEC_NAME_MAX)
                        return complain_of(ret_error, "%s: pools[%zu]: must be the name of a pool", name, i);
                if (!(l->pools[i] = strdup(pool)))
                        return -ENOMEM;
        }
        return 0;
}

static int parse_text(const char *name, const char *text, size_t size, json_t **ret, char **ret_error) {
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_(json_unref_p) json_t *root = NULL;
        _cleanup_free_ char *clean = NULL;
        json_error_t error = {};
        int r = text_prepare(text, size, &bounds, &d, &clean);

        if (r == -EBADMSG) {
                const struct diagnostic *first = diagnostics_first_error(&d);

                return complain_of(ret_error, "%s:%u:%u: %s", name, first ? first->line : 1,
                                   first ? first->column : 1, first ? first->message : "cannot be read");
        }
        if (r < 0)
                return r;
        root = json_loadb(clean, size, JSON_REJECT_DUPLICATES, &error);
        if (!root)
                return complain_of(ret_error, "%s:%d:%d: %s", name, MAX(error.line, 1), MAX(error.column, 1),
                                   error.text);
        if (!json_is_object(root))
                return complain_of(ret_error, "%s:1:1: must be an object: { ... }", name);
        TRY(env_texts(clean, size, root));
        *ret = TAKE_PTR(root);
        return 0;
}

static int read_layer(struct layer *l, const char *name, const char *text, size_t size, char **ret_error) {
        static const char *const known[] = { "pools", "defaults", "forced" };
        _cleanup_(json_unref_p) json_t *root = NULL;
        const char *key;
        json_t *v;

        TRY(parse_text(name, text, size, &root, ret_error));
        json_object_foreach (root, key, v) {
                size_t i = 0;

                while (i < ELEMENTSOF(known) && strcmp(known[i], key) != 0)
                        i++;
                if (i == ELEMENTSOF(known))
                        return complain_of(ret_error,
                                           "%s: %s: unknown key; there are pools, defaults and forced", name,
                                           key);
        }
        l->name = strdup(name);
        l->text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12)); /* before it is taken apart */
        if (!l->name || !l->text)
                return -ENOMEM;
        TRY(read_pools(name, json_object_get(root, "pools"), l, ret_error));
        TRY(read_part(name, "defaults", root, &l->defaults, ret_error));
        return read_part(name, "forced", root, &l->forced, ret_error);
}

int layers_add(struct layers *l, const char *name, const char *text, size_t size, char **ret_error) {
        struct layer *item = l->items + l->n;
        int r;

        if (l->n == LAYERS_MAX)
                return -E2BIG;
        *item = (struct layer){};
        r = read_layer(item, name, text, size, ret_error);
        if (r < 0) {
                layer_done(item);
                return r;
        }
        l->n++;
        return 0;
}

/* ---- under a job's own ---- */

json_t *layers_said(const struct schema *s, const json_t *o, const struct key *k, const char *name) {
        const char *other;
        json_t *v;

        if (!k) {
                v = json_object_get(o, name);
                return json_is_null(v) ? NULL : v;
        }
        json_object_foreach ((json_t *)o, other, v) {
                const struct key *found = json_is_null(v) ? NULL : schema_find(s, other);

                if (found && (found == k || (k->group > 0 && found->group == k->group)))
                        return v;
        }
        return NULL;
}

struct filling {
        json_t *origins; /* or NULL */
        const char *file;
};

static int fill_object(const struct filling *f, const struct schema *s, json_t *base, json_t *from,
                       const char *path) {
        const char *name;
        json_t *v;

        /* So many keys are no schema's, each under two names: it is refused, and not searched for each of
         * ours. */
        if (s && json_object_size(base) > 2 * s->n)
                return 0;
        json_object_foreach (from, name, v) {
                const struct key *k = s ? schema_find(s, name) : NULL;
                json_t *have = layers_said(s, base, k, name);
                _cleanup_free_ char *place = NULL;

                if (asprintf(&place, "%s%s%s", path, *path ? "." : "", name) < 0)
                        return -ENOMEM;
                if (!have) {
                        if (json_object_set_new(base, name, json_deep_copy(v)) < 0)
                                return -ENOMEM;
                        if (f->origins && json_object_set_new(f->origins, place, json_string(f->file)) < 0)
                                return -ENOMEM;
                } else if (json_is_object(have) && json_is_object(v))
                        TRY(fill_object(f, layers_schema(k), have, v, place));
        }
        return 0;
}

static int fill_job(const struct layer *l, const struct part *p, json_t *root, json_t *origins) {
        const struct filling f = { origins, l->name };
        json_t *roles = json_object_get(root, "role"), *role;
        size_t i;

        TRY(fill_object(&f, &job_schema, root, p->job, ""));
        json_array_foreach (roles, i, role) {
                char place[32];

                snprintf(place, sizeof(place), "role[%zu]", i);
                if (json_is_object(role))
                        TRY(fill_object(&f, &role_schema, role, p->role, place));
        }
        return 0;
}

static bool is_for(const struct layer *l, const char *pool) {
        for (char *const *p = l->pools; *p; p++)
                if (strcmp(*p, pool) == 0)
                        return true;
        return !*l->pools;
}

int layers_apply(const struct layers *l, const char *pool, json_t *root, json_t *origins) {
        const char *own = json_string_value(json_object_get(root, "queue"));

        pool = pool ? pool : own && *own ? own : "default";
        for (size_t i = 0; i < layers_n(l); i++)
                if (is_for(l->items + i, pool))
                        TRY(fill_job(l->items + i, &l->items[i].forced, root, origins));
        for (size_t i = layers_n(l); i > 0; i--)
                if (is_for(l->items + i - 1, pool))
                        TRY(fill_job(l->items + i - 1, &l->items[i - 1].defaults, root, origins));
        return 0;
}

/* ---- over it ---- */

static int put_over(const struct schema *s, json_t *base, json_t *from) {
        const char *name;
        json_t *v;

        json_object_foreach (from, name, v) {
                const struct key *k = s ? schema_find(s, name) : NULL;
                json_t *have = json_object_get(base, k ? k->name : name);

                if (json_is_object(have) && json_is_object(v)) {
                        TRY(put_over(layers_schema(k), have, v));
                        continue;
                }
                /* Whatever says the same in other words goes. */
                for (size_t i = 0; k && k->group > 0 && i < s->n; i++)
                        if (s->keys[i].group == k->group)
                                (void)json_object_del(base, s->keys[i].name);
                if (json_object_set_new(base, k ? k->name : name, json_deep_copy(v)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* The first place where two configurations differ. */
struct difference {
        char *path;
        const json_t *is, *forced;
};

static int find_difference(const json_t *a, const json_t *b, const char *path, struct difference *d);

static int differ_objects(const json_t *a, const json_t *b, const char *path, struct difference *d) {
        const json_t *sides[] = { b, a };
        const char *name;
        json_t *unused;

        for (size_t k = 0; k < ELEMENTSOF(sides); k++)
                json_object_foreach ((json_t *)sides[k], name, unused) {
                        _cleanup_free_ char *place = NULL;

                        if (asprintf(&place, "%s%s%s", path, *path ? "." : "", name) < 0)
                                return -ENOMEM;
                        TRY(find_difference(json_object_get(a, name), json_object_get(b, name), place, d));
                        if (d->path)
                                return 0;
                }
        return 0;
}

static int find_difference(const json_t *a, const json_t *b, const char *path, struct difference *d) {
        if (json_is_object(a) && json_is_object(b))
                return differ_objects(a, b, path, d);
        if (json_is_array(a) && json_is_array(b) && json_array_size(a) == json_array_size(b) &&
            json_is_object(json_array_get(a, 0))) {
                for (size_t i = 0; i < json_array_size(a) && !d->path; i++) {
                        _cleanup_free_ char *place = NULL;

                        if (asprintf(&place, "%s[%zu]", path, i) < 0)
                                return -ENOMEM;
                        TRY(find_difference(json_array_get(a, i), json_array_get(b, i), place, d));
                }
                return 0;
        }
        if (a == b || (a && b && json_equal((json_t *)a, (json_t *)b)))
                return 0;
        d->path = strdup(path);
        d->is = a;
        d->forced = b;
        return d->path ? 0 : -ENOMEM;
}

/* A value for a sentence; allocated, NULL: no memory. */
static char *shown_value(const json_t *v) {
        _cleanup_free_ char *text =
                v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12)) : NULL;
        char *cut = NULL;

        if (!v)
                return strdup("nothing");
        if (text && asprintf(&cut, "%.*s%s", SHOWN_MAX, text, strlen(text) > SHOWN_MAX ? "…" : "") < 0)
                return NULL;
        return cut;
}

/* Whether what a file forces has to do with the place, by whatever name. */
static bool layer_says(const struct layer *l, const char *path) {
        const struct schema *s = &job_schema;
        const json_t *o = l->forced.job;
        const char *of_role = strncmp(path, "role[", 5) == 0 ? strchr(path, '.') : NULL;

        if (of_role) {
                s = &role_schema;
                o = l->forced.role;
                path = of_role + 1;
        }
        while (json_is_object(o)) {
                size_t n = s ? strcspn(path, ".[") : strlen(path); /* a property's name may have dots */
                _cleanup_free_ char *name = strndup(path, n);
                const struct key *k = name && s ? schema_find(s, name) : NULL;

                o = name ? layers_said(s, o, k, name) : NULL;
                s = layers_schema(k);
                path += n;
                if (*path != '.')
                        return o;
                path++;
        }
        return o;
}

static const char *who_says(const struct layers *l, const char *pool, const char *path) {
        for (size_t i = 0; i < l->n; i++)
                if (is_for(l->items + i, pool) && layer_says(l->items + i, path))
                        return l->items[i].name;
        return "the site";
}

static int say_difference(const struct layers *l, const char *pool, const json_t *is, const json_t *forced,
                          char **ret_error) {
        struct difference d = {};
        _cleanup_free_ char *path = NULL, *a = NULL, *b = NULL;
        const char *who;

        TRY(find_difference(is, forced, "", &d));
        path = d.path;
        if (!path)
                return 0;
        a = shown_value(d.is);
        b = shown_value(d.forced);
        if (!a || !b)
                return -ENOMEM;
        who = who_says(l, pool, path);
        /* Values of variables are their owner's; the error may be in a log. */
        if (strstr(path, "env.") || strstr(path, "config."))
                return complain_of(ret_error,
                                   "%s: %s forces another value for all jobs of this pool; leave it out",
                                   path, who);
        return complain_of(ret_error, "%s: %s forces %s for all jobs of this pool, and not %s; leave it out",
                           path, who, b, a);
}

/* What the spec would be with all that is forced for its pool. */
static int force_all(const struct layers *l, const struct job_spec *s, const char *text, char **ret_text,
                     char **ret_error) {
        _cleanup_(json_unref_p) json_t *root = json_loads(text, 0, NULL);
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_(spec_free_p) struct job_spec *forced = NULL;
        _cleanup_free_ char *merged = NULL;
        json_t *role;
        int r;

        if (!root)
                return -ENOMEM;
        /* Of two that force one key, the first by name holds, as in layers_apply(). */
        for (size_t i = l->n; i > 0; i--) {
                const struct layer *item = l->items + i - 1;
                size_t k;

                if (!is_for(item, s->queue))
                        continue;
                TRY(put_over(&job_schema, root, item->forced.job));
                json_array_foreach (json_object_get(root, "role"), k, role)
                        TRY(put_over(&role_schema, role, item->forced.role));
        }
        merged = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12));
        if (!merged)
                return -ENOMEM;
        r = spec_load(merged, strlen(merged), &forced, &d);
        if (r == -EBADMSG) {
                const struct diagnostic *first = diagnostics_first_error(&d);
                const char *path = first && first->path ? first->path : "";

                return complain_of(ret_error, "%s: %s (with what %s forces for all jobs of this pool)", path,
                                   first ? first->message : "does not go together",
                                   who_says(l, s->queue, path));
        }
        return r < 0 ? r : spec_effective(forced, ret_text);
}

static bool any_forced(const struct layers *l, const char *pool) {
        for (size_t i = 0; i < layers_n(l); i++)
                if (is_for(l->items + i, pool) &&
                    json_object_size(l->items[i].forced.job) + json_object_size(l->items[i].forced.role) > 0)
                        return true;
        return false;
}

/* One more reading of the configuration, however many files there are: a large one is not to keep the master.
 */
int layers_check(const struct layers *l, const struct job_spec *s, char **ret_error) {
        _cleanup_(json_unref_p) json_t *is = NULL, *would_be = NULL;
        _cleanup_free_ char *text = NULL, *forced = NULL;

        if (!any_forced(l, s->queue))
                return 0;
        TRY(spec_effective(s, &text));
        TRY(force_all(l, s, text, &forced, ret_error));
        if (strcmp(text, forced) == 0)
                return 0;
        is = json_loads(text, 0, NULL);
        would_be = json_loads(forced, 0, NULL);
        return is && would_be ? say_difference(l, s->queue, is, would_be, ret_error) : -ENOMEM;
}
