/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that has gone mad, to try masterd: rogue-agent MASTER PORT SECONDS SEED speaks with this host's
 * own identity
 * (/etc/primus/node) and says whatever the signatures of org.primus.Link1 allow, and some that they do not:
 * real executors with wrong numbers, counters at their ends, strings of any length, registrations that
 * contradict each other, answers to orders that fail, lie, have other types or never come. Prints what it has
 * sent. With METHOD it says that alone, as fast as it is read.
 *
 * A campaign of a minute against masterd with sanitizers:
 *
 *     meson setup build && ninja -C build
 *     meson setup build-asan -Db_sanitize=address,undefined -Dtests=false && ninja -C build-asan
 *     PRIMUS_ROGUE=build/tests/rogue-agent PRIMUS_ROGUE_SECONDS=60 PRIMUS_ROGUE_SEED=7 \
 *             python3 -m pytest -s tests/cluster/test_rogue.py --build build-asan
 *
 * Version 0.1.0, seed 7: 7,504 messages and 1,058 orders within the minute, no finding of either sanitizer.
 */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/wire/authority.h"
#include "lib/wire/messages.h"
#include "lib/wire/peer.h"

#define IDS_MAX 256u
#define BURST 20u
#define NODE_DIR "/etc/primus/node/"

static const struct {
        const char *name, *signature;
} methods[] = {
        { "Register", "s(sssuta(ssts)qqbb(yayq))a((ayusuu)saytb)a((ayusuu)ayssibbttttttts)a{sv}" },
        { "Heartbeat", "ta{sv}" },
        { "Exited", "((ayusuu)ayssibbttttttts)a{sv}" },
        { "Exited", "((ayusuu)ayssibbttttttts)a{sv}" },
        { "FeedOpen", "(ayusuu)ua{sv}" },
        { "Ready", "(ayusuu)bsa{sv}" },
        { "Taken", "(ayusuu)a{sv}" },
        { "Unkillable", "(ayusuu)sa{sv}" },
        { "HookResult", "subsa{sv}" },
        { "FeedReport", "(ayusuu)ayu(tttt)a{sv}" },
        { "TrialReport", "(ayusuu)tdba{sv}" },
        { "AskSearch", "(ayusuu)sa{sv}" },
        { "Metrics", "ta((ayusuu)uay)a{sv}" },
        { "ScanBatch", "(ayusuu)aybsa{sv}" },
        { "Tail", "(ayusuu)taya{sv}" },
        { "GetBundle", "usttua{sv}" },
        { "Caller", "sua{sv}" },
        { "CallerGone", "sa{sv}" },
        { "Listen", "sa{sv}" },
        { "Unlisten", "sa{sv}" },
        { "GetBundle", "ustua{sv}" },
        { "Renew", "aya{sv}" },
        { "Hello", "qqsasa{sv}" },
        { "Start", "tta{sv}" },
};

struct rogue {
        sd_event *event;
        struct tls_credentials *credentials;
        const char *host, *port;
        char *name;
        struct peer *peer;
        bool ready;
        uint32_t seed;
        uint64_t end;
        struct executor_id ids[IDS_MAX];
        size_t n_ids;
        uint64_t sent, connections, orders;
        bool only_hello;
        int only;              /* what it says after its registration; < 0: anything */
        uint16_t major, minor; /* then: what it says it speaks, and its build */
        const char *build;
};

static void die(int r, const char *what) {
        fprintf(stderr, "rogue-agent: %s: %s\n", what, strerror(-r));
        exit(EXIT_FAILURE);
}

