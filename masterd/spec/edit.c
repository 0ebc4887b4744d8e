/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to a configuration: made in its JSON, which is then read and checked like any other. Invariant:
 * what may not change while a job runs is not in the table. */
#include "masterd/spec/edit.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "masterd/spec/env-text.h"
#include "masterd/spec/schema.h"

enum felt {
        FELT_NOW,    /* by the scheduler, or by what happens next */
        FELT_NEXT,   /* by attempts that begin from now on */
        FELT_LIMITS, /* by units that run, too */
};

/* What may change; with all that is below it. */
static const struct {
        const char *key;
        enum felt felt;
} of_job[] = {
        { "queue", FELT_NOW },
        { "priority", FELT_NOW },
        { "preemptible", FELT_NOW },
        { "requeue", FELT_NOW },
        { "waitForHosts", FELT_NOW },
        { "startWithin", FELT_NOW },
        { "visible", FELT_NOW },
        { "signal", FELT_NOW },
        { "timeLimit", FELT_NOW },
        { "maxAppAttempts", FELT_NOW },
        { "failureWindow", FELT_NOW },
        { "backoff", FELT_NOW },
        { "stopGrace", FELT_NOW },
        { "rendezvous", FELT_NOW },
        { "checkpoints", FELT_NOW },
        { "exitCodes", FELT_NOW },
        { "maxGlobalRoleFailureTimes", FELT_NOW },
        { "restartScope", FELT_NOW },
        { "health", FELT_NOW },
        { "env", FELT_NEXT },
        { "nodes", FELT_NEXT },
        { "topology", FELT_NEXT },
}, of_role[] = {
        { "num", FELT_NOW },
        { "minNum", FELT_NOW },
        { "vcores", FELT_LIMITS },
        { "memoryMb", FELT_LIMITS },
        { "memoryHighMb", FELT_LIMITS },
        { "cpuWeight", FELT_LIMITS },
        { "tasksMax", FELT_LIMITS },
        { "io", FELT_NEXT },
        { "openFiles", FELT_NEXT },
        { "lockedMemoryMb", FELT_NEXT },
        { "delegate", FELT_NEXT },
        { "successPercent", FELT_NOW },
        { "failPercent", FELT_NOW },
        { "failover", FELT_NOW },
        { "exitCodes", FELT_NOW },
        { "restartScope", FELT_NOW },
        { "maxGlobalRoleFailureTimes", FELT_NOW },
        { "health", FELT_NOW },
        { "command", FELT_NEXT },
        { "argv", FELT_NEXT },
        { "actors", FELT_NEXT },
        { "env", FELT_NEXT },
        { "nodes", FELT_NEXT },
        { "timeLimit", FELT_NEXT },
        { "constraints", FELT_NEXT },
        { "prefer", FELT_NEXT },
        { "scheduleStrategy", FELT_NEXT },
        { "affinity", FELT_NEXT },
        { "antiAffinity", FELT_NEXT },
        { "ready", FELT_NEXT },
        { "watchdog", FELT_NEXT },
};

static void json_unref_p(json_t **v) {
        json_decref(*v);
}

struct editor {
        json_t *root;
        const struct schema *role; /* of one role */
        char *error;               /* SPEC_EDIT_TEXT_MAX */
        bool anew;                 /* it is for another job */
        struct edit_effects effects;
};

static int refuse_edit(struct editor *x, const char *format, ...) _printf_(2, 3);
static int refuse_edit(struct editor *x, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        vsnprintf(x->error, SPEC_EDIT_TEXT_MAX, format, ap);
        va_end(ap);
        return -EINVAL;
}

static json_t *find_role(const struct editor *x, const char *name, size_t length, size_t *ret_index) {
        json_t *roles = json_object_get(x->root, "role"), *role;
        size_t i;

        json_array_foreach (roles, i, role) {
                const char *text = json_string_value(json_object_get(role, "roleName"));
                if (text && strlen(text) == length && strncmp(text, name, length) == 0) {
                        if (ret_index)
                                *ret_index = i;
                        return role;
                }
        }
        return NULL;
}

static int find_felt(const char *key, bool role, enum felt *ret) {
        for (size_t i = 0; !role && i < ELEMENTSOF(of_job); i++)
                if (strcmp(of_job[i].key, key) == 0) {
                        *ret = of_job[i].felt;
                        return 0;
                }
        for (size_t i = 0; role && i < ELEMENTSOF(of_role); i++)
                if (strcmp(of_role[i].key, key) == 0) {
                        *ret = of_role[i].felt;
                        return 0;
                }
        return -ENOENT;
}

