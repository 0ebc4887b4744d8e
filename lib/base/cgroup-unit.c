/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a process is, by its control group. Invariant: names count from the top of the hierarchy only: below
 * a group of his own a user calls things as he likes. */
#include "lib/base/cgroup-unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#define CGROUP_MAX (64u << 10)

/* The path of the hierarchy that systemd manages, as a slice of text. */
static const char *systemd_path(const char *text, size_t *ret_size) {
        const char *found = NULL;

        for (const char *line = text; *line;) {
                size_t n = strcspn(line, "\n");
                const char *first = memchr(line, ':', n), *second;

                second = first ? memchr(first + 1, ':', n - (size_t)(first + 1 - line)) : NULL;
                if (second) {
                        size_t controllers = (size_t)(second - first - 1);
                        bool named = controllers == 12 && memcmp(first + 1, "name=systemd", 12) == 0;

                        /* On a hybrid host both are there, and agree; v1's is the one that systemd goes by.
                         */
                        if (named || (controllers == 0 && !found)) {
                                found = second + 1;
                                *ret_size = n - (size_t)(second + 1 - line);
                        }
                        if (named)
                                return found;
                }
                line += n;
                line += *line == '\n';
        }
        return found;
}

static bool has_suffix(const char *s, size_t n, const char *suffix) {
        size_t l = strlen(suffix);

        return n > l && memcmp(s + n - l, suffix, l) == 0;
}

int cgroup_unit_parse(const char *text, const char *init, char *ret, size_t size) {
        static const char top[] = "/primus.slice/", scope[] = "/init.scope";
        size_t n = 0, root = 0;
        const char *path = systemd_path(text, &n), *init_path = systemd_path(init, &root);

        if (!path || !init_path)
                return -ENOENT;
        if (root >= strlen(scope) && memcmp(init_path + root - strlen(scope), scope, strlen(scope)) == 0)
                root -= strlen(scope);
        else if (root == 1)
                root = 0; /* "/" */
        if (n <= root || memcmp(path, init_path, root) != 0)
                return -ENOENT;
        path += root;
        n -= root;
        if (n <= strlen(top) || memcmp(path, top, strlen(top)) != 0)
                return -ENOENT;
        path += strlen(top);
        n -= strlen(top);
        while (n > 0) {
                const char *slash = memchr(path, '/', n);
                size_t l = slash ? (size_t)(slash - path) : n;

                if (has_suffix(path, l, ".service")) {
                        if (l >= size)
                                return -ENOENT;
                        memcpy(ret, path, l);
                        ret[l] = 0;
                        return 0;
                }
                if (!has_suffix(path, l, ".slice") || !slash)
                        return -ENOENT;
                path += l + 1;
                n -= l + 1;
        }
        return -ENOENT;
}

int cgroup_unit_of(pid_t pid, char *ret, size_t size) {
        _cleanup_free_ char *text = NULL, *init = NULL;
        char path[64];
        int r;

        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
        r = read_file(path, CGROUP_MAX, &text, NULL);
        if (r >= 0)
                r = read_file("/proc/1/cgroup", CGROUP_MAX, &init, NULL);
        return r < 0 ? r : cgroup_unit_parse(text, init, ret, size);
}

int cgroup_path_of(pid_t pid, char *ret, size_t size) {
        _cleanup_free_ char *text = NULL;
        const char *found;
        char path[64];
        size_t n;
        int r;

        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
        r = read_file(path, CGROUP_MAX, &text, NULL);
        if (r < 0)
                return r;
        found = systemd_path(text, &n);
        if (!found)
                return -ENOENT;
        n = MIN(n, size - 1);
        memcpy(ret, found, n);
        ret[n] = 0;
        return 0;
}
