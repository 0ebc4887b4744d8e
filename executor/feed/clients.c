/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of the trainer that are connected ($PRIMUS_FEED, lib/primus/client-wire.h). Invariant:
 * nothing that they say is believed before it is compared with what they were given; a packet that does not
 * belong there ends that connection and nothing else. */
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <utlist.h>

#include "executor/feed/feed-internal.h"
#include "lib/base/unitname.h"

#define RECEIVE_TURN 64u      /* packets of one client before others get a turn */
#define DRAIN_TURN (1u << 16) /* more than a socket holds: a peer that goes on talking ends some time */
#define QUEUE_MAX (1u << 20)

/* ---- sending ---- */

static int transmit(int fd, const void *packet, size_t size, const int *fds, size_t n) {
        struct iovec iov = { (void *)packet, size };
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(4 * sizeof(int))];
        } control = { 0 };
        struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (n > 0) {
                struct cmsghdr *c;

                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(n * sizeof(int));
                c = CMSG_FIRSTHDR(&m);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(n * sizeof(int));
                memcpy(CMSG_DATA(c), fds, n * sizeof(int));
        }
        if (sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
                return 0;
        return errno == EINTR || errno == ENOBUFS ? -EAGAIN : -errno;
}

static void packet_free(struct client_packet *p) {
        p->fd = close_fd(p->fd);
        free(p);
}

int client_send(struct client *c, uint32_t type, const void *body, size_t size, int fd) {
        struct client_header header = { .type = type, .size = (uint32_t)size };
        struct client_packet *p = malloc(sizeof(*p) + sizeof(header) + size);
        int r;

        if (!p || c->fd < 0) {
                (void)close_fd(fd);
                free(p);
                return p ? -ENOTCONN : -ENOMEM;
        }
        *p = (struct client_packet){ .fd = fd, .size = sizeof(header) + size };
        memcpy(p->bytes, &header, sizeof(header));
        if (size > 0)
                memcpy(p->bytes + sizeof(header), body, size);
        r = c->queue ? -EAGAIN : transmit(c->fd, p->bytes, p->size, &p->fd, p->fd >= 0);
        if (r == -EAGAIN && c->queued + p->size <= QUEUE_MAX) {
                LL_APPEND(c->queue, p);
                c->queued += p->size;
                return 0;
        }
        packet_free(p);
        return r;
}

static int flush(struct client *c) {
        struct client_packet *p;

        while ((p = c->queue)) {
                int r = transmit(c->fd, p->bytes, p->size, &p->fd, p->fd >= 0);

                if (r == -EAGAIN)
                        return 0;
                if (r < 0 && r != -EPIPE && r != -ECONNRESET)
                        return r;
                /* Nobody reads it any more: the end comes behind what the peer has said. */
                LL_DELETE(c->queue, p);
                c->queued -= p->size;
                packet_free(p);
        }
        return 0;
}

/* ---- beginning and end of a connection ---- */

struct client *clients_first(struct feed *f) {
        struct client *c;

        DL_FOREACH (f->clients, c)
                if (c->greeted && !c->gone)
                        return c;
        return NULL;
}

uint64_t clients_still_since(struct feed *f, uint64_t now) {
        if (f->still.since == 0 || f->still.reads != f->reads) {
                f->still.reads = f->reads;
                f->still.since = now;
        }
        return f->still.since;
}

bool clients_end_due(struct feed *f, struct end_wait w, uint64_t now, uint64_t *next) {
        uint64_t due;

        w.reading &= !f->in_turn;
        due = end_due(&w, now);
        if (now < due) {
                *next = MIN(*next, due);
                return false;
        }
        f->in_turn |= w.reading;
        return true;
}

static void client_end(struct feed *f, struct client *c) {
        if (c->gone)
                return;
        f->reads++; /* others may have what it had, to read */
        c->gone = true;
        c->fd = close_fd(c->fd);
        if (f->delivery->client_gone)
                f->delivery->client_gone(f, c);
}

static void client_free(struct feed *f, struct client *c) {
        struct client_packet *p, *next;

        LL_FOREACH_SAFE (c->queue, p, next)
                packet_free(p);
        DL_DELETE(f->clients, c);
        f->n_clients--;
        (void)close_fd(c->fd);
        free(c->state);
        free(c);
}

static int refuse_client(struct client *c, const char *why) {
        (void)client_send(c, CLIENT_REFUSED, why, strlen(why), -EBADF);
        return -ECONNREFUSED;
}

/* ---- packets ---- */

/* A trainer is told all formats at once. What is added to a job later has that of its first source, which
 * masterd sees to, so it is told that for all that may come. */
