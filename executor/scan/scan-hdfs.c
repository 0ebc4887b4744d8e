/* SPDX-License-Identifier: Apache-2.0 */
/* Listing HDFS, as files are listed: what a pattern names is found by asking for the directories above it,
 * and directories come in pages. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "executor/read/hdfs.h"
#include "executor/read/http.h"
#include "executor/read/s3.h"
#include "executor/scan/scan-units.h"
#include "executor/scan/time-pattern.h"

/* A file of the directory that is being read. */
struct file {
        char *name;
        uint64_t size, mtime_nsec, id;
};

struct place {
        struct scan *scan;
        struct http *http;
        struct units units;
        const char *prefix; /* "hdfs://host" of the pattern, */
        int prefix_size;    /* so many bytes of it */
};

static void place_done(struct place *p) {
        units_done(&p->units);
        p->http = http_free(p->http);
}

/* path: from its slash on. */
static char *url_of(const struct place *p, const char *path) {
        char *url;

        return asprintf(&url, "%.*s%s", p->prefix_size, p->prefix, path) < 0 ? NULL : url;
}

/* The whole answer: 1; 0: there is no such path. */
static int ask_namenode(struct place *p, const char *path, const char *query, char **ret, size_t *ret_size) {
        _cleanup_free_ char *url = url_of(p, path);
        struct http_request q = { .method = HTTP_GET, .path = url, .query = query, .last = TASK_TO_END };
        char error[READ_ERROR_MAX];
        struct http_answer a;
        int r = url ? http_whole(p->http, &q, &a, ret, ret_size, error) : -ENOMEM;

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return scan_fail(p->scan, r, "%s", error);
        if (a.status == 404)
                return 0;
        if (a.status == 200)
                return 1;
        r = http_unwanted(p->http, &q, error);
        return scan_fail(p->scan, r, "%s", error);
}

static int fail_unreadable(struct place *p, const char *path) {
        return scan_fail(p->scan, -EBADMSG, "%.*s%.1024s: the server's answer cannot be read", p->prefix_size,
                         p->prefix, path);
}

/* 1; 0: there is no such path. */
static int look_at_path(struct place *p, const char *path, struct hdfs_status *ret) {
        _cleanup_free_ char *json = NULL;
        size_t size;
        int r = ask_namenode(p, path, "op=GETFILESTATUS", &json, &size);

        if (r <= 0)
                return r;
        return hdfs_status_read(json, size, ret) < 0 ? fail_unreadable(p, path) : 1;
}

/* All that is in a directory, behind the name after (NULL: all). 1; 0: there is none. */
static int read_directory(struct place *p, const char *path, const char *after, hdfs_on_status on_status,
                          void *userdata) {
        _cleanup_free_ char *last = after ? strdup(after) : NULL;
        bool more = true;

        if (after && !last)
                return -ENOMEM;
        while (more) {
                _cleanup_free_ char *json = NULL, *query = NULL, *encoded = s3_encode(last ?: "", false);
                size_t size;
                int r;

                if (!encoded ||
                    asprintf(&query, "op=LISTSTATUS_BATCH%s%s", *encoded ? "&startAfter=" : "", encoded) < 0)
                        return -ENOMEM;
                r = ask_namenode(p, path, query, &json, &size);
                if (r <= 0)
                        return r;
                free(TAKE_PTR(last));
                r = hdfs_list_read(json, size, on_status, userdata, &last, &more);
                if (r == -EBADMSG)
                        return fail_unreadable(p, path);
                if (r < 0)
                        return r;
        }
        return 1;
}

/* ---- from a pattern to directories ---- */

/* A path without a glob in it. 1; 0: it does not exist. */
static int add_path(struct place *p, const char *path) {
        const char *slash = strrchr(path, '/');
        size_t n = strlen(path);
        struct hdfs_status s;
        int r = look_at_path(p, path, &s);

        if (r <= 0)
                return r;
        if (s.directory)
                r = units_add(p->scan, &p->units, path, n, NULL, false);
        else if (!slash[1])
                return 0; /* "/a/" is a directory */
        else
                r = units_add(p->scan, &p->units, path, (size_t)MAX(slash - path, 1), slash + 1, false);
        return r < 0 ? r : 1;
}

