/* SPDX-License-Identifier: Apache-2.0 */
/* The socket, as a bus that has one service. Invariants: a connection is one caller, of the uid that the
 * kernel says; a caller's memory goes in a turn of its own, since sd-bus is in the middle of it when it is
 * found out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <utlist.h>

#include "agentd/calls/calls-parts.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/wire/copy.h"
#include "lib/wire/master-bus.h"
#include "lib/wire/messages.h"

#define BUS_NAME "org.freedesktop.DBus"
#define BUS_PATH "/org/freedesktop/DBus"
#define LOCAL_PATH BUS_PATH "/Local"
#define OWNER ":0.0" /* what the service is called here */
#define ACCEPT_TURN 16u

/* ---- callers ---- */

static struct user *user_of(struct calls *q, uint32_t uid) {
        struct user *u;

        HASH_FIND(hh, q->users, &uid, sizeof(uid), u);
        if (u)
                return u;
        u = calloc(1, sizeof(*u));
        if (!u)
                return NULL;
        u->uid = uid;
        HASH_ADD(hh, q->users, uid, sizeof(u->uid), u);
        return u;
}

static void user_left(struct calls *q, struct user *u) {
        if (u->n_callers > 0)
                return;
        HASH_DEL(q->users, u);
        free(u);
}

static void caller_free(struct caller *e) {
        struct calls *q = e->calls;

        for (size_t i = 0; i < e->matches.n_paths; i++)
                calls_unlisten(q, e->matches.paths[i]);
        for (; e->matches.all > 0; e->matches.all--)
                calls_unlisten(q, "");
        calls_caller_gone(e);
        DL_DELETE(q->callers, e);
        q->n_callers--;
        e->user->n_callers--;
        user_left(q, e->user);
        sd_bus_close_unref(e->bus);
        gate_free(e->gate);
        matches_done(&e->matches);
        free(e);
}

static int on_over(sd_event_source *s, void *userdata) {
        struct calls *q = userdata;
        struct caller *e, *next;

        DL_FOREACH_SAFE (q->callers, e, next)
                if (e->over)
                        caller_free(e);
        return 0;
}

static void hang_up(struct caller *e) {
        e->over = true;
        (void)sd_event_source_set_enabled(e->calls->over, SD_EVENT_ONESHOT);
}

static int send_to(struct caller *e, sd_bus_message *m, size_t bytes) {
        uint64_t n = 0;
        int r;

        if (e->over)
                return -ENOTCONN;
        r = sd_bus_send(e->bus, m, NULL);
        if (r < 0 || sd_bus_get_n_queued_write(e->bus, &n) < 0 || n == 0)
                e->unread = 0;
        else
                e->unread += bytes;
        if (r < 0 || n > CALLS_UNREAD_MAX || e->unread > CALLS_UNREAD_BYTES_MAX)
                hang_up(e);
        return r;
}

void door_answer(struct caller *e, sd_bus_message *reply, size_t bytes) {
        (void)send_to(e, reply, bytes);
}

/* ---- what a bus is asked ---- */

static bool is_here(const char *name) {
        return strcmp(name, MASTER_NAME) == 0 || strcmp(name, OWNER) == 0;
}

static int say_name(struct caller *e, sd_bus_message *call) {
        return sd_bus_reply_method_return(call, "s", e->name);
}

static int say_owner(struct caller *e, sd_bus_message *call) {
        const char *name;

        TRY(sd_bus_message_read_basic(call, 's', &name));
        if (is_here(name))
                return sd_bus_reply_method_return(call, "s", OWNER);
        return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_NAME_HAS_NO_OWNER,
                                          "Nobody but " MASTER_NAME " is here");
}

static int say_whether(struct caller *e, sd_bus_message *call) {
        const char *name;

        TRY(sd_bus_message_read_basic(call, 's', &name));
        return sd_bus_reply_method_return(
                call, "b", (int)(is_here(name) || strcmp(name, BUS_NAME) == 0 || strcmp(name, e->name) == 0));
}

static int say_names(struct caller *e, sd_bus_message *call) {
        return sd_bus_reply_method_return(call, "as", 4, BUS_NAME, MASTER_NAME, OWNER, e->name);
}

