/* SPDX-License-Identifier: Apache-2.0 */
/* primus-enter UNIT: moves the main process of a session's unit into the cgroup of its executor, so that the
 * executor's limits hold for it and it ends with it. systemd moves processes into delegated cgroups only, and
 * an executor's belongs to systemd. It runs as ExecStartPost=+, with the environment of the user's processes
 * but as root. Therefore it is linked statically (no LD_PRELOAD reaches it), uses libc alone, takes the
 * unit's name from its argument, and moves nothing but a process of that very unit. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define SESSION_PREFIX "primus-session-"
#define PATH_BYTES 1024
#define CGROUP_BYTES 8192
#define PID_BYTES 16

static int read_text(const char *path, char *buf, size_t size) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = read(fd, buf, size - 1);
        (void)close(fd);
        if (n < 0)
                return -EIO;
        buf[n] = 0;
        return 0;
}

static int read_cgroups(const char *pid, char *buf, size_t size) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%.20s/cgroup", pid);
        return read_text(path, buf, size);
}

/* A line "ID:CONTROLLERS:PATH" of /proc/PID/cgroup: the directory of its hierarchy and the path there. */
struct place {
        const char *path;
        char root[PATH_BYTES];
        bool units; /* systemd's own tree */
};

static bool next_place(char **cursor, struct place *p) {
        char *line = *cursor, *controllers, *path, *end;

        end = strchr(line, '\n');
        if (!end)
                return false;
        *end = 0;
        *cursor = end + 1;
        controllers = strchr(line, ':');
        path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
                return false;
        *controllers++ = 0;
        *path++ = 0;
        p->path = path;
        if (*controllers == 0) { /* version 2, alone or beside the others */
                snprintf(p->root, sizeof(p->root), ROOT "/unified");
                if (access(p->root, F_OK) < 0)
                        snprintf(p->root, sizeof(p->root), ROOT);
                p->units = true;
        } else {
                const char *name = strncmp(controllers, "name=", 5) == 0 ? controllers + 5 : controllers;
                p->units = strcmp(controllers, "name=systemd") == 0;
                snprintf(p->root, sizeof(p->root), ROOT "/%s", name);
        }
        return true;
}

/* The path in systemd's tree; the later of its hierarchies is as good as the first. */
static int unit_path(const char *pid, char *ret, size_t size) {
        char text[CGROUP_BYTES], *cursor = text;
        struct place p;
        int r = read_cgroups(pid, text, sizeof(text));

        if (r < 0)
                return r;
        while (next_place(&cursor, &p))
                if (p.units && snprintf(ret, size, "%s", p.path) < (int)size)
                        return 0;
        return -ENOENT;
}

/* A process of the executor: its places are where the session's process goes. */
static int first_process(const char *cgroup, char pid[static PID_BYTES]) {
        static const char *const roots[] = { ROOT, ROOT "/unified", ROOT "/systemd" };
        char path[PATH_BYTES * 3], text[4096];

        for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
                snprintf(path, sizeof(path), "%s%s/cgroup.procs", roots[i], cgroup);
                if (read_text(path, text, sizeof(text)) < 0)
                        continue;
                text[strcspn(text, "\n")] = 0;
                if (*text && strlen(text) < PID_BYTES) {
                        strcpy(pid, text);
                        return 0;
                }
        }
        return -ESRCH;
}

