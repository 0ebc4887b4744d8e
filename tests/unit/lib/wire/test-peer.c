/* SPDX-License-Identifier: Apache-2.0 */
/* Two peers over a real loopback connection in one event loop. */
#include "lib/wire/peer.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/wire/authority.h"
#include "lib/wire/messages.h"
#include "lib/wire/tls.h"

#define HOUR (UINT64_C(3600) * USEC_PER_SEC)

/* ---- certificates ---- */

static struct certificate ca, foreign_ca;
static struct tls_credentials *master, *node, *stranger, *foreign_master, *expired, *no_certificate;

static struct tls_credentials *node_credentials(const struct certificate *signer, const char *trust,
                                                uint64_t now, uint64_t lifetime) {
        _cleanup_(certificate_done) struct certificate c = {};
        _cleanup_free_ char *key = NULL, *csr = NULL;
        struct tls_credentials *ret = NULL;
        assert_int_equal(certificate_request_new("n1", &key, &csr), 0);
        assert_int_equal(authority_issue_node(signer, csr, strlen(csr), "n1", now, lifetime, &c), 0);
        assert_int_equal(tls_credentials_new(trust, c.cert_pem, key, &ret), 0);
        return ret;
}

static struct tls_credentials *master_credentials(const struct certificate *signer) {
        _cleanup_(certificate_done) struct certificate c = {};
        struct tls_credentials *ret = NULL;
        assert_int_equal(authority_issue_master(signer, now_real(), HOUR, &c), 0);
        assert_int_equal(tls_credentials_new(signer->cert_pem, c.cert_pem, c.key_pem, &ret), 0);
        return ret;
}

static int setup(void **state) {
        uint64_t now = now_real();
        assert_int_equal(authority_new("lab", now, 100 * HOUR, &ca), 0);
        assert_int_equal(authority_new("lab", now, 100 * HOUR, &foreign_ca), 0);
        master = master_credentials(&ca);
        foreign_master = master_credentials(&foreign_ca);
        node = node_credentials(&ca, ca.cert_pem, now, HOUR);
        stranger = node_credentials(&foreign_ca, ca.cert_pem, now, HOUR);
        expired = node_credentials(&ca, ca.cert_pem, now - 10 * HOUR, HOUR);
        assert_int_equal(tls_credentials_new(ca.cert_pem, NULL, NULL, &no_certificate), 0);
        return 0;
}

static int teardown(void **state) {
        struct tls_credentials *all[] = { master, node, stranger, foreign_master, expired, no_certificate };
        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                tls_credentials_free(all[i]);
        certificate_done(&ca);
        certificate_done(&foreign_ca);
        return 0;
}

/* ---- two sides ---- */

struct side {
        struct peer *peer;
        int ready, ended, error;
        char why[128];
        int refuse;
        unsigned notes;
        size_t bytes;
        bool deaf;
        unsigned hold_at; /* held by the message of that number; 0: never */
        unsigned replies, failures;
        bool failed_before_end;
};

struct pair {
        sd_event *event;
        int listener;
        uint16_t port;
        struct side server, client;
        uint64_t handshake_usec;
        const char *check_says;
        char check_name[65], check_serial[41];
};
static struct pair *current;

static int method_echo(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const void *p;
        size_t n;
        if (link_read_bytes(m, 4 << 20, &p, &n) <= 0)
                return -EBADMSG;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        assert_true(sd_bus_message_new_method_return(m, &reply) >= 0);
        assert_true(sd_bus_message_append_array(reply, 'y', p, n) >= 0);
        return sd_bus_send(NULL, reply, NULL);
}

static int method_note(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct side *s = userdata;
        const void *p;
        size_t n;
        if (link_read_bytes(m, 32 << 20, &p, &n) <= 0)
                return -EBADMSG;
        s->notes++;
        s->bytes += n;
        if (s->notes == s->hold_at)
                peer_hold(s->peer, true);
        return 1;
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Echo", "ay", "ay", method_echo, 0),
        SD_BUS_METHOD("Note", "ay", "", method_note, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_VTABLE_END,
};

static int on_ready(struct peer *p, void *userdata) {
        struct side *s = userdata;
        s->ready++;
        assert_non_null(peer_bus(p));
        assert_non_null(peer_name(p));
        assert_true(sd_bus_add_object_vtable(peer_bus(p), NULL, LINK_PATH, LINK_INTERFACE, vtable, s) >= 0);
        return s->refuse;
}

static void on_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        struct side *s = userdata;
        s->ended++;
        s->error = end->error;
        s->failed_before_end = s->failures > 0;
        (void)snprintf(s->why, sizeof s->why, "%s", end->why);
        peer_free(p);
        s->peer = NULL;
}