/* The text as JSON. NULL: it is no JSON, though it begins like it. */
static json_t *value_of(const char *text) {
        if (*text == '[' || *text == '{' || *text == '"')
                return json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
        return json_string(text);
}

/* Keys that exclude this one go. */
static void drop_group(json_t *object, const struct schema *s, const struct key *k) {
        for (size_t i = 0; k->group > 0 && i < s->n; i++)
                if (s->keys[i].group == k->group && &s->keys[i] != k)
                        (void)json_object_del(object, s->keys[i].name);
}

/* What the effective configuration has in the place of a short key. */
static const char *long_of(const struct schema *s, const struct key *k) {
        for (size_t i = 0; i < s->n; i++)
                if (s->keys[i].group == k->group && &s->keys[i] != k && !s->keys[i].unwritten)
                        return s->keys[i].name;
        return "another";
}

/* Walks to the message that holds the last key of the path, making what is missing. *ret_name: that key, or a
 * name of a map. */
static int walk_path(struct editor *x, const char *path, char *copy, json_t **object,
                     const struct schema **schema, const struct key **ret_key, const char **ret_name,
                     bool make) {
        char *p = copy, *dot;

        for (;;) {
                const struct key *k;
                json_t *next;

                dot = strchr(p, '.');
                if (dot)
                        *dot = 0;
                k = schema_find(*schema, p);
                if (!k)
                        return refuse_edit(x, "%s: there is no key %s", path, p);
                if (!dot) {
                        *ret_key = k;
                        *ret_name = k->name;
                        return 0;
                }
                if (k->type != KEY_MAP && k->type != KEY_MESSAGE)
                        return refuse_edit(x, "%s: %s has no keys of its own", path, p);
                next = json_object_get(*object, k->name);
                if (!next) {
                        if (!make)
                                return -ENOENT;
                        drop_group(*object, *schema, k);
                        next = json_object();
                        if (!next || json_object_set_new(*object, k->name, next) < 0)
                                return -ENOMEM;
                }
                if (!json_is_object(next))
                        return refuse_edit(x, "%s: %s has no keys of its own", path, p);
                *object = next;
                p = dot + 1;
                if (k->type == KEY_MAP) {
                        *ret_key = NULL;
                        *ret_name = p;
                        return *p ? 0 : refuse_edit(x, "%s: a name is missing behind the last dot", path);
                }
                *schema = k->message;
        }
}

/* Where the path begins: the job or a role, and the keys behind that. */
static int begin_edit(struct editor *x, const char *path, json_t **object, const struct schema **schema,
                      const char **ret_rest, bool *ret_role) {
        const char *p = path, *dot = strchr(p, '.');
        size_t length = strcspn(p, ".");

        *object = x->root;
        *schema = &job_schema;
        *ret_rest = p;
        *ret_role = false;
        if (dot && length == 4 && strncmp(p, "role", 4) == 0) {
                p = dot + 1;
                length = strcspn(p, ".");
                dot = strchr(p, '.');
        } else if (!dot || !find_role(x, p, length, NULL))
                return 0;
        if (!find_role(x, p, length, NULL))
                return refuse_edit(x, "%s: there is no role %.*s", path, (int)MIN(length, (size_t)64), p);
        if (!dot)
                return refuse_edit(x, "%s: which key of the role?", path);
        *object = find_role(x, p, length, NULL);
        *schema = x->role;
        *ret_rest = dot + 1;
        *ret_role = true;
        return 0;
}

