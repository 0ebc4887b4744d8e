/* SPDX-License-Identifier: Apache-2.0 */
/* Listing files that this host sees. */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#include "executor/scan/scan-units.h"
#include "executor/scan/time-pattern.h"

/* Names of one directory: NUL-ended in text, one behind the other. */
struct names {
        char *text;
        size_t size, allocated;
        const char **sorted;
        size_t n;
};

/* What one pattern names. */
struct place {
        struct scan *scan;
        struct units units;
};

static void place_done(struct place *p) {
        units_done(&p->units);
}

static void names_done(struct names *n) {
        free(n->text);
        free(n->sorted);
}

static int fail_errno(struct scan *s, const char *path) {
        return scan_fail(s, -errno, "%.1024s: %s", path, strerror(errno));
}

/* ---- from a pattern to directories ---- */

/* A path without a glob in it. 1; 0: it does not exist. */
static int add_path(struct scan *s, struct units *u, const char *path) {
        const char *slash;
        struct stat st;
        int r;

        if (stat(path, &st) < 0)
                return errno == ENOENT || errno == ENOTDIR ? 0 : fail_errno(s, path);
        slash = strrchr(path, '/');
        if (S_ISDIR(st.st_mode))
                r = units_add(s, u, path, strlen(path), NULL, false);
        else if (S_ISREG(st.st_mode))
                r = units_add(s, u, path, (size_t)MAX(slash - path, 1), slash + 1, false);
        else
                return scan_fail(s, -EINVAL, "%.1024s: is neither a directory nor a regular file", path);
        return r < 0 ? r : 1;
}

