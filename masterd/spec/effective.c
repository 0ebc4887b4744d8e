/* SPDX-License-Identifier: Apache-2.0 */
/* A spec back into JSON, along the same tables. Invariant: what is written reads back as an equal spec. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "masterd/spec/schema.h"
#include "masterd/spec/spec.h"

static json_t *write_message(const struct schema *s, void *message);

static void json_unref_p(json_t **v) {
        json_decref(*v);
}

/* Whole seconds as a number, anything finer as "1500000us", no limit as "infinity". */
static json_t *write_duration(uint64_t usec) {
        char text[32];

        if (usec == USEC_INFINITY)
                return json_string("infinity");
        if (usec % USEC_PER_SEC == 0)
                return json_integer((json_int_t)(usec / USEC_PER_SEC));
        snprintf(text, sizeof(text), "%" PRIu64 "us", usec);
        return json_string(text);
}

static json_t *write_time(const struct spec_time *t) {
        char text[TIME_POINT_MAX];

        return json_string(t->now ? "now" : time_point_format(&t->at, text));
}

static json_t *write_texts(char *const *texts, size_t n) {
        _cleanup_(json_unref_p) json_t *array = json_array();

        for (size_t i = 0; i < n; i++)
                if (json_array_append_new(array, json_string(texts[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

static json_t *write_map(char *const *texts, size_t n) {
        _cleanup_(json_unref_p) json_t *object = json_object();

        for (size_t i = 0; i < n; i++) {
                const char *equals = strchr(texts[i], '=');
                _cleanup_free_ char *name = strndup(texts[i], (size_t)(equals - texts[i]));
                if (!name || json_object_set_new(object, name, json_string(equals + 1)) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

static json_t *write_list(const struct key *k, char *items, size_t n) {
        _cleanup_(json_unref_p) json_t *array = json_array();

        for (size_t i = 0; i < n; i++)
                if (json_array_append_new(array, write_message(k->message, items + i * k->item_size)) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

/* Nothing to say: a text that is not set, a list without elements, a message without live keys. */
static bool is_empty(const struct key *k, const void *target, size_t n) {
        switch (k->type) {
        case KEY_TEXT:
        case KEY_JSON:
                return !*(char *const *)target;
        case KEY_TEXTS:
        case KEY_NODES:
        case KEY_MAP:
        case KEY_LIST:
                return n == 0;
        default:
                return false;
        }
}

static json_t *write_value(const struct key *k, void *target, size_t n) {
        switch (k->type) {
        case KEY_BOOL:
                return json_boolean(*(bool *)target);
        case KEY_U32:
                return json_integer(*(uint32_t *)target);
        case KEY_INDEX:
                return json_integer((json_int_t) * (uint32_t *)target - 1);
        case KEY_I32:
                return json_integer(*(int32_t *)target);
        case KEY_MILLI: {
                uint32_t parts = *(uint32_t *)target, unit = (uint32_t)(k->scale ?: 1000);
                return parts % unit == 0 ? json_integer(parts / unit) : json_real((double)parts / unit);
        }
        case KEY_SCALED:
                return json_integer((json_int_t)(*(uint64_t *)target / k->scale));
        case KEY_SIZE:
                return json_integer((json_int_t) * (uint64_t *)target);
        case KEY_DURATION:
                return write_duration(*(uint64_t *)target);
        case KEY_TIME:
                return write_time(target);
        case KEY_ENUM:
                return json_string(k->names[*(uint32_t *)target]);
        case KEY_JSON:
                return json_loads(*(char **)target, 0, NULL);
        case KEY_TEXT:
                return json_string(*(char **)target);
        case KEY_TEXTS:
        case KEY_NODES:
                return write_texts(*(char ***)target, n);
        case KEY_MAP:
                return write_map(*(char ***)target, n);
        case KEY_MESSAGE:
                return write_message(k->message, target);
        case KEY_LIST:
                return write_list(k, *(char **)target, n);
        case KEY_NUMBER:
                break;
        }
        return NULL;
}

static json_t *write_message(const struct schema *s, void *message) {
        _cleanup_(json_unref_p) json_t *object = json_object();

        if (!object)
                return NULL;
        for (size_t i = 0; i < s->n; i++) {
                const struct key *k = &s->keys[i];
                void *target = key_target(k, message);
                size_t n = k->count > 0 ? *(size_t *)((char *)message + k->count) : 0;
                json_t *v;

                if (!target || k->status != STATUS_LIVE || k->unwritten || is_empty(k, target, n))
                        continue;
                if (k->choosing && *(uint32_t *)((char *)message + k->choice_at) != k->choice)
                        continue;
                if (k->written && !k->written(message))
                        continue;
                v = write_value(k, target, n);
                if (!v)
                        return NULL;
                if (k->type == KEY_MESSAGE && !k->choosing && json_object_size(v) == 0)
                        json_decref(v);
                else if (json_object_set_new(object, k->name, v) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

static int write_text(const struct schema *schema, const struct job_spec *s, size_t flags, char **ret) {
        /* The tables' targets are not const; nothing is written through them here. */
        _cleanup_(json_unref_p) json_t *object = write_message(schema, (void *)s);
        char *text;

        if (!object)
                return -ENOMEM;
        text = json_dumps(object, flags | JSON_REAL_PRECISION(12));
        if (!text)
                return -ENOMEM;
        *ret = text;
        return 0;
}

int spec_effective(const struct job_spec *s, char **ret_json) {
        return write_text(&job_schema, s, JSON_INDENT(2), ret_json);
}

static int mask_values(json_t *map) {
        const char *name;
        json_t *value;

        json_object_foreach (map, name, value)
                if (json_object_set_new(map, name, json_string(SPEC_MASK)) < 0)
                        return -ENOMEM;
        return 0;
}

static int mask(json_t *object, const struct schema *s) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < s->n; i++) {
                const struct key *k = s->keys + i;
                json_t *v = json_object_get(object, k->name), *item;
                size_t n;

                if (v && schema_is_private(k))
                        r = mask_values(v);
                else if (v && k->type == KEY_MESSAGE)
                        r = mask(v, k->message);
                else if (v && k->type == KEY_LIST)
                        json_array_foreach (v, n, item)
                                if (r >= 0)
                                        r = mask(item, k->message);
        }
        return r;
}

int spec_masked(const struct job_spec *s, char **ret_json) {
        _cleanup_(json_unref_p) json_t *object = write_message(&job_schema, (void *)s);
        char *text;
        int r = object ? mask(object, &job_schema) : -ENOMEM;

        if (r < 0)
                return r;
        text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
        if (!text)
                return -ENOMEM;
        *ret_json = text;
        return 0;
}

int spec_input_json(const struct job_spec *s, char **ret_json) {
        const struct key keys[] = { *schema_find(&job_schema, "inputManager"),
                                    *schema_find(&job_schema, "input") };

        return write_text(&(const struct schema){ .keys = keys, .n = ELEMENTSOF(keys) }, s, JSON_COMPACT,
                          ret_json);
}

int spec_source_jsons(const struct job_spec *s, size_t first, size_t n, char **ret_jsons) {
        _cleanup_(json_unref_p) json_t *root = NULL, *sources = json_array();
        _cleanup_free_ char *all = NULL;
        json_t *manager, *files, *topics;
        int r = sources ? spec_input_json(s, &all) : -ENOMEM;

        if (r < 0)
                return r;
        root = json_loads(all, 0, NULL);
        manager = json_object_get(root, "inputManager");
        files = json_object_get(json_object_get(manager, "fileConfig"), "inputs");
        topics = json_object_get(json_object_get(manager, "kafkaConfig"), "topics");
        if ((files && json_array_extend(sources, files) < 0) ||
            (topics && json_array_extend(sources, topics) < 0))
                return -ENOMEM;
        (void)json_array_clear(files);
        (void)json_array_clear(topics);
        for (size_t i = 0; i < n; i++) {
                json_t *list = first + i >= s->n_inputs ? topics : files;

                ret_jsons[i] = json_array_append(list, json_array_get(sources, first + i)) >= 0
                                       ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12))
                                       : NULL;
                (void)json_array_clear(list);
                if (!ret_jsons[i]) {
                        while (i-- > 0)
                                free(TAKE_PTR(ret_jsons[i]));
                        return -ENOMEM;
                }
        }
        return 0;
}
