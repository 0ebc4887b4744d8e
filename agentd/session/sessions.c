/* SPDX-License-Identifier: Apache-2.0 */
/* The life of sessions on this host. Invariant: every call that waits is in the list of its session and is
 * answered once, in the order of arrival; the socket is looked at only while somebody waits for it. */
#include "agentd/session/sessions.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agentd/session/sessions-internal.h"
#include "agentd/unit/systemd.h"
#include "lib/base/audit.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "lib/wire/skip.h"

#define SESSIONS_MAX 256u
#define WAITING_MAX 8u /* of each kind, for each session */
#define OPEN_USEC (15 * USEC_PER_SEC)
#define WAIT_MAX_USEC (20 * USEC_PER_SEC)
#define WHY_BROKEN "the session's process was killed, with its executor or by itself"

struct session *session_find(struct sessions *s, uint32_t number) {
        struct session *found;

        HASH_FIND(hh, s->list, &number, sizeof(number), found);
        return found;
}

static void waiting_free(struct waiting **list, unsigned *n, struct waiting *w) {
        DL_DELETE(*list, w);
        (*n)--;
        sd_bus_message_unref(w->call);
        free(w);
}

/* ---- answers ---- */

static void answer_empty(sd_bus_message *call) {
        (void)sd_bus_reply_method_return(call, "a{sv}", 0);
}

static int append_end(sd_bus_message *reply, const struct session *s, bool end) {
        return sd_bus_message_append(reply, "bisa{sv}", (int)end, end ? s->status : 0,
                                     end && s->why ? s->why : "", 0);
}

static void answer_read(struct session *s, sd_bus_message *reply, bool end) {
        int r = append_end(reply, s, end);

        s->told |= end;
        if (r >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        if (r < 0)
                log_full(LOG_DEBUG, r, NULL, "Cannot answer the reader of a session");
        waiting_free(&s->reads, &s->n_reads, s->reads);
}

static void session_over(struct session *s, int32_t status, const char *why) {
        if (s->over)
                return;
        s->over = true;
        s->status = status;
        if (why && *why)
                s->why = strdup(why);
        s->io = sd_event_source_disable_unref(s->io);
        s->fd = close_fd(s->fd);
}

/* One packet: 1 with *ret_size, 0: none is there. The end is noted. */
static int receive_packet(struct session *s, size_t *ret_size) {
        uint8_t *buffer = s->sessions->buffer;
        struct session_end end;
        char why[256];
        ssize_t n;

        if (s->over)
                return 0;
        n = recv(s->fd, buffer, sizeof(s->sessions->buffer), MSG_DONTWAIT);
        /* Said once, where it ended with input that it had not read; what it said before that is still there.
         */
        if (n < 0 && errno == ECONNRESET)
                n = recv(s->fd, buffer, sizeof(s->sessions->buffer), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                session_over(s, SESSION_STATUS_BROKEN, WHY_BROKEN);
                return 0;
        }
        if (buffer[0] == SESSION_END && (size_t)n >= 1 + sizeof(end)) {
                memcpy(&end, buffer + 1, sizeof(end));
                session_over(s, end.status,
                             utf8_clean((char *)buffer + 1 + sizeof(end), (size_t)n - 1 - sizeof(end), why,
                                        sizeof(why)));
                return 0;
        }
        if (buffer[0] < SESSION_OUTPUT || buffer[0] > SESSION_OUTPUT_END)
                return 0; /* of another version */
        *ret_size = (size_t)n;
        return 1;
}

/* 1: the first reader was answered; 0: there is nothing for it. late: its time is over. */
static int serve_reader(struct session *s, bool late) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const uint8_t *buffer = s->sessions->buffer;
        unsigned chunks = 0;
        size_t size;
        int r = sd_bus_message_new_method_return(s->reads->call, &reply);

        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(yay)");
        while (r >= 0 && chunks < SESSION_CHUNKS_MAX && receive_packet(s, &size) > 0) {
                if ((r = sd_bus_message_open_container(reply, 'r', "yay")) >= 0 &&
                    (r = sd_bus_message_append(reply, "y", buffer[0])) >= 0 &&
                    (r = sd_bus_message_append_array(reply, 'y', buffer + 1, size - 1)) >= 0)
                        r = sd_bus_message_close_container(reply);
                chunks++;
        }
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        if (r < 0) { /* bytes may be lost: the session cannot go on */
                session_over(s, SESSION_STATUS_BROKEN, "out of memory on the host");
                (void)sd_bus_reply_method_errno(s->reads->call, r, NULL);
                waiting_free(&s->reads, &s->n_reads, s->reads);
                return 1;
        }
        if (chunks == 0 && !s->over && !late)
                return 0;
        answer_read(s, reply, s->over);
        return 1;
}