static int attach(const struct place *p, const char *pid) {
        char path[PATH_BYTES * 2];
        int fd, r = 0;

        if (snprintf(path, sizeof(path), "%s%s/cgroup.procs", p->root, p->path) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (write(fd, pid, strlen(pid)) < 0)
                r = -errno;
        (void)close(fd);
        return r;
}

/* Limits first, systemd's tree last: who is there counts as one of the executor. */
static int move(const char *pid, const char *model) {
        for (int units = 0; units <= 1; units++) {
                char to[CGROUP_BYTES], *cursor = to;
                struct place p;
                int r = read_cgroups(model, to, sizeof(to));

                if (r < 0)
                        return r;
                while (next_place(&cursor, &p)) {
                        char from[CGROUP_BYTES], line[PATH_BYTES];

                        if (p.units != (bool)units)
                                continue;
                        /* Where it is already: a hierarchy that systemd does not use. */
                        snprintf(line, sizeof(line), ":%s\n", p.path);
                        if (!p.units && read_cgroups(pid, from, sizeof(from)) >= 0 && strstr(from, line) &&
                            strcmp(p.path, "/") == 0)
                                continue;
                        r = attach(&p, pid);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

/* An executor with "delegate" may have divided its cgroup, as version 2 has it: then there are processes
 * below it alone, and those of sessions are in a group of their own there. It is within the executor's limits
 * whatever its user has made of what he can write to. */
static int move_below(const char *pid, const char *cgroup, struct place *below) {
        char path[PATH_BYTES * 3], enabled[256];

        snprintf(path, sizeof(path), ROOT "%s/cgroup.subtree_control", cgroup);
        if (read_text(path, enabled, sizeof(enabled)) < 0 || !strchr(enabled, '\n'))
                return -ESRCH;
        snprintf(path, sizeof(path), ROOT "%s", below->path);
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return errno == ENOENT ? -ESRCH : -errno;
        snprintf(below->root, sizeof(below->root), ROOT);
        return attach(below, pid);
}

/* In systemd's tree; a process that has just ended does not count. */
static int only_we_are_left(const char *cgroup) {
        static const char *const roots[] = { ROOT, ROOT "/unified", ROOT "/systemd" };
        char path[PATH_BYTES * 3], text[4096], self[PID_BYTES];

        snprintf(self, sizeof(self), "%d", (int)getpid());
        for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
                snprintf(path, sizeof(path), "%s%s/cgroup.procs", roots[i], cgroup);
                if (read_text(path, text, sizeof(text)) < 0)
                        continue;
                for (char *end, *line = text; (end = strchr(line, '\n')); line = end + 1) {
                        *end = 0;
                        if (strcmp(line, self) != 0)
                                return -EPERM;
                }
        }
        return 0;
}

/* "primus-session-418-worker-0.1.7.service" -> "primus-418-worker-0.1.service" */
static int executor_of(const char *session, char *ret, size_t size) {
        const char *name = session + strlen(SESSION_PREFIX), *suffix = strrchr(session, '.'), *id;

        if (strncmp(session, SESSION_PREFIX, strlen(SESSION_PREFIX)) != 0 || !suffix ||
            strcmp(suffix, ".service") != 0 || strchr(session, '/'))
                return -EINVAL;
        for (id = suffix; id > name && id[-1] != '.'; id--)
                ;
        if (id == name)
                return -EINVAL;
        return snprintf(ret, size, "primus-%.*s.service", (int)(id - 1 - name), name) < (int)size ? 0
                                                                                                  : -EINVAL;
}

static int fail_with(const char *what, int error) {
        fprintf(stderr, "primus-enter: %s: %s\n", what, strerror(-error));
        return EXIT_FAILURE;
}

int main(int argc, char **argv) {
        char own[PATH_BYTES], theirs[PATH_BYTES], executor[256], cgroup[PATH_BYTES * 2], model[PID_BYTES];
        char divided[sizeof(cgroup) + 16];
        const char *pid = getenv("MAINPID"), *slash;
        int r;

        if (argc == 2 && strcmp(argv[1], "--help") == 0) {
                puts("primus-enter UNIT\n\nMoves the main process of a session into the cgroup of its "
                     "executor; "
                     "run by systemd, as root.");
                return EXIT_SUCCESS;
        }
        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                puts("primus-enter " PRIMUS_VERSION);
                return EXIT_SUCCESS;
        }
        if (argc != 2 || executor_of(argv[1], executor, sizeof(executor)) < 0) {
                fprintf(stderr, "primus-enter: expected the name of a session's unit\n");
                return 2;
        }
        if (!pid || !*pid || strspn(pid, "0123456789") != strlen(pid) || strlen(pid) > 10)
                return fail_with("$MAINPID", -EINVAL);
        /* Ours is the session's unit's; its slice is the job's, where the executor is as well. */
        if ((r = unit_path("self", own, sizeof(own))) < 0 || (r = unit_path(pid, theirs, sizeof(theirs))) < 0)
                return fail_with("cannot read cgroups", r);
        slash = strrchr(own, '/');
        if (strcmp(own, theirs) != 0 || !slash || strcmp(slash + 1, argv[1]) != 0)
                return fail_with("the process is not of this unit", -EPERM);
        snprintf(cgroup, sizeof(cgroup), "%.*s/%s", (int)(slash - own), own, executor);
        snprintf(divided, sizeof(divided), "%s/session", cgroup);
        if (first_process(cgroup, model) >= 0)
                r = move(pid, model);
        else if ((r = move_below(pid, cgroup, &(struct place){ .path = divided })) == -ESRCH)
                return fail_with("the executor has ended", r);
        if (r < 0)
                return fail_with("cannot move the session into the executor's cgroup", r);
        /* $MAINPID can be what the job's environment says: nobody stays outside the executor's limits. */
        r = only_we_are_left(own);
        if (r < 0)
                return fail_with("the session's process is another one", r);
        /* The model may have ended, and its number be another's by now. */
        if ((r = unit_path(pid, theirs, sizeof(theirs))) < 0 ||
            (strcmp(theirs, cgroup) != 0 && strcmp(theirs, divided) != 0))
                return fail_with("the executor has ended", r < 0 ? r : -ESRCH);
        return EXIT_SUCCESS;
}
