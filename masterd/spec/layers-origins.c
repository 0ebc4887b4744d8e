/* SPDX-License-Identifier: Apache-2.0 */
/* Where each value of an effective configuration comes from. Invariant: every value is told once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "masterd/spec/env-text.h"
#include "masterd/spec/layers-parts.h"
#include "masterd/spec/short.h"
#include "masterd/spec/text.h"

json_t *layers_long_form(const char *text, size_t size) {
        static const struct text_bounds bounds = { .size = SPEC_TEXT_MAX,
                                                   .depth = SPEC_DEPTH_MAX,
                                                   .values = 131072 };
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_(json_unref_p) json_t *root = NULL;
        _cleanup_free_ char *clean = NULL;

        if (text_prepare(text, size, &bounds, &d, &clean) < 0)
                return NULL;
        root = json_loadb(clean, size, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(root) || env_texts(clean, size, root) < 0 || short_form(root) < 0)
                return NULL;
        return TAKE_PTR(root);
}

struct walk {
        const json_t *origins;
        int (*told)(const char *path, const char *value, const char *from, void *userdata);
        void *userdata;
};

static int walk_object(const struct walk *w, const struct schema *s, const json_t *o, const json_t *said,
                       const char *from, const char *path);

/* The file that has added the value, under any name of its key; NULL: none. */
static const char *find_origin(const struct walk *w, const struct schema *s, const struct key *k,
                               const char *name, const char *path) {
        for (size_t i = 0; i == 0 || (k && k->group > 0 && i <= s->n); i++) {
                const char *other = i == 0                             ? name
                                    : s->keys[i - 1].group == k->group ? s->keys[i - 1].name
                                                                       : NULL;
                _cleanup_free_ char *place = NULL;
                const char *file;

                if (!other || asprintf(&place, "%s%s%s", path, *path ? "." : "", other) < 0)
                        continue;
                file = json_string_value(json_object_get(w->origins, place));
                if (file)
                        return file;
        }
        return NULL;
}

static int tell_value(const struct walk *w, const char *path, const json_t *v, const char *from) {
        _cleanup_free_ char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));

        return text ? w->told(path, text, from, w->userdata) : -ENOMEM;
}

/* from: what stands above it comes from there; "" where that says nothing of this. */
static int walk_value(const struct walk *w, const struct key *k, const json_t *v, const json_t *said,
                      const char *from, const char *path) {
        if (json_is_object(v) && json_object_size(v) > 0)
                return walk_object(w, layers_schema(k), v, said, from, path);
        if (json_is_array(v) && k && k->type == KEY_LIST && json_array_size(v) > 0) {
                for (size_t i = 0; i < json_array_size(v); i++) {
                        const json_t *element = json_is_array(said) ? json_array_get(said, i) : said;
                        _cleanup_free_ char *place = NULL;

                        if (asprintf(&place, "%s[%zu]", path, i) < 0)
                                return -ENOMEM;
                        TRY(walk_value(w, &(struct key){ .type = KEY_MESSAGE, .message = k->message },
                                       json_array_get(v, i), element, from, place));
                }
                return 0;
        }
        return tell_value(w, path, v, said ? NULL : from);
}

static int walk_object(const struct walk *w, const struct schema *s, const json_t *o, const json_t *said,
                       const char *from, const char *path) {
        const char *name;
        json_t *v;

        json_object_foreach ((json_t *)o, name, v) {
                const struct key *k = s ? schema_find(s, name) : NULL;
                /* What is said in a word says all that follows from it. */
                const json_t *own = json_is_object(said) ? layers_said(s, said, k, name) : said;
                const char *file = own ? NULL : find_origin(w, s, k, name, path);
                _cleanup_free_ char *place = NULL;

                if (asprintf(&place, "%s%s%s", path, *path ? "." : "", name) < 0)
                        return -ENOMEM;
                TRY(walk_value(w, k, v, own, file ? file : from, place));
        }
        return 0;
}

int layers_origins(const struct layers *l, const char *pool, const char *text, size_t size,
                   const struct job_spec *s,
                   int (*told)(const char *path, const char *value, const char *from, void *userdata),
                   void *userdata) {
        _cleanup_(json_unref_p) json_t *said = layers_long_form(text, size), *merged = json_deep_copy(said);
        _cleanup_(json_unref_p) json_t *origins = json_object(), *o = NULL;
        _cleanup_free_ char *effective = NULL;

        if (!said || !merged || !origins)
                return -ENOMEM;
        TRY(layers_apply(l, pool, merged, origins));
        TRY(spec_effective(s, &effective));
        o = json_loads(effective, 0, NULL);
        if (!o)
                return -ENOMEM;
        return walk_object(&(struct walk){ origins, told, userdata }, &job_schema, o, said, "", "");
}
