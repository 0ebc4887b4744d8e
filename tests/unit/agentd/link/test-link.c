/* SPDX-License-Identifier: Apache-2.0 */
/* The link over loopback, with a masterd that does what each test says. */
#include "agentd/link/link.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/worker.h"
#include "lib/wire/authority.h"
#include "lib/wire/join.h"
#include "lib/wire/messages.h"
#include "lib/wire/peer.h"

#define HOUR (UINT64_C(3600) * USEC_PER_SEC)

struct connection {
        struct peer *peer;
        bool bulk, calls, greeted;
};

struct world {
        sd_event *event;
        struct worker *worker;
        struct tls_credentials *master, *node;
        struct listener *listener;
        uint16_t port;
        struct link *link;
        char address[64];
        /* masterd */
        struct connection connections[16];
        unsigned n_connections, hellos, registrations, heartbeats, notes;
        const char *refuse_hello, *refuse_registration; /* error name */
        uint64_t heartbeat_usec, lost_usec, term;
        bool silent; /* heartbeats are not acknowledged */
        /* agentd */
        unsigned up, down, bulk_up, bulk_down, calls_up, calls_down, acked, orders;
        bool takes_calls;
        const char *unwelcome;
        unsigned refusals;
        char why[LINK_VERSION_TEXT_MAX];
        struct link_refused refusal;
        uint16_t minor; /* masterd's */
};

static struct world *world;

/* ---- masterd ---- */

static struct connection *connection_of(sd_bus_message *m) {
        for (unsigned i = 0; i < world->n_connections; i++)
                if (world->connections[i].peer &&
                    peer_bus(world->connections[i].peer) == sd_bus_message_get_bus(m))
                        return &world->connections[i];
        fail_msg("a message of nobody");
        return NULL;
}

static int method_hello(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct welcome w = { .major = LINK_MAJOR,
                             .minor = world->minor,
                             .build = (char *)"test",
                             .term = world->term,
                             .epoch = world->registrations + 1,
                             .heartbeat_usec = world->heartbeat_usec,
                             .lost_usec = world->lost_usec,
                             .spread_usec = 1000 };
        struct connection *c = connection_of(m);
        const char *key, *type;

        w.cluster.bytes[0] = 1;
        world->hellos++;
        if (world->refuse_hello && strcmp(world->refuse_hello, LINK_ERROR_VERSION) == 0) {
                assert_true(sd_bus_message_new_method_errorf(m, &reply, LINK_ERROR_VERSION, "too new") >= 0);
                assert_true(link_refusal_append(reply, &(struct link_refusal){ w.cluster, world->term }) >=
                            0);
                return sd_bus_send(NULL, reply, NULL);
        }
        if (world->refuse_hello)
                return sd_bus_error_set(error, world->refuse_hello, "not today");
        assert_true(sd_bus_message_skip(m, "qqsas") >= 0);
        assert_true(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                int b;
                assert_true(sd_bus_message_read(m, "s", &key) > 0);
                assert_true(sd_bus_message_peek_type(m, NULL, &type) > 0);
                if (strcmp(key, "bulk") == 0) {
                        assert_true(sd_bus_message_read(m, "v", "b", &b) > 0);
                        c->bulk = b;
                } else if (strcmp(key, "calls") == 0) {
                        assert_true(sd_bus_message_read(m, "v", "b", &b) > 0);
                        c->calls = b;
                } else
                        assert_true(sd_bus_message_skip(m, "v") >= 0);
                assert_true(sd_bus_message_exit_container(m) >= 0);
        }
        c->greeted = true;
        assert_true(sd_bus_message_new_method_return(m, &reply) >= 0);
        assert_true(welcome_append(reply, &w) >= 0 && welcome_append_extra(reply, world->takes_calls) >= 0);
        return sd_bus_send(NULL, reply, NULL);
}

static int method_register(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *boot;

        assert_false(connection_of(m)->bulk || connection_of(m)->calls);
        assert_true(sd_bus_message_read(m, "s", &boot) > 0);
        assert_string_equal(boot, "boot");
        if (world->refuse_registration)
                return sd_bus_error_set(error, world->refuse_registration, "not this one");
        world->registrations++;
        return sd_bus_reply_method_return(m, NULL);
}

static int method_heartbeat(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *ack = NULL;
        uint64_t seq;

        assert_true(sd_bus_message_read(m, "t", &seq) > 0);
        world->heartbeats++;
        if (world->silent)
                return 1;
        assert_true(sd_bus_message_new_method_call(sd_bus_message_get_bus(m), &ack, NULL, LINK_PATH,
                                                   LINK_INTERFACE, "HeartbeatAck") >= 0);
        assert_true(sd_bus_message_append(ack, "ta{sv}", seq, 0) >= 0);
        assert_true(sd_bus_message_set_expect_reply(ack, false) >= 0);
        assert_true(sd_bus_send(NULL, ack, NULL) >= 0);
        return 1;
}