static int add_match(struct caller *e, sd_bus_message *call) {
        _cleanup_free_ char *path = NULL;
        const char *rule;
        int r;

        TRY(sd_bus_message_read_basic(call, 's', &rule));
        r = matches_add(&e->matches, rule, &path);
        if (r == -ENOBUFS)
                return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                                  "%u rules are as many as there may be", MATCHES_MAX);
        if (path)
                calls_listen(e->calls, path);
        return r < 0 ? r : sd_bus_reply_method_return(call, NULL);
}

static int remove_match(struct caller *e, sd_bus_message *call) {
        _cleanup_free_ char *path = NULL;
        const char *rule;

        TRY(sd_bus_message_read_basic(call, 's', &rule));
        matches_remove(&e->matches, rule, &path);
        if (path)
                calls_unlisten(e->calls, path);
        return sd_bus_reply_method_return(call, NULL);
}

static int say_running(struct caller *e, sd_bus_message *call) {
        return sd_bus_reply_method_return(call, "u", 2u);
}

static const struct {
        const char *member;
        int (*answer)(struct caller *e, sd_bus_message *call);
} questions[] = {
        { "Hello", say_name },
        { "AddMatch", add_match },
        { "RemoveMatch", remove_match },
        { "GetNameOwner", say_owner },
        { "NameHasOwner", say_whether },
        { "ListNames", say_names },
        { "ListActivatableNames", say_names },
        { "StartServiceByName", say_running },
};

static void ask_bus(struct caller *e, sd_bus_message *call) {
        const char *member = sd_bus_message_get_member(call);

        for (size_t i = 0; i < ELEMENTSOF(questions); i++) {
                if (strcmp(questions[i].member, member) != 0)
                        continue;
                if (questions[i].answer(e, call) < 0)
                        calls_refuse(call, SD_BUS_ERROR_INVALID_ARGS, "That is not how a bus is asked");
                return;
        }
        calls_refuse(call, SD_BUS_ERROR_UNKNOWN_METHOD,
                     "This is no bus of its own, only the way to " MASTER_NAME);
}

/* ---- messages ---- */

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *to = sd_bus_message_get_destination(m);
        struct caller *e = userdata;
        uint64_t unread;
        uint8_t type;

        if (sd_bus_message_get_type(m, &type) < 0)
                return 0;
        if (type == SD_BUS_MESSAGE_SIGNAL && strcmp(sd_bus_message_get_path(m), LOCAL_PATH) == 0) {
                hang_up(e);
                return 0;
        }
        if (type != SD_BUS_MESSAGE_METHOD_CALL || e->over)
                return 1;
        /* Also what is answered from here is to be read. */
        if (sd_bus_get_n_queued_write(e->bus, &unread) < 0 || unread > CALLS_UNREAD_MAX) {
                hang_up(e);
                return 1;
        }
        if (to && strcmp(to, BUS_NAME) == 0)
                ask_bus(e, m);
        else if (!to || is_here(to))
                calls_take(e, m);
        else
                calls_refuse(m, SD_BUS_ERROR_SERVICE_UNKNOWN, "Nobody but " MASTER_NAME " is here");
        return 1;
}

static int copy_signal(const struct caller *e, sd_bus_message *from, sd_bus_message **ret,
                       size_t *ret_bytes) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(sd_bus_message_new_signal(e->bus, &m, sd_bus_message_get_path(from),
                                      sd_bus_message_get_interface(from), sd_bus_message_get_member(from)));
        TRY(sd_bus_message_set_sender(m, OWNER));
        if (sd_bus_message_get_destination(from))
                TRY(sd_bus_message_set_destination(m, e->name));
        TRY(message_copy(m, from, LINK_MESSAGE_MAX, ret_bytes));
        *ret = TAKE_PTR(m);
        return 0;
}

static void signal_to(struct caller *e, sd_bus_message *signal) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        size_t bytes;

        if (!e->over && copy_signal(e, signal, &m, &bytes) >= 0)
                (void)send_to(e, m, bytes);
}

void door_signal(struct calls *q, struct caller *to, sd_bus_message *signal) {
        struct caller *e;

        if (to)
                signal_to(to, signal);
        else
                DL_FOREACH (q->callers, e)
                        if (matches_want(&e->matches, sd_bus_message_get_path(signal)))
                                signal_to(e, signal);
}

