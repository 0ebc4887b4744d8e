/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/core/admission.h"
#include "lib/unit/admission.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static const struct serve_policy users = { .min_uid = 1000 };

static void test_fence(void **state) {
        const struct fence f = { .term = 7, .epoch = 3, .term_seen = 7 };

        assert_true(fence_accepts(&f, 7, 3));
        assert_true(fence_accepts(&f, 7, 0)); /* an order to the cluster, not to a registration */
        assert_false(fence_accepts(&f, 6, 3));
        assert_false(fence_accepts(&f, 8, 3));
        assert_false(fence_accepts(&f, 7, 2));
}

static void test_check(void **state) {
        char relative[] = "data", absolute[] = "/data";
        struct start_order o = { .id = { .job = 1, .role = "w", .attempt = 1 }, .uid = 1000 };
        const struct serve_policy root = { .min_uid = 1000, .allow_root = true };
        char *why = NULL;

        assert_null(admission_check(&o, "n1", &users, &why));
        o.cwd = absolute;
        assert_null(admission_check(&o, "n1", &users, &why));
        o.cwd = relative;
        assert_string_equal(admission_check(&o, "n1", &users, &why), LINK_ERROR_START);
        free(why);
        o.cwd = NULL;
        o.uid = 0;
        assert_string_equal(admission_check(&o, "n1", &users, &why), LINK_ERROR_NOT_SERVED);
        assert_non_null(strstr(why, "AllowRoot"));
        free(why);
        assert_null(admission_check(&o, "n1", &root, &why));
        o.uid = UINT32_MAX; /* chown() takes it for "as it is" */
        assert_string_equal(admission_check(&o, "n1", &root, &why), LINK_ERROR_NOT_SERVED);
        free(why);
        o.uid = 33;
        assert_string_equal(admission_check(&o, "n1", &users, &why), LINK_ERROR_NOT_SERVED);
        assert_non_null(strstr(why, "system account"));
        free(why);
        o.uid = 1000;
        o.id.attempt = 0;
        assert_string_equal(admission_check(&o, "n1", &users, &why), LINK_ERROR_START);
        free(why);
}

/* Each text of an order that could be a line of a unit's file: a masterd that was taken over says what it
 * likes. */
static void test_texts(void **state) {
        static char *const bad[] = { (char *)"/a\nExecStopPost=+/b", (char *)"/a\x01",
                                     (char *)"/a\xe2\x80\xa8", (char *)"/a\x7f" };
        static char good[] = "/a b", *none[] = { NULL };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                char *list[] = { (char *)"PRIMUS_A=1", bad[i], NULL };
                struct io_limit io = { .path = bad[i] };
                char **lists[3];
                char *texts[5];

                for (size_t k = 0; k < ELEMENTSOF(lists) + ELEMENTSOF(texts) + 2; k++) {
                        struct start_order o = { .id = { .job = 1, .role = "w", .attempt = 1 }, .uid = 1000 };
                        char *why = NULL;

                        for (size_t t = 0; t < ELEMENTSOF(texts); t++)
                                texts[t] = t == k ? bad[i] : good;
                        for (size_t l = 0; l < ELEMENTSOF(lists); l++)
                                lists[l] = l + ELEMENTSOF(texts) == k ? list : none;
                        o.cwd = texts[0];
                        o.output = texts[1];
                        o.extra.gpus = texts[2];
                        o.extra.cpus = texts[3];
                        o.extra.ready_file = texts[4];
                        o.identity = lists[0];
                        o.gpus = lists[1];
                        o.visible_gpus = lists[2];
                        if (k == ELEMENTSOF(lists) + ELEMENTSOF(texts)) {
                                o.extra.io = &io;
                                o.extra.n_io = 1;
                        } else if (k > ELEMENTSOF(lists) + ELEMENTSOF(texts))
                                strcpy(o.extra.numa, "a\nb");
                        assert_string_equal(admission_check(&o, "n1", &users, &why), LINK_ERROR_START);
                        assert_non_null(strstr(why, "control characters"));
                        free(why);
                }
        }
        struct start_order o = { .id = { .job = 1, .role = "w", .attempt = 1 },
                                 .uid = 1000,
                                 .cwd = (char *)"/a\\" };
        char *why = NULL;
        assert_string_equal(admission_check(&o, "n1", &users, &why), LINK_ERROR_START);
        free(why);
        o.cwd = (char *)"/a ";
        assert_string_equal(admission_check(&o, "n1", &users, &why), LINK_ERROR_START);
        free(why);
        o.cwd = good;
        o.argv = o.env = (char *[]){ (char *)"A=x\ny\\", NULL }; /* these may have any */
        assert_null(admission_check(&o, "n1", &users, &why));
}

static void test_ports(void **state) {
        static const int families[] = { AF_INET, AF_INET6 };

        for (size_t i = 0; i < ELEMENTSOF(families); i++) {
                _cleanup_close_ int fd = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC, 0);
                struct sockaddr_storage ss = { .ss_family = (sa_family_t)families[i] };
                socklen_t size =
                        families[i] == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
                const int one = 1;
                uint16_t port;

                if (fd < 0)
                        continue;
                assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
                if (families[i] == AF_INET)
                        ((struct sockaddr_in *)&ss)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
                else
                        ((struct sockaddr_in6 *)&ss)->sin6_addr = in6addr_loopback;
                if (bind(fd, (struct sockaddr *)&ss, size) < 0)
                        continue; /* no such address here */
                assert_int_equal(listen(fd, 1), 0);
                assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &size), 0);
                port = ntohs(families[i] == AF_INET ? ((struct sockaddr_in *)&ss)->sin_port
                                                    : ((struct sockaddr_in6 *)&ss)->sin6_port);
                assert_int_equal(ports_taken(&port, 1), port); /* also a listener on one address */
                fd = close_fd(fd);
                assert_int_equal(ports_taken(&port, 1), 0);
        }
        assert_int_equal(ports_taken(NULL, 0), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fence),
                cmocka_unit_test(test_check),
                cmocka_unit_test(test_texts),
                cmocka_unit_test(test_ports),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
