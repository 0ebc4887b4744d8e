/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/metrics/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"

static char root[] = "/tmp/primus-server-XXXXXX", path[64];
static sd_event *event;
static struct metrics_server *server;
static size_t page_size;
static int page_error;

static int page(bool openmetrics, char **ret, size_t *ret_size, void *userdata) {
        if (page_error < 0)
                return page_error;
        *ret = malloc(page_size + 16);
        if (!*ret)
                return -ENOMEM;
        memset(*ret, openmetrics ? 'o' : 't', page_size);
        *ret_size = page_size;
        return 0;
}

static int setup_one(void **state) {
        page_size = 10;
        page_error = 0;
        return metrics_server_new(event, path, page, NULL, &server) < 0 ? -1 : 0;
}

static int teardown_one(void **state) {
        metrics_server_free(server);
        server = NULL;
        return 0;
}

static int setup(void **state) {
        if (!mkdtemp(root) || sd_event_new(&event) < 0)
                return -1;
        snprintf(path, sizeof(path), "%s/s", root);
        return 0;
}

static int teardown(void **state) {
        sd_event_unref(event);
        return remove_tree(root);
}

static int dial(void) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        strcpy(sa.sun_path, path);
        assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
        return fd;
}

static void turn(unsigned n) {
        while (n-- > 0)
                (void)sd_event_run(event, 5 * USEC_PER_MSEC);
}

/* What comes back until the server hangs up, or nothing more comes. */
static char *hear(int fd) {
        static char answer[1 << 20];
        size_t used = 0;

        for (unsigned quiet = 0; quiet < 20;) {
                ssize_t n = recv(fd, answer + used, sizeof(answer) - 1 - used, 0);
                if (n == 0)
                        break;
                if (n > 0)
                        used += (size_t)n;
                quiet = n > 0 ? 0 : quiet + 1;
                turn(1);
        }
        answer[used] = 0;
        return answer;
}

static char *ask(const char *request) {
        _cleanup_close_ int fd = dial();

        assert_true(send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request));
        return hear(fd);
}

static void test_page(void **state) {
        const char *answer = ask("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");

        assert_non_null(strstr(answer, "HTTP/1.1 200 "));
        assert_non_null(strstr(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
        assert_non_null(strstr(answer, "\r\n\r\ntttttttttt"));
        answer = ask("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n"
                     "Connection: close\r\n\r\n");
        assert_non_null(strstr(
                answer, "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
        assert_non_null(strstr(answer, "\r\n\r\noooooooooo"));
        answer = ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert_non_null(strstr(answer, "HTTP/1.1 200 "));
        assert_null(strstr(answer, "tttt"));
        page_size = 300000; /* more than a socket takes at once */
        assert_true(strlen(ask("GET /metrics HTTP/1.0\r\n\r\n")) < 300); /* the one of before */
        usleep(METRICS_PAGE_MSEC * 1000 + 50000);
        assert_true(strlen(ask("GET /metrics HTTP/1.0\r\n\r\n")) > page_size);
}

static void test_refused(void **state) {
        assert_non_null(strstr(ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), " 404 "));
        assert_non_null(strstr(ask("GET /metrics/../etc HTTP/1.0\r\n\r\n"), " 404 "));
        assert_non_null(
                strstr(ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd"), " 405 "));
        assert_non_null(
                strstr(ask("DELETE /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), " 405 "));
        page_error = -ENOMEM;
        assert_non_null(strstr(ask("GET /metrics HTTP/1.0\r\n\r\n"), " 503 "));
}

static void test_hostile(void **state) {
        static char text[40000];
        static const char *const heads[] = {
                "GET /metrics HTTP/1.1\r\nX: ",
                "GET /",
                "",
                "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
                "GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n",
                "\x16\x03\x01\x02",
                "\r\n\r\n\r\n\r\n",
        };

        for (size_t i = 0; i < ELEMENTSOF(heads); i++) {
                _cleanup_close_ int fd = dial();
                memset(text, 'a', sizeof(text));
                memcpy(text, heads[i], strlen(heads[i]));
                (void)send(fd, text, sizeof(text), MSG_NOSIGNAL);
                assert_null(strstr(hear(fd), " 200 "));
        }
        /* Every byte there is. */
        for (unsigned byte = 0; byte < 256; byte++) {
                _cleanup_close_ int fd = dial();
                memset(text, (int)byte, 64);
                memcpy(text + 64, "\r\n\r\n", 4);
                (void)send(fd, text, 68, MSG_NOSIGNAL);
                turn(2);
        }
        turn(20);
        assert_non_null(strstr(ask("GET /metrics HTTP/1.0\r\n\r\n"), " 200 "));
}

static void test_too_many(void **state) {
        int fds[METRICS_CONNECTIONS], last;

        for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
                fds[i] = dial();
                assert_true(send(fds[i], "GET ", 4, MSG_NOSIGNAL) == 4);
                turn(3);
        }
        last = dial();
        assert_true(send(last, "GET /metrics HTTP/1.0\r\n\r\n", 25, MSG_NOSIGNAL) == 25);
        assert_null(strstr(hear(last), " 200 "));
        fds[3] = close_fd(fds[3]);
        assert_non_null(strstr(hear(last), " 200 "));
        (void)close(last);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                (void)close_fd(fds[i]);
        turn(20);
}

/* Pages that nobody takes away are not made without end. */
static void test_slow_readers(void **state) {
        int fds[METRICS_PAGES + 1];
        unsigned busy = 0;

        page_size = 900000;
        for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
                fds[i] = dial();
                assert_true(send(fds[i], "GET /metrics HTTP/1.0\r\n\r\n", 25, MSG_NOSIGNAL) == 25);
                turn(5);
        }
        for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
                char head[16] = "";
                assert_true(recv(fds[i], head, sizeof(head) - 1, 0) > 0);
                busy += strstr(head, " 503") != NULL;
        }
        assert_int_equal(busy, 1);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                (void)close(fds[i]);
        turn(20);
        page_size = 10;
        assert_non_null(strstr(ask("GET /metrics HTTP/1.0\r\n\r\n"), " 200 "));
}

static void test_kept_alive(void **state) {
        static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        _cleanup_close_ int fd = dial();

        for (unsigned i = 0; i < 3; i++) {
                assert_true(send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request));
                assert_non_null(strstr(hear(fd), " 200 "));
        }
}

static void test_addresses(void **state) {
        struct metrics_server *other;
        struct stat st;

        assert_true(stat(path, &st) >= 0 && (st.st_mode & 07777) == 0660);
        assert_true(metrics_address_valid("127.0.0.1:7748") && metrics_address_valid("[::]:1"));
        assert_true(metrics_address_valid("/run/primus/metrics.sock"));
        assert_false(metrics_address_valid("127.0.0.1") || metrics_address_valid("localhost:1") ||
                     metrics_address_valid("") || metrics_address_valid("run/x"));
        assert_int_equal(metrics_server_new(event, "/proc/version", page, NULL, &other), -EEXIST);
        assert_int_equal(metrics_server_new(event, "192.0.2.1:7748", page, NULL, &other), -EADDRNOTAVAIL);
}

#define ONE(f) cmocka_unit_test_setup_teardown(f, setup_one, teardown_one)

int main(void) {
        const struct CMUnitTest tests[] = {
                ONE(test_page),         ONE(test_refused),    ONE(test_hostile),   ONE(test_too_many),
                ONE(test_slow_readers), ONE(test_kept_alive), ONE(test_addresses),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
