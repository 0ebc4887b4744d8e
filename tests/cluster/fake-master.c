/* SPDX-License-Identifier: Apache-2.0 */
/* A masterd of few words, to try one agentd alone: fake-master DIRECTORY NODE PORT makes a CA and the node's
 * identity in DIRECTORY where they are missing, listens, and carries out lines from standard input:
 *
 *     start JOB ROLE INDEX ATTEMPT UID [NAME=VALUE ...] -- COMMAND ...     settings: cwd, env, grace, cpu,
 * mem, runtime, partition, port, output, kind, secret, term stop JOB ROLE INDEX ATTEMPT GRACE_USEC drop JOB
 *         texts of any characters: identity, gpu, visible, bundle, and cpus, devices, ready, ready-file,
 * numa, io of what travels beside the order; a word that begins with % is the rest of it in hex auto yes|no
 * commit exits at once (yes at first) mute yes|no      leave heartbeats unanswered version MAJOR MINOR   say
 * that, in the welcome of connections to come refuse yes|no    refuse agents for their version
 *
 * What it hears it prints, one event a line. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/names.h"
#include "lib/base/parse.h"
#include "lib/wire/authority.h"
#include "lib/wire/messages.h"
#include "lib/wire/peer.h"

#define YEAR (UINT64_C(365) * 86400 * USEC_PER_SEC)
#define WORDS_MAX 64
#define LINE_MAX_BYTES (16u << 20)

struct master {
        sd_event *event;
        struct tls_credentials *credentials;
        struct peer *main, *bulk;
        uint64_t epoch, term, lost_usec;
        bool automatic, mute, refuse;
        uint16_t major, minor; /* what it says it speaks */
        char *line;            /* LINE_MAX_BYTES */
        size_t filled;
};

static void die(int r, const char *what) {
        fprintf(stderr, "fake-master: %s: %s\n", what, strerror(-r));
        exit(EXIT_FAILURE);
}

#define CHECK(expression)                                                                                    \
        do {                                                                                                 \
                int _r = (expression);                                                                       \
                if (_r < 0)                                                                                  \
                        die(_r, #expression);                                                                \
        } while (0)

static sd_id128_t job_uid(uint32_t job) {
        sd_id128_t id = { .bytes = { 0xa1 } };

        memcpy(id.bytes + 12, &job, sizeof(job));
        return id;
}

/* ---- what the agent says ---- */

static int method_hello(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct master *f = userdata;
        struct welcome w = { .major = f->major,
                             .minor = f->minor,
                             .build = (char *)"fake",
                             .term = f->term,
                             .heartbeat_usec = f->lost_usec / 10,
                             .lost_usec = f->lost_usec };

        if (f->refuse) {
                printf("refused\n");
                CHECK(sd_bus_message_new_method_errorf(
                        m, &reply, LINK_ERROR_VERSION,
                        "agent x speaks link 1.0, this master (y) 9.0: upgrade the agent"));
                CHECK(link_refusal_append(reply, &(struct link_refusal){ job_uid(UINT32_MAX), f->term }));
                return sd_bus_send(NULL, reply, NULL);
        }
        bool bulk = !f->main || sd_bus_message_get_bus(m) != peer_bus(f->main);

        w.epoch = bulk ? f->epoch : ++f->epoch;
        w.cluster = job_uid(UINT32_MAX);
        CHECK(sd_bus_message_new_method_return(m, &reply));
        CHECK(welcome_append(reply, &w));
        CHECK(sd_bus_message_append(reply, "a{sv}", 0));
        printf("hello bus=%s\n", bulk ? "bulk" : "main");
        return sd_bus_send(NULL, reply, NULL);
}

static void commit(struct master *f, const struct executor_id *id) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        if (!f->automatic || !f->main)
                return;
        CHECK(sd_bus_message_new_method_call(peer_bus(f->main), &m, NULL, LINK_PATH, LINK_INTERFACE,
                                             "ExitCommitted"));
        CHECK(executor_id_append(m, id));
        CHECK(sd_bus_message_append(m, "a{sv}", 0));
        CHECK(sd_bus_message_set_expect_reply(m, false));
        CHECK(sd_bus_send(NULL, m, NULL));
}

static void print_id(const struct executor_id *id) {
        printf(" job=%u role=%s index=%u attempt=%u", id->job, id->role, id->index, id->attempt);
}

