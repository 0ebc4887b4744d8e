/* SPDX-License-Identifier: Apache-2.0 */
/* A captured host, to try masterd: false-calls MASTER PORT speaks with this host's own identity
 * (/etc/primus/node), opens a connection for calls beside that of the honest agent, and says what the lines
 * of its standard input are:
 *
 *     caller NAME UID [JOB]              Link1.Caller
 *     gone NAME                          Link1.CallerGone
 *     call NAME PATH INTERFACE MEMBER    a call without arguments, by that name
 *     submit NAME CONFIG                 Manager.Submit
 *     flood NAME N                       that many callers, NAME0 to NAMEN-1
 *
 * Prints for each call "NAME MEMBER: ok", or the error's name and text, in the order of the answers. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/wire/authority.h"
#include "lib/wire/messages.h"
#include "lib/wire/peer.h"

#define NODE_DIR "/etc/primus/node/"
#define MASTER "/org/primus/Master1"
#define MANAGER "org.primus.Master1.Manager"
#define LINES_MAX 1000u
#define PATIENCE (5 * USEC_PER_SEC)

static struct {
        sd_event *event;
        struct tls_credentials *credentials;
        struct peer *peer;
        char *lines[LINES_MAX];
        size_t n;
        unsigned pending;
        bool said;
} world;

static void check(int r, const char *what) {
        if (r >= 0)
                return;
        fprintf(stderr, "false-calls: %s: %s\n", what, strerror(-r));
        exit(EXIT_FAILURE);
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        _cleanup_free_ char *what = userdata;

        printf("%s: %s%s%s\n", what, e ? e->name : "ok", e ? ": " : "", e && e->message ? e->message : "");
        if (--world.pending == 0 && world.said)
                (void)sd_event_exit(world.event, 0);
        return 0;
}

static void link_say(const char *member, const char *name, const char *more, ...) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        va_list ap;

        check(sd_bus_message_new_method_call(peer_bus(world.peer), &m, NULL, LINK_PATH, LINK_INTERFACE,
                                             member),
              member);
        check(sd_bus_message_append(m, "s", name), name);
        va_start(ap, more);
        check(sd_bus_message_appendv(m, more, ap), name);
        va_end(ap);
        check(sd_bus_message_set_expect_reply(m, false), name);
        check(sd_bus_send(NULL, m, NULL), name);
}

static void call_as(const char *name, const char *path, const char *interface, const char *member,
                    const char *config) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        char *what;

        check(sd_bus_message_new_method_call(peer_bus(world.peer), &m, NULL, path, interface, member), path);
        if (*name != '-') /* "-": of nobody */
                check(sd_bus_message_set_sender(m, name), name);
        if (config) {
                check(sd_bus_message_append_array(m, 'y', config, strlen(config)), name);
                check(sd_bus_message_append(m, "a{sv}", 0), name);
        } else if (strcmp(member, "ListJobs") == 0)
                check(sd_bus_message_append(m, "a{sv}", 0), name);
        check(asprintf(&what, "%s %s", name, member), name);
        check(sd_bus_call_async(peer_bus(world.peer), NULL, m, on_answer, what, 0), name);
        world.pending++;
}

static void say_line(char *line) {
        char name[512], path[256], interface[256], member[128];
        unsigned uid, job = 0, n;

        if (sscanf(line, "caller %511s %u %u", name, &uid, &job) >= 2) {
                if (job > 0)
                        link_say("Caller", name, "ua{sv}", uid, 1, "job", "u", job);
                else
                        link_say("Caller", name, "ua{sv}", uid, 0);
        } else if (sscanf(line, "gone %511s", name) == 1)
                link_say("CallerGone", name, "a{sv}", 0);
        else if (sscanf(line, "call %511s %255s %255s %127s", name, path, interface, member) == 4)
                call_as(name, path, interface, member, NULL);
        else if (sscanf(line, "submit %511s", name) == 1)
                call_as(name, MASTER, MANAGER, "Submit", strchr(line, '{'));
        else if (sscanf(line, "flood %511s %u", name, &n) == 2)
                for (unsigned i = 0; i < n; i++) {
                        snprintf(path, sizeof(path), "%.200s%u", name, i);
                        link_say("Caller", path, "ua{sv}", 1000u, 0);
                }
        else
                check(-EINVAL, line);
}

static int on_hello(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (e) {
                printf("refused: %s\n", e->message);
                return sd_event_exit(world.event, 0);
        }
        for (size_t i = 0; i < world.n; i++)
                say_line(world.lines[i]);
        world.said = true;
        return world.pending == 0 ? sd_event_exit(world.event, 0) : 0;
}

static int on_ready(struct peer *p, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        check(sd_bus_message_new_method_call(peer_bus(p), &m, NULL, LINK_PATH, LINK_INTERFACE, "Hello"),
              "Hello");
        check(sd_bus_message_append(m, "qqsasa{sv}", LINK_MAJOR, LINK_MINOR, "false", 0, 1, "calls", "b", 1),
              "Hello");
        return sd_bus_call_async(peer_bus(p), NULL, m, on_hello, NULL, 0);
}

static void on_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        printf("ended: %s\n", end->why);
        (void)sd_event_exit(world.event, 0);
}

static int on_time_up(sd_event_source *s, uint64_t usec, void *userdata) {
        printf("%u without an answer\n", world.pending);
        return sd_event_exit(world.event, 0);
}

int main(int argc, char **argv) {
        static const struct peer_options options = { .expect_name = AUTHORITY_MASTER_NAME,
                                                     .expect_role = PEER_MASTER,
                                                     .queue_max = 64u << 20 };
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        struct addrinfo *a;
        size_t room = 0;
        ssize_t n;
        int fd;

        if (argc != 3)
                check(-EINVAL, "usage: false-calls MASTER PORT < LINES");
        while (world.n < LINES_MAX && (n = getline(&world.lines[world.n], &room, stdin)) > 0) {
                world.lines[world.n++][n - 1] = 0;
                room = 0;
        }
        if (getaddrinfo(argv[1], argv[2], &hints, &a) != 0)
                check(-ENOENT, argv[1]);
        check(tls_credentials_load(NODE_DIR "ca.crt", NODE_DIR "node.crt", NODE_DIR "node.key",
                                   &world.credentials),
              NODE_DIR);
        check(sd_event_new(&world.event), "event");
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) < 0)
                check(-errno, argv[1]);
        check(peer_new(world.event, fd, world.credentials, &options, on_ready, on_ended, NULL, &world.peer),
              "peer");
        check(sd_event_add_time_relative(world.event, NULL, CLOCK_BOOTTIME, PATIENCE, 0, on_time_up, NULL),
              "timer");
        check(sd_event_loop(world.event), "loop");
        freeaddrinfo(a);
        return EXIT_SUCCESS;
}
