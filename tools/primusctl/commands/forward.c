/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl forward: connections to a local port or socket, each a session of its own to a port of the
 * executor. Invariant: a connection holds at most what was under way when its reader stopped taking it. */
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <utlist.h>

#include "lib/base/parse.h"
#include "tools/primusctl/bus/interrupt.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/forward.h"

/* Of one tool: the bus allows each caller 128 calls under way. */
#define CONNECTIONS_MAX 24u

struct forward {
        struct cli *cli;
        sd_event *event;
        const struct stream_target *target;
        uint16_t port, local_port;
        sd_event_source *listeners[2];
        struct connection *connections;
        unsigned n;
        const char *path; /* of our socket */
};

struct connection {
        struct forward *forward;
        struct stream *stream;
        int fd;
        sd_event_source *io;
        char *out; /* for the local side */
        size_t out_at, out_size;
        bool read_over;  /* the local side has finished writing */
        bool write_over; /* the executor's side has */
        bool ended;      /* the session is over */
        struct connection *next, *prev;
};

static void listen_again(struct forward *f) {
        for (size_t i = 0; i < ELEMENTSOF(f->listeners); i++)
                if (f->listeners[i])
                        (void)sd_event_source_set_enabled(
                                f->listeners[i], f->n < CONNECTIONS_MAX ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void connection_free(struct connection *c) {
        DL_DELETE(c->forward->connections, c);
        c->forward->n--;
        listen_again(c->forward);
        stream_free(c->stream);
        sd_event_source_disable_unref(c->io);
        close_fd(c->fd);
        free(c->out);
        free(c);
}

static int on_free(sd_event_source *source, void *userdata) {
        sd_event_source_unref(source);
        connection_free(userdata);
        return 0;
}

/* Not from within a handler of its stream. */
static void connection_free_later(struct connection *c) {
        sd_event_source *source;

        c->io = sd_event_source_disable_unref(c->io);
        if (sd_event_add_defer(c->forward->event, &source, on_free, c) < 0)
                (void)sd_event_exit(c->forward->event, cli_oom(c->forward->cli));
}

static size_t left(const struct connection *c) {
        return c->out_size - c->out_at;
}

/* Waits for what can go on. */
static void watch_socket(struct connection *c) {
        uint32_t events = (left(c) > 0 ? (uint32_t)EPOLLOUT : 0) |
                          (!c->read_over && !c->ended && stream_has_room(c->stream) ? (uint32_t)EPOLLIN : 0);

        if (!c->io)
                return;
        (void)sd_event_source_set_io_events(c->io, events);
        (void)sd_event_source_set_enabled(c->io, events ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void write_local(struct connection *c) {
        while (left(c) > 0) {
                ssize_t n = send(c->fd, c->out + c->out_at, left(c), MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n < 0) { /* nobody reads: the session has no purpose any more */
                        c->ended = true;
                        c->out_at = c->out_size;
                        return;
                }
                c->out_at += (size_t)n;
        }
        c->out_at = c->out_size = 0;
}

static void go_on(struct connection *c) {
        write_local(c);
        if (left(c) == 0 && c->write_over && !c->ended)
                (void)shutdown(c->fd, SHUT_WR);
        if (left(c) == 0 && c->ended) {
                connection_free_later(c);
                return;
        }
        if (!c->ended)
                stream_hold(c->stream, left(c) > 0);
        watch_socket(c);
}

static void on_data(struct stream *s, enum stream_kind kind, const void *data, size_t size, void *userdata) {
        struct connection *c = userdata;
        char *grown;

        if (c->ended || !c->io)
                return;
        if (kind == STREAM_OUTPUT_END)
                c->write_over = true;
        else if (kind == STREAM_OUTPUT) {
                grown = realloc(c->out, c->out_size + size);
                if (!grown) {
                        (void)sd_event_exit(c->forward->event, cli_oom(c->forward->cli));
                        return;
                }
                c->out = grown;
                memcpy(c->out + c->out_size, data, size);
                c->out_size += size;
        }
        go_on(c);
}

static void on_ended(struct stream *s, int status, const char *why, void *userdata) {
        struct connection *c = userdata;

        if (*why)
                cli_fail(c->forward->cli, "%s", why);
        if (c->ended && !c->io)
                return;
        c->ended = true;
        go_on(c);
}

static void on_room(struct stream *s, void *userdata) {
        watch_socket(userdata);
}

static void on_opened(struct stream *s, void *userdata) {
        watch_socket(userdata);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        static char buffer[STREAM_PIECE_MAX];
        struct connection *c = userdata;

        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !c->read_over && !c->ended &&
            stream_has_room(c->stream)) {
                ssize_t n = recv(c->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

                if (n >= 0 || (errno != EAGAIN && errno != EINTR)) {
                        if (n < 0) { /* reset: nobody is there */
                                c->ended = true;
                                c->out_at = c->out_size = 0;
                        } else {
                                c->read_over = n == 0;
                                if (stream_write(c->stream, buffer, (size_t)n, n == 0) < 0)
                                        c->ended = true;
                        }
                }
        }
        go_on(c);
        return 0;
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        static const struct stream_handlers handlers = {
                .opened = on_opened, .data = on_data, .room = on_room, .ended = on_ended
        };
        struct forward *f = userdata;
        char *none[] = { NULL };
        const struct stream_options o = { .arguments = none, .port = f->port };
        struct connection *c;
        int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), r;

        if (client < 0)
                return 0;
        c = calloc(1, sizeof(*c));
        if (!c) {
                close_fd(client);
                return 0;
        }
        c->forward = f;
        c->fd = client;
        DL_APPEND(f->connections, c);
        f->n++;
        listen_again(f);
        r = sd_event_add_io(f->event, &c->io, client, 0, on_io, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->io, SD_EVENT_OFF);
        if (r >= 0)
                r = stream_new(f->cli, f->target, &o, &handlers, c, &c->stream);
        if (r < 0) {
                cli_fail(f->cli, "cannot forward a connection: %s", strerror(-r));
                connection_free(c);
        }
        return 0;
}

/* ---- listening ---- */

static int listen_at(struct forward *f, size_t i, const struct sockaddr *address, socklen_t size,
                     int *ret_fd) {
        _cleanup_close_ int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int yes = 1;
        int r;

        if (fd < 0)
                return -errno;
        if (address->sa_family != AF_UNIX)
                (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        if (address->sa_family == AF_INET6)
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
        if (bind(fd, address, size) < 0 || listen(fd, 32) < 0)
                return -errno;
        r = sd_event_add_io(f->event, f->listeners + i, fd, EPOLLIN, on_connection, f);
        if (r >= 0)
                r = sd_event_source_set_io_fd_own(f->listeners[i], true);
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

static int listen_port(struct forward *f, const char *text) {
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
        socklen_t size = sizeof(v4);
        uint32_t port = f->port;
        int fd, r;

        if (text && parse_u32(text, 0, 65535, &port) < 0)
                return cli_usage(f->cli, "forward: not a port, nor a path with a '/': %s", text);
        v4.sin_port = htons((uint16_t)port);
        r = listen_at(f, 0, (struct sockaddr *)&v4, sizeof(v4), &fd);
        if (r >= 0 && getsockname(fd, (struct sockaddr *)&v4, &size) < 0)
                r = -errno;
        if (r < 0)
                return cli_fail(f->cli, "cannot listen on 127.0.0.1 port %" PRIu32 ": %s", port,
                                strerror(-r));
        v6.sin6_port = v4.sin_port;
        r = listen_at(f, 1, (struct sockaddr *)&v6, sizeof(v6), &fd);
        if (r < 0 && r != -EAFNOSUPPORT && r != -EADDRNOTAVAIL)
                return cli_fail(f->cli, "cannot listen on ::1 port %u: %s", ntohs(v4.sin_port), strerror(-r));
        f->local_port = ntohs(v4.sin_port);
        return 0;
}

static int listen_path(struct forward *f, const char *path) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        mode_t mask;
        int fd, r;

        if (strlen(path) >= sizeof(a.sun_path))
                return cli_usage(f->cli, "forward: the path is longer than a socket's may be: %s", path);
        strcpy(a.sun_path, path);
        mask = umask(0077);
        r = listen_at(f, 0, (struct sockaddr *)&a, sizeof(a), &fd);
        (void)umask(mask);
        if (r < 0)
                return cli_fail(f->cli, "cannot listen at %s: %s", path, strerror(-r));
        f->path = path;
        return 0;
}

int forward_new(struct cli *c, sd_event *event, const struct stream_target *target, uint16_t port,
                const char *local, struct forward **ret) {
        _cleanup_(forward_free_p) struct forward *f = calloc(1, sizeof(*f));
        int r;

        if (!f)
                return cli_oom(c);
        f->cli = c;
        f->event = event;
        f->target = target;
        f->port = port;
        r = local && strchr(local, '/') ? listen_path(f, local) : listen_port(f, local);
        if (!r)
                *ret = TAKE_PTR(f);
        return r;
}

uint16_t forward_local_port(const struct forward *f) {
        return f->local_port;
}

void forward_free(struct forward *f) {
        struct connection *k, *next;

        if (!f)
                return;
        DL_FOREACH_SAFE (f->connections, k, next)
                connection_free(k);
        for (size_t i = 0; i < ELEMENTSOF(f->listeners); i++)
                sd_event_source_disable_unref(f->listeners[i]);
        if (f->path)
                (void)unlink(f->path);
        free(f);
}

/* ---- the command ---- */

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *i, void *userdata) {
        (void)sd_event_exit(userdata, CLI_OK);
        return 0;
}

static void on_state(struct watch *w, void *userdata) {
        struct forward *f = userdata;

        if (watch_ended(w)) {
                cli_fail(f->cli, "job %" PRIu32 " has ended", f->target->job.number);
                (void)sd_event_exit(f->event, CLI_FAILED);
        }
}

static int forward_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct watch_handlers watch_handlers = { .state = on_state };
        _cleanup_(stream_target_done) struct stream_target target = { 0 };
        _cleanup_(forward_free_p) struct forward *f = NULL;
        const char *local = n > 3 ? args[3] : NULL;
        struct watch *watch = NULL;
        sd_event *event = NULL;
        uint32_t port;
        int r;

        (void)options;
        if (parse_u32(args[2], 1, 65535, &port) < 0)
                return cli_usage(c, "forward: not a port: %s", args[2]);
        r = stream_target_find(c, args[0], args[1], &target);
        if (!r)
                r = watch_loop_new(c, &event);
        if (!r && interrupt_catch(event, on_signal, event) < 0)
                r = cli_fail(c, "cannot wait for signals");
        if (!r)
                r = forward_new(c, event, &target, (uint16_t)port, local, &f);
        if (!r && f->path)
                printf("%s -> %s/%" PRIu32 " port %u\n", f->path, target.role, target.index, f->port);
        else if (!r)
                printf("127.0.0.1:%u -> %s/%" PRIu32 " port %u\n", f->local_port, target.role, target.index,
                       f->port);
        if (!r)
                r = watch_new(c, event, &target.job, WATCH_STATE, &watch_handlers, f, &watch);
        if (!r) {
                fflush(stdout);
                r = sd_event_loop(event);
        }
        watch_free(watch);
        forward_free(TAKE_PTR(f));
        if (event) {
                (void)sd_bus_flush(c->bus);
                (void)sd_bus_detach_event(c->bus);
                sd_event_unref(event);
        }
        return r < 0 ? cli_fail(c, "%s", strerror(-r)) : r;
}

const struct command forward_command = {
        .name = "forward",
        .arguments = "JOB RANK PORT [LOCAL]",
        .help = "Forward a local port to one of an executor",
        .details = "Listens on 127.0.0.1 and ::1 at port LOCAL (default PORT; 0: any that is free), or on a "
                   "unix socket\n"
                   "where LOCAL is a path with a '/', until Ctrl-C. Connections go to PORT of the executor's "
                   "host, where\n"
                   "a process of that very executor has to listen.",
        .min = 3,
        .max = 4,
        .run = forward_run,
};