_Static_assert(CLIENT_SOURCES_MAX == INPUT_SOURCES_MAX, "each source has a format");
static const struct input_source *format_of(const struct feed *f, size_t source) {
        return &f->input->sources[source < f->input->n_sources ? source : 0];
}

static int welcome(struct feed *f, struct client *c) {
        struct client_header header = { .type = CLIENT_WELCOME };
        const struct client_welcome w = {
                .mode = (uint32_t)f->input->mode,
                .ack = (uint32_t)f->ack,
                .slots = f->input->slots,
                .slot_size = (uint32_t)f->input->slot_size,
                .max_record = f->input->max_record,
                .n_sources = CLIENT_SOURCES_MAX,
                .version = CLIENT_VERSION,
        };
        _cleanup_free_ uint8_t *packet = NULL;
        size_t n = CLIENT_SOURCES_MAX, size = sizeof(header) + sizeof(w) + n * sizeof(struct client_format);
        int fds[4], r;

        packet = calloc(1, size);
        if (!packet)
                return -ENOMEM;
        header.size = (uint32_t)(size - sizeof(header));
        memcpy(packet, &header, sizeof(header));
        memcpy(packet + sizeof(header), &w, sizeof(w));
        for (size_t i = 0; i < n; i++) {
                const struct input_source *s = format_of(f, i);
                const struct client_format format = { .kind = (uint32_t)s->format,
                                                      .flags = s->multiline,
                                                      .record_size = s->record_size };

                memcpy(packet + sizeof(header) + sizeof(w) + i * sizeof(format), &format, sizeof(format));
        }
        c->greeted = true;
        r = f->delivery->client_new ? f->delivery->client_new(f, c) : 0;
        if (r < 0) {
                c->greeted = false;
                return refuse_client(c, "the feeder has no memory for another process");
        }
        if (c->lane)
                lane_fds(c->lane, fds);
        return transmit(c->fd, packet, size, fds, c->lane ? 4 : 0);
}

static void resume_all(struct feed *f) {
        struct task *t, *next;

        DL_FOREACH_SAFE (f->tasks.todo, t, next) {
                struct task_mark mark;

                if (checkpoint_find(&f->checkpoint, t->id, &mark) > 0)
                        tasks_resume(&f->tasks, t, mark);
        }
}

/* HELLO, with all of its state. */
static int greet(struct feed *f, struct client *c) {
        bool alone = f->ack == ACK_CHECKPOINT || (ack_by_client(f->ack) && f->input->mode == DELIVERY_STDIN);
        int r;

        if (alone && clients_first(f))
                return refuse_client(
                        c, "another process of the trainer is connected, and input.ack allows for one");
        if (c->state_size > 0 && f->ack != ACK_CHECKPOINT)
                return refuse_client(c, "the job's input.ack is not checkpoint");
        if (f->ack == ACK_CHECKPOINT && c->state_size > 0) {
                r = checkpoint_load(&f->checkpoint, c->state, c->state_size, f->job_uid);
                if (r == -EXDEV)
                        return refuse_client(c, "the checkpoint is one of another job's data");
                if (r < 0)
                        return refuse_client(c, r == -ENOMEM ? "no memory for the checkpoint"
                                                             : "the checkpoint cannot be read");
                resume_all(f);
        }
        f->was_greeted = true;
        return welcome(f, c);
}

/* One acknowledgement of a task. */
static int acknowledge(struct feed *f, struct client *c, const struct client_ack *a) {
        struct task *t = tasks_find(&f->tasks, a->task);
        int r;

        if (!t && f->ranges && a->position == TASK_TO_END)
                ranges_forget(f, c, a->task);
        if (!t || t->place == PLACE_TODO)
                return 0; /* it is over, or with nobody */
        if (f->ranges) {
                if (t->holder != c)
                        return 0; /* it was taken away, and may be another's */
                ranges_at(f, c, t, a->position);
                if (a->position == TASK_TO_END || (t->end != TASK_TO_END && a->position >= t->end)) {
                        r = ranges_whole(f, c, t);
                        if (r < 0)
                                return r;
                }
        }
        if (a->position == TASK_TO_END && !t->whole)
                return t->place == PLACE_HELD ? -ERANGE : 0;
        tasks_count(t, a->records);
        return tasks_ack(&f->tasks, t, (struct task_mark){ a->position, a->skip }, 0);
}

struct committer {
        struct feed *feed;
        struct client *client;
};

static int commit_entry(const struct client_ack *a, void *userdata) {
        struct committer *k = userdata;

        return acknowledge(k->feed, k->client, a);
}