static bool is_directory(int dir_fd, const struct dirent *e) {
        struct stat st;

        if (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)
                return e->d_type == DT_DIR;
        return fstatat(dir_fd, e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

/* What in a directory matches the pattern's last word. 1; 0: nothing. */
static int add_matches(struct scan *s, struct units *u, const char *directory, const char *last,
                       bool only_directories) {
        _cleanup_closedir_ DIR *d = opendir(directory);
        bool any = false, files = false;
        struct dirent *e;
        int r;

        if (!d)
                return errno == ENOENT || errno == ENOTDIR ? 0 : fail_errno(s, directory);
        while ((errno = 0, e = readdir(d))) {
                _cleanup_free_ char *path = NULL;

                if (e->d_name[0] == '_' || strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                    fnmatch(last, e->d_name, FNM_PERIOD) != 0)
                        continue;
                if (!is_directory(dirfd(d), e)) {
                        files = !only_directories;
                        continue;
                }
                any = true;
                path = path_in(directory, e->d_name);
                if (!path)
                        return -ENOMEM;
                r = units_add(s, u, path, strlen(path), NULL, false);
                if (r < 0)
                        return r;
        }
        if (errno > 0)
                return fail_errno(s, directory);
        if (files) {
                r = units_add(s, u, directory, strlen(directory), last, true);
                if (r < 0)
                        return r;
        }
        return any || files;
}

static __thread int glob_errno;
static __thread char glob_path[256];

static int glob_error(const char *path, int error) {
        glob_errno = error;
        snprintf(glob_path, sizeof(glob_path), "%s", path);
        return error != ENOENT && error != ENOTDIR;
}

/* One word of the pattern. 1; 0: nothing is there. */
static int add_word(void *userdata, const char *path_word) {
        struct place *p = userdata;
        struct scan *s = p->scan;
        struct units *u = &p->units;
        _cleanup_(globfree) glob_t found = { 0 };
        _cleanup_free_ char *word = strdup(path_word);
        bool slashes = false; /* behind it: no files are meant */
        char *slash;
        int r, any = 0;

        if (!word)
                return -ENOMEM;
        if (!has_glob(word))
                return add_path(s, u, word);
        for (size_t n = strlen(word); n > 1 && word[n - 1] == '/'; slashes = true)
                word[--n] = 0;
        slash = strrchr(word, '/');
        if (slash == word) /* in the root directory */
                return add_matches(s, u, "/", word + 1, slashes);
        *slash = 0;
        r = glob(word, GLOB_NOSORT | GLOB_ONLYDIR, glob_error, &found);
        if (r == GLOB_NOMATCH)
                return 0;
        if (r == GLOB_ABORTED)
                return scan_fail(s, -glob_errno, "%s: %s", glob_path, strerror(glob_errno));
        if (r != 0)
                return -ENOMEM;
        for (size_t i = 0; i < found.gl_pathc; i++) {
                _cleanup_free_ char *path = NULL;
                const char *directory = found.gl_pathv[i];

                if (strncmp(strrchr(directory, '/'), "/_", 2) == 0)
                        continue;
                if (has_glob(slash + 1))
                        r = add_matches(s, u, directory, slash + 1, slashes);
                else {
                        path = path_in(directory, slash + 1);
                        r = path ? add_path(s, u, path) : -ENOMEM;
                }
                if (r < 0)
                        return r;
                any |= r;
        }
        return any;
}

/* ---- markers ---- */

/* 1: it is there; 0. The marker is relative to the directory, and may be a glob. */
static int marker_exists(const char *directory, const char *marker) {
        _cleanup_(globfree) glob_t found = { 0 };
        _cleanup_free_ char *pattern = NULL;
        size_t n = 0;
        int r;

        pattern = malloc(strlen(directory) * 2 + strlen(marker) + 2);
        if (!pattern)
                return -ENOMEM;
        for (const char *s = directory; *s; s++) {
                if (strchr("*?[]{}\\", *s))
                        pattern[n++] = '\\';
                pattern[n++] = *s;
        }
        pattern[n++] = '/';
        strcpy(pattern + n, marker);
        r = glob(pattern, GLOB_NOSORT | GLOB_BRACE, NULL, &found);
        return r == GLOB_NOSPACE ? -ENOMEM : r == 0;
}

/* 1; 0 with what is missing. */
static int check_markers(struct scan *s, const struct units *u, char **ret_missing) {
        for (size_t i = 0; i < u->n; i++) {
                if (i > 0 && strcmp(u->list[i].directory, u->list[i - 1].directory) == 0)
                        continue;
                for (char *const *m = s->markers; *m; m++) {
                        int r = marker_exists(u->list[i].directory, *m);

                        if (r > 0)
                                continue;
                        if (r == 0) {
                                *ret_missing = path_in(u->list[i].directory, *m);
                                if (!*ret_missing)
                                        r = -ENOMEM;
                        }
                        return r;
                }
        }
        return 1;
}

/* ---- one directory ---- */

static int names_add(struct scan *s, struct names *names, const char *directory, const char *name) {
        size_t n = strlen(name) + 1;

        if (names->size + n > NAMES_MAX)
                return scan_fail(s, -E2BIG,
                                 "%.1024s: more than %u MiB of file names; use several directories, or a "
                                 "narrower namePattern",
                                 directory, NAMES_MAX >> 20);
        if (names->size + n > names->allocated) {
                size_t bigger = MAX(names->allocated * 2, names->size + n + 4096);
                char *text = realloc(names->text, bigger);

                if (!text)
                        return -ENOMEM;
                names->text = text;
                names->allocated = bigger;
        }
        memcpy(names->text + names->size, name, n);
        names->size += n;
        names->n++;
        return 0;
}

static int by_bytes(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int names_sort(struct names *names) {
        const char *text = names->text;

        names->sorted = calloc(MAX(names->n, (size_t)1), sizeof(char *));
        if (!names->sorted)
                return -ENOMEM;
        for (size_t i = 0; i < names->n; i++) {
                names->sorted[i] = text;
                text += strlen(text) + 1;
        }
        qsort(names->sorted, names->n, sizeof(char *), by_bytes);
        return 0;
}

/* Gone, or no regular file: nothing is said. */
static int emit_file(struct scan *s, int dir_fd, const char *directory, const char *name) {
        _cleanup_free_ char *path = path_in(directory, name);
        struct scan_entry e;
        struct stat st;

        if (!path)
                return -ENOMEM;
        if (fstatat(dir_fd, name, &st, 0) < 0)
                return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : fail_errno(s, path);
        if (!S_ISREG(st.st_mode))
                return 0;
        e = (struct scan_entry){
                .path = path,
                .size = (uint64_t)st.st_size,
                .last = (uint64_t)st.st_size,
                .mtime_nsec =
                        (uint64_t)st.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st.st_mtim.tv_nsec,
                .inode = st.st_ino,
        };
        return scan_emit(s, &e);
}

/* units: n of them, all of one directory. after: only names behind it. */
static int list_directory(void *userdata, const struct unit *units, size_t n, const char *after) {
        struct scan *s = userdata;
        const char *directory = units->directory;
        _cleanup_closedir_ DIR *d = opendir(directory);
        _cleanup_(names_done) struct names names = { 0 };
        struct dirent *e;
        int r;

        if (!d)
                return fail_errno(s, directory);
        while ((errno = 0, e = readdir(d))) {
                /* Links and the unknown are looked at when they are sent. */
                if (e->d_type != DT_REG && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)
                        continue;
                if ((after && strcmp(e->d_name, after) <= 0) || !scan_wants_name(s, e->d_name) ||
                    !units_want(units, n, e->d_name))
                        continue;
                r = names_add(s, &names, directory, e->d_name);
                if (r < 0)
                        return r;
        }
        if (errno > 0)
                return fail_errno(s, directory);
        r = names_sort(&names);
        for (size_t i = 0; r >= 0 && i < names.n; i++)
                r = emit_file(s, dirfd(d), directory, names.sorted[i]);
        return r;
}

int scan_files(struct scan *s, const char *pattern, const char *after, char **ret_missing) {
        const char *path = strncmp(pattern, "file://", 7) == 0 ? pattern + 7 : pattern;
        _cleanup_(words_free_p) char **words = NULL;
        _cleanup_(place_done) struct place p = { .scan = s };
        size_t n = 0;
        int r;

        if (path[0] != '/')
                return scan_fail(s, -EINVAL,
                                 "%.1024s: must be an absolute path on the host, or file:// and one",
                                 pattern);
        r = words_expand(path, &words, &n);
        if (r < 0)
                return r == -ENOMEM ? r
                                    : scan_fail(s, r, "%.200s: names too much: %s", pattern, strerror(-r));
        r = units_of_words(words, n, &p.units, add_word, &p, ret_missing);
        if (r <= 0)
                return r;
        units_sort(&p.units);
        r = check_markers(s, &p.units, ret_missing);
        if (r > 0) {
                r = units_each(s, &p.units, after, list_directory, s);
                return r < 0 ? r : 1;
        }
        return r;
}
