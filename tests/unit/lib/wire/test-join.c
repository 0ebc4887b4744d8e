/* SPDX-License-Identifier: Apache-2.0 */
/* The listener and joining, over loopback of both families; the blocking client runs in a thread of its own.
 */
#include "lib/wire/join.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define HOUR (UINT64_C(3600) * USEC_PER_SEC)

/* ---- masterd's side ---- */

struct master {
        sd_event *event;
        struct listener *listener;
        struct certificate ca;
        struct tls_credentials *credentials;
        struct join_token token;
        const char *refuse;
        bool later;
        struct join_pending *pending;
        unsigned joins, links, ended, refusals;
        char why[128], name[65], csr[8193];
        struct peer *peer;
        struct addr from;
};

static void answer(struct master *m) {
        _cleanup_(certificate_done) struct certificate c = {};
        struct join_pending *pending = TAKE_PTR(m->pending);
        if (!m->refuse)
                assert_int_equal(
                        authority_issue_node(&m->ca, m->csr, strlen(m->csr), m->name, now_real(), HOUR, &c),
                        0);
        join_answer(pending, m->refuse, c.cert_pem, m->ca.cert_pem);
}

static void on_join(struct join_pending *pending, const struct join_request *r, void *userdata) {
        struct master *m = userdata;
        m->joins++;
        m->pending = pending;
        m->from = r->from;
        assert_memory_equal(r->id, m->token.id, 8);
        assert_memory_equal(r->secret, m->token.secret, 16);
        (void)snprintf(m->name, sizeof m->name, "%s", r->name);
        (void)snprintf(m->csr, sizeof m->csr, "%.*s", (int)r->csr_size, r->csr_pem);
        if (!m->later)
                answer(m);
}

static int on_link(struct peer *p, void *userdata) {
        struct master *m = userdata;
        m->links++;
        m->peer = p;
        return 0;
}

static void on_link_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        struct master *m = userdata;
        m->ended++;
        m->peer = NULL;
        peer_free(p);
}

static void on_refused(const struct addr *from, const char *name, const char *why, void *userdata) {
        struct master *m = userdata;
        m->refusals++;
        (void)snprintf(m->why, sizeof m->why, "%s", why);
}

static void master_start(struct master *m) {
        static const struct listener_handlers handlers = {
                .link_ready = on_link, .link_ended = on_link_ended, .refused = on_refused, .join = on_join
        };
        _cleanup_(certificate_done) struct certificate c = {};
        struct addr addresses[2];
        uint8_t fingerprint[32];
        *m = (struct master){};
        assert_true(sd_event_new(&m->event) >= 0);
        assert_int_equal(authority_new("lab", now_real(), 100 * HOUR, &m->ca), 0);
        assert_int_equal(authority_issue_master(&m->ca, now_real(), HOUR, &c), 0);
        assert_int_equal(tls_credentials_new(m->ca.cert_pem, c.cert_pem, c.key_pem, &m->credentials), 0);
        assert_int_equal(authority_fingerprint(m->ca.cert_pem, fingerprint), 0);
        assert_int_equal(join_token_new(fingerprint, &m->token), 0);
        assert_int_equal(addr_parse("127.0.0.1", 0, &addresses[0]), 0);
        assert_int_equal(addr_parse("::1", 0, &addresses[1]), 0);
        assert_int_equal(listener_new(m->event, addresses, 2, m->credentials, &handlers, m, &m->listener), 0);
        assert_true(listener_port(m->listener) > 0);
}

static void master_stop(struct master *m) {
        peer_free(m->peer);
        listener_free(m->listener);
        tls_credentials_free(m->credentials);
        certificate_done(&m->ca);
        sd_event_unref(m->event);
}

#define RUN_UNTIL(m, condition)                                                                              \
        do {                                                                                                 \
                uint64_t limit_ = now_boot() + 60 * USEC_PER_SEC;                                            \
                while (!(condition)) {                                                                       \
                        assert_true(now_boot() < limit_);                                                    \
                        assert_true(sd_event_run((m)->event, 20 * USEC_PER_MSEC) >= 0);                      \
                }                                                                                            \
        } while (0)

/* ---- the joining side ---- */

struct joiner {
        const char *host, *name;
        uint16_t port;
        struct join_token token;
        pthread_t thread;
        atomic_bool done;
        int r;
        char *ca_pem, *why;
        struct certificate certificate;
};

static void *joiner_main(void *arg) {
        struct joiner *j = arg;
        j->r = join_cluster(j->host, j->port, &j->token, j->name, &j->ca_pem, &j->certificate, &j->why);
        atomic_store(&j->done, true);
        return NULL;
}

