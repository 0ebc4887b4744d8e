/* SPDX-License-Identifier: Apache-2.0 */
/* Connections. Invariant: no byte of a peer that is not agentd's user (or root) is read, and what is kept for
 * one that does not take its answers is bounded. */
#include "starter/calls/server.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "starter/observe/observe.h"
#include "starter/systemd/journal.h"

struct client {
        struct server *server;
        sd_bus *bus;
        sd_bus_slot *gone;
        struct connection *connection;
        struct observe *observe;
        struct journal_syncs *syncs;
        struct client *next, *prev;
};

struct server {
        struct starter *starter;
        sd_event_source *listener;
        struct client *clients;
        unsigned n_clients;
        struct widened *widened;
};

static void client_free(struct client *c) {
        if (c->connection) {
                DL_DELETE(c->server->clients, c);
                c->server->n_clients--;
        }
        sd_bus_slot_unref(c->gone);
        connection_free(c->connection);
        observe_free(c->observe);
        journal_syncs_free(c->syncs);
        sd_bus_detach_event(c->bus);
        sd_bus_close_unref(c->bus);
        free(c);
}

static int on_gone(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        client_free(userdata);
        return 0;
}

/* Before each call. Who is cut off here is told so like any other, by Disconnected. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct client *c = userdata;
        uint64_t waiting;

        if (sd_bus_get_n_queued_write(c->bus, &waiting) < 0 || waiting <= ANSWERS_MAX)
                return 0;
        log_warning("primus-agentd does not take its answers, of which there are %llu; it is disconnected",
                    (unsigned long long)waiting);
        (void)shutdown(sd_bus_get_fd(c->bus), SHUT_RDWR);
        return 1;
}

static bool is_agentd(const struct server *s, int fd) {
        struct ucred peer;
        socklen_t size = sizeof(peer);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) >= 0 &&
               (peer.uid == s->starter->agent_uid || peer.uid == 0);
}

/* Takes fd. */
static int client_new(struct server *s, int fd) {
        struct client *c = calloc(1, sizeof(*c));
        sd_id128_t id;
        int r;

        if (!c) {
                close_fd(fd);
                return -ENOMEM;
        }
        c->server = s;
        if ((r = sd_bus_new(&c->bus)) < 0 || (r = sd_bus_set_fd(c->bus, fd, fd)) < 0)
                close_fd(fd);
        else if ((r = sd_id128_randomize(&id)) >= 0 && (r = sd_bus_set_server(c->bus, true, id)) >= 0 &&
                 (r = sd_bus_negotiate_fds(c->bus, true)) >= 0 &&
                 (r = sd_bus_set_trusted(c->bus, true)) >= 0 &&
                 (r = sd_bus_set_description(c->bus, "starter")) >= 0 && (r = sd_bus_start(c->bus)) >= 0 &&
                 (r = sd_bus_attach_event(c->bus, s->starter->event, SD_EVENT_PRIORITY_NORMAL)) >= 0 &&
                 (r = sd_bus_add_filter(c->bus, NULL, on_message, c)) >= 0 &&
                 (r = sd_bus_match_signal(c->bus, &c->gone, NULL, "/org/freedesktop/DBus/Local",
                                          "org.freedesktop.DBus.Local", "Disconnected", on_gone, c)) >= 0)
                r = connection_new(s->starter, c->bus, &c->connection);
        if (r >= 0)
                r = observe_offer(c->bus, s->starter->event,
                                  &(struct observe_options){ .widened = s->widened }, &c->observe);
        if (r >= 0)
                r = journal_offer(c->bus, s->starter->event, JOURNAL_SOCKET, &c->syncs);
        if (r < 0) {
                client_free(c);
                return r;
        }
        DL_APPEND(s->clients, c);
        s->n_clients++;
        return 0;
}

static int on_connect(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct server *s = userdata;
        int r, peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (peer < 0)
                return 0;
        if (!is_agentd(s, peer)) {
                log_warning("A process that is not primus-agentd's connected; it is refused");
                close_fd(peer);
                return 0;
        }
        if (s->n_clients >= CONNECTIONS_MAX) {
                log_warning("primus-agentd has %u connections already", s->n_clients);
                close_fd(peer);
                return 0;
        }
        r = client_new(s, peer);
        if (r < 0)
                log_warning_errno(r, "Cannot serve primus-agentd");
        return 0;
}

int server_new(struct starter *starter, int fd, struct server **ret) {
        struct server *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->starter = starter;
        if ((r = widened_new(WIDENED_MAX, WIDENED_BYTES_MAX, &s->widened)) < 0 ||
            (r = sd_event_add_io(starter->event, &s->listener, fd, EPOLLIN, on_connect, s)) < 0) {
                server_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

void server_free(struct server *s) {
        if (!s)
                return;
        while (s->clients)
                client_free(s->clients);
        sd_event_source_disable_unref(s->listener);
        widened_free(s->widened);
        free(s);
}
