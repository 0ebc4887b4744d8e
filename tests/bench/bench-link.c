/* SPDX-License-Identifier: Apache-2.0 */
/* The link against what it is made of: the same calls and one-way messages over two pumped peers (TLS 1.3,
 * certificates) and over plain sd-bus on TCP, each with the far end in a process of its own. One JSON object
 * a line. */
#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/wire/authority.h"
#include "lib/wire/messages.h"
#include "lib/wire/peer.h"

#define HOUR (UINT64_C(3600) * USEC_PER_SEC)
#define ROUND_TRIPS 5000u
#define CALLS 20000u
#define NOTES 40000u
#define LARGE 2000u
#define LARGE_SIZE ((size_t)64 << 10)
#define WINDOW 64u

struct link {
        sd_event *event;
        sd_bus *bus;
        struct peer *peer;
        bool ready;
        unsigned replies;
        pid_t far;
};

_Noreturn static void die(const char *what, int r) {
        (void)fprintf(stderr, "bench-link: %s: %s\n", what, strerrordesc_np(-r));
        exit(1);
}

static int check(int r, const char *what) {
        if (r < 0)
                die(what, r);
        return r;
}

static int method_echo(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return sd_bus_reply_method_return(m, NULL);
}

static int method_note(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return 1;
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Echo", "ay", "", method_echo, 0),
        SD_BUS_METHOD("Note", "ay", "", method_note, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_VTABLE_END,
};

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        if (sd_bus_message_is_method_error(m, NULL))
                die("call", -sd_bus_message_get_errno(m));
        ((struct link *)userdata)->replies++;
        return 0;
}

static void post(struct link *l, const char *method, size_t size, bool reply) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        void *p;
        check(sd_bus_message_new_method_call(l->bus, &m, NULL, LINK_PATH, LINK_INTERFACE, method), "message");
        check(sd_bus_message_append_array_space(m, 'y', size, &p), "message");
        memset(p, 0, size);
        if (reply)
                check(sd_bus_call_async(l->bus, NULL, m, on_reply, l, 0), "call");
        else {
                check(sd_bus_message_set_expect_reply(m, false), "message");
                check(sd_bus_send(l->bus, m, NULL), "send");
        }
}

/* n calls, at most window of them in flight; returns how long it took. */
static uint64_t measure_calls(struct link *l, unsigned n, unsigned window) {
        unsigned sent = 0;
        uint64_t begin = now_boot();
        for (l->replies = 0; l->replies < n;) {
                if (sent - l->replies <= window / 2)
                        for (; sent < n && sent - l->replies < window; sent++)
                                post(l, "Echo", 100, true);
                check(sd_event_run(l->event, 10 * USEC_PER_SEC), "event loop");
        }
        return now_boot() - begin;
}

/* n one-way messages in bursts; a call behind every burst says that the far end has handled it. Two bursts
 * are on the way. */
static uint64_t measure_notes(struct link *l, size_t size, unsigned n, unsigned burst) {
        unsigned bursts = 0;
        uint64_t begin = now_boot();
        for (l->replies = 0; l->replies < n / burst;) {
                for (; bursts < n / burst && bursts - l->replies < 2; bursts++) {
                        for (unsigned i = 0; i < burst; i++)
                                post(l, "Note", size, false);
                        post(l, "Echo", 0, true);
                }
                check(sd_event_run(l->event, 10 * USEC_PER_SEC), "event loop");
        }
        return now_boot() - begin;
}

/* ---- the two kinds of connection ---- */

