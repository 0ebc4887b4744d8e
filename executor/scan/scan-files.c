/* SPDX-License-Identifier: Apache-2.0 */
/* Listing files. What a pattern names is first a list of directories, each with the globs that its names have
 * to match; then one directory after the other is read, sorted and handed out. Invariant: the directories are
 * sorted as their paths with a slash behind, and no directory is read twice. */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#include "executor/scan/scan-parts.h"
#include "executor/scan/time-pattern.h"

#define DIRECTORIES_MAX 1000000u
#define NAMES_MAX (256u << 20) /* bytes of one directory's names */

/* One directory that is to be read; of several with the same path, each says what it wants. */
struct unit {
        char *directory;
        char *name; /* NULL: every name */
        bool glob;  /* name is a glob, not a name */
};
struct units {
        struct unit *list;
        size_t n, allocated;
};
/* Names of one directory: NUL-ended in text, one behind the other. */
struct names {
        char *text;
        size_t size, allocated;
        const char **sorted;
        size_t n;
};

static void units_done(struct units *u) {
        for (size_t i = 0; i < u->n; i++) {
                free(u->list[i].directory);
                free(u->list[i].name);
        }
        free(u->list);
}

static void names_done(struct names *n) {
        free(n->text);
        free(n->sorted);
}

static int fail_errno(struct scan *s, const char *path) {
        return scan_fail(s, -errno, "%.1024s: %s", path, strerror(errno));
}

static int units_add(struct scan *s, struct units *u, const char *directory, size_t n, const char *name,
                     bool glob) {
        struct unit *unit;

        if (u->n >= DIRECTORIES_MAX)
                return scan_fail(s, -E2BIG, "%.200s: names more than %u directories; be more specific",
                                 s->source->path_pattern, DIRECTORIES_MAX);
        if (u->n == u->allocated) {
                size_t bigger = u->allocated ? u->allocated * 2 : 64;
                struct unit *list = reallocarray(u->list, bigger, sizeof(*list));

                if (!list)
                        return -ENOMEM;
                u->list = list;
                u->allocated = bigger;
        }
        while (n > 1 && directory[n - 1] == '/')
                n--;
        unit = u->list + u->n;
        *unit = (struct unit){ .directory = strndup(directory, n),
                               .name = name ? strdup(name) : NULL,
                               .glob = glob };
        u->n++;
        return unit->directory && (unit->name || !name) ? 0 : -ENOMEM;
}

static char *path_of(const char *directory, const char *name) {
        char *path;

        return asprintf(&path, "%s%s%s", directory, directory[0] && !directory[1] ? "" : "/", name) < 0
                       ? NULL
                       : path;
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
                path = path_of(directory, e->d_name);
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

static bool has_glob(const char *s) {
        return strpbrk(s, "*?[\\") != NULL;
}

/* One word of the pattern. 1; 0: nothing is there. */
static int add_word(struct scan *s, struct units *u, const char *path_word) {
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
                        path = path_of(directory, slash + 1);
                        r = path ? add_path(s, u, path) : -ENOMEM;
                }
                if (r < 0)
                        return r;
                any |= r;
        }
        return any;
}

/* Compares directories as if a slash stood behind them. */
static int compare_directories(const char *a, const char *b) {
        size_t n = strlen(a), m = strlen(b);
        int r = memcmp(a, b, MIN(n, m));

        if (r != 0 || n == m)
                return r;
        return n < m ? (b[n] == '/' ? -1 : '/' - (unsigned char)b[n])
                     : (a[m] == '/' ? 1 : (unsigned char)a[m] - '/');
}

static int by_directory(const void *a, const void *b) {
        return compare_directories(((const struct unit *)a)->directory, ((const struct unit *)b)->directory);
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
                                *ret_missing = path_of(u->list[i].directory, *m);
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

static bool unit_wants(const struct unit *units, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (!units[i].name ||
                    (units[i].glob ? fnmatch(units[i].name, name, 0) == 0 : strcmp(units[i].name, name) == 0))
                        return true;
        return false;
}

/* Gone, or no regular file: nothing is said. */
static int emit_file(struct scan *s, int dir_fd, const char *directory, const char *name) {
        _cleanup_free_ char *path = path_of(directory, name);
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
static int list_directory(struct scan *s, const struct unit *units, size_t n, const char *after) {
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
                    !unit_wants(units, n, e->d_name))
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

static int list_units(struct scan *s, const struct units *u, const char *after) {
        _cleanup_free_ char *directory = NULL;
        const char *name = NULL;

        if (after) {
                const char *slash = strrchr(after, '/');

                if (!slash)
                        return scan_fail(s, -EINVAL, "%.200s: is no path to go on from", after);
                directory = strndup(after, (size_t)MAX(slash - after, 1));
                if (!directory)
                        return -ENOMEM;
                name = slash + 1;
        }
        for (size_t i = 0, n; i < u->n; i += n) {
                int c = directory ? compare_directories(u->list[i].directory, directory) : 1, r;

                for (n = 1; i + n < u->n && strcmp(u->list[i + n].directory, u->list[i].directory) == 0;)
                        n++;
                if (c < 0)
                        continue;
                r = list_directory(s, u->list + i, n, c == 0 ? name : NULL);
                if (r < 0)
                        return r;
        }
        return 0;
}

int scan_files(struct scan *s, const char *pattern, const char *after, char **ret_missing) {
        const char *path = strncmp(pattern, "file://", 7) == 0 ? pattern + 7 : pattern;
        _cleanup_(words_free_p) char **words = NULL;
        _cleanup_(units_done) struct units u = { 0 };
        const char *missing = NULL;
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
        /* *.{txt,csv}: one of the two will do. {us,eu}: both have to be there. */
        for (size_t i = 0; i < n; i++) {
                r = add_word(s, &u, words[i]);
                if (r < 0)
                        return r;
                if (r == 0 && (!missing || !has_glob(words[i])))
                        missing = words[i];
        }
        if (missing && (u.n == 0 || !has_glob(missing))) {
                *ret_missing = strdup(missing);
                return *ret_missing ? 0 : -ENOMEM;
        }
        qsort(u.list, u.n, sizeof(*u.list), by_directory);
        r = check_markers(s, &u, ret_missing);
        if (r > 0) {
                r = list_units(s, &u, after);
                return r < 0 ? r : 1;
        }
        return r;
}