static void joiner_start(struct joiner *j, struct master *m, const char *host, const char *name) {
        *j = (struct joiner){
                .host = host, .name = name, .port = listener_port(m->listener), .token = m->token
        };
        assert_int_equal(pthread_create(&j->thread, NULL, joiner_main, j), 0);
}

static void joiner_wait(struct joiner *j, struct master *m) {
        RUN_UNTIL(m, atomic_load(&j->done));
        assert_int_equal(pthread_join(j->thread, NULL), 0);
}

static void joiner_done(struct joiner *j) {
        free(j->ca_pem);
        free(j->why);
        certificate_done(&j->certificate);
}

static int dial(struct master *m) {
        struct sockaddr_in a = { .sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                 .sin_port = htons(listener_port(m->listener)) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(fd >= 0);
        if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
                assert_int_equal(errno, EINPROGRESS);
        return fd;
}

struct client {
        struct peer *peer;
        unsigned ready, ended;
};

static int on_client_ready(struct peer *p, void *userdata) {
        ((struct client *)userdata)->ready++;
        return 0;
}

static void on_client_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        struct client *c = userdata;
        c->ended++;
        c->peer = NULL;
        peer_free(p);
}

static void client_start(struct client *c, struct master *m, struct tls_credentials *credentials) {
        const struct peer_options o = { .expect_role = PEER_MASTER, .handshake_usec = 15 * USEC_PER_SEC };
        *c = (struct client){};
        assert_int_equal(
                peer_new(m->event, dial(m), credentials, &o, on_client_ready, on_client_ended, c, &c->peer),
                0);
}

/* ---- tests ---- */

static void join_then_link(const char *host, int family) {
        struct master m;
        struct joiner j;
        struct client c;
        struct tls_credentials *credentials = NULL;
        master_start(&m);
        joiner_start(&j, &m, host, "n7");
        joiner_wait(&j, &m);
        assert_null(j.why);
        assert_int_equal(j.r, 0);
        assert_int_equal(m.joins, 1);
        assert_int_equal(m.from.family, family);
        assert_string_equal(j.ca_pem, m.ca.cert_pem);
        assert_non_null(j.certificate.key_pem);
        assert_true(j.certificate.not_after_real > now_real());

        assert_int_equal(
                tls_credentials_new(j.ca_pem, j.certificate.cert_pem, j.certificate.key_pem, &credentials),
                0);
        client_start(&c, &m, credentials);
        RUN_UNTIL(&m, c.ready && m.links);
        assert_string_equal(peer_name(m.peer), "n7");
        assert_string_equal(peer_serial(m.peer), j.certificate.serial_hex);
        peer_free(c.peer);
        RUN_UNTIL(&m, m.ended);
        assert_int_equal(m.refusals, 0);
        tls_credentials_free(credentials);
        joiner_done(&j);
        master_stop(&m);
}

static void test_join_then_link(void **state) {
        join_then_link("127.0.0.1", AF_INET);
        join_then_link("::1", AF_INET6);
}

static void test_answered_later(void **state) {
        struct master m;
        struct joiner j;
        master_start(&m);
        m.later = true;
        joiner_start(&j, &m, "127.0.0.1", "n7");
        RUN_UNTIL(&m, m.pending);
        assert_false(atomic_load(&j.done));
        answer(&m);
        joiner_wait(&j, &m);
        assert_int_equal(j.r, 0);
        joiner_done(&j);
        master_stop(&m);
}

static void test_refused_with_reason(void **state) {
        struct master m;
        struct joiner j;
        master_start(&m);
        m.refuse = "the token has expired";
        joiner_start(&j, &m, "localhost", "n7");
        joiner_wait(&j, &m);
        assert_int_equal(j.r, -EACCES);
        assert_string_equal(j.why, "the token has expired");
        assert_null(j.certificate.cert_pem);
        assert_null(j.ca_pem);
        assert_string_equal(m.why, "the token has expired");
        joiner_done(&j);
        master_stop(&m);
}

static void test_another_cluster(void **state) {
        struct master m;
        struct joiner j;
        master_start(&m);
        m.token.fingerprint[0] ^= 1;
        joiner_start(&j, &m, "127.0.0.1", "n7");
        joiner_wait(&j, &m);
        assert_int_equal(j.r, -EKEYREJECTED);
        assert_non_null(strstr(j.why, "another cluster"));
        assert_int_equal(m.joins, 0); /* the secret was not sent */
        RUN_UNTIL(&m, m.refusals == 1);
        joiner_done(&j);
        master_stop(&m);
}

