/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd in the loop. Invariant: no client holds a connection for longer than its limits say without
 * having got an answer, unless the handler has asked for that, and none makes the loop wait. */
#include "lib/http/server.h"

#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/try.h"

struct connection {
        int fd;
        bool unhurried;
        uint64_t since; /* its request, or its connection, began */
};

struct http_server {
        sd_event *event;
        sd_event_source *io, *timer, *reaper;
        struct MHD_Daemon *daemon;
        struct http_limits limits;
        struct http_handlers handlers;
        void *userdata;
        struct connection *connections; /* limits.connections of them */
        unsigned n_connections;
};

/* ---- connections ---- */

static int fd_of(struct MHD_Connection *connection) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        return info ? info->connect_fd : -EBADF;
}

static struct connection *connection_find(struct http_server *s, struct MHD_Connection *connection) {
        int fd = fd_of(connection);

        for (unsigned i = 0; i < s->n_connections; i++)
                if (s->connections[i].fd == fd)
                        return &s->connections[i];
        return NULL;
}

void http_server_unhurried(struct http_server *s, struct MHD_Connection *connection) {
        struct connection *c = connection_find(s, connection);

        if (c)
                c->unhurried = true;
}

unsigned http_server_connections(const struct http_server *s) {
        return s->n_connections;
}

/* Ends those whose time is over; the server hears of it from the socket. */
static int on_reap(sd_event_source *source, uint64_t usec, void *userdata) {
        struct http_server *s = userdata;
        uint64_t now = now_boot();

        for (unsigned i = 0; i < s->n_connections; i++) {
                const struct connection *c = &s->connections[i];
                if (!c->unhurried && now - c->since > s->limits.request_sec * USEC_PER_SEC)
                        (void)shutdown(c->fd, SHUT_RDWR);
        }
        if (s->n_connections == 0) {
                if (s->handlers.idle)
                        s->handlers.idle(s->userdata);
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        }
        (void)sd_event_source_set_time_relative(source, s->limits.idle_sec * USEC_PER_SEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void connection_begins(struct http_server *s, int fd) {
        if (s->handlers.welcome && !s->handlers.welcome(s->userdata, fd))
                (void)shutdown(fd, SHUT_RDWR);
        if (s->n_connections == s->limits.connections)
                return; /* the library takes no more than that */
        s->connections[s->n_connections++] = (struct connection){ fd, false, now_boot() };
        if (s->n_connections > 1)
                return;
        (void)sd_event_source_set_time_relative(s->reaper, s->limits.idle_sec * USEC_PER_SEC);
        (void)sd_event_source_set_enabled(s->reaper, SD_EVENT_ONESHOT);
}

static void on_connection(void *userdata, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what) {
        struct http_server *s = userdata;
        struct connection *c;

        if (what != MHD_CONNECTION_NOTIFY_CLOSED) {
                connection_begins(s, fd_of(connection));
                return;
        }
        c = connection_find(s, connection);
        if (c)
                *c = s->connections[--s->n_connections];
}

static void on_completed(void *userdata, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode why) {
        struct http_server *s = userdata;
        struct connection *c = connection_find(s, connection);

        s->handlers.completed(s->userdata, connection, request, why);
        if (!c)
                return;
        c->unhurried = false;
        if (why == MHD_REQUEST_TERMINATED_COMPLETED_OK)
                c->since = now_boot(); /* of the next one, on the same connection */
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request) {
        struct http_server *s = userdata;

        return s->handlers.request(s->userdata, connection, url, method, version, upload, upload_size,
                                   request);
}

/* ---- in the loop ---- */

static int go_on(struct http_server *s) {
        bool full = s->n_connections == s->limits.connections;
        MHD_UNSIGNED_LONG_LONG ms;

        if (MHD_run(s->daemon) != MHD_YES)
                return -EIO;
        /* The library listens again at its next turn only. */
        if (full && s->n_connections < s->limits.connections && MHD_run(s->daemon) != MHD_YES)
                return -EIO;
        if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
                return sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
        (void)sd_event_source_set_time_relative(s->timer, MIN((uint64_t)ms, UINT64_C(60000)) * USEC_PER_MSEC);
        return sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        return go_on(userdata);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        return go_on(userdata);
}

void http_server_wake(struct http_server *s) {
        (void)sd_event_source_set_time(s->timer, 0);
        (void)sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

/* ---- life ---- */

static int start_daemon(struct http_server *s, int fd) {
        const union MHD_DaemonInfo *info;

        s->daemon = MHD_start_daemon(
                MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, s,
                MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, s->limits.connections,
                MHD_OPTION_CONNECTION_TIMEOUT, s->limits.idle_sec, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                s->limits.memory, MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)1024,
                MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
                MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
        if (!s->daemon) {
                (void)close_fd(fd);
                return -EIO;
        }
        info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        if (!info || info->epoll_fd < 0)
                return -EIO;
        TRY(sd_event_add_io(s->event, &s->io, info->epoll_fd, EPOLLIN, on_io, s));
        TRY(sd_event_add_time(s->event, &s->timer, CLOCK_BOOTTIME, 0, USEC_PER_MSEC, on_time, s));
        TRY(sd_event_source_set_enabled(s->timer, SD_EVENT_OFF));
        TRY(sd_event_add_time(s->event, &s->reaper, CLOCK_BOOTTIME, 0, USEC_PER_SEC, on_reap, s));
        return sd_event_source_set_enabled(s->reaper, SD_EVENT_OFF);
}

int http_server_new(sd_event *event, int fd, const struct http_limits *limits,
                    const struct http_handlers *handlers, void *userdata, struct http_server **ret) {
        _cleanup_(http_server_free_p) struct http_server *s = calloc(1, sizeof(*s));

        if (!s) {
                (void)close_fd(fd);
                return -ENOMEM;
        }
        s->connections = calloc(limits->connections, sizeof(*s->connections));
        if (!s->connections) {
                (void)close_fd(fd);
                return -ENOMEM;
        }
        s->event = sd_event_ref(event);
        s->limits = *limits;
        s->handlers = *handlers;
        s->userdata = userdata;
        TRY(start_daemon(s, fd));
        *ret = TAKE_PTR(s);
        return 0;
}

void http_server_free(struct http_server *s) {
        if (!s)
                return;
        sd_event_source_disable_unref(s->io);
        sd_event_source_disable_unref(s->timer);
        if (s->daemon)
                MHD_stop_daemon(s->daemon); /* closes the socket, too */
        sd_event_source_disable_unref(s->reaper);
        sd_event_unref(s->event);
        free(s->connections);
        free(s);
}