static int method_note(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        assert_true(connection_of(m)->bulk);
        world->notes++;
        return 1;
}

static const sd_bus_vtable master_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Hello", "qqsasa{sv}", "(qqsayttttt)a{sv}", method_hello, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Register", "sa{sv}", "", method_register, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Heartbeat", "ta{sv}", "", method_heartbeat,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Note", "", "", method_note,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_VTABLE_END,
};

static int on_node_ready(struct peer *p, void *userdata) {
        struct connection *c;

        assert_true(world->n_connections < ELEMENTSOF(world->connections));
        c = &world->connections[world->n_connections++];
        c->peer = p;
        return sd_bus_add_object_vtable(peer_bus(p), NULL, LINK_PATH, LINK_INTERFACE, master_vtable, c);
}

static void on_node_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        for (unsigned i = 0; i < world->n_connections; i++)
                if (world->connections[i].peer == p)
                        world->connections[i].peer = NULL;
        peer_free(p);
}

static void listen_for_agents(struct world *w) {
        const struct addr address = { .family = AF_INET, .bytes = { 127, 0, 0, 1 }, .port = w->port };
        static const struct listener_handlers handlers = { .link_ready = on_node_ready,
                                                           .link_ended = on_node_ended };

        assert_int_equal(listener_new(w->event, &address, 1, w->master, &handlers, w, &w->listener), 0);
        w->port = listener_port(w->listener);
}

/* masterd is gone, with all of its connections. */
static void master_dies(struct world *w) {
        listener_free(w->listener);
        w->listener = NULL;
        for (unsigned i = 0; i < w->n_connections; i++)
                peer_free(w->connections[i].peer);
        w->n_connections = 0;
}

/* ---- agentd ---- */

static int on_welcome(const struct welcome *w, const char **ret_why, void *userdata) {
        struct world *x = userdata;

        *ret_why = x->unwelcome;
        return x->unwelcome ? -EPERM : 0;
}

static int on_registration(sd_bus_message *m, const struct addr *local, void *userdata) {
        assert_int_equal(local->family, AF_INET);
        assert_int_equal(local->port, 0);
        return sd_bus_message_append(m, "a{sv}", 0);
}

static void on_up(uint64_t sent_boot, void *userdata) {
        assert_true(sent_boot > 0 && sent_boot <= now_boot());
        world->up++;
}
static void on_down(void *userdata) {
        world->down++;
}
static void on_bulk_up(void *userdata) {
        world->bulk_up++;
}
static void on_bulk_down(void *userdata) {
        world->bulk_down++;
}
static void on_calls_up(void *userdata) {
        world->calls_up++;
}
static void on_calls_down(void *userdata) {
        world->calls_down++;
}
static void on_refused(const struct link_refused *r, void *userdata) {
        world->refusals++;
        world->refusal = *r;
        world->refusal.why = NULL;
        snprintf(world->why, sizeof(world->why), "%s", r->why);
}
static void on_acked(uint64_t sent, void *userdata) {
        assert_true(sent > 0 && sent <= now_boot());
        world->acked++;
}

static int method_ack(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        uint64_t seq;

        assert_true(sd_bus_message_read(m, "t", &seq) > 0);
        link_heartbeat_acked(world->link, seq);
        link_heartbeat_acked(world->link, seq + 1000); /* of a future that never was */
        return 1;
}

static const sd_bus_vtable agent_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("HeartbeatAck", "ta{sv}", "", method_ack, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_VTABLE_END,
};
static const sd_bus_vtable agent_bulk_vtable[] = { SD_BUS_VTABLE_START(0), SD_BUS_VTABLE_END };

static void start_link(struct world *w, const char *host) {
        static const struct link_ops ops = { on_welcome, on_registration, on_up,       on_down,
                                             on_bulk_up, on_bulk_down,    on_calls_up, on_calls_down,
                                             on_refused, on_acked };
        struct link_options options = { .node = "n1",
                                        .boot_id = "boot",
                                        .orders = agent_vtable,
                                        .bulk_orders = agent_bulk_vtable,
                                        .orders_data = w };

        snprintf(w->address, sizeof(w->address), "%s:%u", host, w->port);
        options.master = w->address;
        assert_int_equal(link_new(w->event, w->worker, w->node, &options, &ops, w, &w->link), 0);
}

/* ---- setting up ---- */