static int set(struct editor *x, const char *path, const char *text) {
        _cleanup_free_ char *copy = NULL;
        _cleanup_(json_unref_p) json_t *value = NULL;
        char key[64];
        const struct schema *schema;
        const struct key *k;
        const char *rest, *name;
        enum felt felt = FELT_NEXT;
        json_t *object;
        bool role;
        int r;

        r = begin_edit(x, path, &object, &schema, &rest, &role);
        if (r < 0)
                return r;
        snprintf(key, sizeof(key), "%.*s", (int)MIN(strcspn(rest, "."), sizeof(key) - 1), rest);
        if (!schema_find(schema, key))
                return refuse_edit(x, "%s: there is neither a role nor a key %s", path, key);
        k = schema_find(schema, key);
        if (k->unwritten)
                return refuse_edit(x, "%s: %s is a key of job files alone; a job that is there has %s", path,
                                   key, long_of(schema, k));
        if (find_felt(k->name, role, &felt) < 0 && !x->anew)
                return refuse_edit(x, "%s cannot be changed while the job exists; submit another one", path);
        copy = strdup(rest);
        if (!copy)
                return -ENOMEM;
        r = walk_path(x, path, copy, &object, &schema, &k, &name, strcmp(text, "null") != 0);
        if (r == -ENOENT)
                return 0; /* nothing to take away */
        if (r < 0)
                return r;
        x->effects.next |= felt == FELT_NEXT;
        x->effects.limits |= felt == FELT_LIMITS;
        if (strcmp(text, "null") == 0) {
                (void)json_object_del(object, name);
                return 0;
        }
        value = k ? value_of(text) : json_string(text);
        if (!value)
                return refuse_edit(x, "%s: this is not valid JSON (and not UTF-8): %.100s", path, text);
        if (k && strcmp(k->name, "env") == 0 && json_is_object(value) &&
            env_texts_of_env(text, strlen(text), value) < 0)
                return -ENOMEM;
        if (k)
                drop_group(object, schema, k);
        return json_object_set(object, name, value) < 0 ? -ENOMEM : 0;
}

static int scale(struct editor *x, const char *name, const char *text) {
        json_t *role = find_role(x, name, strlen(name), NULL);
        json_int_t before, least;
        char *end;
        long long n;

        if (!role)
                return refuse_edit(x, "there is no role %.64s", name);
        errno = 0;
        n = strtoll(text, &end, 10);
        if (errno != 0 || !*text || *end)
                return refuse_edit(x, "%.64s=%.64s: not a number", name, text);
        if (n == 0)
                return refuse_edit(
                        x, "%s: a role has at least one executor; 'primusctl role remove' takes a role away",
                        name);
        if (n < 0 || n > (long long)SPEC_EXECUTORS_MAX)
                return refuse_edit(x, "%s: must be 1 to %u executors, not %lld", name, SPEC_EXECUTORS_MAX, n);
        before = json_integer_value(json_object_get(role, "num"));
        least = json_integer_value(json_object_get(role, "minNum"));
        if (n < least && least < before)
                return refuse_edit(x,
                                   "%s: %lld executors are fewer than its minNum (%" JSON_INTEGER_FORMAT
                                   "); change minNum first",
                                   name, n, least);
        if (json_object_set_new(role, "num", json_integer(n)) < 0 ||
            (least == before && json_object_set_new(role, "minNum", json_integer(n)) < 0))
                return -ENOMEM;
        return 0;
}

/* Where roles start in an order, each of them is in it. */
static json_t *order_of(const struct editor *x) {
        json_t *v = json_object_get(x->root, "scheduler");

        v = json_object_get(json_object_get(v, "schedulePolicy"), "orderPolicy");
        return json_object_get(v, "rolePolicy");
}

static int add_role(struct editor *x, const char *text, char ret_name[static 64]) {
        json_error_t error;
        json_t *role = json_loads(text, JSON_REJECT_DUPLICATES, &error), *order = order_of(x);
        const char *name = json_string_value(json_object_get(role, "roleName"));
        int r = 0;

        if (!role)
                return refuse_edit(x, "%d:%d: %s", error.line, error.column, error.text);
        if (env_texts(text, strlen(text), role) < 0)
                r = -ENOMEM;
        else if (!name || strlen(name) >= 64)
                r = refuse_edit(x, "roleName: the new role needs a name");
        else if (find_role(x, name, strlen(name), NULL))
                r = refuse_edit(x, "the job has a role %s already", name);
        else
                snprintf(ret_name, 64, "%s", name);
        if (r >= 0 && order)
                r = json_array_append_new(
                            order, json_pack("{s:s, s:s}", "roleName", name, "scheduleType", "GANG")) < 0
                            ? -ENOMEM
                            : 0;
        if (r >= 0 && json_array_append(json_object_get(x->root, "role"), role) < 0)
                r = -ENOMEM;
        json_decref(role);
        return r;
}

static int remove_role(struct editor *x, const char *name) {
        json_t *order = order_of(x), *entry;
        size_t at, i;

        if (!find_role(x, name, strlen(name), &at))
                return refuse_edit(x, "there is no role %.64s", name);
        if (json_array_size(json_object_get(x->root, "role")) == 1)
                return refuse_edit(x, "%s is the job's only role; 'primusctl kill' ends a job", name);
        (void)json_array_remove(json_object_get(x->root, "role"), at);
        json_array_foreach (order, i, entry)
                if (strcmp(json_string_value(json_object_get(entry, "roleName")) ?: "", name) == 0) {
                        (void)json_array_remove(order, i);
                        break;
                }
        return 0;
}