/* 1: the first writer was answered. */
static int serve_writer(struct session *s) {
        struct waiting *w = s->writes;

        while (!s->over && (w->at < w->size || w->end)) {
                uint8_t frame = w->at < w->size ? SESSION_INPUT : SESSION_INPUT_END;
                struct iovec parts[] = {
                        { &frame, 1 }, { (void *)(w->data + w->at), MIN(w->size - w->at, SESSION_DATA_MAX) }
                };
                const struct msghdr h = { .msg_iov = parts, .msg_iovlen = frame == SESSION_INPUT ? 2 : 1 };

                if (sendmsg(s->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
                        if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
                                return 0;
                        break; /* it has ended; readers are told how, and input goes nowhere */
                }
                if (frame == SESSION_INPUT)
                        w->at += parts[1].iov_len;
                else
                        w->end = false;
        }
        answer_empty(w->call);
        waiting_free(&s->writes, &s->n_writes, w);
        return 1;
}

/* ---- the socket ---- */

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

static int set_timer(struct session *s, uint64_t deadline) {
        int r;

        if (!s->timer)
                return sd_event_add_time(s->sessions->event, &s->timer, CLOCK_BOOTTIME, deadline,
                                         USEC_PER_MSEC, on_timer, s);
        r = sd_event_source_set_time(s->timer, deadline);
        return r < 0 ? r : sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

/* Serves who can be served and waits for the rest. The session may be gone afterwards. */
static void session_go_on(struct session *s) {
        uint32_t events;
        int r = 0;

        while (s->writes && serve_writer(s) > 0)
                ;
        while (!s->told && s->reads && serve_reader(s, false) > 0)
                ;
        if (s->told) {
                session_free(s); /* who else reads is told now */
                return;
        }
        if (s->over)
                return; /* until somebody reads that */
        events = (s->reads ? (uint32_t)EPOLLIN : 0) | (s->writes ? (uint32_t)EPOLLOUT : 0);
        if (events)
                r = sd_event_source_set_io_events(s->io, events);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->io, events ? SD_EVENT_ON : SD_EVENT_OFF);
        if (r >= 0 && s->reads)
                r = set_timer(s, s->reads->deadline_boot);
        else if (s->timer)
                (void)sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
        if (r < 0) {
                log_warning_errno(r, "Cannot wait for a session");
                session_free(s);
        }
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        session_go_on(userdata);
        return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        struct session *s = userdata;

        if (s->opening) {
                session_refuse(s, LINK_ERROR_START, "host %s did not start the session in time",
                               s->sessions->node);
                return 0;
        }
        if (s->reads && s->reads->deadline_boot <= now_boot())
                (void)serve_reader(s, true);
        session_go_on(s);
        return 0;
}

/* The command as a line; "" for a shell or a connection. */
static void join_arguments(const struct session *s, char *buf, size_t size) {
        const char *p = (const char *)s->start + 1 + sizeof(struct session_start);
        const char *end = (const char *)s->start + s->start_size;
        struct session_start start;
        size_t n = 0;

        memcpy(&start, s->start + 1, sizeof(start));
        *buf = 0;
        for (uint32_t i = 0; i < start.n_arguments && p < end && n + 1 < size; i++, p += strlen(p) + 1)
                n += (size_t)snprintf(buf + n, size - n, "%s%s", i > 0 ? " " : "", p);
}

/* Somebody acts on this host as the job's user: written here too, where the host's own people look. */
static void audit_session(const struct session *s) {
        struct audit_line line = AUDIT_LINE_EMPTY;
        char arguments[AUDIT_TEXT_MAX];

        join_arguments(s, arguments, sizeof(arguments));
        line.what = line.method = s->artifacts ? "artifacts" : "session";
        line.object = s->unit;
        line.arguments = arguments;
        line.uid = s->caller;
        line.for_uid = s->uid;
        line.job = s->id.job;
        line.role = s->id.role;
        line.index = s->id.index;
        line.node = s->sessions->node;
        line.result = "ok";
        audit_write(&line);
}

int session_begin(struct session *s) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = TAKE_PTR(s->opening);
        int r = sd_event_add_io(s->sessions->event, &s->io, s->fd, EPOLLIN, on_io, s);

        if (r >= 0)
                r = sd_event_source_set_enabled(s->io, SD_EVENT_OFF);
        if (r >= 0 && send(s->fd, s->start, s->start_size, MSG_NOSIGNAL) < 0)
                r = -errno;
        if (r < 0) {
                s->opening = TAKE_PTR(call);
                return r;
        }
        if (s->timer)
                (void)sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
        audit_session(s);
        free(s->start);
        s->start = NULL;
        answer_empty(call);
        return 0;
}

