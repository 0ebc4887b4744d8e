/* SPDX-License-Identifier: Apache-2.0 */
/* Files that say what is left out. Invariant: matching takes at most (length of the pattern) x (length of the
 * path) steps, whatever is in a file that somebody else wrote. */
#include "tools/primusctl/bus/ignore.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

struct rule {
        char *text;     /* without "!", the slash at the beginning and the one at the end */
        size_t base;    /* the length of the path of its folder, with the slash behind it */
        unsigned depth; /* of the walk when it came */
        bool negated, directories, anchored;
};

struct rules {
        struct rule *list;
        size_t n, allocated;
};

struct ignore {
        struct rules git, own;
        unsigned depth;
};

/* ---- patterns ---- */

/* One of the names that [:name:] may have. */
static bool in_class(const char *name, size_t n, unsigned char c) {
        static const struct {
                const char *name;
                int (*is)(int c);
        } classes[] = {
                { "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank }, { "cntrl", iscntrl },
                { "digit", isdigit }, { "graph", isgraph }, { "lower", islower }, { "print", isprint },
                { "punct", ispunct }, { "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit },
        };

        for (size_t i = 0; i < ELEMENTSOF(classes); i++)
                if (strlen(classes[i].name) == n && memcmp(classes[i].name, name, n) == 0)
                        return classes[i].is(c) != 0;
        return false;
}

/* p is behind "[". How much of the pattern the set takes, 0 where it has no end; *ret: c is in it. */
static size_t match_set(const char *p, size_t n, unsigned char c, bool *ret) {
        size_t i = 0;
        bool negated = n > 0 && (*p == '!' || *p == '^'), in = false;

        i += negated;
        for (bool first = true; i < n && (first || p[i] != ']'); first = false) {
                unsigned char from, to;

                if (p[i] == '[' && i + 1 < n && p[i + 1] == ':') {
                        size_t start = i + 2, end = start;

                        while (end + 1 < n && !(p[end] == ':' && p[end + 1] == ']'))
                                end++;
                        if (end + 1 >= n)
                                return 0;
                        in |= in_class(p + start, end - start, c);
                        i = end + 2;
                        continue;
                }
                if (p[i] == '\\' && i + 1 < n)
                        i++;
                from = to = (unsigned char)p[i++];
                if (i + 1 < n && p[i] == '-' && p[i + 1] != ']') {
                        i++;
                        if (p[i] == '\\' && i + 1 < n)
                                i++;
                        to = (unsigned char)p[i++];
                }
                in |= c >= from && c <= to;
        }
        if (i >= n)
                return 0;
        *ret = in != negated;
        return i + 1;
}

/* One character against what stands at p; how much of the pattern it takes, 0: no match. */
static size_t match_one(const char *p, size_t n, unsigned char c) {
        bool in = false;
        size_t taken;

        switch (*p) {
        case '?':
                return 1;
        case '[':
                taken = match_set(p + 1, n - 1, c, &in);
                return taken > 0 && in ? taken + 1 : 0;
        case '\\':
                return n > 1 && (unsigned char)p[1] == c ? 2 : 0;
        default:
                return (unsigned char)*p == c ? 1 : 0;
        }
}

bool ignore_glob(const char *pattern, size_t n, const char *name, size_t length) {
        size_t p = 0, s = 0, star = SIZE_MAX, from = 0;

        while (s < length) {
                size_t taken;

                if (p < n && pattern[p] == '*') { /* as little as can be; more if that does not go */
                        star = ++p;
                        from = s;
                } else if (p < n && (taken = match_one(pattern + p, n - p, (unsigned char)name[s])) > 0) {
                        p += taken;
                        s++;
                } else if (star != SIZE_MAX) {
                        p = star;
                        s = ++from;
                } else
                        return false;
        }
        while (p < n && pattern[p] == '*')
                p++;
        return p == n;
}

static size_t component(const char *s) {
        return strcspn(s, "/");
}

static const char *behind(const char *s, size_t n) {
        return s + n + (s[n] == '/');
}

/* The same with folders for characters: "**" takes any number of them, at the end at least one. */
static bool match_path(const char *p, const char *s) {
        const char *star = NULL, *from = NULL;

        while (*s) {
                size_t n = component(p), l = component(s);

                if (n == 2 && p[0] == '*' && p[1] == '*') {
                        if (!p[2])
                                return true;
                        star = p = behind(p, n);
                        from = s;
                } else if (n > 0 && ignore_glob(p, n, s, l)) {
                        p = behind(p, n);
                        s = behind(s, l);
                } else if (star) {
                        p = star;
                        s = from = behind(from, component(from));
                } else
                        return false;
        }
        return !*p;
}

/* ---- files ---- */

static void drop(struct rules *r, unsigned depth) {
        while (r->n > 0 && r->list[r->n - 1].depth >= depth)
                free(r->list[--r->n].text);
}

/* A line, changed in place. */
static int add_line(struct rules *rules, char *line, size_t base, unsigned depth) {
        struct rule r = { .base = base, .depth = depth };
        size_t n = strlen(line);

        if (n > 0 && line[n - 1] == '\r')
                line[--n] = 0;
        while (n > 0 && line[n - 1] == ' ' && !(n > 1 && line[n - 2] == '\\'))
                line[--n] = 0;
        if (*line == '#')
                return 0;
        if (*line == '!') {
                r.negated = true;
                line++;
                n--;
        }
        if (n > 0 && line[n - 1] == '/') {
                r.directories = true;
                line[--n] = 0;
        }
        r.anchored = strchr(line, '/') != NULL;
        if (*line == '/')
                line++;
        if (!*line)
                return 0;
        if (rules->n >= IGNORE_RULES_MAX)
                return -E2BIG;
        if (rules->n == rules->allocated) {
                size_t more = rules->allocated ? rules->allocated * 2 : 32;
                struct rule *bigger = realloc(rules->list, more * sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                rules->list = bigger;
                rules->allocated = more;
        }
        r.text = strdup(line);
        if (!r.text)
                return -ENOMEM;
        rules->list[rules->n++] = r;
        return 0;
}

/* -ENOENT is no error; a file that is a link is not followed, as git does not. */
static int read_rules(const char *path, char **ret) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        struct stat st;
        int r;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
        r = read_fd(fd, IGNORE_FILE_MAX, ret, NULL);
        return r == -EFBIG ? -E2BIG : r;
}

static int add_file(struct rules *rules, const char *directory, const char *name, unsigned depth,
                    char **ret_path) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        bool top = strcmp(directory, "/") == 0;
        char *rest, *line;
        int r;

        if (asprintf(&path, "%s/%s", top ? "" : directory, name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = read_rules(path, &text);
        if (r == -ENOENT)
                return 0;
        rest = text;
        if (r >= 0 && strncmp(rest, "\xef\xbb\xbf", 3) == 0)
                rest += 3;
        while (r >= 0 && (line = strsep(&rest, "\n")))
                r = add_line(rules, line, top ? 1 : strlen(directory) + 1, depth);
        if (r < 0)
                *ret_path = TAKE_PTR(path);
        return r;
}

/* ---- the walk ---- */

int ignore_enter(struct ignore *i, const char *directory, char **ret_path) {
        int r;

        i->depth++;
        r = add_file(&i->git, directory, ".gitignore", i->depth, ret_path);
        return r < 0 ? r : add_file(&i->own, directory, ".primusignore", i->depth, ret_path);
}

void ignore_leave(struct ignore *i) {
        drop(&i->git, i->depth);
        drop(&i->own, i->depth);
        i->depth--;
}

static bool is_repository(const char *directory) {
        _cleanup_free_ char *path = NULL;

        return asprintf(&path, "%s/.git", directory) >= 0 && access(path, F_OK) == 0;
}

static bool is_at_or_below(const char *path, const char *top) {
        size_t n = strlen(top);

        return strncmp(path, top, n) == 0 && (!path[n] || path[n] == '/' || (n > 0 && top[n - 1] == '/'));
}

/* The folders above root, the highest first. */
static int take_above(struct ignore *i, const char *root, const char *top, char **ret_path) {
        _cleanup_free_ char *path = strdup(root), *repository = NULL;
        int r = 0;

        if (!path)
                return -ENOMEM;
        for (char *slash; !repository; *slash = 0) {
                if (is_repository(path)) {
                        repository = strdup(path);
                        if (!repository)
                                return -ENOMEM;
                        break;
                }
                slash = strrchr(path, '/');
                if (!slash || slash == path)
                        break;
        }
        strcpy(path, root);
        for (char *p = path + 1; r >= 0 && (p = strchr(p, '/')); p++) {
                *p = 0;
                if (repository && is_at_or_below(path, repository))
                        r = add_file(&i->git, path, ".gitignore", 0, ret_path);
                if (r >= 0 && top && is_at_or_below(path, top))
                        r = add_file(&i->own, path, ".primusignore", 0, ret_path);
                *p = '/';
        }
        return r;
}

int ignore_new(const char *root, const char *top, struct ignore **ret, char **ret_path) {
        struct ignore *i = calloc(1, sizeof(*i));
        int r;

        if (!i)
                return -ENOMEM;
        r = take_above(i, root, top, ret_path);
        if (r < 0) {
                ignore_free(i);
                return r;
        }
        *ret = i;
        return 0;
}

void ignore_free(struct ignore *i) {
        if (!i)
                return;
        drop(&i->git, 0);
        drop(&i->own, 0);
        free(i->git.list);
        free(i->own.list);
        free(i);
}

/* The last line that matches decides. 1: left out; 0: not; -1: none matches. */
static int judge(const struct rules *rules, const char *path, bool directory) {
        const char *name = strrchr(path, '/') + 1;

        for (size_t i = rules->n; i-- > 0;) {
                const struct rule *r = rules->list + i;

                if (r->directories && !directory)
                        continue;
                if (r->anchored ? match_path(r->text, path + r->base)
                                : ignore_glob(r->text, strlen(r->text), name, strlen(name)))
                        return !r->negated;
        }
        return -1;
}

enum ignore_why ignore_match(const struct ignore *i, const char *path, bool directory) {
        const char *name = strrchr(path, '/') + 1;
        int r;

        if (strcmp(name, ".git") == 0 || (directory && strcmp(name, "__pycache__") == 0))
                return IGNORE_ALWAYS;
        r = judge(&i->own, path, directory);
        if (r < 0)
                r = judge(&i->git, path, directory);
        return r > 0 ? IGNORE_RULE : IGNORE_NOT;
}