#define CHECK(expression)                                                                                    \
        do {                                                                                                 \
                int _r = (expression);                                                                       \
                if (_r < 0)                                                                                  \
                        die(_r, #expression);                                                                \
        } while (0)

static uint32_t dice(struct rogue *g, uint32_t n) {
        /* xorshift: the same campaign for the same seed, as far as the other side answers the same. */
        g->seed ^= g->seed << 13;
        g->seed ^= g->seed >> 17;
        g->seed ^= g->seed << 5;
        return g->seed % n;
}

static uint64_t number(struct rogue *g) {
        static const uint64_t odd[] = {
                0,         1,     2,     3,         16,         255,       256,
                4096,      65535, 65536, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX - 1,
                UINT64_MAX
        };

        return dice(g, 3) ? odd[dice(g, ELEMENTSOF(odd))]
                          : ((uint64_t)dice(g, UINT32_MAX) << 32 | dice(g, UINT32_MAX)) >> dice(g, 64);
}

static const char *string(struct rogue *g) {
        static const char *const words[] = {
                "",         "worker",           "ps",        "running",  "starting",
                "stopping", "exit-code",        "success",   "oom-kill", "exited",
                "killed",   "dumped",           "no-record", "signal",   "n2",
                "n1",       "\xc3\xa9\xc3\xa9", "%s%n%d",    "../../x",  "0123456789abcdef0123456789abcdef",
                "/",        "a b\nc\td\x01",    "health",    "epilog",   "prolog"
        };
        static char text[20000];
        size_t n;

        if (dice(g, 10))
                return words[dice(g, ELEMENTSOF(words))];
        n = dice(g, 8) ? dice(g, 300) : dice(g, sizeof(text) - 1);
        memset(text, 'x', n);
        for (size_t i = 0; i + 1 < n; i += 2)
                memcpy(text + i, "\xc3\xa4", 2);
        text[n] = 0;
        return text;
}

/* A packed array that is mostly in order. */
static int append_packed(struct rogue *g, sd_bus_message *m) {
        uint8_t bytes[4096];
        size_t used = 0;

        for (uint32_t n = dice(g, 8); n > 0; n--) {
                uint64_t read = number(g);
                const struct task_progress p = { .task = dice(g, 6),
                                                 .read = read,
                                                 .acked = read / 2,
                                                 .end = number(g),
                                                 .state = (uint8_t)dice(g, _TASK_STATE_MAX),
                                                 .error = "x" };
                const struct scan_entry e = { .path = "/data/x",
                                              .size = number(g),
                                              .inode = number(g),
                                              .last = number(g),
                                              .batch = number(g) };

                (void)(dice(g, 3) ? task_progress_write(&p, bytes, sizeof(bytes), &used)
                                  : scan_entry_write(&e, bytes, sizeof(bytes), &used));
        }
        if (used > 0 && dice(g, 4) == 0)
                bytes[dice(g, (uint32_t)used)] = (uint8_t)dice(g, 256);
        return sd_bus_message_append_array(m, 'y', bytes, dice(g, 5) || used == 0 ? used : used - 1);
}

static int append_bytes(struct rogue *g, sd_bus_message *m) {
        static uint8_t bytes[300000];
        static const size_t sizes[] = { 0, 1, 4, 15, 16, 16, 16, 16, 17, 64, 4096, 65536, 262144, 262145 };
        size_t n = sizes[dice(g, dice(g, 20) ? 10 : ELEMENTSOF(sizes))];

        if (dice(g, 2))
                return append_packed(g, m);

        for (size_t i = 0; i < MIN(n, (size_t)4096); i++)
                bytes[i] = dice(g, 3) ? (uint8_t) "/data/x\n"[i % 8] : (uint8_t)dice(g, 256);
        return sd_bus_message_append_array(m, 'y', bytes, n);
}

static int append_id(struct rogue *g, sd_bus_message *m) {
        struct executor_id id = g->ids[dice(g, (uint32_t)g->n_ids)];

        if (dice(g, 4) == 0)
                id.index = (uint32_t)number(g);
        if (dice(g, 4) == 0)
                id.attempt = dice(g, 2) ? id.attempt + dice(g, 3) : (uint32_t)number(g);
        if (dice(g, 10) == 0)
                id.job = (uint32_t)number(g);
        if (dice(g, 10) == 0)
                id.job_uid.bytes[dice(g, 16)] ^= 1;
        return executor_id_append(m, &id);
}

static size_t type_length(const char *s) {
        size_t depth = 0, n = 0;

        do {
                if (s[n] == 'a') {
                        n++;
                        continue;
                }
                depth += s[n] == '(' || s[n] == '{';
                depth -= s[n] == ')' || s[n] == '}';
                n++;
        } while (depth > 0 || s[n - 1] == 'a');
        return n;
}

static int append(struct rogue *g, sd_bus_message *m, const char *signature, size_t size);

static int append_basic(struct rogue *g, sd_bus_message *m, char type) {
        uint64_t v = number(g);
        int b = v & 1;

        if (type == 's')
                return sd_bus_message_append_basic(m, 's', string(g));
        return sd_bus_message_append_basic(m, type, type == 'b' ? (const void *)&b : (const void *)&v);
}

static int append_container(struct rogue *g, sd_bus_message *m, char type, const char *inside, size_t size,
                            uint32_t times) {
        _cleanup_free_ char *contents = strndup(inside, size);

        if (!contents)
                return -ENOMEM;
        int r = sd_bus_message_open_container(m, type, contents);
        for (uint32_t i = 0; i < times && r >= 0; i++)
                r = append(g, m, contents, size);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* A few entries, with keys that mean something now and then. */
static int append_extra(struct rogue *g, sd_bus_message *m) {
        static const char *const keys[] = { "bulk", "node", "x" };
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        for (uint32_t n = dice(g, 3) ? 0 : dice(g, 4); n > 0 && r >= 0; n--)
                r = dice(g, 2) ? sd_bus_message_append(m, "{sv}", keys[dice(g, 3)], "b", (int)dice(g, 2))
                               : sd_bus_message_append(m, "{sv}", keys[dice(g, 3)], "s", string(g));
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append(struct rogue *g, sd_bus_message *m, const char *signature, size_t size) {
        int r = 0;

        for (size_t at = 0, n; at < size && r >= 0; at += n) {
                const char *type = signature + at;
                n = type_length(type);
                if (n == 8 && memcmp(type, "(ayusuu)", n) == 0 && g->n_ids > 0 && dice(g, 20))
                        r = append_id(g, m);
                else if (n == 2 && memcmp(type, "ay", n) == 0)
                        r = append_bytes(g, m);
                else if (n == 5 && memcmp(type, "a{sv}", n) == 0)
                        r = append_extra(g, m);
                else if (*type == 'a')
                        r = append_container(g, m, 'a', type + 1, n - 1,
                                             dice(g, 30) ? dice(g, 4) : dice(g, 1500));
                else if (*type == '(')
                        r = append_container(g, m, 'r', type + 1, n - 2, 1);
                else
                        r = append_basic(g, m, *type);
        }
        return r;
}

static int ignore(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return 0;
}

/* A registration that is believed, so that orders come. */
static int say_register(struct rogue *g, sd_bus_message *m) {
        static const char boots[2][33] = { "11111111111111111111111111111111",
                                           "22222222222222222222222222222222" };
        const struct inventory inventory = { .hostname = g->name,
                                             .kernel = (char *)"6.1",
                                             .os = (char *)"x",
                                             .cpus = 64,
                                             .memory = UINT64_C(64) << 30,
                                             .port_first = 23000,
                                             .port_last = 27999 };
        int r = sd_bus_message_append(m, "s", boots[dice(g, 8) == 0]);

        if (r >= 0)
                r = inventory_append(m, &inventory);
        if (r >= 0 && dice(g, 2))
                return (r = append(g, m, "a((ayusuu)saytb)", 16)) < 0             ? r
                       : (r = append(g, m, "a((ayusuu)ayssibbttttttts)", 26)) < 0 ? r
                                                                                  : append(g, m, "a{sv}", 5);
        return r < 0 ? r
                     : sd_bus_message_append(m, "a((ayusuu)saytb)a((ayusuu)ayssibbttttttts)a{sv}", 0, 0, 0);
}

static int say(struct rogue *g, const char *name, const char *signature) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus *bus = peer_bus(g->peer);
        int r = sd_bus_message_new_method_call(bus, &m, NULL, LINK_PATH, LINK_INTERFACE, name);

        if (r >= 0 && strcmp(name, "Hello") == 0 && dice(g, 20))
                r = sd_bus_message_append(m, "qqsasa{sv}", LINK_MAJOR, LINK_MINOR, "rogue", 0, 0);
        else if (r >= 0 && strcmp(name, "Register") == 0 && dice(g, 4))
                r = say_register(g, m);
        else if (r >= 0)
                r = append(g, m, signature, dice(g, 40) ? strlen(signature) : type_length(signature));
        if (r < 0)
                return r; /* a value that sd-bus itself does not send */
        g->sent++;
        if (dice(g, 2) == 0 && strcmp(name, "Register") != 0 && strcmp(name, "Hello") != 0) {
                (void)sd_bus_message_set_expect_reply(m, false);
                return sd_bus_send(bus, m, NULL);
        }
        return sd_bus_call_async(bus, NULL, m, ignore, g, 0);
}

/* ---- orders */

static int on_order(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        static const char *const names[] = { LINK_ERROR_REFUSED,       LINK_ERROR_START,
                                             LINK_ERROR_ALREADY_RAN,   LINK_ERROR_PORT_TAKEN,
                                             "org.primus.Error.Stale", "x.y" };
        struct rogue *g = userdata;
        uint64_t term, epoch;
        uint8_t type;

        if (sd_bus_message_get_type(m, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL)
                return 0;
        g->orders++;
        if (sd_bus_message_is_method_call(m, LINK_INTERFACE, "Start")) {
                _cleanup_(start_order_done) struct start_order order = {};
                if (sd_bus_message_read(m, "tt", &term, &epoch) >= 0 && start_order_read(m, &order) >= 0)
                        g->ids[g->n_ids < IDS_MAX ? g->n_ids++ : dice(g, IDS_MAX)] = order.id;
        }
        switch (dice(g, 6)) {
        case 0:
                return 1; /* no answer */
        case 1:
                (void)sd_bus_reply_method_errorf(m, names[dice(g, ELEMENTSOF(names))], "%s", string(g));
                return 1;
        case 2: {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
                if (sd_bus_message_new_method_return(m, &reply) >= 0 &&
                    append(g, reply, "aytayba{sv}", dice(g, 2) ? 2 : 11) >= 0)
                        (void)sd_bus_send(NULL, reply, NULL);
                return 1;
        }
        default:
                (void)sd_bus_reply_method_return(m, "ayta{sv}", 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                                 14, 15, 16, now_real(), 0);
                return 1;
        }
}

/* ---- another version: says Hello, prints the answer, and does so again a moment later */

static int on_hello_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        struct rogue *g = userdata;

        printf("%s\n", e ? e->message : "welcome");
        peer_close(g->peer, "said hello");
        return 0;
}

static int say_version(struct rogue *g) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus *bus = peer_bus(g->peer);

        CHECK(sd_bus_message_new_method_call(bus, &m, NULL, LINK_PATH, LINK_INTERFACE, "Hello"));
        CHECK(sd_bus_message_append(m, "qqsasa{sv}", g->major, g->minor, g->build, 1, "dances", 1,
                                    "unheard-of", "s", "x"));
        return sd_bus_call_async(bus, NULL, m, on_hello_answer, g, 0);
}

/* ---- connections */

static int on_ready(struct peer *p, void *userdata) {
        struct rogue *g = userdata;

        g->connections++;
        g->ready = true;
        if (g->only_hello)
                return say_version(g);
        CHECK(sd_bus_add_filter(peer_bus(p), NULL, on_order, g));
        if (dice(g, 20))
                (void)say(g, "Hello", "qqsasa{sv}");
        if (dice(g, 10))
                (void)say(g, "Register", methods[0].signature);
        return 0;
}

static void on_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        struct rogue *g = userdata;

        if (g->peer == p)
                g->peer = NULL;
        g->ready = false;
        peer_free(p);
}

