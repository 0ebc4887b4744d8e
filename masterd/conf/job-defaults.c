/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: all files are taken, or none: half of what a site forces would be nothing that it has said. */
#include "masterd/conf/job-defaults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/conf-file.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"

static bool is_layer(const char *name) {
        const char *dot = strrchr(name, '.');

        return *name != '.' && dot && strcmp(dot, ".json") == 0;
}

static int by_name(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted; one more than may be is enough to say so. */
static int list_names(DIR *directory, char *names[static LAYERS_MAX + 1], size_t *ret_n) {
        struct dirent *e;

        while (errno = 0, e = readdir(directory)) {
                if (!is_layer(e->d_name))
                        continue;
                if (*ret_n == LAYERS_MAX)
                        return -E2BIG;
                if (!(names[*ret_n] = strdup(e->d_name)))
                        return -ENOMEM;
                (*ret_n)++;
        }
        if (errno != 0)
                return -errno;
        qsort(names, *ret_n, sizeof(*names), by_name);
        return 0;
}

static int refuse_file(const char *path, const char *why) {
        log_error("%s: %s; no job is taken by half of what a site says", path, why);
        return -EINVAL;
}

static int read_one(const char *directory, const char *name, struct layers *l) {
        _cleanup_free_ char *path = NULL, *text = NULL, *error = NULL;
        const char *why = NULL;
        size_t size;
        int r;

        if (asprintf(&path, "%s/%s", directory, name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (!utf8_valid(name, strlen(name)))
                return refuse_file(directory, "a file's name is no UTF-8");
        r = conf_file_read(path, &text, &size, &why);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return refuse_file(path, why ? why : strerror(-r));
        r = layers_add(l, name, text, size, &error);
        if (r == -EBADMSG && error) {
                log_error("%s/%s", directory, error);
                return -EINVAL;
        }
        return r;
}

static int check_pools(const char *directory, const struct layers *l, const struct pools *pools) {
        int r = 0;

        for (size_t i = 0; i < layers_n(l); i++) {
                const char *const *names;
                size_t n = layers_pools(l, i, &names);

                for (size_t k = 0; k < n; k++)
                        if (!pools_find(pools, names[k])) {
                                log_error(
                                        "%s/%s: pools: there is no pool %s; masterd.conf has them as [Pool NAME]",
                                        directory, layers_name(l, i), names[k]);
                                r = -EINVAL;
                        }
        }
        return r;
}

static int read_all(DIR *d, const char *directory, struct layers *l) {
        char *names[LAYERS_MAX + 1] = {};
        size_t n = 0;
        int r = list_names(d, names, &n), failed = 0;

        if (r == -E2BIG)
                r = refuse_file(directory, "more files than may be (64)");
        else if (r < 0 && r != -ENOMEM)
                r = refuse_file(directory, strerror(-r));
        /* All that is wrong is said in one go. */
        for (size_t i = 0; r >= 0 && i < n; i++) {
                r = read_one(directory, names[i], l);
                if (r == -EINVAL) {
                        failed = r;
                        r = 0;
                }
        }
        for (size_t i = 0; i < n; i++)
                free(names[i]);
        return r < 0 ? r : failed;
}

int job_defaults_read(const char *directory, const struct pools *pools, struct layers **ret) {
        _cleanup_(layers_free_p) struct layers *l = NULL;
        const char *why = NULL;
        DIR *d = opendir(directory);
        int r;

        if (!d && errno == ENOENT) {
                *ret = NULL;
                return 0;
        }
        if (!d)
                return refuse_file(directory, strerror(errno));
        l = layers_new();
        r = !l                                         ? -ENOMEM
            : conf_directory_check(dirfd(d), &why) < 0 ? refuse_file(directory, why)
                                                       : read_all(d, directory, l);
        closedir(d);
        if (r < 0)
                return r;
        r = check_pools(directory, l, pools);
        if (r < 0)
                return r;
        *ret = layers_n(l) > 0 ? TAKE_PTR(l) : NULL;
        return 0;
}
