/* SPDX-License-Identifier: Apache-2.0 */
/* Listing a bucket: ListObjectsV2, a page at a time, in S3's order of keys, which is that of their bytes. A
 * pattern names objects, or the "directories" (up to a slash) whose objects are meant, as for files.
 * Invariant: what is handed out ascends, so that a key is a cursor (start-after). */
#include <fnmatch.h>
#include <string.h>

#include "executor/read/http.h"
#include "executor/read/s3.h"
#include "executor/scan/scan-parts.h"
#include "executor/scan/time-pattern.h"

#define TOKEN_MAX 4096u

/* Words that one listing answers: none of their prefixes lies outside of the first one's. */
struct place {
        struct scan *scan;
        struct http *http;
        char **words; /* bucket/key pattern, sorted */
        size_t n;
        const char *after; /* bucket/key, or NULL */
        bool look_only;    /* markers are looked for, nothing is handed out */
        uint64_t found;
        size_t prefix; /* bytes of words[0]: bucket/prefix */
        char *marked;  /* directory whose markers are there */
        char *missing;
};

static size_t literal(const char *pattern) {
        return strcspn(pattern, "*?[\\");
}

/* By what stands before the first glob: so a place comes before those that lie in it. */
static int by_prefix(const void *a, const void *b) {
        const char *x = *(const char *const *)a, *y = *(const char *const *)b;
        size_t n = literal(x), m = literal(y);
        int r = memcmp(x, y, MIN(n, m));

        return r != 0 ? r : n != m ? (n < m ? -1 : 1) : strcmp(x, y);
}

/* path: bucket/key. */
static bool matches(const struct place *p, const char *path) {
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *directory = slash ? strndup(path, (size_t)(slash - path)) : NULL;

        if (!slash || !directory || !scan_wants_name(p->scan, slash + 1) || slash[1] == 0)
                return false;
        for (size_t i = 0; i < p->n; i++) {
                size_t n = strlen(p->words[i]);

                if (fnmatch(p->words[i], path, FNM_PATHNAME) == 0 ||
                    fnmatch(p->words[i], directory, FNM_PATHNAME) == 0)
                        return true;
                /* "bucket/a/" is what lies in a. */
                if (n > 0 && p->words[i][n - 1] == '/' && n == strlen(directory) + 1 &&
                    strncmp(p->words[i], directory, n - 1) == 0)
                        return true;
        }
        return false;
}

/* Markers beside an object: 1; 0 with p->missing. Asked for once for each directory. */
static int check_markers(struct place *p, const char *path) {
        size_t n = (size_t)(strrchr(path, '/') - path);

        if (p->marked && strlen(p->marked) == n && strncmp(p->marked, path, n) == 0)
                return 1;
        for (char *const *m = p->scan->markers; *m; m++) {
                _cleanup_free_ char *marker = NULL;
                char error[READ_ERROR_MAX];
                struct http_request q = { .method = HTTP_HEAD, .last = TASK_TO_END };
                struct http_answer a;
                int r;

                if (asprintf(&marker, "s3://%.*s/%s", (int)n, path, *m) < 0) {
                        marker = NULL;
                        return -ENOMEM;
                }
                q.path = marker;
                r = http_ask_patiently(p->http, &q, &a, error);
                if (r < 0)
                        return scan_fail(p->scan, r, "%s", error);
                if (a.status == 404) {
                        p->missing = TAKE_PTR(marker);
                        return 0;
                }
                if (a.status != 200) {
                        r = http_unwanted(p->http, &q, error);
                        return scan_fail(p->scan, r, "%s", error);
                }
        }
        free(p->marked);
        p->marked = strndup(path, n);
        return p->marked ? 1 : -ENOMEM;
}

