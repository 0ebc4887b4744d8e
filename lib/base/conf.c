/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files by table. Invariant: a value that is not understood changes nothing but, for a key of
 * security, the outcome; drop-ins are applied by file name, whatever directory they come from. */
#include "lib/base/conf.h"

#include <dirent.h>
#include <ini.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"

#define DROPINS_MAX 1024
#define CONF_SECTION_MAX 50u /* the library cuts the names of sections here */

int conf_parse_string(const char *value, void *target, const char **ret_why) {
        char **s = target, *copy;

        if (!utf8_valid(value, strlen(value))) {
                *ret_why = "expected UTF-8 text";
                return -EINVAL;
        }
        copy = strdup(value);
        if (!copy) {
                *ret_why = "out of memory";
                return -ENOMEM;
        }
        free(*s);
        *s = copy;
        return 0;
}

int conf_parse_bool(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected yes or no";
        return parse_bool(value, target);
}

int conf_parse_duration(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected a duration such as 90s, 2h30min or infinity";
        return parse_duration(value, target);
}

int conf_parse_size(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected a size such as 512M or 4G";
        return parse_size(value, target);
}

int conf_parse_u32(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected a number from 0 to 4294967295";
        return parse_u32(value, 0, UINT32_MAX, target);
}

int conf_parse_port(const char *value, void *target, const char **ret_why) {
        uint32_t port;
        int r = parse_u32(value, 1, UINT16_MAX, &port);

        *ret_why = "expected a port from 1 to 65535";
        if (r < 0)
                return r;
        *(uint16_t *)target = (uint16_t)port;
        return 0;
}

/* One file being read. */
struct reading {
        const char *path;
        FILE *file;
        unsigned line;
        const struct conf_key *keys;
        const struct conf_group *groups; /* or NULL */
        void *target;
        char refused[CONF_SECTION_MAX]; /* a section of a group that was refused: said once */
        int error;                      /* -EINVAL: a security key; -ENOMEM */
};

static const struct conf_key *find_key(const struct conf_key *keys, const char *section, const char *name) {
        for (const struct conf_key *k = keys; k->name; k++)
                if (strcmp(k->section, section) == 0 && strcmp(k->name, name) == 0)
                        return k;
        return NULL;
}

/* The nearest key of any section, or NULL where none is near. */
static const struct conf_key *nearest_key(const struct conf_key *keys, const char *name) {
        const struct conf_key *best = NULL;
        size_t least = strlen(name) / 3 + 2;

        for (const struct conf_key *k = keys; k->name; k++) {
                size_t d = edit_distance(k->name, name);
                if (d < least) {
                        least = d;
                        best = k;
                }
        }
        return best;
}

/* "Pool gpu": the struct of that one, and *section becomes "Pool". NULL: refused. */
static void *find_target(struct reading *rd, const char **section) {
        const char *why = "not understood";
        size_t n;
        void *found;

        for (const struct conf_group *g = rd->groups; g && g->section; g++) {
                n = strlen(g->section);
                if (strncmp(*section, g->section, n) != 0 || ((*section)[n] && (*section)[n] != ' '))
                        continue;
                if (!(*section)[n])
                        why = "a name is missing, as in [Pool NAME]", found = NULL;
                else if (strlen(*section) + 1 >= CONF_SECTION_MAX)
                        why = "the name is too long", found = NULL;
                else
                        found = g->find(rd->target, *section + n + 1, &why);
                if (!found && strcmp(rd->refused, *section) != 0) {
                        log_warning("%s:%u: section [%s]: %s; ignored", rd->path, rd->line, *section, why);
                        snprintf(rd->refused, sizeof(rd->refused), "%s", *section);
                }
                *section = g->section;
                return found;
        }
        return rd->target;
}

static int on_value(void *user, const char *section, const char *name, const char *value) {
        struct reading *rd = user;
        void *target = find_target(rd, &section);
        const struct conf_key *k = find_key(rd->keys, section, name), *near;
        const char *why = "not understood";
        int r;

        if (!target)
                return 1;
        if (!k) {
                near = nearest_key(rd->keys, name);
                if (near)
                        log_warning(
                                "%s:%u: unknown key %s in section [%s], ignored; did you mean %s in [%s]?",
                                rd->path, rd->line, name, section, near->name, near->section);
                else
                        log_warning("%s:%u: unknown key %s in section [%s], ignored", rd->path, rd->line,
                                    name, section);
                return 1;
        }
        r = k->parse(value, (char *)target + k->offset, &why);
        if (r == -ENOMEM)
                rd->error = r;
        else if (r < 0 && k->security) {
                log_error("%s:%u: %s=%s: %s; refusing to start with it", rd->path, rd->line, name, value,
                          why);
                rd->error = -EINVAL;
        } else if (r < 0)
                log_warning("%s:%u: %s=%s: %s; ignored", rd->path, rd->line, name, value, why);
        return 1;
}

/* fgets() for inih that counts lines (the library's handler is not told), drops leading blanks (which inih
 * would take for a continuation of the value above) and drops lines that do not fit, with a warning. */