/* A check whether the port is open is no refusal to tell of. */
static void test_silent(void **state) {
        struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        static const char *const said[] = { "", "hello" };
        struct master m;
        uint64_t until;

        master_start(&m);
        to.sin_port = htons(listener_port(m.listener));
        for (unsigned i = 0; i < ELEMENTSOF(said); i++) {
                int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                assert_true(fd >= 0);
                assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
                assert_int_equal(write(fd, said[i], strlen(said[i])), strlen(said[i]));
                close(fd);
                until = now_boot() + (i == 0 ? 300 * USEC_PER_MSEC : 0);
                while (now_boot() < until)
                        assert_true(sd_event_run(m.event, 20 * USEC_PER_MSEC) >= 0);
                assert_int_equal(m.refusals, 0);
        }
        RUN_UNTIL(&m, m.refusals == 1);
        master_stop(&m);
}

static void test_client_faults(void **state) {
        struct master m;
        struct joiner j;
        master_start(&m);
        joiner_start(&j, &m, "127.0.0.1", "Not A Name");
        joiner_wait(&j, &m);
        assert_int_equal(j.r, -EINVAL);
        joiner_done(&j);
        joiner_start(&j, &m, "127.0.0.1", "primus-masterd");
        joiner_wait(&j, &m);
        assert_int_equal(j.r, -EACCES);
        assert_int_equal(m.joins, 0);
        joiner_done(&j);
        uint16_t port = listener_port(m.listener);
        listener_free(m.listener);
        m.listener = NULL;
        j = (struct joiner){ .host = "127.0.0.1", .name = "n7", .port = port, .token = m.token };
        (void)joiner_main(&j);
        assert_int_equal(j.r, -ECONNREFUSED);
        assert_non_null(strstr(j.why, "cannot connect to 127.0.0.1"));
        joiner_done(&j);
        master_stop(&m);
}

static void test_asker_and_listener_gone(void **state) {
        struct master m;
        struct joiner j;
        master_start(&m);
        m.later = true;
        joiner_start(&j, &m, "127.0.0.1", "n7");
        RUN_UNTIL(&m, m.pending);
        listener_free(m.listener);
        m.listener = NULL;
        joiner_wait(&j, &m);
        assert_true(j.r < 0);
        assert_non_null(j.why);
        answer(&m); /* nobody is there any more, and nothing leaks */
        joiner_done(&j);
        master_stop(&m);
}

static void test_noise(void **state) {
        struct master m;
        master_start(&m);
        _cleanup_close_ int fd = dial(&m);
        _cleanup_free_ char *noise = calloc(1, 100000);
        assert_true(send(fd, noise, 100000, MSG_NOSIGNAL) > 0);
        (void)shutdown(fd, SHUT_WR);
        RUN_UNTIL(&m, m.refusals == 1);
        assert_int_equal(m.links, 0);
        master_stop(&m);
}

/* Silent connections beyond the limit, and still a node gets through. */
static void test_crowd_of_strangers(void **state) {
        enum {
                CROWD = 300
        };
        struct master m;
        struct client c;
        int crowd[CROWD];
        _cleanup_(certificate_done) struct certificate n = {};
        _cleanup_free_ char *key = NULL, *csr = NULL;
        struct tls_credentials *credentials = NULL;
        master_start(&m);
        assert_int_equal(certificate_request_new("n1", &key, &csr), 0);
        assert_int_equal(authority_issue_node(&m.ca, csr, strlen(csr), "n1", now_real(), HOUR, &n), 0);
        assert_int_equal(tls_credentials_new(m.ca.cert_pem, n.cert_pem, key, &credentials), 0);
        for (int i = 0; i < CROWD; i++)
                crowd[i] = dial(&m);
        client_start(&c, &m, credentials);
        RUN_UNTIL(&m, m.links == 1 && c.ready == 1);
        assert_true(m.refusals > 0);
        assert_string_equal(m.why, "too many connections that are not known yet");
        for (int i = 0; i < CROWD; i++)
                close(crowd[i]);
        peer_free(c.peer);
        RUN_UNTIL(&m, m.ended == 1);
        tls_credentials_free(credentials);
        master_stop(&m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_join_then_link),
                cmocka_unit_test(test_answered_later),
                cmocka_unit_test(test_refused_with_reason),
                cmocka_unit_test(test_another_cluster),
                cmocka_unit_test(test_silent),
                cmocka_unit_test(test_client_faults),
                cmocka_unit_test(test_asker_and_listener_gone),
                cmocka_unit_test(test_noise),
                cmocka_unit_test(test_crowd_of_strangers),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