static int owner_signal(struct caller *e, bool there) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(sd_bus_message_new_signal(e->bus, &m, BUS_PATH, BUS_NAME, "NameOwnerChanged"));
        TRY(sd_bus_message_set_sender(m, BUS_NAME));
        TRY(sd_bus_message_append(m, "sss", MASTER_NAME, there ? "" : OWNER, there ? OWNER : ""));
        return send_to(e, m, 0);
}

void door_owner(struct calls *q, bool there) {
        struct caller *e;

        DL_FOREACH (q->callers, e)
                (void)owner_signal(e, there);
}

/* ---- the listener ---- */

static bool large_comes(void *userdata) {
        const struct caller *e = userdata, *other;
        unsigned n = 0;

        DL_FOREACH (e->calls->callers, other)
                n += other->user == e->user && other->gate && gate_is_large(other->gate);
        return n <= CALLS_LARGE_PER_USER_MAX;
}

static void gate_ended(void *userdata) {
        hang_up(userdata);
}

static const struct gate_options gate_options = {
        .message_max = CALL_BYTES_MAX, .large = CALLS_LARGE, .large_comes = large_comes, .ended = gate_ended
};

/* Who it is, the kernel has said of the connection; what the other end says of itself makes no difference. */
static int start_bus(struct caller *e, int fd) {
        _cleanup_close_ int end = -EBADF;
        sd_id128_t id;

        TRY(gate_new(e->calls->event, fd, &gate_options, e, &end, &e->gate));
        TRY(sd_id128_randomize(&id));
        TRY(sd_bus_new(&e->bus));
        TRY(sd_bus_set_description(e->bus, "caller"));
        TRY(sd_bus_set_fd(e->bus, end, end));
        TAKE_FD(end);
        TRY(sd_bus_set_anonymous(e->bus, true));
        TRY(sd_bus_set_server(e->bus, true, id));
        TRY(sd_bus_negotiate_fds(e->bus, false));
        TRY(sd_bus_start(e->bus));
        TRY(sd_bus_add_filter(e->bus, NULL, on_message, e));
        return sd_bus_attach_event(e->bus, e->calls->event, SD_EVENT_PRIORITY_NORMAL + 1);
}

static void take_connection(struct calls *q, int fd) {
        _cleanup_close_ int mine = fd;
        struct ucred peer;
        socklen_t size = sizeof(peer);
        struct caller *e;
        struct user *u;

        if (getsockopt(mine, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
            q->n_callers >= CALLS_CALLERS_MAX || !(u = user_of(q, peer.uid)))
                return;
        e = u->n_callers < CALLS_CALLERS_PER_USER_MAX ? calloc(1, sizeof(*e)) : NULL;
        if (!e) {
                user_left(q, u);
                return;
        }
        *e = (struct caller){ .calls = q, .user = u, .job = q->job_of(mine, q->userdata) };
        snprintf(e->name, sizeof(e->name), ":0.%" PRIu64, ++q->last);
        DL_APPEND(q->callers, e);
        q->n_callers++;
        u->n_callers++;
        if (start_bus(e, TAKE_FD(mine)) < 0)
                caller_free(e);
}

static int on_listener(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        for (unsigned i = 0; i < ACCEPT_TURN; i++) {
                int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (c < 0)
                        break; /* none left, or no descriptors: those who wait are taken later */
                take_connection(userdata, c);
        }
        return 0;
}

int door_open(struct calls *q) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (strlen(q->path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, q->path);
        q->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)unlink(q->path);
        if (q->fd < 0 || bind(q->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            chmod(q->path, 0666) < 0 || listen(q->fd, 4096) < 0)
                return -errno;
        TRY(sd_event_add_defer(q->event, &q->over, on_over, q));
        TRY(sd_event_source_set_enabled(q->over, SD_EVENT_OFF));
        return sd_event_add_io(q->event, &q->listener, q->fd, EPOLLIN, on_listener, q);
}

void door_close(struct calls *q) {
        while (q->callers)
                caller_free(q->callers);
        if (q->fd >= 0)
                (void)unlink(q->path);
        sd_event_source_disable_unref(q->listener);
        sd_event_source_disable_unref(q->over);
        (void)close_fd(q->fd);
}