static void print_exit(struct master *f, const struct exit_report *e) {
        char invocation[SD_ID128_STRING_MAX];

        printf("exited");
        print_id(&e->id);
        printf(" result=%s code=%s status=%d requested=%d local=%d invocation=%s ran_usec=%" PRIi64
               " cpu=%" PRIi64 " detail=%s\n",
               e->result, e->code, e->status, e->stop_requested, e->stop_local,
               sd_id128_to_string(e->invocation, invocation), (int64_t)(e->ended_real - e->started_real),
               (int64_t)e->cpu_usec, e->detail);
        commit(f, &e->id);
}

static int method_register(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct master *f = userdata;
        struct inventory i;
        struct unit_report u;
        struct exit_report e;
        const char *boot;
        char address[ADDR_TEXT_MAX];
        int r;

        CHECK(sd_bus_message_read(m, "s", &boot));
        CHECK(inventory_read(m, &i));
        printf("registered cpus=%u memory=%" PRIu64 " gpus=%zu ports=%u-%u address=%s os=%s\n", i.cpus,
               i.memory, i.n_gpus, i.port_first, i.port_last, addr_format(&i.address, address), i.os);
        inventory_done(&i);
        CHECK(sd_bus_message_enter_container(m, 'a', "((ayusuu)saytb)"));
        while ((r = unit_report_read(m, &u)) > 0) {
                printf("unit");
                print_id(&u.id);
                printf(" state=%s requested=%d\n", unit_state_to_string(u.state), u.stop_requested);
        }
        CHECK(r);
        CHECK(sd_bus_message_exit_container(m));
        CHECK(sd_bus_message_enter_container(m, 'a', "((ayusuu)ayssibbttttttts)"));
        r = sd_bus_reply_method_return(m, NULL);
        while ((r = exit_report_read(m, &e)) > 0) {
                print_exit(f, &e);
                exit_report_done(&e);
        }
        CHECK(r);
        printf("ready\n");
        return 1;
}

/* What its wall clock is ahead of the true one. */
static uint64_t ahead_usec;

static int method_heartbeat(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *ack = NULL;
        struct master *f = userdata;
        uint64_t seq;

        CHECK(sd_bus_message_read(m, "t", &seq));
        if (f->mute)
                return 1;
        CHECK(sd_bus_message_new_method_call(sd_bus_message_get_bus(m), &ack, NULL, LINK_PATH, LINK_INTERFACE,
                                             "HeartbeatAck"));
        CHECK(sd_bus_message_append(ack, "ta{sv}", seq, 1, "now", "t", now_real() + ahead_usec));
        CHECK(sd_bus_message_set_expect_reply(ack, false));
        CHECK(sd_bus_send(NULL, ack, NULL));
        return 1;
}

static int method_exited(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct exit_report e;

        CHECK(exit_report_read(m, &e));
        print_exit(userdata, &e);
        exit_report_done(&e);
        return 1;
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Hello", "qqsasa{sv}", "(qqsayttttt)a{sv}", method_hello, 0),
        SD_BUS_METHOD("Register", "s(sssuta(ssts)qqbb(yayq))a((ayusuu)saytb)a((ayusuu)ayssibbttttttts)a{sv}",
                      "", method_register, 0),
        SD_BUS_METHOD("Heartbeat", "ta{sv}", "", method_heartbeat, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Exited", "((ayusuu)ayssibbttttttts)a{sv}", "", method_exited,
                      SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_VTABLE_END,
};

/* ---- connections ---- */

static int on_ready(struct peer *p, void *userdata) {
        struct master *f = userdata;

        /* The first connection is the main one; the agent opens the other once it is registered. */
        if (!f->main)
                f->main = p;
        else
                f->bulk = p;
        CHECK(sd_bus_add_object_vtable(peer_bus(p), NULL, LINK_PATH, LINK_INTERFACE, vtable, f));
        return 0;
}

static void on_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        struct master *f = userdata;

        printf("ended %s: %s\n", p == f->main ? "main" : "bulk", end->why);
        if (p == f->main)
                f->main = NULL;
        if (p == f->bulk)
                f->bulk = NULL;
        peer_free(p);
}

static int on_connection(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        const struct peer_options options = { .server = true,
                                              .expect_role = PEER_NODE,
                                              .handshake_usec = 10 * USEC_PER_SEC,
                                              .queue_max = 64 << 20 };
        struct master *f = userdata;
        struct peer *p;
        int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (connection >= 0)
                CHECK(peer_new(f->event, connection, f->credentials, &options, on_ready, on_ended, f, &p));
        return 0;
}