static int setup(void **state) {
        _cleanup_(certificate_done) struct certificate ca = {}, master = {}, node = {};
        _cleanup_free_ char *key = NULL, *csr = NULL;

        world = calloc(1, sizeof(*world));
        assert_non_null(world);
        world->heartbeat_usec = 20 * USEC_PER_MSEC;
        world->lost_usec = 10 * USEC_PER_SEC;
        world->term = 1;
        world->minor = LINK_MINOR;
        assert_true(sd_event_new(&world->event) >= 0);
        assert_int_equal(worker_new(world->event, &world->worker), 0);
        assert_int_equal(authority_new("lab", now_real(), 100 * HOUR, &ca), 0);
        assert_int_equal(authority_issue_master(&ca, now_real(), HOUR, &master), 0);
        assert_int_equal(tls_credentials_new(ca.cert_pem, master.cert_pem, master.key_pem, &world->master),
                         0);
        assert_int_equal(certificate_request_new("n1", &key, &csr), 0);
        assert_int_equal(authority_issue_node(&ca, csr, strlen(csr), "n1", now_real(), HOUR, &node), 0);
        assert_int_equal(tls_credentials_new(ca.cert_pem, node.cert_pem, key, &world->node), 0);
        listen_for_agents(world);
        return 0;
}

static int teardown(void **state) {
        master_dies(world);
        worker_free(world->worker);
        link_free(world->link);
        tls_credentials_free(world->master);
        tls_credentials_free(world->node);
        sd_event_unref(world->event);
        free(world);
        return 0;
}

