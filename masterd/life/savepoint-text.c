/* SPDX-License-Identifier: Apache-2.0 */
/* Text of savepoints. Invariant: every key of the input that is not in the list below has to be the same, so
 * a key that is new is compared until somebody knows better. */
#include "masterd/life/savepoint-text.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define MANIFEST_VERSION 1
#define VALUE_MAX 120 /* of a value that is shown */
#define PATH_MAX_TEXT 256
#define DEPTH_MAX 16

static void json_unref_p(json_t **v) {
        json_decref(*v);
}

bool savepoint_name_valid(const char *s) {
        static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
        size_t n = strlen(s);

        return n >= 1 && n <= SAVEPOINT_NAME_MAX && strspn(s, more) == n && !strchr("._-", *s);
}

static json_t *write_sources(const struct savepoint_header *h) {
        _cleanup_(json_unref_p) json_t *array = json_array();

        for (size_t i = 0; i < h->n_sources; i++)
                if (json_array_append_new(array, json_string(h->sources[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

int savepoint_manifest(const struct savepoint_header *h, const char *data, char **ret) {
        _cleanup_(json_unref_p) json_t *state = json_loads(data, 0, NULL), *manifest = NULL;
        char uid[SD_ID128_STRING_MAX];
        char *text;

        if (!state)
                return -EBADMSG;
        manifest = json_pack("{s:i, s:s, s:I, s:s, s:s, s:I, s:I, s:b, s:o*, s:O}", "version",
                             MANIFEST_VERSION, "name", h->name, "job", (json_int_t)h->job, "jobUid",
                             sd_id128_to_string(h->job_uid, uid), "jobName", h->job_name, "owner",
                             (json_int_t)h->owner, "created", (json_int_t)h->created_real, "complete",
                             h->complete, "sources", write_sources(h), "data", state);
        if (!manifest || !json_object_get(manifest, "sources"))
                return -ENOMEM;
        text = json_dumps(manifest, JSON_COMPACT);
        if (!text)
                return -ENOMEM;
        if (strlen(text) > SAVEPOINT_MANIFEST_MAX) {
                free(text);
                return -E2BIG;
        }
        *ret = text;
        return 0;
}

int savepoint_manifest_data(const void *manifest, size_t size, char **ret) {
        _cleanup_(json_unref_p) json_t *root = NULL;
        const json_t *data;
        char *text;

        if (size > SAVEPOINT_MANIFEST_MAX)
                return -EBADMSG;
        root = json_loadb(manifest, size, JSON_REJECT_DUPLICATES, NULL);
        data = json_object_get(root, "data");
        if (!data || json_integer_value(json_object_get(root, "version")) != MANIFEST_VERSION)
                return -EBADMSG;
        text = json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY);
        if (!text)
                return -ENOMEM;
        *ret = text;
        return 0;
}

/* ---- the same data? ---- */

/* Keys that change how data is delivered, followed or kept, but not what the tasks are; places in lists left
 * out. */
static const char *const free_keys[] = {
        "input.mode",
        "input.ack",
        "input.pipeSize",
        "input.slots",
        "input.slotSize",
        "input.poll",
        "input.maxRecord",
        "inputManager.gracefulShutdown",
        "inputManager.gracefulShutdownTimeWaitSec",
        "inputManager.workPreserve",
        "inputManager.maxTaskAttempts",
        "inputManager.fileConfig.stopPolicy",
        "inputManager.fileConfig.inputs.spec.rewindSkipNum",
        "inputManager.fileConfig.inputs.spec.successMarkerPatterns",
        "inputManager.fileConfig.inputs.spec.s3",
        "inputManager.kafkaConfig.topics.config",
};

static bool is_free(const char *key) {
        for (size_t i = 0; i < ELEMENTSOF(free_keys); i++)
                if (strcmp(free_keys[i], key) == 0)
                        return true;
        return false;
}

/* Where the comparison is: key as in the list above, shown with the places in lists. */
struct place {
        char key[PATH_MAX_TEXT], shown[PATH_MAX_TEXT];
        unsigned depth;
};

static int enter(const struct place *at, const char *key, size_t index, struct place *ret) {
        int k, s;

        if (at->depth >= DEPTH_MAX)
                return -EBADMSG;
        ret->depth = at->depth + 1;
        if (key) {
                k = snprintf(ret->key, sizeof(ret->key), "%s%s%s", at->key, at->depth ? "." : "", key);
                s = snprintf(ret->shown, sizeof(ret->shown), "%s%s%s", at->shown, at->depth ? "." : "", key);
        } else {
                k = snprintf(ret->key, sizeof(ret->key), "%s", at->key);
                s = snprintf(ret->shown, sizeof(ret->shown), "%s[%zu]", at->shown, index);
        }
        return k >= (int)sizeof(ret->key) || s >= (int)sizeof(ret->shown) ? -EBADMSG : 0;
}

static char *show(const json_t *v) {
        char *text, *cut;

        if (!v)
                return strdup("not set");
        text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
        if (!text || strlen(text) <= VALUE_MAX)
                return text;
        if (asprintf(&cut, "%.*s…", VALUE_MAX, text) < 0)
                cut = NULL;
        free(text);
        return cut;
}

static int differ(const struct place *at, const json_t *then, const json_t *now, char **ret) {
        _cleanup_free_ char *a = show(then), *b = show(now);

        if (!a || !b || asprintf(ret, "%s was %s and is %s", at->shown, a, b) < 0)
                return -ENOMEM;
        return 1;
}

static int compare(const struct place *at, const json_t *then, const json_t *now, char **ret);

static int compare_key(const struct place *at, const char *key, const json_t *then, const json_t *now,
                       char **ret) {
        struct place in;
        int r = enter(at, key, 0, &in);

        return r < 0 ? r : compare(&in, then, now, ret);
}

static int compare_objects(const struct place *at, json_t *then, json_t *now, char **ret) {
        const char *key;
        json_t *v;
        int r = 0;

        json_object_foreach (then, key, v) {
                r = compare_key(at, key, v, json_object_get(now, key), ret);
                if (r != 0)
                        return r;
        }
        json_object_foreach (now, key, v)
                if (!json_object_get(then, key)) {
                        r = compare_key(at, key, NULL, v, ret);
                        if (r != 0)
                                return r;
                }
        return 0;
}

static int compare(const struct place *at, const json_t *then, const json_t *now, char **ret) {
        if (is_free(at->key))
                return 0;
        if (!then || !now || json_typeof(then) != json_typeof(now))
                return differ(at, then, now, ret);
        if (json_is_object(then))
                return compare_objects(at, (json_t *)then, (json_t *)now, ret);
        if (!json_is_array(then))
                return json_equal(then, now) ? 0 : differ(at, then, now, ret);
        if (json_array_size(then) != json_array_size(now))
                return differ(at, then, now, ret);
        for (size_t i = 0; i < json_array_size(then); i++) {
                struct place in;
                int r = enter(at, NULL, i, &in);
                if (r >= 0)
                        r = compare(&in, json_array_get(then, i), json_array_get(now, i), ret);
                if (r != 0)
                        return r;
        }
        return 0;
}

int savepoint_same_data(const char *then, const char *now, char **ret_difference) {
        static const char *const keys[] = { "inputManager", "input" };
        _cleanup_(json_unref_p) json_t *a = json_loads(then, 0, NULL), *b = json_loads(now, 0, NULL);
        const struct place top = {};
        int r = 0;

        if (!json_is_object(a) || !json_is_object(b))
                return -EBADMSG;
        for (size_t i = 0; i < ELEMENTSOF(keys) && r == 0; i++) {
                const json_t *v = json_object_get(a, keys[i]), *w = json_object_get(b, keys[i]);
                if (v || w)
                        r = compare_key(&top, keys[i], v, w, ret_difference);
        }
        return r;
}
