/* SPDX-License-Identifier: Apache-2.0 */
/* Listing URLs: a pattern's words, in their order as bytes, each asked for its size and its tag. A server
 * that does not say how long a thing is, or does not serve ranges of it, gives one task of unknown size. */
#include <string.h>

#include "executor/read/http.h"
#include "executor/scan/scan-parts.h"
#include "executor/scan/time-pattern.h"

static int by_bytes(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool found(const struct http_answer *a) {
        return a->status == 200 || a->status == 206;
}

static bool gone(const struct http_answer *a) {
        return a->status == 404 || a->status == 410;
}

static int fail_line(struct scan *s, int r, const char *line) {
        return scan_fail(s, r, "%s", line);
}

/* What is known about a URL. 1; 0: it is not there. */
static int look_at_url(struct scan *s, struct http *h, const char *url, struct http_answer *ret) {
        struct http_request head = { .method = HTTP_HEAD, .path = url, .last = TASK_TO_END },
                            byte = { .method = HTTP_GET, .path = url, .last = 1 };
        char error[READ_ERROR_MAX];
        struct http_answer a, b;
        int r = http_ask_patiently(h, &head, &a, error);

        if (r < 0)
                return fail_line(s, r, error);
        if (gone(&a))
                return 0;
        if (!found(&a) || a.total == TASK_UNKNOWN || !a.ranges) {
                /* Servers that answer no HEAD, or do not say there that they serve ranges. */
                r = http_ask_patiently(h, &byte, &b, error);
                if (r < 0)
                        return fail_line(s, r, error);
                if (gone(&b))
                        return 0;
                if (b.status == 416 && b.total == 0) { /* there is no first byte */
                        b.status = 200;
                        b.ranges = true;
                }
                if (!found(&b)) {
                        r = http_unwanted(h, &byte, error);
                        return fail_line(s, r, error);
                }
                if (b.status == 200 && !b.ranges && b.total != 0)
                        b.total = TASK_UNKNOWN;
                a = b;
        }
        http_drop(h);
        *ret = a;
        return 1;
}

/* Beside the URL: in its directory. */
static int marker_url(const char *url, const char *marker, char **ret) {
        size_t n = strcspn(url, "?#");

        while (n > 0 && url[n - 1] != '/')
                n--;
        return asprintf(ret, "%.*s%s", (int)n, url, marker) < 0 ? -ENOMEM : 0;
}

/* 1; 0 with what is missing. */
static int check_markers(struct scan *s, struct http *h, const char *url, char **ret_missing) {
        for (char *const *m = s->markers; *m; m++) {
                char *beside = NULL;
                struct http_answer a;
                int r = marker_url(url, *m, &beside);

                if (r < 0)
                        return r;
                r = look_at_url(s, h, beside, &a);
                if (r == 0)
                        *ret_missing = beside;
                else
                        free(beside);
                if (r <= 0)
                        return r;
        }
        return 1;
}

static int emit(struct scan *s, const char *url, const struct http_answer *a) {
        struct scan_entry e = {
                .path = url,
                .size = a->total,
                .last = a->total == TASK_UNKNOWN ? TASK_TO_END : a->total,
                .mtime_nsec = a->mtime_nsec,
                .inode = a->entity,
        };

        return scan_emit(s, &e);
}

int scan_http(struct scan *s, const char *pattern, const char *after, char **ret_missing) {
        _cleanup_(words_free_p) char **words = NULL;
        _cleanup_(http_free_p) struct http *h = NULL;
        char error[READ_ERROR_MAX];
        size_t n = 0;
        int r = words_expand(pattern, &words, &n);

        if (r < 0)
                return r == -ENOMEM ? r
                                    : scan_fail(s, r, "%.200s: names too much: %s", pattern, strerror(-r));
        r = http_new(s->source, NULL, &h, error);
        if (r < 0)
                return fail_line(s, r, error);
        qsort(words, n, sizeof(*words), by_bytes);
        /* All have to be there before the first one is told of: they are one batch. */
        for (size_t i = 0; i < n && *s->markers; i++) {
                r = check_markers(s, h, words[i], ret_missing);
                if (r <= 0)
                        return r;
        }
        for (size_t i = 0; i < n; i++) {
                struct http_answer a;

                if ((after && strcmp(words[i], after) <= 0) || (i > 0 && strcmp(words[i - 1], words[i]) == 0))
                        continue;
                r = look_at_url(s, h, words[i], &a);
                if (r == 0) {
                        *ret_missing = strdup(words[i]);
                        return *ret_missing ? 0 : -ENOMEM;
                }
                if (r > 0)
                        r = emit(s, words[i], &a);
                if (r < 0)
                        return r;
        }
        return 1;
}
