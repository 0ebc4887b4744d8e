/* SPDX-License-Identifier: Apache-2.0 */
/* Looking things up as the job's user. Invariant: what a user names is opened with that user's rights, never with root's:
 * the thread takes on the user's file system uid and groups and gives them back before it returns. */
#include "agentd/unit/prepare.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/base/cleanup.h"

char *output_expand(const char *pattern, const struct executor_id *id, const char *node, const char *directory) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        bool bad = false;

        if (!f)
                return NULL;
        if (*pattern != '/')
                fprintf(f, "%s/", directory);
        for (const char *p = pattern; *p; p++) {
                if (*p != '%') {
                        fputc(*p, f);
                        continue;
                }
                switch (*++p) {
                case 'j':
                        fprintf(f, "%u", id->job);
                        break;
                case 'r':
                        fputs(id->role, f);
                        break;
                case 'i':
                        fprintf(f, "%u", id->index);
                        break;
                case 'a':
                        fprintf(f, "%u", id->attempt);
                        break;
                case 'n':
                        fputs(node, f);
                        break;
                case '%':
                        fputc('%', f);
                        break;
                default:
                        bad = true;
                }
                if (bad)
                        break;
        }
        if (fclose(f) != 0 || bad) {
                free(text);
                errno = bad ? EINVAL : ENOMEM;
                return NULL;
        }
        return text;
}

DEFINE_CLEANUP(struct preparation *, preparation_free)

int preparation_new(const struct start_order *o, const char *directory, const char *node, struct preparation **ret,
                    char **ret_why) {
        _cleanup_(preparation_free_p) struct preparation *p = calloc(1, sizeof(*p));
        const char *command = o->argv && *o->argv ? *o->argv : "";

        if (!p)
                return -ENOMEM;
        p->uid = o->uid;
        p->output_fd = -EBADF;
        p->directory = strdup(directory);
        p->command = strdup(command);
        if (!p->directory || !p->command)
                return -ENOMEM;
        if (o->output && *o->output) {
                p->output = output_expand(o->output, &o->id, node, directory);
                if (!p->output && errno == EINVAL)
                        return asprintf(ret_why, "the output pattern %s has an unknown letter behind %%; %%j %%r %%i %%a %%n are known",
                                        o->output) < 0
                                       ? -ENOMEM
                                       : -EINVAL;
                if (!p->output)
                        return -ENOMEM;
        }
        if (o->kind == ORDER_TRAINER && *command && *command != '/') {
                if (strchr(command, '/')) {
                        if (asprintf(&p->executable, "%s/%s", directory, command) < 0) {
                                p->executable = NULL;
                                return -ENOMEM;
                        }
                } else
                        for (char **e = o->env; e && *e; e++)
                                if (strncmp(*e, "PATH=", 5) == 0) {
                                        free(p->path);
                                        p->path = strdup(*e + 5);
                                        if (!p->path)
                                                return -ENOMEM;
                                }
        }
        *ret = TAKE_PTR(p);
        return 0;
}

void preparation_free(struct preparation *p) {
        if (!p)
                return;
        free(p->directory);
        free(p->command);
        free(p->path);
        free(p->output);
        free(p->executable);
        free(p->why);
        close_fd(p->output_fd);
        free(p);
}

bool preparation_blocks(const struct preparation *p) {
        return p->output || p->path;
}

/* ---- in the thread -------------------------------------------------------------------------------------------------- */

/* setgroups() of libc would change every thread; the system call changes this one. */
static void become(uint32_t uid) {
        gid_t groups[256] = { 0 }, gid = uid;
        int n = 0;
        struct passwd pw, *found = NULL;
        char buf[8192];

        if (uid != 0 && getpwuid_r(uid, &pw, buf, sizeof(buf), &found) == 0 && found) {
                gid = pw.pw_gid;
                n = (int) ELEMENTSOF(groups);
                if (getgrouplist(pw.pw_name, gid, groups, &n) < 0)
                        n = (int) ELEMENTSOF(groups); /* the first 256 */
        }
        (void) syscall(SYS_setgroups, (size_t) n, groups);
        (void) setfsgid(uid == 0 ? 0 : gid);
        (void) setfsuid(uid);
}

static int executable_at(const char *directory, size_t l, const struct preparation *p, char **ret) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        if (l == 0 || *directory != '/')
                return -ENOENT; /* relative entries of PATH would mean the job's directory before its files are there */
        if (asprintf(&path, "%.*s/%s", (int) l, directory, p->command) < 0)
                return -ENOMEM;
        fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
                return -EACCES;
        *ret = TAKE_PTR(path);
        return 0;
}

static void find_executable(struct preparation *p) {
        for (const char *d = p->path; d;) {
                size_t l = strcspn(d, ":");

                if (executable_at(d, l, p, &p->executable) >= 0)
                        return;
                d = d[l] ? d + l + 1 : NULL;
        }
}

static void open_output(struct preparation *p) {
        _cleanup_close_ int fd =
                open(p->output, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
        struct stat st;
        int r;

        if (fd < 0)
                r = asprintf(&p->why, "cannot open the output file %s: %s", p->output, strerror(errno));
        else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                r = asprintf(&p->why, "the output %s is not an ordinary file", p->output);
        else {
                (void) fcntl(fd, F_SETFL, O_APPEND);
                p->output_fd = TAKE_FD(fd);
                return;
        }
        if (r < 0)
                p->why = NULL;
        p->output_fd = -EBADF;
}

void preparation_run(void *data) {
        struct preparation *p = data;

        become(p->uid);
        if (p->path)
                find_executable(p);
        if (p->output)
                open_output(p);
        become(0);
}