static void dial(struct rogue *g) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        const struct peer_options options = { .expect_name = AUTHORITY_MASTER_NAME,
                                              .expect_role = PEER_MASTER,
                                              .queue_max = 64u << 20 };
        struct addrinfo *a;
        int fd;

        if (getaddrinfo(g->host, g->port, &hints, &a) != 0)
                die(-ENOENT, g->host);
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) >= 0) {
                int r = peer_new(g->event, fd, g->credentials, &options, on_ready, on_ended, g, &g->peer);
                if (r < 0)
                        die(r, "peer_new");
        } else
                close_fd(fd);
        freeaddrinfo(a);
}

static int on_tick(sd_event_source *s, uint64_t usec, void *userdata) {
        struct rogue *g = userdata;

        if (now_boot() >= g->end) {
                printf("%llu messages, %llu connections, %llu orders received\n", (unsigned long long)g->sent,
                       (unsigned long long)g->connections, (unsigned long long)g->orders);
                return sd_event_exit(g->event, 0);
        }
        if (!g->peer)
                dial(g);
        for (uint32_t i = 0; !g->only_hello && i < BURST && g->ready && peer_queued(g->peer) < (1u << 20);
             i++) {
                uint32_t k = g->only >= 0 ? (uint32_t)g->only : dice(g, ELEMENTSOF(methods));
                (void)say(g, methods[k].name, methods[k].signature);
        }
        if (!g->only_hello && g->only < 0 && g->ready && dice(g, 40) == 0)
                peer_close(g->peer, "a whim");
        CHECK(sd_event_source_set_time_relative(s, g->only_hello ? USEC_PER_SEC : 5 * USEC_PER_MSEC));
        CHECK(sd_event_source_set_enabled(s, SD_EVENT_ONESHOT));
        return 0;
}