/* ---- orders ---- */

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        _cleanup_free_ char *what = userdata;

        if (e)
                printf("error %s %s: %s\n", what, e->name, e->message);
        else
                printf("done %s\n", what);
        return 0;
}

static int begin(struct master *f, const char *member, sd_bus_message **ret) {
        return sd_bus_message_new_method_call(peer_bus(f->main), ret, NULL, LINK_PATH, LINK_INTERFACE,
                                              member);
}

static int read_id(char **words, size_t n, struct executor_id *ret) {
        *ret = (struct executor_id){ 0 };
        if (n < 5 || parse_u32(words[1], 1, UINT32_MAX, &ret->job) < 0 || !role_name_valid(words[2]) ||
            parse_u32(words[3], 0, UINT32_MAX, &ret->index) < 0 ||
            parse_u32(words[4], 1, UINT32_MAX, &ret->attempt) < 0)
                return -EINVAL;
        ret->job_uid = job_uid(ret->job);
        strcpy(ret->role, words[2]);
        return 0;
}

static bool setting(const char *word, const char *name, const char **ret) {
        size_t l = strlen(name);

        if (strncmp(word, name, l) != 0 || word[l] != '=')
                return false;
        *ret = word + l + 1;
        return true;
}

static int order_start(struct master *f, char **words, size_t n) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        static char empty[] = "";
        char *env[WORDS_MAX] = { NULL }, *identity[WORDS_MAX] = { NULL }, *gpus[WORDS_MAX] = { NULL },
             *visible[WORDS_MAX] = { NULL };
        struct io_limit io = { .weight = 100 };
        struct secret secrets[4];
        uint16_t ports[8];
        struct start_order o = { .identity = identity,
                                 .gpus = gpus,
                                 .visible_gpus = visible,
                                 .cwd = empty,
                                 .output = empty,
                                 .env = env,
                                 .grace_usec = 5 * USEC_PER_SEC,
                                 .ports = ports,
                                 .secrets = secrets };
        uint64_t value, term = f->term;
        size_t i, n_env = 0, n_identity = 0, n_gpus = 0, n_visible = 0;
        char what[128];
        const char *v;
        int r = read_id(words, n, &o.id);

        if (r < 0 || n < 8 || parse_u32(words[5], 0, UINT32_MAX, &o.uid) < 0)
                return -EINVAL;
        for (i = 6; i < n && strcmp(words[i], "--") != 0; i++) {
                bool number = strchr(words[i], '=') &&
                              parse_u64(strchr(words[i], '=') + 1, 0, UINT64_MAX, &value) >= 0;

                if (setting(words[i], "cwd", &v))
                        o.cwd = (char *)v;
                else if (setting(words[i], "output", &v))
                        o.output = (char *)v;
                else if (setting(words[i], "env", &v))
                        env[n_env++] = (char *)v;
                else if (setting(words[i], "identity", &v))
                        identity[n_identity++] = (char *)v;
                else if (setting(words[i], "gpu", &v))
                        gpus[n_gpus++] = (char *)v;
                else if (setting(words[i], "visible", &v))
                        visible[n_visible++] = (char *)v;
                else if (setting(words[i], "bundle", &v))
                        snprintf(o.bundle, sizeof(o.bundle), "%s", v);
                else if (setting(words[i], "cpus", &v))
                        o.extra.cpus = (char *)v;
                else if (setting(words[i], "devices", &v))
                        o.extra.gpus = (char *)v;
                else if (setting(words[i], "ready", &v))
                        snprintf(o.extra.ready, sizeof(o.extra.ready), "%s", v);
                else if (setting(words[i], "ready-file", &v))
                        o.extra.ready_file = (char *)v;
                else if (setting(words[i], "numa", &v))
                        snprintf(o.extra.numa, sizeof(o.extra.numa), "%s", v);
                else if (setting(words[i], "io", &v)) {
                        io.path = (char *)v;
                        o.extra.io = &io;
                        o.extra.n_io = 1;
                } else if (setting(words[i], "secret", &v))
                        secrets[o.n_secrets++] = (struct secret){ (char *)"password", (char *)v, strlen(v) };
                else if (setting(words[i], "partition", &v))
                        o.on_partition = on_partition_from_string(v);
                else if (setting(words[i], "kind", &v))
                        o.kind = strcmp(v, "feed") == 0   ? ORDER_FEED
                                 : strcmp(v, "scan") == 0 ? ORDER_SCAN
                                                          : ORDER_TRAINER;
                else if (!number)
                        return -EINVAL;
                else if (setting(words[i], "grace", &v))
                        o.grace_usec = value;
                else if (setting(words[i], "cpu", &v))
                        o.cpu_usec_per_sec = value;
                else if (setting(words[i], "mem", &v))
                        o.memory_max = value;
                else if (setting(words[i], "runtime", &v))
                        o.runtime_max_usec = value;
                else if (setting(words[i], "term", &v))
                        term = value;
                else if (setting(words[i], "port", &v))
                        ports[o.n_ports++] = (uint16_t)value;
                else
                        return -EINVAL;
        }
        o.argv = words + MIN(i + 1, n);
        o.pipe_size = 65536;
        CHECK(begin(f, "Start", &m));
        CHECK(sd_bus_message_append(m, "tt", term, f->epoch));
        if ((r = start_order_append(m, &o)) < 0 || (r = start_extra_append(m, &o.extra)) < 0)
                return r; /* more than the protocol carries */
        snprintf(what, sizeof(what), "start %u %s %u %u", o.id.job, o.id.role, o.id.index, o.id.attempt);
        return sd_bus_call_async(peer_bus(f->main), NULL, m, on_answer, strdup(what), UINT64_MAX);
}

