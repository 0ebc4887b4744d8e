/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that look. Invariant: a child has no more than the capabilities that its work wants, no way to
 * get others, and nothing open but its two descriptors; and none is forgotten before it was reaped. */
#include "starter/observe/child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <utlist.h>

#include "lib/base/clock.h"

#define CHILD_MEMORY (512u << 20)

struct child {
        struct children *children;
        pid_t pid;
        int pidfd;
        uint32_t owner;
        sd_event_source *over, *deadline;
        struct child *next, *prev;
};

struct children {
        sd_event *event;
        struct child *list;
};

int children_new(sd_event *event, struct children **ret) {
        struct children *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        c->event = sd_event_ref(event);
        *ret = c;
        return 0;
}

static void child_free(struct child *c) {
        DL_DELETE(c->children->list, c);
        sd_event_source_disable_unref(c->over);
        sd_event_source_disable_unref(c->deadline);
        close_fd(c->pidfd);
        free(c);
}

static void end_child(struct child *c) {
        (void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

void children_free(struct children *c) {
        if (!c)
                return;
        while (c->list) {
                end_child(c->list);
                (void)waitpid(c->list->pid, NULL, WNOHANG);
                child_free(c->list);
        }
        sd_event_unref(c->event);
        free(c);
}

static int on_over(sd_event_source *s, int fd, uint32_t events, void *userdata) {
        struct child *c = userdata;

        if (waitpid(c->pid, NULL, WNOHANG) != 0)
                child_free(c);
        return 0;
}

static int on_deadline(sd_event_source *s, uint64_t usec, void *userdata) {
        end_child(userdata); /* what hangs goes when it can, and counts until then */
        return 0;
}

/* ---- in the child ---- */

static int set_capabilities(uint64_t wanted) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct now[2], next[2];

        if (syscall(SYS_capget, &header, now) < 0)
                return -errno;
        for (unsigned i = 0; i < 2; i++) {
                uint32_t keep = (uint32_t)(wanted >> (32 * i)) & now[i].permitted;

                next[i] = (struct __user_cap_data_struct){ .effective = keep, .permitted = keep };
        }
        return syscall(SYS_capset, &header, next) < 0 ? -errno : 0;
}

static int put_at(int fd, int at) {
        return fd == at ? fcntl(fd, F_SETFD, 0) : dup2(fd, at);
}

static _Noreturn void child(uint64_t capabilities, child_function f, void *job, int in, int out,
                            pid_t parent) {
        static const struct {
                int what;
                rlim_t limit;
        } limits[] = {
                { RLIMIT_CORE, 0 },
                { RLIMIT_FSIZE, 0 },
                { RLIMIT_NOFILE, 64 },
#if !defined(__SANITIZE_ADDRESS__) /* which maps more than any host has */
                { RLIMIT_AS, CHILD_MEMORY },
#endif
                { RLIMIT_CPU, CHILD_SECONDS }
        };
        sigset_t none;
        /* Out of the way of the places where they go. */
        int a = fcntl(in, F_DUPFD_CLOEXEC, 16), b = fcntl(out, F_DUPFD_CLOEXEC, 16),
            null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (a < 0 || b < 0 || null < 0)
                _exit(1);
        for (int fd = 0; fd <= 2; fd++)
                if (put_at(null, fd) < 0)
                        _exit(1);
        if (put_at(a, 3) < 0 || put_at(b, 4) < 0 || syscall(SYS_close_range, 5u, ~0u, 0) < 0)
                _exit(1);
        for (int s = 1; s < 32; s++)
                (void)signal(s, SIG_DFL);
        (void)signal(SIGPIPE, SIG_IGN);
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)prctl(PR_SET_NAME, "primus-look");
        for (size_t i = 0; i < ELEMENTSOF(limits); i++)
                (void)setrlimit(limits[i].what, &(struct rlimit){ limits[i].limit, limits[i].limit });
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || set_capabilities(capabilities) < 0 ||
            prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(1);
        (void)alarm(CHILD_SECONDS);
        f(job, 3, 4);
        _exit(0);
}

/* ---- start ---- */

static bool has_room(const struct children *c, uint32_t owner) {
        unsigned all = 0, same = 0;
        const struct child *x;

        DL_FOREACH (c->list, x) {
                all++;
                same += x->owner == owner;
        }
        return all < CHILDREN_MAX && same < CHILDREN_OF_OWNER_MAX;
}

static int watch_child(struct child *c) {
        int r;

        c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
        if (c->pidfd < 0)
                return -errno;
        r = sd_event_add_io(c->children->event, &c->over, c->pidfd, EPOLLIN, on_over, c);
        return r < 0 ? r
                     : sd_event_add_time_relative(c->children->event, &c->deadline, CLOCK_MONOTONIC,
                                                  CHILD_SECONDS * USEC_PER_SEC, 0, on_deadline, c);
}

int child_run(struct children *children, uint32_t owner, uint64_t capabilities, child_function f, void *job,
              int in, int *ret_fd) {
        _cleanup_close_ int read_end = -EBADF, write_end = -EBADF;
        const pid_t parent = getpid();
        struct child *c;
        int fds[2], r;

        if (!has_room(children, owner))
                return -EBUSY;
        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        if (pipe2(fds, O_CLOEXEC) < 0) {
                r = -errno;
                free(c);
                return r;
        }
        read_end = fds[0];
        write_end = fds[1];
        *c = (struct child){ .children = children, .pidfd = -EBADF, .owner = owner, .pid = fork() };
        if (c->pid == 0)
                child(capabilities, f, job, in, write_end, parent);
        if (c->pid < 0) {
                r = -errno;
                free(c);
                return r;
        }
        DL_APPEND(children->list, c);
        r = watch_child(c);
        if (r < 0) {
                /* It ends by itself; without a descriptor nobody would hear of it. */
                (void)kill(c->pid, SIGKILL);
                (void)waitpid(c->pid, NULL, 0);
                child_free(c);
                return r;
        }
        *ret_fd = TAKE_FD(read_end);
        return 0;
}