/* A word of a pattern with globs, from directory on. */
struct walk {
        struct place *place;
        const char *directory, *word, *rest; /* word: glob of what is in it; rest: behind that, or "" */
        size_t word_size;
        char **found; /* directories that match, NULL-ended */
        size_t n;
        bool files; /* and files do */
};

static void walk_done(struct walk *w) {
        for (size_t i = 0; i < w->n; i++)
                free(w->found[i]);
        free(w->found);
}

static int on_match(void *userdata, const struct hdfs_status *s) {
        struct walk *w = userdata;
        _cleanup_free_ char *word = strndup(w->word, w->word_size);
        char **more;

        if (!word)
                return -ENOMEM;
        if (s->name[0] == '_' || fnmatch(word, s->name, FNM_PERIOD) != 0)
                return 0;
        if (!s->directory) {
                w->files |= s->file;
                return 0;
        }
        if (w->n >= DIRECTORIES_MAX)
                return scan_fail(w->place->scan, -E2BIG,
                                 "%.200s: names more than %u directories; be more specific",
                                 w->place->scan->source->path_pattern, DIRECTORIES_MAX);
        more = reallocarray(w->found, w->n + 1, sizeof(*more));
        if (!more)
                return -ENOMEM;
        w->found = more;
        w->found[w->n] = path_in(w->directory, s->name);
        return w->found[w->n++] ? 0 : -ENOMEM;
}

static int add_below(struct place *p, const char *directory, const char *rest);

/* What the walk has found: 1; 0: nothing. */
static int add_found(struct place *p, const struct walk *w) {
        bool last = !*w->rest, any = false;
        int r;

        for (size_t i = 0; i < w->n; i++) {
                r = last || strspn(w->rest, "/") == strlen(w->rest)
                            ? units_add(p->scan, &p->units, w->found[i], strlen(w->found[i]), NULL, false)
                            : add_below(p, w->found[i], w->rest);
                if (r < 0)
                        return r;
                any |= last || r > 0 || strspn(w->rest, "/") == strlen(w->rest);
        }
        if (w->files && last) {
                _cleanup_free_ char *word = strndup(w->word, w->word_size);

                r = word ? units_add(p->scan, &p->units, w->directory, strlen(w->directory), word, true)
                         : -ENOMEM;
                if (r < 0)
                        return r;
                any = true;
        }
        return any;
}

/* rest: what of the pattern is below directory, with a slash before it. */
static int add_below(struct place *p, const char *directory, const char *rest) {
        const char *word = rest + strspn(rest, "/");
        size_t n = strcspn(word, "/");
        _cleanup_free_ char *name = strndup(word, n), *path = name ? path_in(directory, name) : NULL;
        _cleanup_(walk_done) struct walk w = {
                .place = p, .directory = directory, .word = word, .word_size = n, .rest = word + n
        };
        int r;

        if (!path)
                return -ENOMEM;
        if (!has_glob(word)) { /* nor has what is behind it */
                free(TAKE_PTR(path));
                path = path_in(directory, word);
                return path ? add_path(p, path) : -ENOMEM;
        }
        if (!has_glob(name))
                return add_below(p, path, word + n);
        r = read_directory(p, directory, NULL, on_match, &w);
        return r <= 0 ? r : add_found(p, &w);
}

static int add_word(void *userdata, const char *word) {
        struct place *p = userdata;

        return has_glob(word) ? add_below(p, "/", word) : add_path(p, word);
}

/* ---- markers ---- */

/* 1; 0 with what is missing. */
static int check_markers(struct place *p, char **ret_missing) {
        const struct units *u = &p->units;

        for (size_t i = 0; i < u->n; i++) {
                if (i > 0 && strcmp(u->list[i].directory, u->list[i - 1].directory) == 0)
                        continue;
                for (char *const *m = p->scan->markers; *m; m++) {
                        _cleanup_free_ char *path = path_in(u->list[i].directory, *m);
                        struct hdfs_status s;
                        int r = path ? look_at_path(p, path, &s) : -ENOMEM;

                        if (r > 0)
                                continue;
                        if (r == 0 && !(*ret_missing = url_of(p, path)))
                                r = -ENOMEM;
                        return r;
                }
        }
        return 1;
}

/* ---- one directory ---- */

struct listing {
        struct place *place;
        const struct unit *units;
        size_t n_units;
        struct file *files;
        size_t n, allocated, bytes;
};

