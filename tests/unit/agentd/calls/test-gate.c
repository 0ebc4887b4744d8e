/* SPDX-License-Identifier: Apache-2.0 */
/* agentd/calls/gate.c between a client's socket and sd-bus's. */
#include "agentd/calls/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define AUTH "\0AUTH EXTERNAL\r\nBEGIN\r\n"
#define AUTH_SIZE (sizeof(AUTH) - 1)

struct world {
        sd_event *event;
        int client, bus; /* our ends */
        struct gate *gate;
        bool may;
        unsigned asked, ended;
};

static bool on_large(void *userdata) {
        struct world *w = userdata;

        w->asked++;
        return w->may;
}

static void on_ended(void *userdata) {
        ((struct world *)userdata)->ended++;
}

static int setup(void **state) {
        static const struct gate_options options = {
                .message_max = 4u << 20, .large = 64u << 10, .large_comes = on_large, .ended = on_ended
        };
        struct world *w = calloc(1, sizeof(*w));
        int fds[2];

        assert_non_null(w);
        assert_true(sd_event_new(&w->event) >= 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        w->client = fds[0];
        w->may = true;
        assert_int_equal(gate_new(w->event, fds[1], &options, w, &w->bus, &w->gate), 0);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;

        gate_free(w->gate);
        (void)close_fd(w->client);
        (void)close_fd(w->bus);
        sd_event_unref(w->event);
        free(w);
        return 0;
}

/* A header of a message whose fields and body have that many bytes. */
static void head(uint8_t buf[static 16], uint32_t body) {
        static const uint8_t start[16] = { 'l', 1, 0, 1 };

        memcpy(buf, start, 16);
        memcpy(buf + 4, &body, sizeof(body)); /* these hosts are little-endian, as the 'l' says */
}

/* Moves what is there, and appends what has come out at fd to buf. */
static size_t turn(struct world *w, int fd, uint8_t *buf, size_t size) {
        size_t n = 0;

        for (unsigned idle = 0; idle < 3;) {
                ssize_t k = n < size ? recv(fd, buf + n, size - n, MSG_DONTWAIT) : 0;

                n += k > 0 ? (size_t)k : 0;
                idle = sd_event_run(w->event, 0) > 0 || k > 0 ? 0 : idle + 1;
        }
        return n;
}

/* All of it, as fast as it is taken; what comes out is as it went in. */
static void assert_passes(struct world *w, int in, int out, const uint8_t *data, size_t size) {
        uint8_t *got = malloc(size + 1);
        size_t sent = 0, n = 0;

        assert_non_null(got);
        for (unsigned i = 0; i < 100000 && n < size; i++) {
                ssize_t k = sent < size ? send(in, data + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

                sent += k > 0 ? (size_t)k : 0;
                n += turn(w, out, got + n, size + 1 - n);
        }
        assert_int_equal(n, size);
        assert_memory_equal(got, data, size);
        free(got);
}

static void test_both_ways(void **state) {
        struct world *w = *state;
        size_t size = AUTH_SIZE + 16 + (3u << 20);
        uint8_t *data = malloc(size);

        assert_non_null(data);
        memcpy(data, AUTH, AUTH_SIZE);
        head(data + AUTH_SIZE, 3u << 20);
        for (size_t i = 0; i < 3u << 20; i++)
                data[AUTH_SIZE + 16 + i] = (uint8_t)(i * 31 + i / 251);
        assert_passes(w, w->client, w->bus, data, size);
        assert_int_equal(w->asked, 1);
        assert_false(gate_is_large(w->gate));
        /* Back no message is looked at. */
        assert_passes(w, w->bus, w->client, data + AUTH_SIZE + 16, 2u << 20);
        assert_int_equal(w->ended, 0);
        free(data);
}

static void assert_ends(struct world *w, const void *data, size_t size) {
        uint8_t buf[256];

        assert_int_equal(send(w->client, data, size, MSG_NOSIGNAL), (ssize_t)size);
        (void)turn(w, w->bus, buf, sizeof(buf));
        assert_int_equal(w->ended, 1);
        (void)turn(w, w->bus, buf, sizeof(buf)); /* and is quiet then */
        assert_int_equal(w->ended, 1);
}

static void test_too_large(void **state) {
        uint8_t data[AUTH_SIZE + 16], buf[64];
        struct world *w = *state;

        memcpy(data, AUTH, AUTH_SIZE);
        head(data + AUTH_SIZE, 4u << 20);
        assert_ends(w, data, sizeof(data));
        /* The header has not come through. */
        assert_true(turn(w, w->bus, buf, sizeof(buf)) < 16);
}

static void test_large_is_asked_about(void **state) {
        uint8_t data[AUTH_SIZE + 16];
        struct world *w = *state;

        w->may = false;
        memcpy(data, AUTH, AUTH_SIZE);
        head(data + AUTH_SIZE, 1u << 20);
        assert_ends(w, data, sizeof(data));
        assert_int_equal(w->asked, 1);
}

static void test_no_message(void **state) {
        assert_ends(*state, AUTH "GET / HTTP/1.1\r\n\r\n", AUTH_SIZE + 18);
}

static void test_the_client_goes(void **state) {
        struct world *w = *state;
        uint8_t buf[64];

        assert_int_equal(send(w->client, AUTH, AUTH_SIZE, MSG_NOSIGNAL), (ssize_t)AUTH_SIZE);
        w->client = close_fd(w->client);
        assert_int_equal(turn(w, w->bus, buf, sizeof(buf)), AUTH_SIZE); /* what it has said comes through */
        assert_int_equal(w->ended, 1);
}

/* Who does not read holds nobody up, and no more than a ring of memory. */
static void test_nobody_reads(void **state) {
        struct world *w = *state;
        static uint8_t zeros[64u << 10];
        size_t taken = 0;
        uint8_t none[1];

        for (unsigned i = 0; i < 200; i++) {
                ssize_t k = send(w->bus, zeros, sizeof(zeros), MSG_DONTWAIT | MSG_NOSIGNAL);

                taken += k > 0 ? (size_t)k : 0;
                (void)turn(w, w->client, none, 0);
        }
        assert_true(taken > 64u << 10 && taken < 2u << 20);
        assert_passes(w, w->client, w->bus, (const uint8_t *)AUTH, AUTH_SIZE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_both_ways, setup, teardown),
                cmocka_unit_test_setup_teardown(test_too_large, setup, teardown),
                cmocka_unit_test_setup_teardown(test_large_is_asked_about, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_message, setup, teardown),
                cmocka_unit_test_setup_teardown(test_the_client_goes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nobody_reads, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
