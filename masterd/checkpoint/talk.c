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
#include "lib/wire/question.h"

#define MARKED_MAX 64u           /* of one answer, */
#define MARKED_BYTES (16u << 10) /* and bytes of their paths, but for the last */
#define STEP_MAX UINT64_C(999999999999)
#define TIME_MAX 1e11 /* seconds */
#define USEC 1e6

/* ---- questions ---- */

static const struct question_op ops[_CHECKPOINT_OP_MAX + 1] = {
        [CHECKPOINT_SAVED] = { "checkpoint",
                               { "path", "step", "time", "files", "bytes", "metrics", "metric", "smaller" } },
        [CHECKPOINT_GONE] = { "checkpointGone", { "path" } },
        [CHECKPOINT_MARKED] = { "checkpointsMarked", { "after" } },
};

/* It is shown, and goes to whoever removes it: a path without detours, also in a bucket (s3://BUCKET/PATH),
 * and without what no terminal takes. */
static bool path_good(const char *place) {
        static const char scheme[] = "s3:/";
        const char *path =
                strncmp(place, scheme, sizeof(scheme) - 1) == 0 ? place + sizeof(scheme) - 1 : place;

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
                snprintf(
                        why, CHECKPOINT_WHY_MAX,
                        "path must be an absolute one, or s3://BUCKET/PATH, of at most %u bytes, without ., .., // "
                        "and control characters",
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
                return question_refuse(why, "metrics must be an object of at most 32 numbers");
        json_object_foreach (metrics, name, v)
                if (!name_good(NULL, name) || !(json_is_number(v) || json_is_null(v)))
                        return question_refuse(
                                why, "metrics must be numbers or null, of names of at most 64 bytes");
        *ret = json_dumps(metrics, JSON_COMPACT | JSON_SORT_KEYS);
        if (!*ret)
                return -ENOMEM;
        return strlen(*ret) <= CHECKPOINT_METRICS_MAX
                       ? 0
                       : question_refuse(why, "metrics are more than 1024 bytes");
}

static int read_saved(json_t *j, struct checkpoint_talk *t, char why[static CHECKPOINT_WHY_MAX]) {
        json_t *metric = json_object_get(j, "metric"), *time = json_object_get(j, "time"),
               *smaller = json_object_get(j, "smaller");
        uint64_t files;

        TRY(question_number(j, "step", STEP_MAX, &t->facts.step, why));
        TRY(question_number(j, "bytes", INT64_MAX, &t->facts.bytes, why));
        TRY(question_number(j, "files", UINT32_MAX, &files, why));
        if (!json_is_number(time) || !(json_number_value(time) >= 0 && json_number_value(time) <= TIME_MAX))
                return question_refuse(why, "time must be a number of seconds since 1970");
        if (!json_is_string(metric) || !name_good(metric, json_string_value(metric)))
                return question_refuse(why, "metric must be a name of at most 64 bytes");
        if (!json_is_boolean(smaller))
                return question_refuse(why, "smaller must be true or false");
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
        _cleanup_(question_unref) json_t *j = *metric ? json_loads(metrics, 0, NULL) : NULL;
        const json_t *v = json_object_get(j, metric);

        return json_is_number(v) ? json_number_value(v) : NAN;
}

static int read_of(json_t *j, struct checkpoint_talk *t, char why[static CHECKPOINT_WHY_MAX]) {
        if (t->op == CHECKPOINT_MARKED)
                return question_number(j, "after", INT64_MAX, &t->after, why);
        TRY(read_path(j, &t->path, why));
        t->facts.path = t->path;
        return t->op == CHECKPOINT_SAVED ? read_saved(j, t, why) : 0;
}

int checkpoint_talk_read(const char *text, struct checkpoint_talk *ret, char why[static CHECKPOINT_WHY_MAX]) {
        _cleanup_(question_unref) json_t *j = NULL;
        struct checkpoint_talk t = {};
        unsigned op;
        int r = question_read(text, CHECKPOINT_TALK_MAX, ops, &j, &op, why);

        if (r < 0)
                return r == -EBADMSG ? -ENOENT : r;
        t.op = op;
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

int checkpoint_talk_id(uint64_t id, char **ret) {
        return question_answer(json_pack("{s:I}", "id", (json_int_t)id), ret);
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
        return question_answer(json_pack("{s:o}", "checkpoints", list), ret);
}