#define RUN_UNTIL(condition)                                                                                 \
        do {                                                                                                 \
                uint64_t limit_ = now_boot() + 30 * USEC_PER_SEC;                                            \
                while (!(condition)) {                                                                       \
                        if (now_boot() > limit_)                                                             \
                                fail_msg("not within time: %s", #condition);                                 \
                        assert_true(sd_event_run(world->event, 100 * USEC_PER_MSEC) >= 0);                   \
                }                                                                                            \
        } while (0)

/* ---- tests ---- */

static void test_up(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        start_link(world, "127.0.0.1");
        assert_null(link_bus(world->link));
        assert_int_equal(link_message(world->link, false, "Note", &m), -ENOTCONN);
        RUN_UNTIL(world->up == 1 && world->bulk_up == 1 && world->acked >= 3);
        assert_int_equal(world->registrations, 1);
        assert_int_equal(world->hellos, 2);
        assert_int_equal(link_welcome(world->link)->term, 1);
        assert_non_null(link_bus(world->link));
        assert_non_null(link_bulk_bus(world->link));
        assert_false(link_is_congested(world->link, true));
        assert_int_equal(link_message(world->link, true, "Note", &m), 0);
        assert_true(link_send(world->link, m) >= 0);
        RUN_UNTIL(world->notes == 1);
}

/* The third connection is there while it is wanted, and comes back with the link. */
static void test_calls(void **state) {
        world->takes_calls = true;
        start_link(world, "127.0.0.1");
        RUN_UNTIL(world->up == 1 && world->bulk_up == 1 && world->acked >= 3);
        assert_int_equal(world->calls_up, 0);
        assert_null(link_calls_bus(world->link));
        assert_true(link_takes_calls(world->link));
        link_want_calls(world->link, true);
        RUN_UNTIL(world->calls_up == 1);
        assert_non_null(link_calls_bus(world->link));
        master_dies(world);
        RUN_UNTIL(world->down == 1 && world->calls_down == 1);
        assert_false(link_takes_calls(world->link));
        assert_null(link_calls_bus(world->link));
        listen_for_agents(world);
        RUN_UNTIL(world->up == 2 && world->calls_up == 2);
        link_want_calls(world->link, false);
        RUN_UNTIL(world->calls_down == 2);
        /* At once again, while the one before is being closed. */
        link_want_calls(world->link, true);
        link_want_calls(world->link, false);
        link_want_calls(world->link, true);
        RUN_UNTIL(world->calls_up == 3);
        assert_int_equal(world->bulk_down, 1);
        assert_int_equal(world->down, 1);
}

/* A name instead of an address. */
static void test_resolved(void **state) {
        start_link(world, "localhost");
        RUN_UNTIL(world->up == 1 && world->bulk_up == 1);
}

static void test_back_after_a_loss(void **state) {
        start_link(world, "127.0.0.1");
        RUN_UNTIL(world->up == 1 && world->bulk_up == 1);
        master_dies(world);
        RUN_UNTIL(world->down == 1 && world->bulk_down == 1);
        assert_null(link_bus(world->link));
        assert_null(link_bulk_bus(world->link));
        world->term = 2;
        listen_for_agents(world);
        RUN_UNTIL(world->up == 2 && world->bulk_up == 2);
        assert_int_equal(world->down, 1);
        assert_int_equal(link_welcome(world->link)->term, 2);
}

/* Only the second connection ends: the first stays, the second comes back. */
static void test_bulk_comes_back(void **state) {
        start_link(world, "127.0.0.1");
        RUN_UNTIL(world->up == 1 && world->bulk_up == 1);
        for (unsigned i = 0; i < world->n_connections; i++)
                if (world->connections[i].bulk)
                        peer_close(world->connections[i].peer, "test");
        RUN_UNTIL(world->bulk_up == 2);
        assert_int_equal(world->bulk_down, 1);
        assert_int_equal(world->up, 1);
        assert_int_equal(world->down, 0);
}

/* A masterd that accepts everything and says nothing is left when the time is over. */
static void test_silence(void **state) {
        world->silent = true;
        world->lost_usec = 500 * USEC_PER_MSEC;
        start_link(world, "127.0.0.1");
        RUN_UNTIL(world->down == 1);
        assert_true(world->heartbeats >= 1);
        assert_int_equal(world->acked, 0);
        world->silent = false;
        RUN_UNTIL(world->up == 2 && world->acked > 0);
}

/* Said no, the agent does not ask again at once; "up" is never said. */
static void refused(void) {
        uint64_t end;

        start_link(world, "127.0.0.1");
        RUN_UNTIL(world->hellos == 1);
        end = now_boot() + 500 * USEC_PER_MSEC;
        while (now_boot() < end)
                assert_true(sd_event_run(world->event, 20 * USEC_PER_MSEC) >= 0);
        assert_int_equal(world->hellos, 1);
        assert_int_equal(world->up + world->down + world->bulk_up, 0);
        assert_null(link_bus(world->link));
}

static void test_refused(void **state) {
        world->refuse_hello = LINK_ERROR_REFUSED;
        refused();
        assert_int_equal(world->refusals, 1);
        assert_string_equal(world->why, "not today");
        assert_int_equal(world->refusal.sent_boot, 0);
}

static void test_another_version(void **state) {
        world->refuse_hello = LINK_ERROR_VERSION;
        refused();
        assert_int_equal(world->refusals, 1);
        assert_string_equal(world->why, "too new");
        assert_true(world->refusal.sent_boot > 0 && world->refusal.sent_boot <= now_boot());
        assert_int_equal(world->refusal.who.term, 1);
        assert_int_equal(world->refusal.who.cluster.bytes[0], 1);
}

/* A masterd that would talk to anybody: the agent knows better. */
static void test_a_master_too_new(void **state) {
        world->minor = LINK_MINOR + 2;
        refused();
        assert_int_equal(world->refusals, 1);
        assert_non_null(strstr(world->why, "upgrade the agent"));
        assert_int_equal(world->refusal.sent_boot, 0);
        assert_int_equal(world->registrations, 0);
}

static void test_a_newer_master(void **state) {
        world->minor = LINK_MINOR + 1;
        start_link(world, "127.0.0.1");
        RUN_UNTIL(world->up == 1 && world->bulk_up == 1);
        assert_int_equal(link_minor(world->link), LINK_MINOR);
        assert_int_equal(world->refusals, 0);
}

static void test_not_followed(void **state) {
        world->unwelcome = "it is of another cluster";
        refused();
        assert_int_equal(world->registrations, 0);
}

/* Heartbeats that make no sense: the masterd is not believed, and asked again soon. */
static void test_senseless_times(void **state) {
        world->heartbeat_usec = 20 * USEC_PER_SEC;
        start_link(world, "127.0.0.1");
        RUN_UNTIL(world->hellos >= 2);
        assert_int_equal(world->registrations, 0);
        world->heartbeat_usec = 20 * USEC_PER_MSEC;
        RUN_UNTIL(world->up == 1);
}

/* A registration that failed for the moment is tried again. */
static void test_registration_fails(void **state) {
        world->refuse_registration = SD_BUS_ERROR_FAILED;
        start_link(world, "127.0.0.1");
        RUN_UNTIL(world->hellos >= 2);
        assert_int_equal(world->up, 0);
        world->refuse_registration = NULL;
        RUN_UNTIL(world->up == 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_up, setup, teardown),
                cmocka_unit_test_setup_teardown(test_calls, setup, teardown),
                cmocka_unit_test_setup_teardown(test_resolved, setup, teardown),
                cmocka_unit_test_setup_teardown(test_back_after_a_loss, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bulk_comes_back, setup, teardown),
                cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_another_version, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_master_too_new, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_newer_master, setup, teardown),
                cmocka_unit_test_setup_teardown(test_not_followed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_senseless_times, setup, teardown),
                cmocka_unit_test_setup_teardown(test_registration_fails, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
