/* SPDX-License-Identifier: Apache-2.0 */
#include "webd/serve/serve.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "webd/serve/serve-parts.h"

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request) {
        return exchange_request(userdata, connection, url, method, upload, upload_size, request);
}

static void on_completed(void *userdata, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode why) {
        exchange_completed(*request);
        *request = NULL;
}

/* The socket's mode and directory keep others out; that the other side is the same person is looked at once
 * more. Of a port it is the token that tells. */
static bool on_welcome(void *userdata, int fd) {
        const struct serve *s = userdata;
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (s->options.token || s->options.reads_only)
                return true;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return false;
        return peer.uid == geteuid();
}

static int on_idle_time(sd_event_source *source, uint64_t usec, void *userdata) {
        struct serve *s = userdata;

        return http_server_connections(s->http) > 0 ? 0 : sd_event_exit(s->event, 0);
}

static void on_idle(void *userdata) {
        struct serve *s = userdata;

        if (!s->idle)
                return;
        (void)sd_event_source_set_time_relative(s->idle, s->options.idle_usec);
        (void)sd_event_source_set_enabled(s->idle, SD_EVENT_ONESHOT);
}

static int serve_start(struct serve *s, int fd) {
        static const struct http_limits of_one = { 64, 30, 30, 32u << 10 },
                                        of_all = { 1100, 30, 30, 8u << 10 };
        static const struct http_handlers handlers = { on_request, on_completed, on_welcome, on_idle };

        if (s->options.token)
                session_begin(&s->session, s->options.token, s->options.port);
        s->streams_max = s->options.reads_only ? 1000 : 32;
        TRY(http_server_new(s->event, fd, s->options.reads_only ? &of_all : &of_one, &handlers, s, &s->http));
        TRY(events_new(s, &s->events));
        if (s->options.idle_usec == 0)
                return 0;
        TRY(sd_event_add_time_relative(s->event, &s->idle, CLOCK_BOOTTIME, s->options.idle_usec, 0,
                                       on_idle_time, s));
        return 0;
}

int serve_new(sd_event *event, int fd, const struct serve_options *options, struct serve **ret) {
        _cleanup_(serve_free_p) struct serve *s = calloc(1, sizeof(*s));

        if (!s) {
                (void)close_fd(fd);
                return -ENOMEM;
        }
        s->options = *options;
        if (options->embed && answer_embed(options->embed) < 0) {
                (void)close_fd(fd);
                return log_error_errno(-EINVAL,
                                       "--embed: expected an origin such as https://grafana.example, not "
                                       "'%s'",
                                       options->embed);
        }
        s->event = sd_event_ref(event);
        s->page_fd = open(options->page, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s->page_fd < 0) {
                int r = -errno;
                (void)close_fd(fd);
                return log_error_errno(r, "Cannot open the page's directory %s", options->page);
        }
        TRY(serve_start(s, fd));
        *ret = TAKE_PTR(s);
        return 0;
}

void serve_free(struct serve *s) {
        if (!s)
                return;
        exchanges_end(s, 503, "The gateway ends");
        events_end(s->events);
        http_server_free(s->http);
        events_free(s->events);
        serve_bus_close(s);
        sd_event_source_disable_unref(s->idle);
        (void)close_fd(s->page_fd);
        sd_event_unref(s->event);
        free(s);
}
