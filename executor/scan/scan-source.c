/* SPDX-License-Identifier: Apache-2.0 */
/* Listing a source of any kind: which days or hours, one after the other, and what to do about what is not
 * there. Invariant: batches never go back, and a batch is passed only when all of it has been handed out. */
#include <fnmatch.h>
#include <stdarg.h>
#include <string.h>

#include "executor/scan/scan-parts.h"
#include "executor/scan/time-pattern.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"

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
        const char *pattern = s->name_pattern;

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

/* A source's patterns: of its places, of its names, and of what has to be there. */
struct patterns {
        char *place, *name;
        char **markers; /* NULL-ended */
};

static void patterns_done(struct patterns *p) {
        free(p->place);
        free(p->name);
        strings_free(p->markers);
        *p = (struct patterns){ 0 };
}

static int fill_in(struct scan *s, const char *pattern, const struct time_point *t, char **ret) {
        int r = time_pattern_expand(pattern, t, ret);

        if (r < 0 && r != -ENOMEM)
                return scan_fail(s, r, "%.200s: cannot be filled in with a time: %s", pattern, strerror(-r));
        return r;
}

static int patterns_fill_in(struct scan *s, const struct time_point *t, struct patterns *ret) {
        const struct input_source *source = s->source;
        _cleanup_(patterns_done) struct patterns p = { 0 };
        size_t n = 0;

        TRY(fill_in(s, source->path_pattern, t, &p.place));
        while (source->success_markers[n])
                n++;
        p.markers = calloc(n + 1, sizeof(char *));
        if (!p.markers)
                return -ENOMEM;
        if (source->name_pattern)
                TRY(fill_in(s, source->name_pattern, t, &p.name));
        for (size_t i = 0; i < n; i++)
                TRY(fill_in(s, source->success_markers[i], t, p.markers + i));
        *ret = p;
        p = (struct patterns){ 0 };
        return 0;
}

static bool patterns_same(const struct patterns *a, const struct patterns *b) {
        if (!a->place || strcmp(a->place, b->place) != 0 ||
            strcmp(a->name ? a->name : "", b->name ? b->name : "") != 0)
                return false;
        for (size_t i = 0; a->markers[i]; i++)
                if (strcmp(a->markers[i], b->markers[i]) != 0)
                        return false;
        return true;
}

/* -EINVAL: one of them holds what is no time. */
static int patterns_step(const struct input_source *source, const char **ret_wrong, enum time_step *ret) {
        const char *const fixed[] = { source->path_pattern,
                                      source->name_pattern ? source->name_pattern : "" };
        enum time_step step = TIME_STEP_NONE, one = TIME_STEP_NONE;

        for (size_t i = 0; i < ELEMENTSOF(fixed) || source->success_markers[i - ELEMENTSOF(fixed)]; i++) {
                const char *pattern =
                        i < ELEMENTSOF(fixed) ? fixed[i] : source->success_markers[i - ELEMENTSOF(fixed)];

                if (time_pattern_step(pattern, &one) < 0) {
                        *ret_wrong = pattern;
                        return -EINVAL;
                }
                step = MAX(step, one);
        }
        *ret = step;
        return 0;
}

/* One day or hour. before: what the one before it was filled in to. */
static int list_point(struct scan *s, scan_lister list, const struct time_point *t, const char *after,
                      struct patterns *before) {
        _cleanup_(patterns_done) struct patterns now = { 0 };
        int r = patterns_fill_in(s, t, &now);

        if (r < 0)
                return r;
        /* A pattern without {{DD}} names the same place for many days. */
        if (patterns_same(before, &now))
                return 0;
        patterns_done(before);
        *before = now;
        now = (struct patterns){ 0 };
        s->batch = time_point_batch(t);
        s->name_pattern = before->name;
        s->markers = before->markers;
        r = s->sink->passed(s->sink, s->batch);
        return r < 0 ? r : list_place(s, list, before->place, after);
}

static int list_range(struct scan *s, scan_lister list, enum time_step step) {
        const struct scan_request *q = s->request;
        struct time_point t = time_range_first(&s->source->from, step),
                          last = time_range_last(&s->source->to, step), cursor;
        _cleanup_(patterns_done) struct patterns before = { 0 };
        const char *after = NULL;

        if (q->batch > 0 && q->after && time_point_from_batch(q->batch, &cursor) == 0) {
                t = time_range_first(&cursor, step);
                after = q->after;
        }
        while (s->source->to_now || time_point_batch(&t) <= time_point_batch(&last)) {
                int r = list_point(s, list, &t, after, &before);

                if (r < 0)
                        return r;
                after = NULL;
                if (!time_point_next(&t, step))
                        break;
        }
        return 0;
}

static int list_source(struct scan *s) {
        static const scan_lister listers[_SOURCE_KIND_MAX] = {
                [SOURCE_FILES] = scan_files, [SOURCE_COMMAND] = scan_files, /* the files that it is given */
#ifdef HAVE_HTTP
                [SOURCE_HTTP] = scan_http,   [SOURCE_S3] = scan_s3,         [SOURCE_HDFS] = scan_hdfs,
#endif
        };
        const struct input_source *source = s->source;
        enum time_step step = TIME_STEP_NONE;
        const char *wrong = NULL;

        if (source->kind == SOURCE_COMMAND && !source->path_pattern)
                return list_command(s, s->request->after);
#ifdef HAVE_KAFKA
        if (source->kind == SOURCE_KAFKA)
                return scan_kafka(s);
#endif
        if (source->kind < 0 || source->kind >= _SOURCE_KIND_MAX || !listers[source->kind])
                return scan_fail(s, -EOPNOTSUPP, "%s: this build of Primus cannot read sources of kind %s",
                                 source->name, source_kind_to_string(source->kind));
        if (patterns_step(source, &wrong, &step) < 0)
                return scan_fail(
                        s, -EINVAL,
                        "%.200s: only {{YYYY}}, {{MM}}, {{DD}} and {{HH}} may stand in doubled braces",
                        wrong);
        if (step != TIME_STEP_NONE && !source->has_range)
                return scan_fail(s, -EINVAL, "%.200s: holds a time, and there is no timeRange",
                                 source->path_pattern);
        if (step != TIME_STEP_NONE)
                return list_range(s, listers[source->kind], step);
        return list_place(s, listers[source->kind], source->path_pattern, s->request->after);
}

int scan_source(const struct scan_request *q, struct scan_sink *sink, char **ret_error) {
        struct scan s = { .request = q,
                          .source = q->source,
                          .sink = sink,
                          .name_pattern = q->source->name_pattern,
                          .markers = q->source->success_markers };
        int r = list_source(&s);

        *ret_error = s.error;
        return r;
}