static void tcp_pair(int ret[2]) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof a;
        const int yes = 1;
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ret[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (listener < 0 || ret[0] < 0 || bind(listener, (struct sockaddr *)&a, sizeof a) < 0 ||
            listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *)&a, &size) < 0)
                die("socket", -errno);
        if (connect(ret[0], (struct sockaddr *)&a, sizeof a) < 0 && errno != EINPROGRESS)
                die("connect", -errno);
        ret[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (ret[1] < 0)
                die("accept", -errno);
        close(listener);
        for (int i = 0; i < 2; i++)
                (void)setsockopt(ret[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static sd_bus *raw_bus(struct link *l, int fd, bool server) {
        sd_bus *bus = NULL;
        sd_id128_t id;
        check(sd_bus_new(&bus), "bus");
        check(sd_bus_set_fd(bus, fd, fd), "bus");
        check(sd_bus_set_anonymous(bus, true), "bus");
        check(sd_bus_set_trusted(bus, true), "bus");
        if (server) {
                check(sd_id128_randomize(&id), "id");
                check(sd_bus_set_server(bus, true, id), "bus");
        }
        check(sd_bus_start(bus), "bus");
        check(sd_bus_add_object_vtable(bus, NULL, LINK_PATH, LINK_INTERFACE, vtable, l), "vtable");
        check(sd_bus_attach_event(bus, l->event, SD_EVENT_PRIORITY_NORMAL), "bus");
        return bus;
}

static int on_far_gone(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return sd_event_exit(userdata, 0);
}

static void raw_open(struct link *l, int fd, bool far) {
        l->bus = raw_bus(l, fd, far);
        if (far)
                check(sd_bus_match_signal(l->bus, NULL, NULL, "/org/freedesktop/DBus/Local",
                                          "org.freedesktop.DBus.Local", "Disconnected", on_far_gone,
                                          l->event),
                      "match");
}

static int on_ready(struct peer *p, void *userdata) {
        struct link *l = userdata;
        l->ready = true;
        l->bus = peer_bus(p);
        return sd_bus_add_object_vtable(peer_bus(p), NULL, LINK_PATH, LINK_INTERFACE, vtable, l);
}

static void on_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        struct link *l = userdata;
        if (end->error < 0 && end->error != -ECONNABORTED)
                die(end->why, end->error);
        (void)sd_event_exit(l->event, 0);
}

static struct tls_credentials *credentials[2]; /* node, masterd */

static void make_credentials(void) {
        _cleanup_(certificate_done) struct certificate ca = {}, master = {}, node = {};
        _cleanup_free_ char *csr = NULL;
        uint64_t now = now_real();
        check(authority_new("bench", now, HOUR, &ca), "CA");
        check(authority_issue_master(&ca, now, HOUR, &master), "certificate");
        check(certificate_request_new("n1", &node.key_pem, &csr), "request");
        struct certificate c = {};
        check(authority_issue_node(&ca, csr, strlen(csr), "n1", now, HOUR, &c), "certificate");
        node.cert_pem = c.cert_pem;
        check(tls_credentials_new(ca.cert_pem, node.cert_pem, node.key_pem, &credentials[0]), "credentials");
        check(tls_credentials_new(ca.cert_pem, master.cert_pem, master.key_pem, &credentials[1]),
              "credentials");
}

static void peer_open(struct link *l, int fd, bool far) {
        const struct peer_options o = { .server = far, .expect_role = far ? PEER_NODE : PEER_MASTER };
        check(peer_new(l->event, fd, credentials[far], &o, on_ready, on_ended, l, &l->peer), "peer");
        while (!l->ready)
                check(sd_event_run(l->event, 10 * USEC_PER_SEC), "event loop");
}

static void link_open(struct link *l, bool pumped) {
        int fds[2];
        *l = (struct link){};
        tcp_pair(fds);
        l->far = fork();
        if (l->far < 0)
                die("fork", -errno);
        bool far = l->far == 0;
        close(fds[!far]);
        check(sd_event_new(&l->event), "event loop");
        (pumped ? peer_open : raw_open)(l, fds[far], far);
        if (far)
                _exit(sd_event_loop(l->event) < 0);
}

static void link_close(struct link *l) {
        if (l->peer) {
                peer_close(l->peer, "done");
                check(sd_event_loop(l->event), "event loop");
                peer_free(l->peer);
        } else
                sd_bus_close_unref(l->bus);
        sd_event_unref(l->event);
        (void)waitpid(l->far, NULL, 0);
}

/* ---- results ---- */

static int compare(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return x < y ? -1 : x > y;
}

static double round_trip_p50(struct link *l) {
        uint64_t *t = calloc(ROUND_TRIPS, sizeof *t);
        if (!t)
                die("memory", -ENOMEM);
        for (unsigned i = 0; i < ROUND_TRIPS; i++)
                t[i] = measure_calls(l, 1, 1);
        qsort(t, ROUND_TRIPS, sizeof *t, compare);
        uint64_t p50 = t[ROUND_TRIPS / 2];
        free(t);
        return (double)p50;
}

/* goal: the ratio to the baseline that is wanted, at most for times, at least for rates. */
static void report(const char *metric, const char *unit, double value, double baseline, double goal,
                   bool smaller) {
        double ratio = value / baseline;
        json_t *o = json_pack("{s:s, s:s, s:f, s:s, s:f, s:f, s:f, s:b}", "bench", "link", "metric", metric,
                              "value", value, "unit", unit, "baseline", baseline, "ratio", ratio, "goal",
                              goal, "ok", smaller ? ratio <= goal : ratio >= goal);
        if (!o || json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) < 0)
                die("JSON", -ENOMEM);
        (void)putchar('\n');
        json_decref(o);
}

static double rate(unsigned n, uint64_t usec) {
        return n * 1e6 / (double)MAX(usec, (uint64_t)1);
}

int main(void) {
        struct link l;
        double raw[4], ours[4];
        make_credentials();
        for (int i = 0; i < 2; i++) {
                double *to = i == 0 ? raw : ours;
                link_open(&l, i == 1);
                (void)measure_calls(&l, 1000, 1); /* warm */
                to[0] = round_trip_p50(&l);
                to[1] = rate(CALLS, measure_calls(&l, CALLS, WINDOW));
                to[2] = rate(NOTES, measure_notes(&l, 100, NOTES, 2 * WINDOW));
                to[3] = rate(LARGE, measure_notes(&l, LARGE_SIZE, LARGE, WINDOW / 4)) * (double)LARGE_SIZE /
                        1e6;
                link_close(&l);
        }
        report("round trip p50", "usec", ours[0], raw[0], 2.0, true);
        report("calls, 64 in flight", "1/s", ours[1], raw[1], 0.75, false);
        report("one-way messages", "1/s", ours[2], raw[2], 0.9, false);
        report("64 KiB messages", "MB/s", ours[3], raw[3], 0.25, false);
        for (int i = 0; i < 2; i++)
                tls_credentials_free(credentials[i]);
        return 0;
}
