/* SPDX-License-Identifier: Apache-2.0 */
#include "starter/systemd/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/wire/starter.h"
#include "tests/kit/root-kit.h"

static char path[108];
static sd_event *event;
static sd_bus *server, *client;
static struct journal_syncs *syncs;
static int journald;

static int setup(void **state) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        sd_id128_t id;
        int fds[2];

        snprintf(path, sizeof(path), "%s/journal", root_kit);
        strcpy(address.sun_path, path);
        (void)unlink(path);
        journald = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(journald, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(journald, 8), 0);
        assert_true(sd_event_new(&event) >= 0 && sd_id128_randomize(&id) >= 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        assert_true(sd_bus_new(&server) >= 0 && sd_bus_set_fd(server, fds[0], fds[0]) >= 0 &&
                    sd_bus_set_server(server, true, id) >= 0 && sd_bus_set_trusted(server, true) >= 0 &&
                    sd_bus_start(server) >= 0 &&
                    sd_bus_attach_event(server, event, SD_EVENT_PRIORITY_NORMAL) >= 0);
        assert_int_equal(journal_offer(server, event, path, &syncs), 0);
        assert_true(sd_bus_new(&client) >= 0 && sd_bus_set_fd(client, fds[1], fds[1]) >= 0 &&
                    sd_bus_start(client) >= 0 &&
                    sd_bus_attach_event(client, event, SD_EVENT_PRIORITY_NORMAL) >= 0);
        return 0;
}

static int teardown(void **state) {
        sd_bus_close_unref(client);
        journal_syncs_free(syncs);
        sd_bus_close_unref(server);
        sd_event_unref(event);
        close(journald);
        return 0;
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        *(int *)userdata = sd_bus_message_get_errno(m);
        return 0;
}

static void call(int *ret) {
        *ret = -1;
        assert_true(sd_bus_call_method_async(client, NULL, NULL, STARTER_PATH, STARTER_JOURNAL, "Synchronize",
                                             on_reply, ret, NULL) >= 0);
}

static void run_until(const int *answer) {
        while (*answer < 0)
                assert_true(sd_event_run(event, 10 * USEC_PER_SEC) > 0);
}

static int take_call(void) {
        static const char wanted[] = "{\"method\":\"io.systemd.Journal.Synchronize\",\"parameters\":{}}";
        char text[256];
        int fd;

        for (unsigned i = 0; i < 8; i++) /* the call is on its way */
                assert_true(sd_event_run(event, USEC_PER_SEC / 50) >= 0);
        fd = accept(journald, NULL, NULL);
        assert_true(fd >= 0);
        assert_int_equal(recv(fd, text, sizeof(text), 0), sizeof(wanted));
        assert_memory_equal(text, wanted, sizeof(wanted));
        return fd;
}

static void answered(const char *text, size_t size, int want) {
        int fd, answer;

        call(&answer);
        fd = take_call();
        assert_int_equal(answer, -1); /* not before journald has */
        for (size_t i = 0; i < size; i++) {
                assert_int_equal(send(fd, text + i, 1, MSG_NOSIGNAL), 1);
                assert_true(sd_event_run(event, 0) >= 0);
        }
        close(fd);
        run_until(&answer);
        assert_int_equal(answer, want);
}

static void test_answers(void **state) {
        static const char good[] = "{\"parameters\":{}}",
                          refused[] = "{\"error\":\"org.varlink.service.PermissionDenied\"}";
        char much[600];

        answered(good, sizeof(good), 0);
        answered(refused, sizeof(refused), EPROTO);
        answered("{\"param", 7, ECONNRESET);
        memset(much, 'x', sizeof(much));
        answered(much, 512, EPROTO);
}

static void test_bounds(void **state) {
        int answers[JOURNAL_SYNCS_MAX + 1], fd;

        for (unsigned i = 0; i <= JOURNAL_SYNCS_MAX; i++)
                call(&answers[i]);
        run_until(&answers[JOURNAL_SYNCS_MAX]);
        assert_true(answers[JOURNAL_SYNCS_MAX] > 0);
        for (unsigned i = 0; i < JOURNAL_SYNCS_MAX; i++) {
                assert_int_equal(answers[i], -1);
                fd = take_call();
                assert_int_equal(send(fd, "{}", 3, MSG_NOSIGNAL), 3);
                close(fd);
                run_until(&answers[i]);
                assert_int_equal(answers[i], 0);
        }
        /* Those that are over count no more; what waits ends with the connection. */
        call(&answers[0]);
        close(take_call());
        run_until(&answers[0]);
        assert_int_equal(answers[0], ECONNRESET);
        call(&answers[0]);
        close(take_call());
}

static void test_silence(void **state) {
        int answer, fd;

        call(&answer);
        fd = take_call();
        run_until(&answer);
        assert_int_equal(answer, ETIMEDOUT);
        close(fd);
        (void)unlink(path);
        call(&answer);
        run_until(&answer);
        assert_int_equal(answer, ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
                cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
        };

        return cmocka_run_group_tests(tests, root_setup, root_teardown);
}
