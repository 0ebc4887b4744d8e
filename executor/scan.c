/* SPDX-License-Identifier: Apache-2.0 */
/* Listing a data source. Invariant: what is sent is sorted, so that the last path sent is a cursor to go on
 * from. The paths are held in memory (that is what sorting takes, about 100 bytes a file); the rest of an
 * entry is looked up when its batch is sent. */
#include "executor/scan.h"

#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "executor/feed.h"
#include "executor/session.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define GLOB_MAX 1000000u
#define PATH_BYTES_MAX 4095u
#define IDENTIFY_MAX (60 * USEC_PER_SEC)

void scan_list_done(struct scan_list *l) {
        for (size_t i = 0; i < l->n; i++)
                free(l->paths[i]);
        free(l->paths);
        *l = (struct scan_list){ 0 };
}

_printf_(3, 4) static int fail(int r, char **ret_error, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        if (vasprintf(ret_error, format, ap) < 0) {
                *ret_error = NULL;
                r = -ENOMEM;
        }
        va_end(ap);
        return r;
}

static const char *base_name(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static bool wanted(const struct scan_request *q, const char *path) {
        const char *name = base_name(path);

        if (name[0] == '.' || name[0] == '_')
                return false;
        if (q->name && fnmatch(q->name, name, 0) != 0)
                return false;
        return !q->after || strcmp(path, q->after) > 0;
}

static int add(const struct scan_request *q, struct scan_list *l, char *path, char **ret_error) {
        _cleanup_free_ char *mine = path;

        if (!mine)
                return -ENOMEM;
        if (!wanted(q, mine))
                return 0;
        if (strlen(mine) > PATH_BYTES_MAX)
                return fail(-ENAMETOOLONG, ret_error, "%.200s...: the path is longer than %u bytes", mine,
                            PATH_BYTES_MAX);
        if (l->n >= SCAN_FILES_MAX)
                return fail(-E2BIG, ret_error, "%s: more than %u files; split the source", q->path,
                            SCAN_FILES_MAX);
        if (l->n == l->allocated) {
                size_t bigger = l->allocated ? l->allocated * 2 : 1024;
                char **paths = reallocarray(l->paths, bigger, sizeof(char *));

                if (!paths)
                        return -ENOMEM;
                l->paths = paths;
                l->allocated = bigger;
        }
        l->paths[l->n++] = TAKE_PTR(mine);
        return 0;
}

static void closedir_p(DIR **d) {
        if (*d)
                closedir(*d);
}

static int add_directory(const struct scan_request *q, struct scan_list *l, const char *directory,
                         char **ret_error) {
        _cleanup_(closedir_p) DIR *d = opendir(directory);
        size_t n = strlen(directory);
        struct dirent *e;

        if (!d)
                return fail(-errno, ret_error, "%s: %s", directory, strerror(errno));
        while (n > 1 && directory[n - 1] == '/')
                n--;
        while ((errno = 0, e = readdir(d))) {
                char *path;
                int r;

                /* Links and the unknown are looked at when they are sent. */
                if (e->d_type != DT_REG && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)
                        continue;
                if (asprintf(&path, "%.*s%s%s", (int)n, directory, n == 1 && directory[0] == '/' ? "" : "/",
                             e->d_name) < 0)
                        return -ENOMEM;
                r = add(q, l, path, ret_error);
                if (r < 0)
                        return r;
        }
        return errno > 0 ? fail(-errno, ret_error, "%s: %s", directory, strerror(errno)) : 0;
}

static int add_path(const struct scan_request *q, struct scan_list *l, const char *path, char **ret_error) {
        struct stat st;

        if (stat(path, &st) < 0)
                return fail(-errno, ret_error, "%s: %s", path, strerror(errno));
        if (S_ISDIR(st.st_mode))
                return add_directory(q, l, path, ret_error);
        if (S_ISREG(st.st_mode))
                return add(q, l, strdup(path), ret_error);
        return fail(-EINVAL, ret_error, "%s: is neither a directory nor a regular file", path);
}

static int by_bytes(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A directory that two patterns' words name is listed once. */
static void sort_unique(struct scan_list *l) {
        size_t kept = 0;

        if (l->n == 0)
                return;
        qsort(l->paths, l->n, sizeof(char *), by_bytes);
        for (size_t i = 1; i < l->n; i++) {
                if (strcmp(l->paths[kept], l->paths[i]) == 0)
                        free(l->paths[i]);
                else
                        l->paths[++kept] = l->paths[i];
        }
        l->n = kept + 1;
}

static __thread int glob_errno;
static __thread char glob_path[256];

static int glob_error(const char *path, int error) {
        glob_errno = error;
        snprintf(glob_path, sizeof(glob_path), "%s", path);
        return error != ENOENT && error != ENOTDIR;
}

static int collect_glob(const struct scan_request *q, const char *pattern, struct scan_list *l,
                        char **ret_error) {
        _cleanup_(globfree) glob_t found = { 0 };
        int r = glob(pattern, GLOB_NOSORT | GLOB_BRACE, glob_error, &found);

        if (r == GLOB_NOMATCH)
                return fail(-ENOENT, ret_error, "%s: nothing matches it", pattern);
        if (r == GLOB_ABORTED)
                return fail(-glob_errno, ret_error, "%s: %s", glob_path, strerror(glob_errno));
        if (r != 0)
                return -ENOMEM;
        if (found.gl_pathc > GLOB_MAX)
                return fail(-E2BIG, ret_error, "%s: names more than %u paths; be more specific", pattern,
                            GLOB_MAX);
        for (size_t i = 0; i < found.gl_pathc; i++) {
                const char *name = base_name(found.gl_pathv[i]);

                if (*name == '_')
                        continue;
                r = add_path(q, l, found.gl_pathv[i], ret_error);
                if (r < 0)
                        return r;
        }
        return 0;
}

int scan_collect(const struct scan_request *q, struct scan_list *ret, char **ret_error) {
        _cleanup_(scan_list_done) struct scan_list l = { 0 };
        const char *path = q->path;
        int r;

        *ret_error = NULL;
        if (strncmp(path, "file://", 7) == 0)
                path += 7;
        if (path[0] != '/')
                return fail(-EINVAL, ret_error,
                            "%s: must be an absolute path on the host, or file:// and one", q->path);
        if (strpbrk(path, "*?[{"))
                r = collect_glob(q, path, &l, ret_error);
        else
                r = add_path(q, &l, path, ret_error);
        if (r < 0)
                return r;
        sort_unique(&l);
        *ret = l;
        l = (struct scan_list){ 0 };
        return 0;
}

int scan_examine(const char *path, struct scan_entry *ret) {
        struct stat st;

        if (stat(path, &st) < 0)
                return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
        if (!S_ISREG(st.st_mode))
                return 0;
        *ret = (struct scan_entry){
                .path = path,
                .size = (uint64_t)st.st_size,
                .mtime_nsec =
                        (uint64_t)st.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st.st_mtim.tv_nsec,
                .inode = st.st_ino,
                .last = (uint64_t)st.st_size,
        };
        return 1;
}

/* ---- to agentd
 * -------------------------------------------------------------------------------------------------- */

struct batch {
        struct feed_entries head;
        uint8_t entries[TASKS_WIRE_MAX];
        size_t size;
};

/* Receives until there is something to do for the caller: returns 1 (up), 0 (farewell), or an exit status <
 * 0. */
static int scan_wait(struct session *s, uint8_t *buf, short events, uint32_t type, uint64_t deadline) {
        for (;;) {
                uint64_t now = now_boot(), until;
                struct feed_header h;
                struct pollfd pfd;

                until = MIN(session_step(s, now), deadline);
                while (session_receive(s, now, buf, &h) > 0)
                        if (h.type == type)
                                return 0;
                if (now >= deadline)
                        return s->refused_since > 0 ? -FEED_EXIT_REFUSED : -FEED_EXIT_INTERNAL;
                /* Only the first connection is waited for. A scan whose agentd has gone is started again from
                 * its cursor, by masterd. */
                if (type != FEED_WELCOME && s->state != SESSION_UP)
                        return -FEED_EXIT_INTERNAL;
                pfd = (struct pollfd){ .fd = s->fd, .events = (short)(POLLIN | events) };
                until = MIN(until, session_step(s, now));
                (void)poll(&pfd, 1, (int)MIN((usec_sub(until, now) + 999) / 1000, UINT64_C(600000)));
                if (events && (pfd.revents & events))
                        return 1;
        }
}

static int scan_send(struct session *s, uint8_t *buf, uint32_t type, const void *body, size_t size) {
        for (;;) {
                int r = session_send(s, now_boot(), type, body, size);

                if (r == 0)
                        return 0;
                if (r != -EAGAIN)
                        return -FEED_EXIT_INTERNAL;
                r = scan_wait(s, buf, POLLOUT, FEED_FAREWELL, USEC_INFINITY);
                if (r < 0)
                        return r;
        }
}

static int scan_bye(struct session *s, uint8_t *buf, const char *error) {
        uint8_t body[sizeof(struct feed_bye) + 1024];
        struct feed_bye bye = { .failed = error != NULL,
                                .text_size = error ? (uint32_t)MIN(strlen(error), 1024u) : 0 };
        int r;

        memcpy(body, &bye, sizeof(bye));
        memcpy(body + sizeof(bye), error ? error : "", bye.text_size);
        r = scan_send(s, buf, FEED_BYE, body, sizeof(bye) + bye.text_size);
        if (r < 0)
                return r;
        return scan_wait(s, buf, 0, FEED_FAREWELL, now_boot() + IDENTIFY_MAX);
}

static int send_batch(struct session *s, uint8_t *buf, struct batch *b) {
        int r = b->size > 0 ? scan_send(s, buf, FEED_ENTRIES, b, offsetof(struct batch, entries) + b->size)
                            : 0;

        b->size = 0;
        return r;
}

static int send_entries(struct session *s, uint8_t *buf, const struct scan_list *l, struct batch *b,
                        char **ret_error) {
        for (size_t i = 0; i < l->n; i++) {
                struct scan_entry e;
                int r = scan_examine(l->paths[i], &e);

                if (r < 0)
                        return fail(1, ret_error, "%s: %s", l->paths[i], strerror(-r));
                if (r == 0)
                        continue;
                r = scan_entry_write(&e, b->entries, sizeof(b->entries), &b->size);
                if (r == -ENOBUFS) {
                        r = send_batch(s, buf, b);
                        if (r < 0)
                                return r;
                        r = scan_entry_write(&e, b->entries, sizeof(b->entries), &b->size);
                }
                if (r < 0)
                        return fail(1, ret_error, "%s: %s", l->paths[i], strerror(-r));
        }
        return send_batch(s, buf, b);
}

static void session_done_p(struct session *s) {
        session_done(s);
}

int scan_run(const char *socket, const struct scan_request *q) {
        _cleanup_(session_done_p) struct session s;
        _cleanup_(scan_list_done) struct scan_list l = { 0 };
        _cleanup_free_ uint8_t *buf = malloc(FEED_PACKET_MAX + 1);
        _cleanup_free_ struct batch *b = calloc(1, sizeof(*b));
        _cleanup_free_ char *error = NULL;
        int r;

        session_init(&s, socket);
        if (!buf || !b)
                return FEED_EXIT_INTERNAL;
        r = scan_wait(&s, buf, 0, FEED_WELCOME, now_boot() + IDENTIFY_MAX);
        if (r < 0) {
                fprintf(stderr, "primus-executor: %s\n", s.refused[0] ? s.refused : "agentd does not answer");
                return -r;
        }
        r = scan_collect(q, &l, &error);
        if (r < 0 && !error)
                return FEED_EXIT_INTERNAL;
        if (!error) {
                r = send_entries(&s, buf, &l, b, &error);
                if (r < 0)
                        return -r;
        }
        if (error)
                fprintf(stderr, "primus-executor: data source %s: %s\n", q->source, error);
        r = scan_bye(&s, buf, error);
        return r < 0 ? -r : error ? 1 : 0;
}
