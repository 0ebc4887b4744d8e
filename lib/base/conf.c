/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files by table. Invariant: a value that is not understood changes nothing but, for a key of
 * security, the outcome; drop-ins are applied by file name, whatever directory they come from. What cannot be
 * read, or may be written by others, refuses the start: it may be there for security. */
#include "lib/base/conf.h"

#include <dirent.h>
#include <stdarg.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/conf-file.h"
#include "lib/base/log.h"
#include "lib/base/names.h"
#include "lib/base/parse.h"
#include "lib/base/strv.h"
#include "lib/base/utf8.h"

#define DROPINS_MAX 1024
#define CONF_SECTION_MAX 50u
#define CONF_NAME_MAX 64u  /* of longer names nothing is said to be near */
#define COMPLAINT_MAX 512u /* bytes of what is said of a line */
#define COMPLAINTS_MAX 20u /* said of one file, beside those that refuse it */
#define MISSPELT_MAX 2u    /* letters */

bool conf_name_valid(const char *s) {
        size_t n = strlen(s);

        return n > 0 && n <= SECTION_NAME_MAX &&
               strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

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

int conf_parse_words(const char *value, size_t max, bool (*valid)(const char *word), char ***target) {
        char **list = calloc(max + 1, sizeof(*list)), *save = NULL;
        _cleanup_free_ char *copy = strdup(value);
        size_t n = 0;
        int r = list && copy ? 0 : -ENOMEM;

        for (char *word = r < 0 ? NULL : strtok_r(copy, " \t", &save); word && r >= 0;
             word = strtok_r(NULL, " \t", &save)) {
                if (n == max || !valid(word))
                        r = -EINVAL;
                else if (!(list[n++] = strdup(word)))
                        r = -ENOMEM;
        }
        if (r < 0) {
                strings_free(list);
                return r;
        }
        strings_free(*target);
        *target = list;
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
        const struct conf_key *keys;
        const struct conf_group *groups; /* or NULL */
        void *target;
        struct conf_report *report;
        unsigned said;                  /* lines that something was wrong with */
        char refused[CONF_SECTION_MAX]; /* a section of a group that was refused: said once */
        int error;                      /* -EINVAL: a security key */
};

/* Says what is wrong with a line; refuse: and that the daemon does not start for it. A file of junk has many.
 */
static void complain(struct reading *rd, unsigned line, bool refuse, const char *format, ...) _printf_(4, 5);
static void complain(struct reading *rd, unsigned line, bool refuse, const char *format, ...) {
        char text[COMPLAINT_MAX];
        va_list ap;

        va_start(ap, format);
        vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        for (char *c = text; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = '?';
        if (refuse)
                rd->error = -EINVAL;
        *(refuse ? &rd->report->errors : &rd->report->warnings) += 1;
        if (refuse)
                log_error("%s:%u: %s; refusing to start with it", rd->path, line, text);
        else if (rd->said < COMPLAINTS_MAX)
                log_warning("%s:%u: %s; ignored", rd->path, line, text);
        else if (rd->said == COMPLAINTS_MAX)
                log_warning("%s: more such lines, which are ignored, too", rd->path);
        rd->said++;
}

static const struct conf_key *find_key(const struct conf_key *keys, const char *section, const char *name) {
        for (const struct conf_key *k = keys; k->name; k++)
                if (strcmp(k->section, section) == 0 && strcmp(k->name, name) == 0)
                        return k;
        return NULL;
}

/* The nearest key of any section, or NULL where none is near; of equally near ones that of this section. */
static const struct conf_key *nearest_key(const struct conf_key *keys, const char *section, const char *name,
                                          size_t *ret_distance) {
        const struct conf_key *best = NULL;
        size_t least = strlen(name) / 3 + 2;

        if (strlen(name) > CONF_NAME_MAX)
                return NULL;
        for (const struct conf_key *k = keys; k->name; k++) {
                size_t d = edit_distance(k->name, name);
                if (d < least || (best && d == least && strcmp(k->section, section) == 0)) {
                        least = d;
                        best = k;
                }
        }
        *ret_distance = least;
        return best;
}

/* Who wrote name most likely meant a key of security: what they wanted to close would stay open. */
static bool meant_security(const struct conf_key *keys, const char *section, const char *name,
                           const struct conf_key **ret_near) {
        size_t distance = 0;
        const struct conf_key *near = nearest_key(keys, section, name, &distance);

        *ret_near = near;
        return near && near->security && distance <= MISSPELT_MAX;
}

/* The section that a misspelt one should be, or NULL. */
static const char *nearest_section(const struct reading *rd, const char *section) {
        const char *best = NULL;
        size_t least = 3;

        if (strlen(section) > CONF_NAME_MAX)
                return NULL;
        for (const struct conf_key *k = rd->keys; k->name; k++) {
                size_t d = edit_distance(k->section, section);
                if (d < least) {
                        least = d;
                        best = k->section;
                }
        }
        return best;
}

static const struct conf_group *find_group(const struct reading *rd, const char *section) {
        for (const struct conf_group *g = rd->groups; g && g->section; g++) {
                size_t n = strlen(g->section);
                if (strncmp(section, g->section, n) == 0 && (!section[n] || section[n] == ' '))
                        return g;
        }
        return NULL;
}

static bool known_section(const struct reading *rd, const char *section) {
        if (find_group(rd, section))
                return true;
        for (const struct conf_key *k = rd->keys; k->name; k++)
                if (strcmp(k->section, section) == 0)
                        return true;
        return false;
}

/* "Pool gpu": the struct of that one. NULL: refused. */
static void *find_target(struct reading *rd, const struct conf_group *g, const struct conf_line *l) {
        const char *why = "not understood";
        size_t n = strlen(g->section);
        void *found = NULL;

        if (!l->section[n])
                why = "a name is missing, as in [Pool NAME]";
        else if (strlen(l->section) >= CONF_SECTION_MAX)
                why = "the name is too long";
        else
                found = g->find(rd->target, l->section + n + 1, &why);
        if (!found && strcmp(rd->refused, l->section) != 0) {
                complain(rd, l->number, false, "section [%.60s]: %s", l->section, why);
                snprintf(rd->refused, sizeof(rd->refused), "%s", l->section);
        }
        return found;
}

static void unknown_key(struct reading *rd, const struct conf_line *l) {
        const struct conf_key *near;
        bool refuse = meant_security(rd->keys, l->section, l->name, &near);

        if (!near)
                complain(rd, l->number, false, "unknown key %.60s in section [%.60s]", l->name, l->section);
        else if (strcmp(near->name, l->name) == 0)
                complain(rd, l->number, refuse, "key %s does not belong in section [%.60s] but in [%s]",
                         l->name, l->section, near->section);
        else
                complain(rd, l->number, refuse,
                         "unknown key %.60s in section [%.60s]; did you mean %s in [%s]?", l->name,
                         l->section, near->name, near->section);
}

static int remember_origin(struct conf_report *report, const struct reading *rd, const struct conf_line *l) {
        struct conf_origin *bigger = reallocarray(report->origins, report->n + 1, sizeof(*bigger));
        struct conf_origin *o;

        if (!bigger)
                return -ENOMEM;
        report->origins = bigger;
        o = &report->origins[report->n];
        *o = (struct conf_origin){ strdup(l->section), strdup(l->name), strdup(l->value), strdup(rd->path),
                                   l->number };
        report->n++; /* what there is of it is freed with the others */
        return o->section && o->name && o->value && o->path ? 0 : -ENOMEM;
}

static int on_line(void *userdata, const struct conf_line *l) {
        struct reading *rd = userdata;
        const struct conf_group *g = find_group(rd, l->section);
        const struct conf_key *k, *near;
        const char *why = "not understood";
        void *target = rd->target;
        bool refuse;
        int r;

        if (l->kind == CONF_LINE_SECTION) {
                near = NULL;
                why = known_section(rd, l->section) ? NULL : nearest_section(rd, l->section);
                if (why)
                        complain(rd, l->number, false, "unknown section [%.60s]; did you mean [%s]?",
                                 l->section, why);
                else if (!known_section(rd, l->section))
                        complain(rd, l->number, false, "unknown section [%.60s]", l->section);
                return 0;
        }
        if (l->kind == CONF_LINE_BAD) {
                refuse = meant_security(rd->keys, l->section, l->name, &near);
                complain(rd, l->number, refuse, "%s%s%.60s", l->value, *l->name ? ": " : "", l->name);
                return 0;
        }
        k = find_key(rd->keys, g ? g->section : l->section, l->name);
        if (!k) {
                unknown_key(rd, l);
                return 0;
        }
        if (g)
                target = find_target(rd, g, l);
        if (!target) {
                if (k->security)
                        complain(rd, l->number, true, "%s= in a section that is not taken", l->name);
                return 0;
        }
        r = k->parse(l->value, (char *)target + k->offset, &why);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                complain(rd, l->number, k->security, "%s=%.200s: %s", l->name, l->value, why);
                return 0;
        }
        return remember_origin(rd->report, rd, l);
}

/* What cannot be read may say anything, also something that is there for security. */
static int refuse_file(struct conf_report *report, const char *path, const char *why) {
        report->errors++;
        log_error("%s: %s; refusing to start without knowing what it says", path, why);
        return -EINVAL;
}

static int load_file(const char *path, const struct conf_key *keys, const struct conf_group *groups,
                     void *target, struct conf_report *report) {
        struct reading rd = {
                .path = path, .keys = keys, .groups = groups, .target = target, .report = report
        };
        _cleanup_free_ char *text = NULL;
        const char *why;
        size_t size;
        int r;

        r = conf_file_read(path, &text, &size, &why);
        if (r == -ENOENT)
                return 0;
        if (r == -ENOMEM)
                return log_oom();
        if (r < 0)
                return refuse_file(report, path, why);
        r = conf_text_parse(text, size, on_line, &rd);
        return r < 0 ? log_oom() : rd.error;
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

static int dropins_scan(struct dropins *d, const char *directory, struct conf_report *report) {
        struct dirent *e;
        const char *why;
        int r = 0;
        DIR *dir = opendir(directory);

        if (!dir)
                return errno == ENOENT ? 0 : refuse_file(report, directory, strerror(errno));
        if (conf_directory_check(dirfd(dir), &why) < 0)
                r = refuse_file(report, directory, why);
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
        return conf_load_groups(root, name, keys, NULL, target, NULL);
}

int conf_load_groups(const char *root, const char *name, const struct conf_key *keys,
                     const struct conf_group *groups, void *target, struct conf_report *report) {
        static const char *const directories[] = { PRIMUS_LIBEXECDIR, "/run/primus", PRIMUS_SYSCONFDIR };
        _cleanup_(conf_report_done) struct conf_report own = {};
        _cleanup_(dropins_done) struct dropins d = {};
        _cleanup_free_ char *path = NULL;
        int r, first = 0;

        if (!report)
                report = &own;
        if (asprintf(&path, "%s%s/%s", root ?: "", PRIMUS_SYSCONFDIR, name) < 0) {
                path = NULL;
                return log_oom();
        }
        r = load_file(path, keys, groups, target, report);
        if (r < 0)
                first = r;
        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                _cleanup_free_ char *directory = NULL;
                if (asprintf(&directory, "%s%s/%s.d", root ?: "", directories[i], name) < 0) {
                        directory = NULL;
                        return log_oom();
                }
                r = dropins_scan(&d, directory, report);
                if (r < 0 && first >= 0)
                        first = r;
        }
        if (d.n > 0)
                qsort(d.items, d.n, sizeof(*d.items), compare_dropins);
        for (size_t i = 0; i < d.n; i++) { /* all of them, so that every bad line is named at once */
                r = load_file(d.items[i].path, keys, groups, target, report);
                if (r < 0 && first >= 0)
                        first = r;
        }
        return first;
}

/* ---- what holds, and where it comes from ---- */

void conf_report_done(struct conf_report *report) {
        for (size_t i = 0; i < report->n; i++) {
                free(report->origins[i].section);
                free(report->origins[i].name);
                free(report->origins[i].value);
                free(report->origins[i].path);
        }
        free(report->origins);
        *report = (struct conf_report){};
}

static const struct conf_origin *find_origin(const struct conf_report *report, const char *section,
                                             const char *name) {
        for (size_t i = report->n; i-- > 0;)
                if (strcmp(report->origins[i].section, section) == 0 &&
                    strcmp(report->origins[i].name, name) == 0)
                        return &report->origins[i];
        return NULL;
}

char *conf_lookup(const char *name, const char *section, const char *key) {
        const struct conf_key keys[] = { { section, key, conf_parse_string, 0, false, NULL }, { NULL } };
        int level = log_level();
        char *value = NULL;

        log_set_level(LOG_CRIT);
        (void)conf_load(NULL, name, keys, &value);
        log_set_level(level);
        return value;
}

/* table: the section's name in the table of keys. */
static void show_section(FILE *f, const struct conf_key *keys, const struct conf_report *report,
                         const char *table, const char *section) {
        fprintf(f, "[%s]\n", section);
        for (const struct conf_key *k = keys; k->name; k++) {
                const struct conf_origin *o;
                if (strcmp(k->section, table) != 0)
                        continue;
                o = find_origin(report, section, k->name);
                if (o)
                        fprintf(f, "# %s:%u\n%s=%s\n", o->path, o->line, k->name, o->value);
                else
                        fprintf(f, "#%s=%s\n", k->name, k->initial ?: "");
        }
        fputc('\n', f);
}

void conf_show(FILE *f, const struct conf_key *keys, const struct conf_group *groups,
               const struct conf_report *report) {
        for (const struct conf_key *k = keys; k->name; k++) {
                const struct conf_group *g = groups;
                while (g && g->section && strcmp(g->section, k->section) != 0)
                        g++;
                if ((!g || !g->section) && (k == keys || strcmp(k[-1].section, k->section) != 0))
                        show_section(f, keys, report, k->section, k->section);
        }
        for (const struct conf_group *g = groups; g && g->section; g++)
                for (size_t i = 0; i < report->n; i++) {
                        const char *section = report->origins[i].section;
                        size_t n = strlen(g->section), before = 0;
                        if (strncmp(section, g->section, n) != 0 || section[n] != ' ')
                                continue;
                        while (before < i && strcmp(report->origins[before].section, section) != 0)
                                before++;
                        if (before == i)
                                show_section(f, keys, report, g->section, section);
                }
}