static char *read_line(char *s, int size, void *stream) {
        struct reading *rd = stream;
        size_t n;
        int c;

        for (;;) {
                if (!fgets(s, size, rd->file))
                        return NULL;
                rd->line++;
                n = strlen(s);
                if (n + 1 < (size_t)size || (n > 0 && s[n - 1] == '\n'))
                        break;
                c = fgetc(rd->file);
                if (c == EOF)
                        break;
                while (c != EOF && c != '\n')
                        c = fgetc(rd->file);
                log_warning("%s:%u: line longer than %d bytes, ignored", rd->path, rd->line, size - 2);
        }
        n = strspn(s, " \t");
        memmove(s, s + n, strlen(s + n) + 1);
        return s;
}

static int load_file(const char *path, const struct conf_key *keys, const struct conf_group *groups,
                     void *target) {
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        struct reading rd = { .path = path, .file = f, .keys = keys, .groups = groups, .target = target };
        int r;

        if (!f) {
                if (errno == ENOENT)
                        return 0;
                return log_error_errno(errno, "Cannot read %s", path);
        }
        r = ini_parse_stream(read_line, &rd, on_value, &rd);
        if (ferror(f))
                return log_error_errno(EIO, "Cannot read %s", path);
        if (r == -2)
                return log_oom();
        if (r > 0)
                log_warning("%s:%d: expected [Section], Key=Value or a comment; ignored", path, r);
        return rd.error;
}

struct dropin {
        char *name;
        char *path;
};

struct dropins {
        struct dropin *items;
        size_t n;
};

static void dropins_done(struct dropins *d) {
        for (size_t i = 0; i < d->n; i++) {
                free(d->items[i].name);
                free(d->items[i].path);
        }
        free(d->items);
}

/* Adds name from directory; one of the same name from a directory before is masked by it. */
static int dropins_add(struct dropins *d, const char *directory, const char *name) {
        _cleanup_free_ char *path = NULL, *copy = NULL;
        struct dropin *items;

        if (asprintf(&path, "%s/%s", directory, name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        for (size_t i = 0; i < d->n; i++)
                if (strcmp(d->items[i].name, name) == 0) {
                        free(d->items[i].path);
                        d->items[i].path = TAKE_PTR(path);
                        return 0;
                }
        if (d->n >= DROPINS_MAX)
                return log_error_errno(E2BIG, "More than %d drop-in files in %s", DROPINS_MAX, directory);
        copy = strdup(name);
        items = realloc(d->items, (d->n + 1) * sizeof(*items));
        if (items)
                d->items = items;
        if (!copy || !items)
                return -ENOMEM;
        d->items[d->n++] = (struct dropin){ .name = TAKE_PTR(copy), .path = TAKE_PTR(path) };
        return 0;
}

static int dropins_scan(struct dropins *d, const char *directory) {
        struct dirent *e;
        int r = 0;
        DIR *dir = opendir(directory);

        if (!dir)
                return errno == ENOENT ? 0 : log_error_errno(errno, "Cannot read %s", directory);
        while (r >= 0 && (e = readdir(dir))) {
                size_t n = strlen(e->d_name);
                if (e->d_name[0] != '.' && n > 5 && strcmp(e->d_name + n - 5, ".conf") == 0)
                        r = dropins_add(d, directory, e->d_name);
        }
        closedir(dir);
        return r;
}

static int compare_dropins(const void *a, const void *b) {
        return strcmp(((const struct dropin *)a)->name, ((const struct dropin *)b)->name);
}

int conf_load(const char *root, const char *name, const struct conf_key *keys, void *target) {
        return conf_load_groups(root, name, keys, NULL, target);
}

int conf_load_groups(const char *root, const char *name, const struct conf_key *keys,
                     const struct conf_group *groups, void *target) {
        static const char *const directories[] = { PRIMUS_LIBEXECDIR, "/run/primus", PRIMUS_SYSCONFDIR };
        _cleanup_(dropins_done) struct dropins d = {};
        _cleanup_free_ char *path = NULL;
        int r, first = 0;

        if (asprintf(&path, "%s%s/%s", root ?: "", PRIMUS_SYSCONFDIR, name) < 0) {
                path = NULL;
                return log_oom();
        }
        r = load_file(path, keys, groups, target);
        if (r < 0)
                first = r;
        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                _cleanup_free_ char *directory = NULL;
                if (asprintf(&directory, "%s%s/%s.d", root ?: "", directories[i], name) < 0) {
                        directory = NULL;
                        return log_oom();
                }
                r = dropins_scan(&d, directory);
                if (r < 0)
                        return r;
        }
        if (d.n > 0)
                qsort(d.items, d.n, sizeof(*d.items), compare_dropins);
        for (size_t i = 0; i < d.n; i++) { /* all of them, so that every bad line is named at once */
                r = load_file(d.items[i].path, keys, groups, target);
                if (r < 0 && first >= 0)
                        first = r;
        }
        return first;
}
