/* SPDX-License-Identifier: Apache-2.0 */
/* The server has its connections from a socket that listens, so this is a client of its own: what comes in
 * goes there and back. Invariants: a way holds no more than its buffer, and waits either for more or for
 * room; what is read is readable and what is written has room for it, so that nothing waits but in the loop.
 */
#include "webd/serve/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/try.h"

struct way {
        int to;
        sd_event_source *in, *out;
        size_t n, at;
        char data[PIPE_BUF]; /* so much goes into a pipe that has room, without waiting */
        int (*ended)(struct way *w);
};

struct stdio {
        int fd, write_fd; /* of the connection, this end; twice, since a loop takes a descriptor once */
        struct way there, back;
};

int stdio_listen(void) {
        struct sockaddr sa = { .sa_family = AF_UNIX }; /* no name: the kernel makes one up, in no directory */
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || bind(fd, &sa, sizeof(sa.sa_family)) < 0 || listen(fd, 1) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int way_turn(struct way *w, bool full) {
        TRY(sd_event_source_set_enabled(w->in, full ? SD_EVENT_OFF : SD_EVENT_ON));
        return sd_event_source_set_enabled(w->out, full ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int way_end(struct way *w) {
        (void)sd_event_source_set_enabled(w->in, SD_EVENT_OFF);
        (void)sd_event_source_set_enabled(w->out, SD_EVENT_OFF);
        return w->ended(w);
}

static bool later(void) {
        return errno == EAGAIN || errno == EINTR;
}

static int on_in(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        struct way *w = userdata;
        ssize_t n = read(fd, w->data, sizeof(w->data));

        if (n <= 0)
                return n < 0 && later() ? 0 : way_end(w);
        w->n = (size_t)n;
        w->at = 0;
        return way_turn(w, true);
}

static int on_out(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        struct way *w = userdata;
        ssize_t n = send(fd, w->data + w->at, w->n - w->at, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == ENOTSOCK)
                n = write(fd, w->data + w->at, w->n - w->at);
        if (n < 0)
                return later() ? 0 : way_end(w);
        w->at += (size_t)n;
        return w->at < w->n ? 0 : way_turn(w, false);
}

/* No more is asked; what has been asked is answered still. */
static int on_asked(struct way *w) {
        (void)shutdown(w->to, SHUT_WR);
        return 0;
}

static int on_answered(struct way *w) {
        return sd_event_exit(sd_event_source_get_event(w->in), 0);
}

static int way_begin(sd_event *event, struct way *w, int from, int to, int (*ended)(struct way *w)) {
        w->to = to;
        w->ended = ended;
        TRY(sd_event_add_io(event, &w->in, from, EPOLLIN, on_in, w));
        TRY(sd_event_add_io(event, &w->out, to, EPOLLOUT, on_out, w));
        return sd_event_source_set_enabled(w->out, SD_EVENT_OFF);
}

int stdio_new(sd_event *event, int listener, struct stdio **ret) {
        _cleanup_(stdio_free_p) struct stdio *s = calloc(1, sizeof(*s));
        struct sockaddr_un sa;
        socklen_t size = sizeof(sa);

        if (!s)
                return -ENOMEM;
        s->write_fd = -EBADF;
        s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (s->fd < 0 || getsockname(listener, (struct sockaddr *)&sa, &size) < 0 ||
            connect(s->fd, (struct sockaddr *)&sa, size) < 0)
                return -errno;
        s->write_fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 3);
        if (s->write_fd < 0)
                return -errno;
        TRY(way_begin(event, &s->there, STDIN_FILENO, s->write_fd, on_asked));
        TRY(way_begin(event, &s->back, s->fd, STDOUT_FILENO, on_answered));
        *ret = TAKE_PTR(s);
        return 0;
}

void stdio_free(struct stdio *s) {
        if (!s)
                return;
        for (struct way *w = &s->there; w; w = w == &s->there ? &s->back : NULL) {
                sd_event_source_disable_unref(w->in);
                sd_event_source_disable_unref(w->out);
        }
        (void)close_fd(s->fd);
        (void)close_fd(s->write_fd);
        free(s);
}