static int commit(struct feed *f, struct client *c) {
        struct committer k = { f, c };
        int r;

        if (f->delivery->look)
                f->delivery->look(f);
        r = checkpoint_read(c->state, c->state_size, f->job_uid, commit_entry, &k);
        if (r < 0)
                return r;
        /* One that has gone cannot be told; more commits of it may lie behind this one. */
        r = client_send(c, CLIENT_COMMITTED, NULL, 0, -EBADF);
        return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

/* A part of a state; acts on it once it is whole. */
static int on_state(struct feed *f, struct client *c, const uint8_t *body, size_t size) {
        uint32_t type;
        int r;

        if (size > c->state_allocated - c->state_size)
                return -EPROTO;
        if (size > 0)
                memcpy(c->state + c->state_size, body, size);
        c->state_size += size;
        if (c->state_size < c->state_allocated)
                return size > 0 ? 0 : -EPROTO;
        type = c->state_type;
        r = type == CLIENT_HELLO ? greet(f, c) : commit(f, c);
        c->state_type = 0;
        free(TAKE_PTR(c->state));
        c->state_size = c->state_allocated = 0;
        return r;
}

static int begin_state(struct client *c, uint32_t type, size_t size) {
        c->state = malloc(MAX(size, (size_t)1));
        if (!c->state)
                return -ENOMEM;
        c->state_type = type;
        c->state_size = 0;
        c->state_allocated = size;
        return 0;
}

static int on_hello(struct feed *f, struct client *c, const uint8_t *body, size_t size) {
        struct client_hello hello;
        int r;

        if (size < sizeof(hello))
                return -EPROTO;
        memcpy(&hello, body, sizeof(hello));
        if (!client_version_fits(hello.version)) {
                char why[160];
                snprintf(why, sizeof(why),
                         "libprimus speaks version %u, this primus-executor (" PRIMUS_VERSION
                         ") %u to %u: it was started before an upgrade; start the executor anew",
                         hello.version, CLIENT_VERSION_OLDEST, CLIENT_VERSION + 1);
                return refuse_client(c, why);
        }
        if (hello.state_size > CLIENT_STATE_MAX)
                return -EPROTO;
        r = begin_state(c, CLIENT_HELLO, hello.state_size);
        return r < 0 ? r : on_state(f, c, body + sizeof(hello), size - sizeof(hello));
}

static int on_commit(struct feed *f, struct client *c, const uint8_t *body, size_t size) {
        int64_t whole = checkpoint_size(body, size);
        int r;

        if (f->ack != ACK_CHECKPOINT || whole <= 0)
                return -EPROTO;
        r = begin_state(c, CLIENT_COMMIT, (size_t)whole);
        return r < 0 ? r : on_state(f, c, body, size);
}

static int on_next(struct feed *f, struct client *c, const uint8_t *body, size_t size) {
        struct client_next next;

        if (size != sizeof(next) || !f->ranges)
                return -EPROTO;
        memcpy(&next, body, sizeof(next));
        return ranges_next(f, c, next.credits);
}

static int on_ack(struct feed *f, struct client *c, const uint8_t *body, size_t size) {
        if (size % sizeof(struct client_ack) != 0 ||
            (f->ack != ACK_EXPLICIT && !(f->ranges && f->ack == ACK_RELEASE)))
                return -EPROTO;
        for (; size > 0; body += sizeof(struct client_ack), size -= sizeof(struct client_ack)) {
                struct client_ack a;
                int r;

                memcpy(&a, body, sizeof(a));
                r = acknowledge(f, c, &a);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int on_done(struct feed *f, struct client *c, const uint8_t *body, size_t size) {
        struct client_ack a;

        if (size != sizeof(a) || !f->ranges)
                return -EPROTO;
        memcpy(&a, body, sizeof(a));
        if (ack_by_client(
                    f->ack)) { /* read, which makes room for another; it counts when the trainer says so */
                struct task *t = tasks_find(&f->tasks, a.task);

                return t && t->place != PLACE_TODO ? ranges_whole(f, c, t) : 0;
        }
        a.position = TASK_TO_END;
        a.skip = 0;
        return acknowledge(f, c, &a);
}

static int on_fail(struct feed *f, struct client *c, const uint8_t *body, size_t size) {
        char why[READ_ERROR_MAX + TASK_TEXT_MAX];
        struct client_fail fail;
        struct task *t;

        if (size < sizeof(fail))
                return -EPROTO;
        memcpy(&fail, body, sizeof(fail));
        if (size - sizeof(fail) != fail.text_size || fail.text_size > TASK_TEXT_MAX)
                return -EPROTO;
        t = tasks_find(&f->tasks, fail.task);
        if (!t || t->place == PLACE_TODO)
                return 0;
        snprintf(why, sizeof(why), "%.350s: %.*s", t->grant.path, (int)MIN(fail.text_size, 600u),
                 (const char *)body + sizeof(fail));
        if (c->lane)
                lane_fail(f, c, t, why);
        else if (f->ranges)
                ranges_fail(f, c, t, why);
        else if (f->pipe) {
                tasks_break(&f->tasks, t, why);
                f->delivery->cancel(f, t);
        }
        return 0;
}

static int on_trimmed(struct feed *f, struct client *c, const uint8_t *body, size_t size) {
        struct client_trim trim;
        struct task *t;

        if (size != sizeof(trim) || !f->ranges)
                return -EPROTO;
        memcpy(&trim, body, sizeof(trim));
        t = tasks_find(&f->tasks, trim.task);
        return t ? ranges_trimmed(f, c, t, trim.end) : 0;
}

static int on_stream(struct feed *f, struct client *c, const uint8_t *body, size_t size) {
        struct client_stream stream;

        if (size != sizeof(stream) || !f->pipe || f->ack != ACK_EXPLICIT)
                return -EPROTO;
        memcpy(&stream, body, sizeof(stream));
        return pipe_processed(f, stream.bytes);
}

/* Its messages name files, which rings and pipes do not. */
static int on_where(struct feed *f, struct client *c, const uint8_t *body, size_t size) {
        struct {
                struct client_place place;
                char path[TASK_PATH_MAX];
        } answer = {};
        struct client_where where;
        const struct task *t;

        if (size != sizeof(where))
                return -EPROTO;
        memcpy(&where, body, sizeof(where));
        t = tasks_find(&f->tasks, where.task);
        answer.place.task = where.task;
        if (t) {
                answer.place.path_size = (uint32_t)strnlen(t->grant.path, sizeof(answer.path));
                memcpy(answer.path, t->grant.path, answer.place.path_size);
        }
        return client_send(c, CLIENT_PLACE, &answer, sizeof(answer.place) + answer.place.path_size, -EBADF);
}

static int on_more(struct feed *f, struct client *c, const uint8_t *body, size_t size) {
        return on_state(f, c, body, size);
}

/* What may come when: before HELLO, in the middle of a state, or after it. */
static const struct {
        uint32_t type;
        bool greeted, in_state;
        int (*handle)(struct feed *f, struct client *c, const uint8_t *body, size_t size);
} packets[] = {
        { CLIENT_HELLO, false, false, on_hello },  { CLIENT_MORE, false, true, on_more },
        { CLIENT_MORE, true, true, on_more },      { CLIENT_NEXT, true, false, on_next },
        { CLIENT_ACK, true, false, on_ack },       { CLIENT_DONE, true, false, on_done },
        { CLIENT_FAIL, true, false, on_fail },     { CLIENT_TRIMMED, true, false, on_trimmed },
        { CLIENT_COMMIT, true, false, on_commit }, { CLIENT_STREAM, true, false, on_stream },
        { CLIENT_WHERE, true, false, on_where },
};

static int handle(struct feed *f, struct client *c, const struct client_header *h, const uint8_t *body) {
        for (size_t i = 0; i < ELEMENTSOF(packets); i++)
                if (packets[i].type == h->type && packets[i].greeted == c->greeted &&
                    packets[i].in_state == (c->state_type != 0))
                        return packets[i].handle(f, c, body, h->size);
        return -EPROTO;
}

/* One packet. 1: handled; 0: none; < 0: the connection is over. */
static int receive_packet(struct feed *f, struct client *c) {
        struct client_header header;
        struct iovec iov[2] = { { &header, sizeof(header) },
                                { f->packet, CLIENT_PACKET_MAX - sizeof(header) } };
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 }; /* descriptors that come are not even made */
        ssize_t l = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        int r;

        /* Said once, where the peer has gone without reading all: what it said before is still there. */
        if (l < 0 && errno == ECONNRESET)
                l = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (l < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (l == 0)
                return -ENOTCONN;
        if (l < (ssize_t)sizeof(header) || (m.msg_flags & MSG_TRUNC) ||
            header.size != (size_t)l - sizeof(header))
                return -EPROTO;
        r = handle(f, c, &header, f->packet);
        return r < 0 ? r : 1;
}

/* ---- the listener ---- */

static void accept_one(struct feed *f, int fd) {
        _cleanup_close_ int mine = fd;
        struct ucred peer;
        socklen_t size = sizeof(peer);
        struct client *c;

        /* An abstract name is open to everybody on the host. */
        if (getsockopt(mine, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != getuid())
                return;
        if (f->n_clients >= CLIENTS_MAX || !(c = calloc(1, sizeof(*c))))
                return;
        c->fd = TAKE_FD(mine);
        DL_APPEND(f->clients, c);
        f->n_clients++;
}

int clients_listen(struct feed *f) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        const char *job = getenv("PRIMUS_JOB"), *role = getenv("PRIMUS_ROLE"),
                   *index = getenv("PRIMUS_INDEX"), *attempt = getenv("PRIMUS_ATTEMPT"),
                   *uid = getenv("PRIMUS_JOB_UID");
        uint64_t random;
        int n;

        for (size_t i = 0; uid && strlen(uid) == 32 && i < sizeof(f->job_uid); i++)
                if (sscanf(uid + 2 * i, "%2hhx", &f->job_uid[i]) != 1)
                        break;
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return -EIO;
        n = snprintf(f->feed_name, sizeof(f->feed_name),
                     "@primus-feed/primus-%.10s-%.32s-%.10s.%.10s/%016llx", job ? job : "0",
                     role ? role : "none", index ? index : "0", attempt ? attempt : "0",
                     (unsigned long long)random);
        if (n < 0 || (size_t)n >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path + 1, f->feed_name + 1, (size_t)n - 1);
        f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (f->listener < 0 ||
            bind(f->listener, (struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n)) < 0 ||
            listen(f->listener, CLIENTS_MAX) < 0)
                return -errno;
        if (setenv("PRIMUS_FEED", f->feed_name, 1) < 0 ||
            setenv("PRIMUS_INPUT_MODE", input_delivery_to_string(f->input->mode), 1) < 0)
                return -errno;
        return 0;
}

/* ---- the loop's side ---- */

size_t clients_poll(struct feed *f, struct pollfd *fds) {
        struct client *c;
        size_t n = 0;

        if (f->n_clients < CLIENTS_MAX)
                fds[n++] = (struct pollfd){ .fd = f->listener, .events = POLLIN };
        DL_FOREACH (f->clients, c) {
                if (c->gone)
                        continue;
                fds[n++] =
                        (struct pollfd){ .fd = c->fd, .events = (short)(POLLIN | (c->queue ? POLLOUT : 0)) };
                if (c->lane)
                        fds[n++] = (struct pollfd){ .fd = lane_fd(c->lane), .events = POLLIN };
        }
        return n;
}

static void client_step(struct feed *f, struct client *c, unsigned turn) {
        int r = 1;

        if (c->lane)
                lane_collect(f, c);
        for (unsigned i = 0; i < turn && r > 0; i++)
                r = receive_packet(f, c);
        if (r == 0 && c->lane)
                lane_settle(c);
        if (r >= 0)
                r = flush(c);
        if (r >= 0 && c->lane && lane_hostile(c->lane))
                r = -EPROTO;
        if (r == -EPROTO || r == -EBADMSG || r == -ERANGE || r == -EXDEV)
                fprintf(stderr,
                        "primus-executor: a process of the trainer speaks nonsense on $PRIMUS_FEED and is "
                        "disconnected\n");
        if (r < 0)
                client_end(f, c);
}

void clients_step(struct feed *f) {
        struct client *c, *next;
        int fd;

        while (f->n_clients < CLIENTS_MAX &&
               (fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
                accept_one(f, fd);
        DL_FOREACH_SAFE (f->clients, c, next) {
                if (!c->gone)
                        client_step(f, c, RECEIVE_TURN);
                if (!c->gone || !lane_over(f, c))
                        continue;
                client_free(f, c);
                resume_all(f); /* what it had, as the next one said in HELLO */
        }
}

void clients_drain(struct feed *f) {
        struct client *c;

        DL_FOREACH (f->clients, c)
                if (!c->gone)
                        client_step(f, c, DRAIN_TURN);
}

void clients_done(struct feed *f) {
        struct client *c, *next;

        DL_FOREACH (f->clients, c)
                client_end(f, c);
        DL_FOREACH_SAFE (f->clients, c, next) {
                while (!lane_over(f, c)) {
                        (void)pthread_mutex_unlock(&f->lock);
                        (void)usleep(1000);
                        (void)pthread_mutex_lock(&f->lock);
                }
                client_free(f, c);
        }
        f->listener = close_fd(f->listener);
        checkpoint_done(&f->checkpoint);
}
