/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server. Invariant: no client can hold a connection for longer than METRICS_REQUEST_SEC without
 * having got a page for it, and none can make the loop wait. */
#include "agentd/metrics/server.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lib/base/addr.h"
#include "lib/base/clock.h"
#include "lib/base/try.h"

#define BACKLOG 64
#define PATH "/metrics"

bool metrics_address_valid(const char *text) {
        struct addr a;

        if (*text == '/')
                return strlen(text) < sizeof(((struct sockaddr_un *)NULL)->sun_path);
        return addr_parse(text, 0, &a) >= 0 && a.port > 0;
}

#ifdef HAVE_METRICS
#include "agentd/metrics/accept.h"
#include "lib/http/server.h"

#define REQUEST_MEMORY 8192u /* of a connection, for its request and the answer's headers */

/* A page that was made, of each of the two formats. */
struct page {
        struct MHD_Response *response;
        uint64_t made_boot;
};

struct metrics_server {
        struct http_server *http;
        struct MHD_Response *not_found, *not_allowed, *busy;
        metrics_page page;
        void *userdata;
        char *path; /* of the unix socket */
        struct page pages[2];
        unsigned n_pages;
};

/* ---- listening ---- */

static int listen_unix(const char *path) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct stat st;

        if (fd < 0)
                return -errno;
        strncpy(sa.sun_path, path, sizeof(sa.sun_path) - 1);
        if (lstat(path, &st) >= 0 && !S_ISSOCK(st.st_mode))
                return -EEXIST;
        if (unlink(path) < 0 && errno != ENOENT)
                return -errno;
        /* The file begins with the mode of what is bound. */
        if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
                return -errno;
        /* Its group is that of the directory: primus-starter has made /run/primus/agent one of
         * primus-metrics. */
        if (chmod(path, 0660) < 0 || listen(fd, BACKLOG) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int listen_inet(const struct addr *a) {
        _cleanup_close_ int fd = socket(a->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_storage ss;
        socklen_t size = addr_to_sockaddr(a, &ss);
        int on = 1;

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
                return -errno;
        if (a->family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
                return -errno;
        if (bind(fd, (struct sockaddr *)&ss, size) < 0 || listen(fd, BACKLOG) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* ---- answers ---- */

static void on_page_sent(void *data) {
        free(data);
}

static enum MHD_Result answer_request(struct MHD_Connection *connection, unsigned status,
                                      struct MHD_Response *response) {
        return response ? MHD_queue_response(connection, status, response) : MHD_NO;
}

static void page_forget(struct page *p) {
        if (p->response)
                MHD_destroy_response(p->response); /* connections that send it have their own references */
        *p = (struct page){ 0 };
}

static struct MHD_Response *make_page(struct metrics_server *s, bool openmetrics) {
        struct MHD_Response *response;
        _cleanup_free_ char *text = NULL;
        size_t size;

        if (s->page(openmetrics, &text, &size, s->userdata) < 0)
                return NULL;
        response = MHD_create_response_from_buffer_with_free_callback(size, text, on_page_sent);
        if (!response)
                return NULL;
        (void)TAKE_PTR(text);
        if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                    openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                                : "text/plain; version=0.0.4; charset=utf-8") == MHD_YES)
                return response;
        MHD_destroy_response(response);
        return NULL;
}

static enum MHD_Result send_page(struct metrics_server *s, struct MHD_Connection *connection,
                                 void **request) {
        const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
        bool openmetrics = accept_openmetrics(accept);
        struct page *p = &s->pages[openmetrics];
        uint64_t now = now_boot();
        enum MHD_Result result;

        if (s->n_pages >= METRICS_PAGES)
                return answer_request(connection, MHD_HTTP_SERVICE_UNAVAILABLE, s->busy);
        if (!p->response || now - p->made_boot > METRICS_PAGE_MSEC * USEC_PER_MSEC) {
                page_forget(p);
                p->response = make_page(s, openmetrics);
                p->made_boot = now;
        }
        if (!p->response)
                return answer_request(connection, MHD_HTTP_SERVICE_UNAVAILABLE, s->busy);
        result = MHD_queue_response(connection, MHD_HTTP_OK, p->response);
        if (result == MHD_YES) {
                s->n_pages++;
                *request = &s->n_pages; /* this one has a page */
        }
        return result;
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request) {
        struct metrics_server *s = userdata;
        bool get = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;

        if (!*request) { /* the headers are there, a body may follow */
                *request = s;
                if (!get)
                        return answer_request(connection, MHD_HTTP_METHOD_NOT_ALLOWED, s->not_allowed);
                return MHD_YES;
        }
        if (*upload_size > 0) {
                *upload_size = 0;
                return MHD_YES;
        }
        if (strcmp(url, PATH) != 0)
                return answer_request(connection, MHD_HTTP_NOT_FOUND, s->not_found);
        return send_page(s, connection, request);
}

/* ---- requests ---- */

static void on_completed(void *userdata, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode why) {
        struct metrics_server *s = userdata;

        if (*request == &s->n_pages)
                s->n_pages--;
        *request = NULL;
}

/* Nothing is kept for nobody. */
static void on_idle(void *userdata) {
        struct metrics_server *s = userdata;

        page_forget(&s->pages[0]);
        page_forget(&s->pages[1]);
}

/* ---- life ---- */

static struct MHD_Response *fixed(const char *text) {
        struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                                        MHD_RESPMEM_PERSISTENT);

        if (response)
                (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
        return response;
}

static int start_server(struct metrics_server *s, sd_event *event, int fd) {
        static const struct http_limits limits = { METRICS_CONNECTIONS, METRICS_IDLE_SEC, METRICS_REQUEST_SEC,
                                                   REQUEST_MEMORY };
        static const struct http_handlers handlers = { .request = on_request,
                                                       .completed = on_completed,
                                                       .idle = on_idle };

        s->not_found = fixed("There is only " PATH ".\n");
        s->not_allowed = fixed("Only GET and HEAD.\n");
        s->busy = fixed("No page can be made now; try again.\n");
        if (!s->not_found || !s->not_allowed || !s->busy) {
                (void)close_fd(fd);
                return -ENOMEM;
        }
        (void)MHD_add_response_header(s->not_allowed, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
        return http_server_new(event, fd, &limits, &handlers, s, &s->http);
}

int metrics_server_new(sd_event *event, const char *address, metrics_page page, void *userdata,
                       struct metrics_server **ret) {
        _cleanup_(metrics_server_free_p) struct metrics_server *s = calloc(1, sizeof(*s));
        struct addr a;
        int fd, r;

        if (!s)
                return -ENOMEM;
        s->page = page;
        s->userdata = userdata;
        if (*address == '/') {
                fd = listen_unix(address);
                if (fd >= 0 && !(s->path = strdup(address))) {
                        (void)close_fd(fd);
                        return -ENOMEM;
                }
        } else
                fd = addr_parse(address, 0, &a) < 0 ? -EINVAL : listen_inet(&a);
        if (fd < 0)
                return fd;
        r = start_server(s, event, fd); /* has taken the socket */
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

void metrics_server_free(struct metrics_server *s) {
        if (!s)
                return;
        http_server_free(s->http);
        page_forget(&s->pages[0]);
        page_forget(&s->pages[1]);
        if (s->not_found)
                MHD_destroy_response(s->not_found);
        if (s->not_allowed)
                MHD_destroy_response(s->not_allowed);
        if (s->busy)
                MHD_destroy_response(s->busy);
        if (s->path)
                (void)unlink(s->path);
        free(s->path);
        free(s);
}

#else

int metrics_server_new(sd_event *event, const char *address, metrics_page page, void *userdata,
                       struct metrics_server **ret) {
        return -EOPNOTSUPP;
}

void metrics_server_free(struct metrics_server *s) {
}
#endif
