/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/checkpoint/talk.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"

#define MARKED_MAX 64u           /* of one answer, */
#define MARKED_BYTES (16u << 10) /* and bytes of their paths, but for the last */
#define STEP_MAX UINT64_C(999999999999)
#define TIME_MAX 1e11 /* seconds */
#define USEC 1e6

static void json_unref_p(json_t **v) {
        json_decref(*v);
}

static int refuse_talk(char why[static CHECKPOINT_WHY_MAX], const char *text) {
        snprintf(why, CHECKPOINT_WHY_MAX, "%s", text);
        return -EINVAL;
}

/* ---- questions ---- */

static const struct {
        const char *name;
        const char *keys[9]; /* beside op; up to the first NULL */
} ops[_CHECKPOINT_OP_MAX] = {
        [CHECKPOINT_SAVED] = { "checkpoint",
                               { "path", "step", "time", "files", "bytes", "metrics", "metric", "smaller" } },
        [CHECKPOINT_GONE] = { "checkpointGone", { "path" } },
        [CHECKPOINT_MARKED] = { "checkpointsMarked", { "after" } },
};

static bool may_have(enum checkpoint_op op, const char *key) {
        for (const char *const *k = ops[op].keys; *k; k++)
                if (strcmp(*k, key) == 0)
                        return true;
        return strcmp(key, "op") == 0;
}

static int read_number(json_t *j, const char *key, uint64_t max, uint64_t *ret, char *why) {
        json_t *v = json_object_get(j, key);

        if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > max) {
                snprintf(why, CHECKPOINT_WHY_MAX, "%s must be an integer of 0 to %" PRIu64, key, max);
                return -EINVAL;
        }
        *ret = (uint64_t)json_integer_value(v);
        return 0;
}