void session_free(struct session *s) {
        if (!s->over)
                session_over(s, SESSION_STATUS_BROKEN, "the session was closed");
        while (s->writes) {
                answer_empty(s->writes->call);
                waiting_free(&s->writes, &s->n_writes, s->writes);
        }
        while (s->reads && serve_reader(s, true) > 0)
                ;
        if (s->artifacts && s->submitted && s->sessions->units)
                session_stop_reader(s);
        HASH_DEL(s->sessions->list, s);
        sd_event_source_disable_unref(s->timer);
        if (s->opening)
                (void)sd_bus_reply_method_errorf(s->opening, LINK_ERROR_NOT_FOUND, "the session was closed");
        sd_bus_message_unref(s->opening);
        strings_free(s->environment);
        free(s->directory);
        free(s->start);
        free(s->why);
        free(s);
}

/* ---- SessionOpen ---- */

int session_read_strings(sd_bus_message *m, uint8_t *buffer, size_t *size, uint32_t *ret_n) {
        const void *p;
        size_t l;
        int r = sd_bus_message_enter_container(m, 'a', "ay");

        while (r > 0 && (r = sd_bus_message_read_array(m, 'y', &p, &l)) > 0) {
                if (*size + l + 1 > SESSION_PACKET_MAX || memchr(p, 0, l))
                        return -E2BIG;
                memcpy(buffer + *size, p, l);
                buffer[*size + l] = 0;
                *size += l + 1;
                (*ret_n)++;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_start(struct sessions *all, sd_bus_message *call, struct session_start *start,
                      size_t *ret_size) {
        size_t size = 1 + sizeof(*start);
        const char *kind;
        int r, pty;

        r = sd_bus_message_read(call, "sbqqq", &kind, &pty, &start->size.rows, &start->size.columns,
                                &start->port);
        if (r < 0)
                return r;
        if (strcmp(kind, "command") != 0 && strcmp(kind, "connect") != 0)
                return -EBADMSG;
        start->version = SESSION_VERSION;
        start->kind = strcmp(kind, "connect") == 0 ? SESSION_CONNECT : SESSION_COMMAND;
        start->pty = (uint8_t)pty;
        TRY(session_read_strings(call, all->buffer, &size, &start->n_arguments));
        TRY(session_read_strings(call, all->buffer, &size, &start->n_environment));
        all->buffer[0] = SESSION_START;
        memcpy(all->buffer + 1, start, sizeof(*start));
        *ret_size = size;
        return 0;
}

/* systemd gives the session's process that of its own unit. */
static int add_invocation(struct sessions *all, struct session_start *start, size_t *size,
                          const struct unit_facts *facts) {
        char text[SD_ID128_STRING_MAX];
        size_t room = sizeof(all->buffer) - *size;
        int l = snprintf((char *)all->buffer + *size, room, "INVOCATION_ID=%s",
                         sd_id128_to_string(facts->invocation, text));

        if (l < 0 || (size_t)l >= room)
                return -E2BIG;
        *size += (size_t)l + 1;
        start->n_environment++;
        memcpy(all->buffer + 1, start, sizeof(*start));
        return 0;
}

static int read_extra(sd_bus_message *call, const char *key, void *userdata) {
        uint32_t *caller = userdata;

        return strcmp(key, "caller") == 0 ? sd_bus_message_read(call, "v", "u", caller)
                                          : message_skip(call, "v");
}

int session_new(struct sessions *all, uint32_t number, const struct unit_facts *facts, sd_bus_message *call,
                size_t start_size, struct session **ret) {
        struct session *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        *s = (struct session){
                .sessions = all, .number = number, .id = facts->id, .uid = facts->uid, .fd = -EBADF
        };
        session_unit_name(s->id.job, s->id.role, s->id.index, s->id.attempt, number, s->unit);
        HASH_ADD(hh, all->list, number, sizeof(s->number), s);
        s->start = malloc(start_size);
        if (!s->start || set_timer(s, now_boot() + OPEN_USEC) < 0) {
                session_free(s);
                return -ENOMEM;
        }
        memcpy(s->start, all->buffer, start_size);
        s->start_size = start_size;
        s->opening = sd_bus_message_ref(call);
        *ret = s;
        return 0;
}

int session_admit(struct sessions *all, uint32_t number, uint32_t uid, sd_bus_error *error) {
        char why[SERVE_WHY_MAX];
        const char *unserved = serving_known(all->serving, uid, why);

        if (unserved)
                return sd_bus_error_set(error, LINK_ERROR_REFUSED, unserved);
        if (HASH_COUNT(all->list) >= SESSIONS_MAX || session_find(all, number))
                return sd_bus_error_setf(error, LINK_ERROR_BUSY, "host %s has %u sessions already", all->node,
                                         HASH_COUNT(all->list));
        return 0;
}

int sessions_open(struct sessions *all, sd_bus_message *call, sd_bus_error *error) {
        struct session_start start = { 0 };
        char unit[UNIT_NAME_MAX];
        struct unit_facts facts;
        struct executor_id id;
        struct session *s = NULL;
        uint32_t number, caller = AUDIT_NO_UID;
        size_t size;
        int r;

        if ((r = executor_id_read(call, &id)) <= 0 || (r = sd_bus_message_read(call, "u", &number)) <= 0)
                return -EBADMSG;
        r = read_start(all, call, &start, &size);
        if (r == -E2BIG)
                return sd_bus_error_setf(
                        error, SD_BUS_ERROR_INVALID_ARGS,
                        "the command and its variables are more than %u bytes, or hold a NUL byte",
                        SESSION_DATA_MAX);
        if (r < 0 || link_read_entries(call, read_extra, &caller) < 0)
                return -EBADMSG;
        executor_unit_name(id.job, id.role, id.index, id.attempt, unit);
        if (units_find(all->units, unit, &facts) < 0 || !executor_id_equal(&facts.id, &id) ||
            facts.state != EXECUTOR_RUNNING)
                return sd_bus_error_setf(error, LINK_ERROR_NOT_FOUND, "%s/%u does not run on %s", id.role,
                                         id.index, all->node);
        r = add_invocation(all, &start, &size, &facts);
        if (r < 0)
                return r;
        if (facts.frozen)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED, "%s/%u is frozen: resume the job first",
                                         id.role, id.index);
        r = session_admit(all, number, facts.uid, error);
        if (r < 0)
                return r;
        r = session_new(all, number, &facts, call, size, &s);
        if (r < 0)
                return r;
        s->caller = caller;
        r = session_ask(s);
        if (r < 0)
                session_refuse(s, LINK_ERROR_START, "cannot start the session: %s", strerror(-r));
        return 1;
}

/* ---- the other calls ---- */

static int find_session(struct sessions *all, uint32_t number, struct session **ret, sd_bus_error *error) {
        *ret = session_find(all, number);
        if (*ret && !(*ret)->opening)
                return 0;
        return sd_bus_error_setf(error, LINK_ERROR_NOT_FOUND, "host %s has no session %u", all->node, number);
}

static int wait_for(struct session *s, sd_bus_message *call, struct waiting **list, unsigned *n,
                    const struct waiting *model, sd_bus_error *error) {
        struct waiting *w;

        if (*n >= WAITING_MAX)
                return sd_bus_error_setf(error, LINK_ERROR_BUSY, "%u calls wait for session %u already", *n,
                                         s->number);
        w = malloc(sizeof(*w));
        if (!w)
                return -ENOMEM;
        *w = *model;
        w->call = sd_bus_message_ref(call);
        DL_APPEND(*list, w);
        (*n)++;
        session_go_on(s);
        return 1;
}

int sessions_read(struct sessions *all, sd_bus_message *call, sd_bus_error *error) {
        struct waiting w = { 0 };
        struct session *s = NULL;
        uint32_t number;
        uint64_t wait;
        int r;

        if (sd_bus_message_read(call, "ut", &number, &wait) <= 0)
                return -EBADMSG;
        r = find_session(all, number, &s, error);
        if (r < 0)
                return r;
        w.deadline_boot = now_boot() + MIN(wait, WAIT_MAX_USEC);
        return wait_for(s, call, &s->reads, &s->n_reads, &w, error);
}

int sessions_write(struct sessions *all, sd_bus_message *call, sd_bus_error *error) {
        struct waiting w = { 0 };
        struct session *s = NULL;
        uint32_t number;
        const void *data = NULL;
        int r, end;

        if (sd_bus_message_read(call, "u", &number) <= 0 ||
            link_read_bytes(call, LINK_CHUNK_MAX, &data, &w.size) <= 0 ||
            sd_bus_message_read(call, "b", &end) <= 0)
                return -EBADMSG;
        r = find_session(all, number, &s, error);
        if (r < 0)
                return r;
        w.data = data;
        w.end = end;
        return wait_for(s, call, &s->writes, &s->n_writes, &w, error);
}

int sessions_resize(struct sessions *all, sd_bus_message *call, sd_bus_error *error) {
        struct {
                uint8_t frame;
                uint8_t size[sizeof(struct session_size)];
        } packet = { .frame = SESSION_SIZE };
        struct session_size size;
        struct session *s = NULL;
        uint32_t number;

        if (sd_bus_message_read(call, "uqq", &number, &size.rows, &size.columns) <= 0)
                return -EBADMSG;
        s = session_find(all, number);
        memcpy(packet.size, &size, sizeof(size));
        if (s && !s->opening && !s->over)
                (void)send(s->fd, &packet, sizeof(packet),
                           MSG_DONTWAIT | MSG_NOSIGNAL); /* the next one counts */
        return 1;
}

int sessions_close(struct sessions *all, sd_bus_message *call, sd_bus_error *error) {
        struct session *s = NULL;
        uint32_t number;

        if (sd_bus_message_read(call, "u", &number) <= 0)
                return -EBADMSG;
        s = session_find(all, number);
        if (s)
                session_free(s); /* its process hangs up on the command when the socket closes */
        return 1;
}

/* ---- the module ---- */

void sessions_bulk_down(struct sessions *all) {
        struct session *s, *next;

        HASH_ITER (hh, all->list, s, next)
                session_free(s);
}

void sessions_job_over(struct sessions *all, const char *unit, const char *result) {
        struct session *s, *next;

        HASH_ITER (hh, all->list, s, next)
                if (strcmp(s->unit, unit) == 0) {
                        session_started(s, result);
                        return;
                }
}

int sessions_new(sd_event *event, struct units *units, struct serving *serving, const char *node,
                 struct sessions **ret) {
        struct sessions *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->event = sd_event_ref(event);
        s->units = units;
        s->serving = serving;
        s->node = node;
        *ret = s;
        return 0;
}

void sessions_free(struct sessions *s) {
        struct leaving *l, *l_next;
        struct question *q, *next;

        if (!s)
                return;
        s->units = NULL; /* the next agentd stops what is left */
        sessions_bulk_down(s);
        DL_FOREACH_SAFE (s->questions, q, next)
                free(q);
        DL_FOREACH_SAFE (s->leaving, l, l_next)
                free(l);
        sd_event_unref(s->event);
        free(s);
}