static int order_stop(struct master *f, char **words, size_t n) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct executor_id id;
        uint64_t grace;
        char what[128];

        if (read_id(words, n, &id) < 0 || n != 6 || parse_u64(words[5], 0, UINT64_MAX, &grace) < 0)
                return -EINVAL;
        CHECK(begin(f, "Stop", &m));
        CHECK(sd_bus_message_append(m, "tt", f->term, f->epoch));
        CHECK(executor_id_append(m, &id));
        CHECK(sd_bus_message_append(m, "tsa{sv}", grace, "by order", 0));
        snprintf(what, sizeof(what), "stop %u %s %u %u", id.job, id.role, id.index, id.attempt);
        return sd_bus_call_async(peer_bus(f->main), NULL, m, on_answer, strdup(what), 0);
}

static int order_drop(struct master *f, char **words, size_t n) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_id128_t uid;
        uint32_t job;

        if (n != 2 || parse_u32(words[1], 1, UINT32_MAX, &job) < 0)
                return -EINVAL;
        uid = job_uid(job);
        CHECK(begin(f, "DropJob", &m));
        CHECK(sd_bus_message_append(m, "t", f->term));
        CHECK(sd_bus_message_append_array(m, 'y', uid.bytes, sizeof(uid.bytes)));
        CHECK(sd_bus_message_append(m, "ua{sv}", job, 0));
        CHECK(sd_bus_message_set_expect_reply(m, false));
        return sd_bus_send(NULL, m, NULL);
}

static int obey(struct master *f, char **words, size_t n) {
        if (n == 2 && strcmp(words[0], "auto") == 0)
                return parse_bool(words[1], &f->automatic);
        if (n == 2 && strcmp(words[0], "mute") == 0)
                return parse_bool(words[1], &f->mute);
        if (n == 2 && strcmp(words[0], "refuse") == 0)
                return parse_bool(words[1], &f->refuse);
        if (n == 3 && strcmp(words[0], "version") == 0) {
                f->major = (uint16_t)strtoul(words[1], NULL, 10);
                f->minor = (uint16_t)strtoul(words[2], NULL, 10);
                return 0;
        }
        if (!f->main)
                return -ENOTCONN;
        if (strcmp(words[0], "start") == 0)
                return order_start(f, words, n);
        if (strcmp(words[0], "stop") == 0)
                return order_stop(f, words, n);
        if (strcmp(words[0], "drop") == 0)
                return order_drop(f, words, n);
        return -EINVAL;
}

static int digit(char c) {
        const char *digits = "0123456789abcdef", *p = strchr(digits, c);

        return c && p ? (int)(p - digits) : -1;
}

/* In place. */
static void decode(char *word) {
        char *to = word;

        for (const char *from = word + 1; digit(from[0]) >= 0 && digit(from[1]) >= 0; from += 2)
                *to++ = (char)(digit(from[0]) << 4 | digit(from[1]));
        *to = 0;
}

/* Words are separated by blanks; one in "..." may hold blanks. */
static size_t split(char *line, char **words) {
        size_t n = 0;

        for (char *p = line; *p && n + 1 < WORDS_MAX;) {
                p += strspn(p, " ");
                if (!*p)
                        break;
                if (*p == '"') {
                        words[n++] = ++p;
                        p += strcspn(p, "\"");
                } else {
                        words[n++] = p;
                        p += strcspn(p, " ");
                }
                if (*p)
                        *p++ = 0;
                if (*words[n - 1] == '%')
                        decode(words[n - 1]);
        }
        words[n] = NULL;
        return n;
}