/* Sources are numbered, files before topics; so what is added is the last one. */
static int add_source(struct editor *x, const char *text, char ret_name[static 64]) {
        json_error_t error;
        json_t *manager = json_object_get(x->root, "inputManager"), *list, *other;
        _cleanup_(json_unref_p) json_t *source = json_loads(text, JSON_REJECT_DUPLICATES, &error);
        bool topic = json_object_get(source, "topic");
        const char *name = json_string_value(json_object_get(source, topic ? "topic" : "name"));
        json_t *topics = json_object_get(json_object_get(manager, "kafkaConfig"), "topics");
        size_t i;

        if (!source)
                return refuse_edit(x, "%d:%d: %s", error.line, error.column, error.text);
        if (!name || !*name || strlen(name) >= 64)
                return refuse_edit(x, "name: the new source needs a name, of at most 63 characters");
        list = topic || topics ? topics : json_object_get(json_object_get(manager, "fileConfig"), "inputs");
        if (!list)
                return refuse_edit(x, "the job has no %s that %s could be added to",
                                   topic ? "inputManager.kafkaConfig" : "inputManager", name);
        if (!topic && topics)
                return refuse_edit(x, "the job reads topics: only a topic can be added to it");
        json_array_foreach (list, i, other)
                if (strcmp(json_string_value(json_object_get(other, topic ? "topic" : "name")) ?: "", name) ==
                    0)
                        return refuse_edit(x, "the job has a source %s already", name);
        snprintf(ret_name, 64, "%s", name);
        return json_array_append(list, source) < 0 ? -ENOMEM : 0;
}

/* ---- what has changed, in words ---- */

/* The value at a path, or NULL. Roles stand at the same place in both, or are told of as a whole. */
static json_t *value_at(struct editor *x, json_t *root, const char *path) {
        struct editor y = *x;
        _cleanup_free_ char *copy = NULL;
        const struct schema *schema;
        const struct key *k;
        const char *rest, *name;
        json_t *object;
        bool role;

        y.root = root;
        if (begin_edit(&y, path, &object, &schema, &rest, &role) < 0 || !(copy = strdup(rest)) ||
            walk_path(&y, path, copy, &object, &schema, &k, &name, false) < 0)
                return NULL;
        return json_object_get(object, name);
}

static void say_value(FILE *f, json_t *v) {
        _cleanup_free_ char *text =
                v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
        const char *s = json_string_value(v) ?: text;
        size_t n = s ? utf8_fit(s, 60) : 0;

        if (!s)
                fputs("nothing", f);
        else
                fprintf(f, "%.*s%s", (int)n, s, s[n] ? "..." : "");
}

/* Whether the value at the path may be a secret: of env, or of what is handed to a client. What has changed
 * is told to whoever may look at the job, and stands in the journal. */
static bool is_private(struct editor *x, const char *path) {
        _cleanup_free_ char *copy = NULL;
        struct editor y = *x;
        char error[SPEC_EDIT_TEXT_MAX];
        const struct schema *schema;
        const char *rest, *p;
        json_t *object;
        bool role;

        y.error = error;
        if (begin_edit(&y, path, &object, &schema, &rest, &role) < 0 || !(copy = strdup(rest)))
                return true;
        for (char *save = copy; (p = strsep(&save, "."));) {
                const struct key *k = schema_find(schema, p);
                if (!k)
                        return true;
                if (k->type != KEY_MESSAGE)
                        return schema_is_private(k);
                schema = k->message;
        }
        return false;
}

static void say_private(FILE *f, json_t *before, json_t *after) {
        fputs(!before ? "set" : !after ? "taken away" : "changed", f);
}

static int say_change(struct editor *x, json_t *before, json_t *after, const struct spec_edit *edits,
                      size_t n, char *const *names, char **ret) {
        _cleanup_free_ char *text = NULL;
        bool first = true;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                char path[SPEC_EDIT_TEXT_MAX];
                json_t *a, *b;

                if (edits[i].kind != EDIT_SET && edits[i].kind != EDIT_SCALE) {
                        fprintf(f, "%s%s %s %s", first ? "" : ", ",
                                edits[i].kind == EDIT_ADD_SOURCE ? "data source" : "role", names[i],
                                edits[i].kind == EDIT_REMOVE_ROLE ? "removed" : "added");
                        first = false;
                        continue;
                }
                snprintf(path, sizeof(path), edits[i].kind == EDIT_SCALE ? "role.%s.num" : "%s",
                         edits[i].path);
                a = value_at(x, before, path);
                b = value_at(x, after, path);
                if (json_equal(a, b) || (!a && !b))
                        continue;
                fprintf(f, "%s%s: ", first ? "" : ", ", path + (edits[i].kind == EDIT_SCALE ? 5 : 0));
                first = false;
                if (is_private(x, path)) {
                        say_private(f, a, b);
                        continue;
                }
                say_value(f, a);
                fputs(" -> ", f);
                say_value(f, b);
        }
        if (fclose(f) != 0)
                return -ENOMEM;
        x->effects.stays = first;
        *ret = TAKE_PTR(text);
        return 0;
}