/* It is shown, and goes to whoever removes it: a path without detours, and without what no terminal takes. */
static bool path_good(const char *path) {
        for (const char *p = path; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        return false;
        return path[0] == '/' && path[1] && strlen(path) <= CHECKPOINT_PATH_MAX && !strstr(path, "/../") &&
               !strstr(path, "//") && !strstr(path, "/./") && strcmp(strrchr(path, '/'), "/..") != 0 &&
               strcmp(strrchr(path, '/'), "/.") != 0 && path[strlen(path) - 1] != '/';
}

static int read_path(json_t *j, char **ret, char why[static CHECKPOINT_WHY_MAX]) {
        json_t *v = json_object_get(j, "path");
        const char *path = json_string_value(v) ?: "";

        if (strlen(path) != json_string_length(v) || !path_good(path)) {
                snprintf(why, CHECKPOINT_WHY_MAX,
                         "path must be an absolute one of at most %u bytes, without ., .., // and control "
                         "characters",
                         CHECKPOINT_PATH_MAX);
                return -EINVAL;
        }
        *ret = strdup(path);
        return *ret ? 0 : -ENOMEM;
}

static bool name_good(const json_t *v, const char *name) {
        for (const char *p = name; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        return false;
        return (!v || strlen(name) == json_string_length(v)) && strlen(name) <= CHECKPOINT_METRIC_MAX;
}

static int read_metrics(json_t *j, char **ret, char why[static CHECKPOINT_WHY_MAX]) {
        json_t *metrics = json_object_get(j, "metrics"), *v;
        const char *name;

        if (!json_is_object(metrics) || json_object_size(metrics) > CHECKPOINT_METRICS_NAMES_MAX)
                return refuse_talk(why, "metrics must be an object of at most 32 numbers");
        json_object_foreach (metrics, name, v)
                if (!name_good(NULL, name) || !(json_is_number(v) || json_is_null(v)))
                        return refuse_talk(why,
                                           "metrics must be numbers or null, of names of at most 64 bytes");
        *ret = json_dumps(metrics, JSON_COMPACT | JSON_SORT_KEYS);
        if (!*ret)
                return -ENOMEM;
        return strlen(*ret) <= CHECKPOINT_METRICS_MAX ? 0
                                                      : refuse_talk(why, "metrics are more than 1024 bytes");
}

static int read_saved(json_t *j, struct checkpoint_talk *t, char why[static CHECKPOINT_WHY_MAX]) {
        json_t *metric = json_object_get(j, "metric"), *time = json_object_get(j, "time"),
               *smaller = json_object_get(j, "smaller");
        uint64_t files;

        TRY(read_number(j, "step", STEP_MAX, &t->facts.step, why));
        TRY(read_number(j, "bytes", INT64_MAX, &t->facts.bytes, why));
        TRY(read_number(j, "files", UINT32_MAX, &files, why));
        if (!json_is_number(time) || !(json_number_value(time) >= 0 && json_number_value(time) <= TIME_MAX))
                return refuse_talk(why, "time must be a number of seconds since 1970");
        if (!json_is_string(metric) || !name_good(metric, json_string_value(metric)))
                return refuse_talk(why, "metric must be a name of at most 64 bytes");
        if (!json_is_boolean(smaller))
                return refuse_talk(why, "smaller must be true or false");
        TRY(read_metrics(j, &t->metrics, why));
        t->metric = strdup(json_string_value(metric));
        if (!t->metric)
                return -ENOMEM;
        t->facts.files = (uint32_t)files;
        t->facts.saved_real = (uint64_t)(json_number_value(time) * USEC);
        t->facts.smaller = json_is_true(smaller);
        t->facts.metrics = t->metrics;
        t->facts.metric = t->metric;
        t->facts.value = checkpoint_value(t->metrics, t->metric);
        return 0;
}

double checkpoint_value(const char *metrics, const char *metric) {
        _cleanup_(json_unref_p) json_t *j = *metric ? json_loads(metrics, 0, NULL) : NULL;
        const json_t *v = json_object_get(j, metric);

        return json_is_number(v) ? json_number_value(v) : NAN;
}

static int read_of(json_t *j, struct checkpoint_talk *t, char why[static CHECKPOINT_WHY_MAX]) {
        const char *key;
        json_t *v;

        json_object_foreach (j, key, v)
                if (!may_have(t->op, key)) {
                        snprintf(why, CHECKPOINT_WHY_MAX, "%s has no \"%.100s\"", ops[t->op].name, key);
                        return -EINVAL;
                }
        if (t->op == CHECKPOINT_MARKED)
                return read_number(j, "after", INT64_MAX, &t->after, why);
        TRY(read_path(j, &t->path, why));
        t->facts.path = t->path;
        return t->op == CHECKPOINT_SAVED ? read_saved(j, t, why) : 0;
}

int checkpoint_talk_read(const char *text, struct checkpoint_talk *ret, char why[static CHECKPOINT_WHY_MAX]) {
        _cleanup_(json_unref_p) json_t *j =
                strlen(text) <= CHECKPOINT_TALK_MAX ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
        const char *op = json_string_value(json_object_get(j, "op")) ?: "";
        struct checkpoint_talk t = {};
        int r;

        while (t.op < _CHECKPOINT_OP_MAX && strcmp(ops[t.op].name, op) != 0)
                t.op++;
        if (t.op == _CHECKPOINT_OP_MAX)
                return -ENOENT;
        r = read_of(j, &t, why);
        if (r < 0)
                checkpoint_talk_done(&t);
        else
                *ret = t;
        return r;
}

void checkpoint_talk_done(struct checkpoint_talk *t) {
        free(t->path);
        free(t->metrics);
        free(t->metric);
        *t = (struct checkpoint_talk){};
}

/* ---- answers ---- */

static int write_answer(json_t *j, char **ret) {
        if (!j)
                return -ENOMEM;
        *ret = json_dumps(j, JSON_COMPACT);
        json_decref(j);
        return *ret ? 0 : -ENOMEM;
}

int checkpoint_talk_id(uint64_t id, char **ret) {
        return write_answer(json_pack("{s:I}", "id", (json_int_t)id), ret);
}

static json_t *write_marked(const struct checkpoint *x) {
        return json_pack("{s:I, s:s, s:I, s:f, s:s}", "id", (json_int_t)x->id, "path", x->facts.path, "step",
                         (json_int_t)x->facts.step, "time", (double)x->facts.saved_real / USEC, "host",
                         x->facts.host);
}

int checkpoint_talk_marked(const struct checkpoints *c, uint32_t owner, uint64_t after, char **ret) {
        json_t *list = json_array();
        size_t bytes = 0;

        for (const struct checkpoint *x = checkpoints_after(c, owner, after);
             x && json_array_size(list) < MARKED_MAX && bytes < MARKED_BYTES;
             x = checkpoints_after(c, owner, x->id)) {
                if (!x->marked)
                        continue;
                bytes += strlen(x->facts.path);
                if (json_array_append_new(list, write_marked(x)) < 0) {
                        json_decref(list);
                        return -ENOMEM;
                }
        }
        return write_answer(json_pack("{s:o}", "checkpoints", list), ret);
}
