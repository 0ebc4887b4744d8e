/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/scan/scan-units.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

void units_done(struct units *u) {
        for (size_t i = 0; i < u->n; i++) {
                free(u->list[i].directory);
                free(u->list[i].name);
        }
        free(u->list);
}

int units_add(struct scan *s, struct units *u, const char *directory, size_t n, const char *name, bool glob) {
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

char *path_in(const char *directory, const char *name) {
        char *path;

        return asprintf(&path, "%s%s%s", directory, directory[0] && !directory[1] ? "" : "/", name) < 0
                       ? NULL
                       : path;
}

bool has_glob(const char *s) {
        return strpbrk(s, "*?[\\") != NULL;
}

int units_of_words(char *const *words, size_t n, const struct units *u, word_finder find, void *userdata,
                   char **ret_missing) {
        const char *missing = NULL;

        for (size_t i = 0; i < n; i++) {
                int r = find(userdata, words[i]);

                if (r < 0)
                        return r;
                if (r == 0 && (!missing || !has_glob(words[i])))
                        missing = words[i];
        }
        if (!missing || (u->n > 0 && has_glob(missing)))
                return 1;
        *ret_missing = strdup(missing);
        return *ret_missing ? 0 : -ENOMEM;
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

void units_sort(struct units *u) {
        qsort(u->list, u->n, sizeof(*u->list), by_directory);
}

bool units_want(const struct unit *units, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (!units[i].name ||
                    (units[i].glob ? fnmatch(units[i].name, name, 0) == 0 : strcmp(units[i].name, name) == 0))
                        return true;
        return false;
}

int units_each(struct scan *s, const struct units *u, const char *after, unit_lister list, void *userdata) {
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
                r = list(userdata, u->list + i, n, c == 0 ? name : NULL);
                if (r < 0)
                        return r;
        }
        return 0;
}