static int on_object(void *userdata, const struct s3_object *o) {
        struct place *p = userdata;
        size_t bucket = strcspn(p->words[0], "/");
        _cleanup_free_ char *path = NULL;
        struct scan_entry e = { .size = o->size, .last = o->size, .inode = http_entity(o->tag) };

        if (asprintf(&path, "s3://%.*s/%s", (int)bucket, p->words[0], o->key) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (!matches(p, path + 5))
                return 0;
        p->found++;
        if (p->look_only) {
                int r = check_markers(p, path + 5);

                return r == 0 ? -EAGAIN : r;
        }
        e.path = path;
        return scan_emit(p->scan, &e);
}

/* Sorted by name, as the signature wants it. */
static int make_query(const struct place *p, const char *token, char **ret) {
        size_t bucket = strcspn(p->words[0], "/"), begin = MIN(bucket + 1, p->prefix);
        _cleanup_free_ char *prefix = strndup(p->words[0] + begin, p->prefix - begin), *encoded = NULL,
                            *after = NULL, *more = NULL;
        /* What lies deeper than a pattern without a glob names is not even listed. */
        bool shallow = p->n == 1 && p->words[0][p->prefix] == 0;

        if (!prefix)
                return -ENOMEM;
        encoded = s3_encode(prefix, false);
        after = s3_encode(p->after ? p->after + bucket + 1 : "", false);
        more = s3_encode(token, false);
        if (!encoded || !after || !more)
                return -ENOMEM;
        if (asprintf(ret, "%s%s%s%sencoding-type=url&list-type=2&prefix=%s%s%s",
                     *more ? "continuation-token=" : "", more, *more ? "&" : "",
                     shallow ? "delimiter=%2F&" : "", encoded, *after ? "&start-after=" : "", after) < 0)
                return -ENOMEM;
        return 0;
}

static int list_pages(struct place *p) {
        char token[TOKEN_MAX] = "";
        int r;

        do {
                _cleanup_free_ char *query = NULL, *xml = NULL, *bucket = NULL;
                char error[READ_ERROR_MAX];
                struct http_answer a;
                struct http_request q = { .method = HTTP_GET, .last = TASK_TO_END };
                size_t size = 0;

                r = make_query(p, token, &query);
                if (r < 0)
                        return r;
                if (asprintf(&bucket, "s3://%.*s", (int)strcspn(p->words[0], "/"), p->words[0]) < 0) {
                        bucket = NULL;
                        return -ENOMEM;
                }
                q.path = bucket;
                q.query = query;
                r = http_whole(p->http, &q, &a, &xml, &size, error);
                if (r >= 0 && a.status != 200)
                        r = http_unwanted(p->http, &q, error);
                if (r < 0)
                        return scan_fail(p->scan, r, "%s", error);
                r = s3_list_read(xml, size, on_object, p, token, sizeof(token));
                if (r == -EBADMSG)
                        return scan_fail(p->scan, r, "%s: the server's listing cannot be read", bucket);
        } while (r >= 0 && *token);
        return r;
}

static int list_place(struct place *p) {
        int c = p->after ? strncmp(p->after, p->words[0], p->prefix) : -1, r;

        if (c > 0) /* the cursor stands behind this place */
                return 1;
        if (c < 0)
                p->after = NULL;
        r = list_pages(p);
        if (r < 0)
                return r;
        return p->found > 0 || p->after;
}

/* How many of the words are one place: the prefixes of the others begin with that of the first one. */
static size_t together(char **words, size_t n) {
        size_t prefix = literal(words[0]), i = 1;

        while (i < n && strncmp(words[i], words[0], prefix) == 0)
                i++;
        return i;
}

static int list_word(struct scan *s, struct http *h, char **words, size_t n, const char *after,
                     bool look_only, char **ret_missing) {
        struct place p = {
                .scan = s, .http = h, .words = words, .n = n, .after = after, .look_only = look_only
        };
        int r;

        p.prefix = literal(words[0]);
        r = list_place(&p);
        free(p.marked);
        if (r == -EAGAIN && p.missing) {
                *ret_missing = p.missing;
                return 0;
        }
        free(p.missing);
        if (r == 0 && asprintf(ret_missing, "s3://%s", words[0]) < 0)
                return -ENOMEM;
        return r;
}

/* "s3://b/x" is the object x, or else what lies in x/. */
static int list_all(struct scan *s, struct http *h, char **words, size_t n, const char *after, bool look_only,
                    char **ret_missing) {
        for (size_t i = 0, m; i < n; i += m) {
                int r;

                m = together(words + i, n - i);
                r = list_word(s, h, words + i, m, after, look_only, ret_missing);
                if (r == 0 && m == 1 && words[i][literal(words[i])] == 0 &&
                    words[i][strlen(words[i]) - 1] != '/') {
                        _cleanup_free_ char *directory = NULL;

                        free(*ret_missing);
                        *ret_missing = NULL;
                        if (asprintf(&directory, "%s/", words[i]) < 0) {
                                directory = NULL;
                                return -ENOMEM;
                        }
                        r = list_word(s, h, &directory, 1, after, look_only, ret_missing);
                }
                if (r <= 0)
                        return r;
        }
        return 1;
}

int scan_s3(struct scan *s, const char *pattern, const char *after, char **ret_missing) {
        _cleanup_(words_free_p) char **words = NULL;
        _cleanup_(http_free_p) struct http *h = NULL;
        const char *cursor = after && strncmp(after, "s3://", 5) == 0 ? after + 5 : NULL;
        char error[READ_ERROR_MAX];
        size_t n = 0;
        int r;

        if (strncmp(pattern, "s3://", 5) != 0 || pattern[5] == '/' || !strchr(pattern + 5, '/') ||
            literal(pattern + 5) < strcspn(pattern + 5, "/"))
                return scan_fail(s, -EINVAL, "%.1024s: must be s3://BUCKET/KEY; only KEY may be a pattern",
                                 pattern);
        r = words_expand(pattern + 5, &words, &n);
        if (r < 0)
                return r == -ENOMEM ? r
                                    : scan_fail(s, r, "%.200s: names too much: %s", pattern, strerror(-r));
        r = http_new(s->source, NULL, &h, error);
        if (r < 0)
                return scan_fail(s, r, "%s", error);
        qsort(words, n, sizeof(*words), by_prefix);
        if (*s->markers) {
                r = list_all(s, h, words, n, cursor, true, ret_missing);
                if (r <= 0)
                        return r;
        }
        return list_all(s, h, words, n, cursor, false, ret_missing);
}