static void listing_done(struct listing *l) {
        for (size_t i = 0; i < l->n; i++)
                free(l->files[i].name);
        free(l->files);
}

static int on_file(void *userdata, const struct hdfs_status *s) {
        struct listing *l = userdata;
        struct scan *scan = l->place->scan;

        if (!s->file || !scan_wants_name(scan, s->name) || !units_want(l->units, l->n_units, s->name))
                return 0;
        l->bytes += strlen(s->name) + sizeof(struct file);
        if (l->bytes > NAMES_MAX)
                return scan_fail(scan, -E2BIG,
                                 "%.1024s: more than %u MiB of files; use several directories, or a narrower "
                                 "namePattern",
                                 l->units->directory, NAMES_MAX >> 20);
        if (l->n == l->allocated) {
                size_t bigger = l->allocated ? l->allocated * 2 : 256;
                struct file *files = reallocarray(l->files, bigger, sizeof(*files));

                if (!files)
                        return -ENOMEM;
                l->files = files;
                l->allocated = bigger;
        }
        l->files[l->n] = (struct file){ strdup(s->name), s->size, s->mtime_nsec, s->id };
        return l->files[l->n].name ? (l->n++, 0) : -ENOMEM;
}

static int by_name(const void *a, const void *b) {
        return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

static int emit_file(struct place *p, const char *directory, const struct file *f) {
        _cleanup_free_ char *path = path_in(directory, f->name), *url = path ? url_of(p, path) : NULL;
        struct scan_entry e = {
                .path = url, .size = f->size, .last = f->size, .mtime_nsec = f->mtime_nsec, .inode = f->id
        };

        return url ? scan_emit(p->scan, &e) : -ENOMEM;
}

static int list_directory(void *userdata, const struct unit *units, size_t n, const char *after) {
        struct place *p = userdata;
        _cleanup_(listing_done) struct listing l = { .place = p, .units = units, .n_units = n };
        int r = read_directory(p, units->directory, after, on_file, &l);

        if (r == 0)
                return scan_fail(p->scan, -ENOENT, "%.*s%.1024s: %s", p->prefix_size, p->prefix,
                                 units->directory, strerror(ENOENT));
        if (l.n > 1)
                qsort(l.files, l.n, sizeof(*l.files), by_name);
        for (size_t i = 0; r >= 0 && i < l.n; i++)
                if (!after || strcmp(l.files[i].name, after) > 0)
                        r = emit_file(p, units->directory, l.files + i);
        return r;
}

int scan_hdfs(struct scan *s, const char *pattern, const char *after, char **ret_missing) {
        const char *host = pattern + strlen(HDFS_SCHEME), *slash;
        _cleanup_(words_free_p) char **words = NULL;
        _cleanup_(place_done) struct place p = { .scan = s };
        _cleanup_free_ char *missing = NULL;
        char error[READ_ERROR_MAX];
        size_t n = 0;
        int r;

        if (strncmp(pattern, HDFS_SCHEME, strlen(HDFS_SCHEME)) != 0 || !(slash = strchr(host, '/')) ||
            (size_t)(slash - host) != strcspn(host, "*?[{\\/"))
                return scan_fail(s, -EINVAL,
                                 "%.1024s: must be hdfs://NAMENODE/PATH; only PATH may be a pattern",
                                 pattern);
        p.prefix = pattern;
        p.prefix_size = (int)(slash - pattern);
        if (after && strncmp(after, pattern, (size_t)p.prefix_size) == 0)
                after += p.prefix_size;
        r = words_expand(slash, &words, &n);
        if (r < 0)
                return r == -ENOMEM ? r
                                    : scan_fail(s, r, "%.200s: names too much: %s", pattern, strerror(-r));
        r = http_new(s->source, NULL, &p.http, error);
        if (r < 0)
                return scan_fail(s, r, "%s", error);
        r = units_of_words(words, n, &p.units, add_word, &p, &missing);
        if (r == 0 && !(*ret_missing = url_of(&p, missing)))
                return -ENOMEM;
        if (r <= 0)
                return r;
        units_sort(&p.units);
        r = check_markers(&p, ret_missing);
        if (r > 0) {
                r = units_each(s, &p.units, after, list_directory, &p);
                return r < 0 ? r : 1;
        }
        return r;
}
