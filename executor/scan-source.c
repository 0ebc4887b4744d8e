/* SPDX-License-Identifier: Apache-2.0 */
/* Listing a source of any kind: which days or hours, one after the other, and what to do about what is not
 * there. Invariant: batches never go back, and a batch is passed only when all of it has been handed out. */
#include <fnmatch.h>
#include <stdarg.h>
#include <string.h>

#include "executor/scan-parts.h"
#include "executor/time-pattern.h"

int scan_fail(struct scan *s, int r, const char *format, ...) {
        va_list ap;

        free(s->error);
        va_start(ap, format);
        if (vasprintf(&s->error, format, ap) < 0) {
                s->error = NULL;
                r = -ENOMEM;
        }
        va_end(ap);
        return r;
}

int scan_emit(struct scan *s, struct scan_entry *e) {
        e->batch = s->batch;
        if (strlen(e->path) > TASK_PATH_MAX)
                return scan_fail(s, -ENAMETOOLONG, "%.200s...: the path is longer than %u bytes", e->path,
                                 TASK_PATH_MAX);
        return s->sink->entry(s->sink, e);
}

bool scan_wants_name(const struct scan *s, const char *name) {
        const char *pattern = s->source->name_pattern;

        return name[0] != '.' && name[0] != '_' && (!pattern || fnmatch(pattern, name, 0) == 0);
}

/* A command that reads no files is one thing, known by the source's name. */
static int list_command(struct scan *s, const char *after) {
        struct scan_entry e = { .path = s->source->name, .size = TASK_UNKNOWN, .last = TASK_TO_END };

        return after ? 0 : scan_emit(s, &e);
}

static int fail_missing(struct scan *s, const char *missing) {
        return scan_fail(s, -ENOENT, "%s: %s", missing,
                         strpbrk(missing, "*?[{") ? "nothing matches it" : strerror(ENOENT));
}

/* Lists what pattern names, when it is there. */
static int list_place(struct scan *s, scan_lister list, const char *pattern, const char *after) {
        bool patient = s->source->has_range || *s->source->success_markers;

        for (;;) {
                _cleanup_free_ char *missing = NULL;
                int r = list(s, pattern, after, &missing);

                if (r != 0)
                        return r < 0 ? r : 0;
                if (!patient)
                        return fail_missing(s, missing);
                r = s->sink->wait(s->sink, missing, s->request->poll_usec);
                if (r < 0)
                        return r;
        }
}

static int list_range(struct scan *s, scan_lister list, enum time_step step) {
        const struct scan_request *q = s->request;
        struct time_point t = time_range_first(&s->source->from, step),
                          last = time_range_last(&s->source->to, step), cursor;
        _cleanup_free_ char *before = NULL;
        const char *after = NULL;

        if (q->batch > 0 && q->after && time_point_from_batch(q->batch, &cursor) == 0) {
                t = time_range_first(&cursor, step);
                after = q->after;
        }
        while (s->source->to_now || time_point_batch(&t) <= time_point_batch(&last)) {
                _cleanup_free_ char *place = NULL;
                int r = time_pattern_expand(s->source->path_pattern, &t, &place);

                if (r < 0)
                        return scan_fail(s, r, "%.200s: cannot be filled in with a time: %s",
                                         s->source->path_pattern, strerror(-r));
                /* A pattern without {{DD}} names the same place for many days. */
                if (!before || strcmp(before, place) != 0) {
                        s->batch = time_point_batch(&t);
                        r = s->sink->passed(s->sink, s->batch);
                        if (r >= 0)
                                r = list_place(s, list, place, after);
                        if (r < 0)
                                return r;
                }
                after = NULL;
                free(before);
                before = TAKE_PTR(place);
                if (!time_point_next(&t, step))
                        break;
        }
        return 0;
}

static int list_source(struct scan *s) {
        static const scan_lister listers[_SOURCE_KIND_MAX] = {
                [SOURCE_FILES] = scan_files,
                [SOURCE_COMMAND] = scan_files, /* the files that it is given */
#ifdef HAVE_HTTP
                [SOURCE_HTTP] = scan_http,
                [SOURCE_S3] = scan_s3,
#endif
        };
        const struct input_source *source = s->source;
        enum time_step step = TIME_STEP_NONE;

        if (source->kind == SOURCE_COMMAND && !source->path_pattern)
                return list_command(s, s->request->after);
#ifdef HAVE_KAFKA
        if (source->kind == SOURCE_KAFKA)
                return scan_kafka(s);
#endif
        if (source->kind < 0 || source->kind >= _SOURCE_KIND_MAX || !listers[source->kind])
                return scan_fail(s, -EOPNOTSUPP, "%s: this build of Primus cannot read sources of kind %s",
                                 source->name, source_kind_to_string(source->kind));
        if (time_pattern_step(source->path_pattern, &step) < 0)
                return scan_fail(
                        s, -EINVAL,
                        "%.200s: only {{YYYY}}, {{MM}}, {{DD}} and {{HH}} may stand in doubled braces",
                        source->path_pattern);
        if (step != TIME_STEP_NONE && !source->has_range)
                return scan_fail(s, -EINVAL, "%.200s: holds a time, and there is no timeRange",
                                 source->path_pattern);
        if (step != TIME_STEP_NONE)
                return list_range(s, listers[source->kind], step);
        return list_place(s, listers[source->kind], source->path_pattern, s->request->after);
}

int scan_source(const struct scan_request *q, struct scan_sink *sink, char **ret_error) {
        struct scan s = { .request = q, .source = q->source, .sink = sink };
        int r = list_source(&s);

        *ret_error = s.error;
        return r;
}