static const char *check(const char *name, const char *serial, void *userdata) {
        (void)snprintf(current->check_name, sizeof current->check_name, "%s", name);
        (void)snprintf(current->check_serial, sizeof current->check_serial, "%s", serial);
        return current->check_says;
}

static void pair_init(struct pair *t) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof a;
        *t = (struct pair){};
        current = t;
        assert_true(sd_event_new(&t->event) >= 0);
        t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(t->listener, (struct sockaddr *)&a, sizeof a), 0);
        assert_int_equal(listen(t->listener, 8), 0);
        assert_int_equal(getsockname(t->listener, (struct sockaddr *)&a, &size), 0);
        t->port = ntohs(a.sin_port);
}

static int dial(struct pair *t, int buffer) {
        struct sockaddr_in a = { .sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                 .sin_port = htons(t->port) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(fd >= 0);
        if (buffer > 0)
                (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
        if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
                assert_int_equal(errno, EINPROGRESS);
        return fd;
}

static int take(struct pair *t) {
        int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        assert_true(fd >= 0);
        return fd;
}

static void start_server(struct pair *t, int fd, struct tls_credentials *c, uint64_t queue_max) {
        const struct peer_options o = { .server = true,
                                        .expect_role = PEER_NODE,
                                        .handshake_usec = t->handshake_usec,
                                        .queue_max = queue_max,
                                        .check = check };
        assert_int_equal(peer_new(t->event, fd, c, &o, on_ready, on_ended, &t->server, &t->server.peer), 0);
}

static void start_client(struct pair *t, int fd, struct tls_credentials *c, const char *expect) {
        const struct peer_options o = { .expect_role = PEER_MASTER,
                                        .expect_name = expect,
                                        .handshake_usec = 20 * USEC_PER_SEC,
                                        .queue_max = 1 << 20 };
        assert_int_equal(peer_new(t->event, fd, c, &o, on_ready, on_ended, &t->client, &t->client.peer), 0);
}

static void pair_connect(struct pair *t, struct tls_credentials *server, struct tls_credentials *client) {
        pair_init(t);
        int fd = dial(t, 0);
        start_client(t, fd, client, AUTHORITY_MASTER_NAME);
        start_server(t, take(t), server, 0);
}

static void pair_done(struct pair *t) {
        peer_free(t->server.peer);
        peer_free(t->client.peer);
        close(t->listener);
        sd_event_unref(t->event);
}

#define RUN_UNTIL(t, condition)                                                                              \
        do {                                                                                                 \
                uint64_t limit_ = now_boot() + 60 * USEC_PER_SEC;                                            \
                while (!(condition)) {                                                                       \
                        assert_true(now_boot() < limit_);                                                    \
                        assert_true(sd_event_run((t)->event, 100 * USEC_PER_MSEC) >= 0);                     \
                }                                                                                            \
        } while (0)

static void run_for(struct pair *t, uint64_t usec) {
        uint64_t end = now_boot() + usec;
        while (now_boot() < end)
                assert_true(sd_event_run(t->event, 10 * USEC_PER_MSEC) >= 0);
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct side *s = userdata;
        const void *p;
        size_t n;
        if (sd_bus_message_is_method_error(m, NULL)) {
                s->failures++;
                return 0;
        }
        assert_int_equal(link_read_bytes(m, 4 << 20, &p, &n), 1);
        s->replies++;
        s->bytes += n;
        return 0;
}

static void send_message(struct side *s, const char *method, size_t size, bool reply) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        void *p;
        assert_true(sd_bus_message_new_method_call(peer_bus(s->peer), &m, NULL, LINK_PATH, LINK_INTERFACE,
                                                   method) >= 0);
        assert_true(sd_bus_message_append_array_space(m, 'y', size, &p) >= 0);
        memset(p, 0x5a, size);
        if (reply)
                assert_true(sd_bus_call_async(peer_bus(s->peer), NULL, m, on_reply, s, 0) >= 0);
        else {
                assert_true(sd_bus_message_set_expect_reply(m, false) >= 0);
                assert_true(sd_bus_send(peer_bus(s->peer), m, NULL) >= 0);
        }
}

/* ---- what works ---- */

static void test_calls_both_ways(void **state) {
        struct pair t;
        pair_connect(&t, master, node);
        RUN_UNTIL(&t, t.server.ready && t.client.ready);
        assert_string_equal(peer_name(t.server.peer), "n1");
        assert_string_equal(peer_name(t.client.peer), AUTHORITY_MASTER_NAME);
        assert_string_equal(t.check_name, "n1");
        assert_string_equal(t.check_serial, peer_serial(t.server.peer));
        struct addr a;
        peer_address(t.client.peer, &a);
        assert_int_equal(a.port, t.port);
        for (int i = 0; i < 50; i++) {
                send_message(&t.client, "Echo", 10, true);
                send_message(&t.server, "Echo", 10, true);
        }
        RUN_UNTIL(&t, t.client.replies == 50 && t.server.replies == 50);
        pair_done(&t);
}

static void test_large_messages(void **state) {
        struct pair t;
        pair_connect(&t, master, node);
        RUN_UNTIL(&t, t.server.ready && t.client.ready);
        for (int i = 0; i < 30; i++) {
                send_message(&t.client, "Echo", 64 << 10, true);
                send_message(&t.server, "Echo", 64 << 10, true);
        }
        RUN_UNTIL(&t, t.client.replies == 30 && t.server.replies == 30);
        assert_int_equal(t.client.bytes, 30 * (64 << 10));
        /* One message larger than every ring. */
        t.server.bytes = 0;
        send_message(&t.client, "Note", 4 << 20, false);
        RUN_UNTIL(&t, t.server.notes == 1);
        assert_int_equal(t.server.bytes, 4 << 20);
        pair_done(&t);
}

static void test_oversized_message(void **state) {
        struct pair t;
        pair_connect(&t, master, node);
        RUN_UNTIL(&t, t.server.ready && t.client.ready);
        send_message(&t.client, "Note", LINK_MESSAGE_MAX + 1, false);
        RUN_UNTIL(&t, t.server.ended);
        assert_int_equal(t.server.error, -EMSGSIZE);
        assert_int_equal(t.server.notes, 0);
        pair_done(&t);
}

static void test_messages_before_the_end_arrive(void **state) {
        struct pair t;
        pair_connect(&t, master, node);
        RUN_UNTIL(&t, t.server.ready && t.client.ready);
        send_message(&t.client, "Echo", 1, true);
        RUN_UNTIL(&t, t.client.replies == 1);
        send_message(&t.server, "Echo", 1, true); /* pending when the end comes */
        for (int i = 0; i < 100; i++)
                send_message(&t.client, "Note", 1000, false);
        peer_close(t.client.peer, "enough");
        RUN_UNTIL(&t, t.server.ended && t.client.ended);
        assert_int_equal(t.server.notes, 100);
        assert_int_equal(t.server.error, 0);
        assert_int_equal(t.server.failures, 1);
        assert_true(t.server.failed_before_end);
        assert_string_equal(t.client.why, "enough");
        assert_int_equal(t.client.ended, 1);
        pair_done(&t);
}

static void test_free_at_once(void **state) {
        struct pair t;
        pair_connect(&t, master, node);
        RUN_UNTIL(&t, t.server.ready && t.client.ready);
        send_message(&t.client, "Echo", 1, true);
        peer_free(t.client.peer);
        t.client.peer = NULL;
        RUN_UNTIL(&t, t.server.ended);
        assert_int_equal(t.client.ended, 0);
        pair_done(&t);
}

/* The client's TCP window and its process stop taking anything: the server's queue has a bound. */
static void test_stalled_reader(void **state) {
        struct pair t;
        pair_init(&t);
        int fd = dial(&t, 4096);
        start_client(&t, fd, node, NULL);
        int server = take(&t), small = 4096;
        (void)setsockopt(server, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        start_server(&t, server, master, 1 << 20);
        RUN_UNTIL(&t, t.server.ready && t.client.ready && sd_bus_is_ready(peer_bus(t.client.peer)) > 0);
        peer_hold(t.client.peer, true);
        /* The bus takes nothing from the pump, so the pump stops reading the network. */
        unsigned sent = 0;
        uint64_t most = 0;
        while (!t.server.ended && sent < 20000) {
                for (int i = 0; i < 50 && t.server.peer && peer_bus(t.server.peer); i++) {
                        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
                        void *p;
                        assert_true(sd_bus_message_new_method_call(peer_bus(t.server.peer), &m, NULL,
                                                                   LINK_PATH, LINK_INTERFACE, "Note") >= 0);
                        assert_true(sd_bus_message_append_array_space(m, 'y', 10000, &p) >= 0);
                        memset(p, 0, 10000);
                        (void)sd_bus_message_set_expect_reply(m, false);
                        if (sd_bus_send(peer_bus(t.server.peer), m, NULL) < 0)
                                break;
                        sent++;
                }
                if (t.server.peer && peer_queued(t.server.peer) > most)
                        most = peer_queued(t.server.peer);
                assert_true(sd_event_run(t.event, 10 * USEC_PER_MSEC) >= 0);
        }
        assert_int_equal(t.server.ended, 1);
        assert_int_equal(t.server.error, -ENOBUFS);
        assert_true(most <= 1 << 20);
        assert_true(sent < 20000);
        pair_done(&t);
}

static int on_less_urgent(sd_event_source *s, void *userdata) {
        (*(unsigned *)userdata)++;
        return 0;
}

/* Held in the middle of what has come: the rest waits, and the loop sleeps; it has not a turn after another
 * for a bus that may not be served, while all that is less urgent has none. */
static void test_held_is_quiet(void **state) {
        struct pair t;
        sd_event_source *less_urgent;
        unsigned turns = 0, told = 0;
        uint64_t begin;

        pair_connect(&t, master, node);
        RUN_UNTIL(&t, t.server.ready && t.client.ready);
        t.server.hold_at = 3;
        for (int i = 0; i < 50; i++)
                send_message(&t.client, "Note", 100, false);
        RUN_UNTIL(&t, t.server.notes == 3);
        assert_true(sd_event_add_defer(t.event, &less_urgent, on_less_urgent, &told) >= 0);
        assert_true(sd_event_source_set_priority(less_urgent, SD_EVENT_PRIORITY_IDLE) >= 0);
        begin = now_boot();
        while (now_boot() < begin + 200 * USEC_PER_MSEC) {
                assert_true(sd_event_run(t.event, 50 * USEC_PER_MSEC) >= 0);
                turns++;
        }
        assert_int_equal(told, 1);
        assert_true(turns < 100);
        assert_int_equal(t.server.notes, 3);
        peer_hold(t.server.peer, false);
        RUN_UNTIL(&t, t.server.notes == 50);
        sd_event_source_unref(less_urgent);
        pair_done(&t);
}

/* ---- who is refused, and what each side hears ---- */

static void refused(struct tls_credentials *server, struct tls_credentials *client, const char *server_why,
                    int client_error, const char *client_why) {
        struct pair t;
        pair_connect(&t, server, client);
        RUN_UNTIL(&t, t.server.ended && t.client.ended);
        assert_int_equal(t.server.ready, 0);
        assert_int_equal(t.client.ready, 0);
        assert_string_equal(t.server.why, server_why);
        assert_string_equal(t.client.why, client_why);
        assert_int_equal(t.client.error, client_error);
        assert_true(t.server.error < 0);
        pair_done(&t);
}

static void test_refusals(void **state) {
        refused(master, stranger, "certificate signed by another CA", -EKEYREJECTED,
                "refused by the other side: our certificate is signed by another CA");
        refused(master, expired, "certificate expired", -EKEYEXPIRED,
                "refused by the other side: our certificate has expired");
        refused(master, no_certificate, "no certificate", -EKEYREJECTED,
                "refused by the other side: it wants a certificate");
        refused(master, master, "not a node's certificate", -EKEYREJECTED,
                "refused by the other side: our certificate is not for this role");
        /* The client finds fault with the server. */
        refused(foreign_master, node, "refused by the other side: our certificate is signed by another CA",
                -EKEYREJECTED, "certificate signed by another CA");
        refused(node, node, "refused by the other side: our certificate is not for this role", -EKEYREJECTED,
                "not masterd's certificate");
}

static void test_revoked(void **state) {
        struct pair t;
        pair_connect(&t, master, node);
        t.check_says = "node n1 was removed";
        RUN_UNTIL(&t, t.server.ended && t.client.ended);
        assert_string_equal(t.server.why, "node n1 was removed");
        assert_string_equal(t.client.why, "refused by the other side: our certificate was revoked");
        assert_int_equal(t.client.error, -EKEYREVOKED);
        assert_int_equal(t.client.ready + t.server.ready, 0);
        pair_done(&t);
}

/* That it is not for a newer certificate is told apart: whoever was removed has no business to go on. */
static void test_removed(void **state) {
        struct pair t;
        pair_connect(&t, master, node);
        t.check_says = peer_removed;
        RUN_UNTIL(&t, t.server.ended && t.client.ended);
        assert_string_equal(t.server.why, peer_removed);
        assert_int_equal(t.client.error, -EIDRM);
        assert_non_null(strstr(t.client.why, "this host was removed from the cluster"));
        assert_int_equal(t.client.ready + t.server.ready, 0);
        pair_done(&t);
}

static void test_owner_refuses(void **state) {
        struct pair t;
        pair_connect(&t, master, node);
        t.server.refuse = -EPERM;
        RUN_UNTIL(&t, t.server.ended && t.client.ended);
        assert_int_equal(t.client.ready, 0);
        assert_int_equal(t.client.error, -EACCES);
        pair_done(&t);
}

/* ---- faults below TLS ---- */

static void test_garbage(void **state) {
        static const struct {
                const char *bytes;
                size_t size;
        } garbage[] = { { "GET / HTTP/1.1\r\n\r\n", 18 },
                        { "\x16\x03\x01\xff\xff garbage garbage", 21 },
                        { "\0AUTH ANONYMOUS\r\n", 17 } };
        for (size_t i = 0; i < ELEMENTSOF(garbage); i++) {
                struct pair t;
                pair_init(&t);
                _cleanup_close_ int fd = dial(&t, 0);
                start_server(&t, take(&t), master, 0);
                assert_true(send(fd, garbage[i].bytes, garbage[i].size, MSG_NOSIGNAL) > 0);
                (void)shutdown(fd, SHUT_WR);
                RUN_UNTIL(&t, t.server.ended);
                assert_true(t.server.error < 0);
                assert_int_equal(t.server.ready, 0);
                pair_done(&t);
        }
}

static void test_silence_and_half_a_handshake(void **state) {
        for (size_t half = 0; half < 2; half++) {
                struct pair t;
                pair_init(&t);
                t.handshake_usec = 300 * USEC_PER_MSEC;
                _cleanup_close_ int fd = dial(&t, 0);
                start_server(&t, take(&t), master, 0);
                if (half) /* the head of a client's hello that never ends */
                        assert_true(send(fd, "\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03", 11,
                                         MSG_NOSIGNAL) > 0);
                RUN_UNTIL(&t, t.server.ended);
                assert_int_equal(t.server.error, -ETIMEDOUT);
                pair_done(&t);
        }
}

static void test_nobody_listens(void **state) {
        struct pair t;
        pair_init(&t);
        close(t.listener);
        int fd = dial(&t, 0);
        start_client(&t, fd, node, NULL);
        assert_int_equal(t.client.ended, 0);
        RUN_UNTIL(&t, t.client.ended);
        assert_int_equal(t.client.error, -ECONNREFUSED);
        t.listener = -1;
        pair_done(&t);
}

/* A node with a good certificate that does not keep to D-Bus inside: that connection ends, nothing is
 * allocated for it. */
static void test_faults_inside(void **state) {
        static const struct {
                const char *bytes;
                size_t size;
                int error;
        } table[] = {
                { "\0AUTH ANONYMOUS\r\nBEGIN\r\nl\1\0\1\0\0\0\x40\1\0\0\0\0\0\0\0", 40, -EMSGSIZE },
                { "\0AUTH ANONYMOUS\r\nBEGIN\r\nGET / HTTP/1.1\r\n\r\n", 41, -EBADMSG },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct pair t;
                struct tls *tls = NULL;
                const struct tls_expect expect = { .role = PEER_MASTER };
                uint8_t accepted;
                pair_init(&t);
                _cleanup_close_ int fd = dial(&t, 0);
                start_server(&t, take(&t), master, 0);
                assert_int_equal(tls_new(node, TLS_CLIENT, fd, &expect, &tls), 0);
                RUN_UNTIL(&t, tls_handshake(tls) == 1);
                RUN_UNTIL(&t, tls_receive(tls, &accepted, 1) == 1);
                assert_int_equal(tls_send(tls, table[i].bytes, table[i].size), table[i].size);
                RUN_UNTIL(&t, t.server.ended);
                assert_int_equal(t.server.ready, 1);
                assert_int_equal(t.server.error, table[i].error);
                tls_free(tls);
                pair_done(&t);
        }
}

/* The last bytes and the end arrive in one wake-up, from one who does not say goodbye. */
static void test_end_with_the_last_bytes(void **state) {
        static const char last[] = "\0AUTH ANONYMOUS\r\n";
        const struct tls_expect expect = { .role = PEER_MASTER };
        struct tls *tls = NULL;
        uint8_t accepted;
        struct pair t;
        pair_init(&t);
        int fd = dial(&t, 0);
        start_server(&t, take(&t), master, 0);
        assert_int_equal(tls_new(node, TLS_CLIENT, fd, &expect, &tls), 0);
        RUN_UNTIL(&t, tls_handshake(tls) == 1);
        RUN_UNTIL(&t, tls_receive(tls, &accepted, 1) == 1);
        run_for(&t, 20 * USEC_PER_MSEC);
        assert_int_equal(tls_send(tls, last, sizeof(last) - 1), sizeof(last) - 1);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        RUN_UNTIL(&t, t.server.ended);
        assert_int_equal(t.server.ready, 1);
        tls_free(tls);
        close(fd);
        pair_done(&t);
}

static void test_eviction(void **state) {
        struct pair t;
        pair_connect(&t, master, node);
        RUN_UNTIL(&t, t.server.ready && t.client.ready);
        run_for(&t, 20 * USEC_PER_MSEC);
        peer_close(t.server.peer, "evicted by a new registration");
        RUN_UNTIL(&t, t.server.ended && t.client.ended);
        assert_string_equal(t.server.why, "evicted by a new registration");
        assert_string_equal(t.client.why, "closed by the other side");
        pair_done(&t);
}

static void test_credentials(void **state) {
        struct tls_credentials *c = NULL;
        _cleanup_(certificate_done) struct certificate a = {}, b = {};
        assert_int_equal(tls_credentials_load("/nonexistent/ca.crt", "/x", "/y", &c), -ENOENT);
        assert_int_equal(authority_issue_master(&ca, now_real(), HOUR, &a), 0);
        assert_int_equal(authority_issue_master(&ca, now_real(), HOUR, &b), 0);
        assert_int_equal(tls_credentials_new(ca.cert_pem, a.cert_pem, b.key_pem, &c), -EKEYREJECTED);
        assert_int_equal(tls_credentials_new("nonsense", a.cert_pem, a.key_pem, &c), -EKEYREJECTED);
        assert_null(c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_calls_both_ways),
                cmocka_unit_test(test_large_messages),
                cmocka_unit_test(test_oversized_message),
                cmocka_unit_test(test_messages_before_the_end_arrive),
                cmocka_unit_test(test_free_at_once),
                cmocka_unit_test(test_stalled_reader),
                cmocka_unit_test(test_held_is_quiet),
                cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_revoked),
                cmocka_unit_test(test_removed),
                cmocka_unit_test(test_owner_refuses),
                cmocka_unit_test(test_garbage),
                cmocka_unit_test(test_silence_and_half_a_handshake),
                cmocka_unit_test(test_nobody_listens),
                cmocka_unit_test(test_faults_inside),
                cmocka_unit_test(test_end_with_the_last_bytes),
                cmocka_unit_test(test_eviction),
                cmocka_unit_test(test_credentials),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