/* ---- all together ---- */

static int parse(struct editor *x, struct job_spec **ret) {
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_free_ char *text = json_dumps(x->root, JSON_COMPACT);
        const struct diagnostic *first;
        int r;

        if (!text)
                return -ENOMEM;
        r = spec_load(text, strlen(text), ret, &d);
        if (r != -EBADMSG)
                return r;
        first = diagnostics_first_error(&d);
        return refuse_edit(x, "%s%s%s", first && first->path ? first->path : "",
                           first && *first->path ? ": " : "",
                           first ? first->message : "the configuration would not be valid");
}

int spec_edit(const struct job_spec *before, const struct spec_edit *edits, size_t n, struct job_spec **ret,
              char **ret_text, char **ret_what, struct edit_effects *ret_effects,
              char ret_error[static SPEC_EDIT_TEXT_MAX]) {
        _cleanup_(json_unref_p) json_t *root = NULL, *was = NULL, *now = NULL;
        _cleanup_(spec_free_p) struct job_spec *spec = NULL;
        _cleanup_free_ char *text = NULL, *what = NULL, *old = NULL;
        struct editor x = { .role = schema_find(&job_schema, "role")->message, .error = ret_error };
        char names[SPEC_EDITS_MAX][64] = {};
        char *name_list[SPEC_EDITS_MAX];
        int r = spec_effective(before, &old);

        if (r < 0)
                return r;
        if (n == 0 || n > SPEC_EDITS_MAX)
                return refuse_edit(&x, n ? "at most %u changes at once" : "nothing to change",
                                   SPEC_EDITS_MAX);
        root = json_loads(old, 0, NULL);
        was = json_loads(old, 0, NULL);
        if (!root || !was)
                return -ENOMEM;
        x.root = root;
        for (size_t i = 0; i < n && r >= 0; i++) {
                name_list[i] = names[i];
                switch (edits[i].kind) {
                case EDIT_SET:
                        r = set(&x, edits[i].path, edits[i].value);
                        break;
                case EDIT_SCALE:
                        r = scale(&x, edits[i].path, edits[i].value);
                        break;
                case EDIT_ADD_ROLE:
                        r = add_role(&x, edits[i].value, names[i]);
                        break;
                case EDIT_ADD_SOURCE:
                        r = add_source(&x, edits[i].value, names[i]);
                        break;
                case EDIT_REMOVE_ROLE:
                        snprintf(names[i], sizeof(names[i]), "%s", edits[i].path);
                        r = remove_role(&x, edits[i].path);
                        break;
                }
        }
        if (r >= 0)
                r = parse(&x, &spec);
        if (r >= 0)
                r = spec_effective(spec, &text);
        if (r < 0)
                return r;
        now = json_loads(text, 0, NULL);
        if (!now)
                return -ENOMEM;
        r = say_change(&x, was, now, edits, n, name_list, &what);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(spec);
        *ret_text = TAKE_PTR(text);
        *ret_what = TAKE_PTR(what);
        *ret_effects = x.effects;
        return 0;
}

int spec_edit_anew(const struct job_spec *before, const struct spec_edit *edits, size_t n, char **ret_text,
                   char ret_error[static SPEC_EDIT_TEXT_MAX]) {
        struct editor x = { .role = schema_find(&job_schema, "role")->message,
                            .error = ret_error,
                            .anew = true };
        _cleanup_(json_unref_p) json_t *root = NULL;
        _cleanup_(spec_free_p) struct job_spec *spec = NULL;
        _cleanup_free_ char *old = NULL;

        TRY(spec_effective(before, &old));
        root = x.root = json_loads(old, 0, NULL);
        if (!root)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                TRY(set(&x, edits[i].path, edits[i].value));
        TRY(parse(&x, &spec));
        return spec_effective(spec, ret_text);
}