int main(int argc, char **argv) {
        struct rogue g = { .only = -1, .n_ids = 1, .ids = { { .job = 1, .role = "worker", .attempt = 1 } } };
        char serial[41];
        uint64_t until;
        FILE *f;
        char pem[8192] = "";

        if (argc == 8) {
                g.only_hello = true;
                g.major = (uint16_t)strtoul(argv[5], NULL, 10);
                g.minor = (uint16_t)strtoul(argv[6], NULL, 10);
                g.build = argv[7];
        } else if (argc == 6) {
                for (size_t i = 0; i < ELEMENTSOF(methods); i++)
                        if (strcmp(methods[i].name, argv[5]) == 0)
                                g.only = (int)i;
        }
        if (argc != 5 && argc != 8 && g.only < 0) {
                fprintf(stderr, "usage: rogue-agent MASTER PORT SECONDS SEED [METHOD | MAJOR MINOR BUILD]\n");
                return EXIT_FAILURE;
        }
        setvbuf(stdout, NULL, _IOLBF, 0);
        g.host = argv[1];
        g.port = argv[2];
        g.seed = (uint32_t)strtoul(argv[4], NULL, 10) | 1;
        g.end = now_boot() + strtoul(argv[3], NULL, 10) * USEC_PER_SEC;
        f = fopen(NODE_DIR "node.crt", "re");
        if (!f || fread(pem, 1, sizeof(pem) - 1, f) == 0)
                die(-EIO, NODE_DIR "node.crt");
        (void)fclose(f);
        CHECK(certificate_info(pem, &g.name, serial, &until));
        CHECK(tls_credentials_load(NODE_DIR "ca.crt", NODE_DIR "node.crt", NODE_DIR "node.key",
                                   &g.credentials));
        CHECK(sd_event_new(&g.event));
        CHECK(sd_event_add_time_relative(g.event, NULL, CLOCK_BOOTTIME, 1, g.only >= 0 ? 1 : 0, on_tick, &g));
        CHECK(sd_event_loop(g.event));
        return EXIT_SUCCESS;
}
