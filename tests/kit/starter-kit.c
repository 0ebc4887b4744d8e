/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/starter-kit.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "starter/files/prepare.h"

void starter_kit_new(struct starter_kit *k, sd_event *event, sd_bus *systemd,
                     int (*connect)(sd_bus **ret, void *userdata), void *userdata, const char *root,
                     const char *node) {
        sigset_t children;
        sd_id128_t id;
        int fds[2];

        sigemptyset(&children);
        sigaddset(&children, SIGCHLD);
        assert_int_equal(sigprocmask(SIG_BLOCK, &children, NULL), 0);
        assert_int_equal(prepare(root, geteuid(), getegid(), getegid()), 0);
        *k = (struct starter_kit){ .starter = { .event = event,
                                                .systemd = systemd,
                                                .root = root,
                                                .agent_uid = geteuid(),
                                                .policy = { .serve = { .allow_root = true, .min_uid = 1 },
                                                            .port_first = 23000,
                                                            .port_last = 27999 } } };
        assert_int_equal(lookup_new(&k->starter.policy.serve, &k->starter.lookup), 0);
        assert_int_equal(remover_new(event, &k->starter.remover), 0);
        assert_int_equal(relay_new(systemd, connect, userdata, &k->starter.relay), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        assert_true(sd_id128_randomize(&id) >= 0);
        assert_true(sd_bus_new(&k->server) >= 0 && sd_bus_set_fd(k->server, fds[0], fds[0]) >= 0 &&
                    sd_bus_set_server(k->server, true, id) >= 0 &&
                    sd_bus_negotiate_fds(k->server, true) >= 0 && sd_bus_set_trusted(k->server, true) >= 0 &&
                    sd_bus_start(k->server) >= 0 &&
                    sd_bus_attach_event(k->server, event, SD_EVENT_PRIORITY_NORMAL) >= 0);
        assert_int_equal(connection_new(&k->starter, k->server, &k->connection), 0);
        k->connection->node = strdup(node);
        assert_non_null(k->connection->node);
        assert_true(sd_bus_new(&k->client) >= 0 && sd_bus_set_fd(k->client, fds[1], fds[1]) >= 0 &&
                    sd_bus_negotiate_fds(k->client, true) >= 0 && sd_bus_start(k->client) >= 0 &&
                    sd_bus_attach_event(k->client, event, SD_EVENT_PRIORITY_NORMAL) >= 0);
}

void starter_kit_done(struct starter_kit *k) {
        connection_free(k->connection);
        sd_bus_close_unref(k->client);
        sd_bus_close_unref(k->server);
        relay_free(k->starter.relay);
        lookup_free(k->starter.lookup);
        remover_free(k->starter.remover);
}