static int on_input(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct master *f = userdata;
        char *words[WORDS_MAX], *newline;
        ssize_t l = read(fd, f->line + f->filled, LINE_MAX_BYTES - f->filled - 1);
        int r;

        if (l <= 0)
                return sd_event_exit(f->event, 0);
        f->filled += (size_t)l;
        f->line[f->filled] = 0;
        while ((newline = strchr(f->line, '\n'))) {
                size_t n, used = (size_t)(newline - f->line) + 1;

                *newline = 0;
                n = split(f->line, words);
                r = n > 0 ? obey(f, words, n) : 0;
                if (r < 0)
                        printf("error input %s\n", strerror(-r));
                memmove(f->line, f->line + used, f->filled - used + 1);
                f->filled -= used;
        }
        return 0;
}

/* ---- identities ---- */

static void write_identity(const char *directory, const char *name, const char *text) {
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", directory, name);
        CHECK(write_file_atomic(path, text, strlen(text), 0600, false));
}

static char *read_identity(const char *directory, const char *name) {
        char path[512], *text;

        snprintf(path, sizeof(path), "%s/%s", directory, name);
        return read_file(path, 65536, &text, NULL) < 0 ? NULL : text;
}

static void make_identities(const char *directory, const char *node) {
        struct certificate ca, master, n;
        char *key, *csr;
        uint64_t now = now_real();

        CHECK(authority_new("fake", now, 10 * YEAR, &ca));
        CHECK(authority_issue_master(&ca, now, YEAR, &master));
        CHECK(certificate_request_new(node, &key, &csr));
        CHECK(authority_issue_node(&ca, csr, strlen(csr), node, now, YEAR, &n));
        CHECK(make_directories(directory, 0755));
        write_identity(directory, "ca.crt", ca.cert_pem);
        write_identity(directory, "node.crt", n.cert_pem);
        write_identity(directory, "node.key", key);
        write_identity(directory, "master.crt", master.cert_pem);
        write_identity(directory, "master.key", master.key_pem);
        certificate_done(&ca);
        certificate_done(&master);
        certificate_done(&n);
        free(key);
        free(csr);
}

int main(int argc, char **argv) {
        struct master f = {
                .automatic = true, .lost_usec = 60 * USEC_PER_SEC, .major = LINK_MAJOR, .minor = LINK_MINOR
        };
        struct sockaddr_in a = { .sin_family = AF_INET };
        _cleanup_free_ char *ca = NULL, *certificate = NULL, *key = NULL;
        const int one = 1;
        uint32_t port;
        int fd;

        f.line = malloc(LINE_MAX_BYTES);
        if (!f.line)
                die(-ENOMEM, "malloc");
        if (argc < 4 || parse_u32(argv[3], 0, UINT16_MAX, &port) < 0 ||
            (argc > 4 && parse_duration(argv[4], &f.lost_usec) < 0) ||
            (argc > 5 && parse_u64(argv[5], 1, UINT64_MAX, &f.term) < 0) ||
            (argc > 6 && parse_duration(argv[6], &ahead_usec) < 0)) {
                fprintf(stderr, "usage: fake-master DIRECTORY NODE PORT [LOST] [TERM] [AHEAD]\n");
                return 2;
        }
        if (f.term == 0)
                f.term = now_real(); /* rises with every start */
        setvbuf(stdout, NULL, _IOLBF, 0);
        if (!(ca = read_identity(argv[1], "ca.crt"))) {
                make_identities(argv[1], argv[2]);
                ca = read_identity(argv[1], "ca.crt");
        }
        certificate = read_identity(argv[1], "master.crt");
        key = read_identity(argv[1], "master.key");
        CHECK(tls_credentials_new(ca, certificate, key, &f.credentials));
        CHECK(sd_event_new(&f.event));
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        a.sin_port = htons((uint16_t)port);
        if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 64) < 0)
                die(-errno, "listen");
        CHECK(sd_event_add_io(f.event, NULL, fd, EPOLLIN, on_connection, &f));
        CHECK(sd_event_add_io(f.event, NULL, STDIN_FILENO, EPOLLIN, on_input, &f));
        printf("listening\n");
        return sd_event_loop(f.event) < 0;
}
