/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/fake-feed.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lib/base/cleanup.h"
#include "lib/primus/ring.h"
#include "lib/wire/tasks.h"

struct fake_task {
        uint64_t id;
        const char *path;
        int fd;
        const uint8_t *data; /* the whole file */
        size_t file_size;
        uint64_t start, end, offset, records;
        uint64_t header; /* bytes of a CSV's header */
};

struct connection {
        struct fake_feed *f;
        int fd;
        pthread_t thread;
        struct connection *next;
};

static int by_bounds(const struct fake_feed *f, const uint8_t *buf, size_t size, struct record *r) {
        const char *why;

        return size == 0 ? 0 : record_next(&f->format, buf, size, true, r, &why);
}

static void cut_file(struct fake_feed *f, const char *path) {
        struct stat st;
        const uint8_t *data = NULL;
        struct record record;
        uint64_t at = 0, header = 0;
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        assert(fd >= 0 && fstat(fd, &st) >= 0);
        if (st.st_size > 0) {
                data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
                assert(data != MAP_FAILED);
        }
        if (f->format.kind == RECORD_CSV && by_bounds(f, data, (size_t)st.st_size, &record) > 0)
                header = at = record.total;
        do {
                struct fake_task t = { .path = path, .fd = fd, .data = data, .start = at, .header = header };

                t.file_size = (size_t)st.st_size;
                while (at < t.file_size && (f->task_size == 0 || at - t.start < f->task_size) &&
                       by_bounds(f, data + at, t.file_size - at, &record) > 0) {
                        at += record.total;
                        t.records++;
                }
                if (t.records == 0) /* broken, or empty */
                        at = t.file_size;
                t.end = at;
                t.offset = t.start;
                t.id = f->n_tasks + 1;
                f->tasks = reallocarray(f->tasks, f->n_tasks + 1, sizeof(t));
                assert(f->tasks);
                f->tasks[f->n_tasks++] = t;
        } while (at < (uint64_t)st.st_size);
}

static void send_packet(int fd, uint32_t type, const void *body, size_t size, const int *fds, size_t n_fds) {
        struct client_header h = { .type = type, .size = (uint32_t)size };
        struct iovec parts[2] = { { &h, sizeof(h) }, { (void *)(uintptr_t)body, size } };
        union {
                struct cmsghdr align;
                uint8_t bytes[CMSG_SPACE(4 * sizeof(int))];
        } control = {};
        struct msghdr m = { .msg_iov = parts, .msg_iovlen = 2 };

        if (n_fds > 0) {
                struct cmsghdr *c = &control.align;

                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
        }
        (void)sendmsg(fd, &m, MSG_NOSIGNAL);
}

static void note(struct fake_feed *f, const char *word, const struct client_ack *a) {
        pthread_mutex_lock(&f->lock);
        if (a->position == TASK_TO_END)
                fprintf(f->log, "%s %" PRIu64 " end %" PRIu64 " %" PRIu64 "\n", word, a->task, a->skip,
                        a->records);
        else
                fprintf(f->log, "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", word, a->task,
                        a->position, a->skip, a->records);
        fflush(f->log);
        pthread_mutex_unlock(&f->lock);
}

static struct fake_task *take_task(struct fake_feed *f) {
        struct fake_task *t = NULL;

        pthread_mutex_lock(&f->lock);
        while (f->next < f->n_tasks && !t) {
                t = &f->tasks[f->next++];
                if (t->offset == TASK_TO_END)
                        t = NULL;
        }
        pthread_mutex_unlock(&f->lock);
        return t;
}

/* A checkpoint says where tasks go on. */
static void apply_state(struct fake_feed *f, const uint8_t *state, const char *word) {
        struct client_state s;

        memcpy(&s, state, sizeof(s));
        for (uint32_t i = 0; i < s.n; i++) {
                struct client_ack a;

                memcpy(&a, state + sizeof(s) + i * sizeof(a), sizeof(a));
                note(f, word, &a);
                if (strcmp(word, "STATE") == 0 && a.task >= 1 && a.task <= f->n_tasks)
                        f->tasks[a.task - 1].offset = a.position;
        }
}

static _Thread_local uint8_t state[CLIENT_STATE_MAX];
static _Thread_local size_t state_size, state_have;
static _Thread_local const char *state_word;

/* One packet. False: the connection is over. */
static bool take_packet(struct connection *c, uint32_t *credits) {
        static _Thread_local uint8_t packet[CLIENT_PACKET_MAX];
        struct client_header h;
        uint8_t *body = packet + sizeof(h);
        struct client_ack a;
        ssize_t n = recv(c->fd, packet, sizeof(packet), 0);

        if (n <= 0)
                return false;
        assert((size_t)n >= sizeof(h));
        memcpy(&h, packet, sizeof(h));
        assert(h.size == (size_t)n - sizeof(h));
        switch (h.type) {
        case CLIENT_HELLO: {
                struct client_hello hello;

                memcpy(&hello, body, sizeof(hello));
                assert(hello.version == CLIENT_VERSION);
                state_size = hello.state_size;
                state_have = h.size - sizeof(hello);
                memcpy(state, body + sizeof(hello), state_have);
                state_word = "STATE";
                break;
        }
        case CLIENT_COMMIT: {
                struct client_state s;

                memcpy(&s, body, sizeof(s));
                state_size = sizeof(s) + s.n * sizeof(a);
                state_have = h.size;
                memcpy(state, body, h.size);
                state_word = "COMMIT";
                break;
        }
        case CLIENT_MORE:
                assert(state_have + h.size <= state_size);
                memcpy(state + state_have, body, h.size);
                state_have += h.size;
                break;
        case CLIENT_NEXT: {
                struct client_next next;

                memcpy(&next, body, sizeof(next));
                *credits += next.credits;
                return true;
        }
        case CLIENT_ACK:
                for (size_t i = 0; i < h.size / sizeof(a); i++) {
                        memcpy(&a, body + i * sizeof(a), sizeof(a));
                        note(c->f, "ACK", &a);
                }
                return true;
        case CLIENT_DONE:
                memcpy(&a, body, sizeof(a));
                note(c->f, "DONE", &a);
                return true;
        case CLIENT_FAIL: {
                struct client_fail fail;

                memcpy(&fail, body, sizeof(fail));
                fprintf(c->f->log, "FAIL %" PRIu64 " %.*s\n", fail.task, (int)fail.text_size,
                        (const char *)body + sizeof(fail));
                return true;
        }
        case CLIENT_WHERE: {
                struct {
                        struct client_place place;
                        char path[TASK_PATH_MAX];
                } x = {};
                struct client_where where;

                memcpy(&where, body, sizeof(where));
                fprintf(c->f->log, "WHERE %" PRIu64 "\n", where.task);
                x.place.task = where.task;
                for (size_t i = 0; i < c->f->n_tasks; i++)
                        if (c->f->tasks[i].id == where.task) {
                                x.place.path_size = (uint32_t)strlen(c->f->tasks[i].path);
                                memcpy(x.path, c->f->tasks[i].path, x.place.path_size);
                        }
                send_packet(c->fd, CLIENT_PLACE, &x, sizeof(x.place) + x.place.path_size, NULL, 0);
                return true;
        }
        case CLIENT_TRIMMED: {
                struct client_trim trim;

                memcpy(&trim, body, sizeof(trim));
                fprintf(c->f->log, "TRIMMED %" PRIu64 " %" PRIu64 "\n", trim.task, trim.end);
                return true;
        }
        case CLIENT_STREAM: {
                struct client_stream stream;

                memcpy(&stream, body, sizeof(stream));
                fprintf(c->f->log, "STREAM %" PRIu64 "\n", stream.bytes);
                return true;
        }
        default:
                assert(!"a packet that nobody knows");
        }
        if (state_have < state_size)
                return true;
        if (state_size > 0)
                apply_state(c->f, state, state_word);
        if (strcmp(state_word, "COMMIT") == 0)
                send_packet(c->fd, CLIENT_COMMITTED, NULL, 0, NULL, 0);
        return true;
}

static bool drain(struct connection *c, uint32_t *credits) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };

        while (poll(&p, 1, 0) > 0)
                if (!take_packet(c, credits))
                        return false;
        return true;
}

static void welcome(struct connection *c, const int *fds, size_t n_fds) {
        struct {
                struct client_welcome w;
                struct client_format f;
        } x = {
                .w = {
                        .mode = c->f->mode,
                        .ack = c->f->ack,
                        .slots = c->f->slots,
                        .slot_size = c->f->slot_size,
                        .max_record = c->f->max_record,
                        .n_sources = 1,
                        .version = c->f->version ? c->f->version : CLIENT_VERSION,
                },
                .f = {
                        .kind = c->f->format.kind,
                        .flags = c->f->format.multiline,
                        .record_size = c->f->format.record_size,
                },
        };

        send_packet(c->fd, CLIENT_WELCOME, &x, sizeof(x), fds, n_fds);
}

/* ---- ring ---- */

static void take_released(struct connection *c, struct ring_producer *p) {
        struct ring_slot s;
        int r;

        while ((r = ring_producer_released(p, &s)) > 0)
                if (!(s.flags & (RING_MORE | RING_HEADER)) && c->f->ack == ACK_RELEASE) {
                        struct client_ack a = { s.task, s.flags & RING_TASK_END ? TASK_TO_END : s.end, s.skip,
                                                s.records };
                        note(c->f, "RELEASED", &a);
                }
        assert(r >= 0);
}

/* A free slot; without data: until everything has been released. */
static bool reserve(struct connection *c, struct ring_producer *p, uint8_t **data) {
        uint32_t credits = 0;
        int fds[4];

        ring_producer_fds(p, fds);
        for (;;) {
                struct pollfd w[2] = { { .fd = fds[3], .events = POLLIN },
                                       { .fd = c->fd, .events = POLLIN } };

                take_released(c, p);
                if (!data && ring_producer_unreleased(p) == 0)
                        return true;
                if (data && ring_producer_reserve(p, data) > 0)
                        return true;
                if (ring_producer_arm(p) && data)
                        continue;
                (void)poll(w, 2, 50);
                if (!drain(c, &credits)) {
                        take_released(c, p); /* those from before the connection's end */
                        return false;
                }
        }
}

static bool put(struct connection *c, struct ring_producer *p, const struct ring_slot *slot,
                const uint8_t *bytes) {
        uint8_t *data;

        if (!reserve(c, p, &data))
                return false;
        if (bytes)
                memcpy(data, bytes, slot->size);
        ring_producer_commit(p, slot);
        return true;
}

/* As many whole records as fit; a longer one in parts. */
static bool put_records(struct connection *c, struct ring_producer *p, const struct fake_task *t,
                        uint64_t *at) {
        struct ring_slot slot = { .task = t->id, .position = *at };
        const uint8_t *data = t->data + *at;
        struct record record = {};
        size_t limit = c->f->slot_size;

        while (*at < t->end && by_bounds(c->f, t->data + *at, (size_t)(t->end - *at), &record) > 0 &&
               slot.size + record.total <= limit && c->f->slots_per_record <= 1) {
                slot.size += (uint32_t)record.total;
                slot.records++;
                *at += record.total;
        }
        if (slot.size == 0 && record.total > 0) {
                size_t parts = MAX((size_t)c->f->slots_per_record, (record.total + limit - 1) / limit);
                size_t part = (record.total + parts - 1) / parts, done = 0;

                while (done < record.total) {
                        slot.size = (uint32_t)MIN(part, record.total - done);
                        slot.flags = done == 0 ? RING_FIRST | RING_MORE : RING_MORE;
                        slot.position = *at;
                        slot.end = *at;
                        if (c->f->break_task == t->id && *at > t->start && done > 0) {
                                slot.size = 0;
                                slot.flags = RING_TASK_BROKEN;
                                *at = t->end;
                                return put(c, p, &slot, data);
                        }
                        if (done + slot.size == record.total) {
                                slot.flags &= ~RING_MORE;
                                slot.records = 1;
                                slot.end = *at + record.total;
                        }
                        if (!put(c, p, &slot, data + done))
                                return false;
                        done += slot.size;
                }
                *at += record.total;
                return true;
        }
        if (slot.size == 0 && *at < t->end) { /* broken: as it is */
                slot.size = (uint32_t)MIN(limit, t->end - *at);
                *at += slot.size;
        }
        slot.end = *at;
        /* Sometimes the end comes with the last records, sometimes by itself. */
        if (*at == t->end && t->id % 2 == 0)
                slot.flags |= RING_TASK_END;
        return put(c, p, &slot, data);
}

static void serve_ring(struct connection *c) {
        struct ring_producer *p = NULL;
        struct fake_task *t;
        int fds[4];
        uint32_t credits = 0;

        assert(ring_producer_new(c->f->slots, c->f->slot_size, &p) >= 0);
        ring_producer_fds(p, fds);
        welcome(c, fds, 4);
        while ((t = take_task(c->f))) {
                uint64_t at = t->offset;
                bool ended = false;

                if (t->header > 0) {
                        struct ring_slot slot = {
                                .task = t->id, .position = at, .end = at, .flags = RING_HEADER
                        };

                        slot.size = (uint32_t)t->header;
                        if (!put(c, p, &slot, t->data))
                                goto over;
                }
                while (at < t->end) {
                        ended = t->id % 2 == 0 && c->f->slots_per_record <= 1;
                        if (!put_records(c, p, t, &at))
                                goto over;
                }
                if (!ended && c->f->break_task != t->id) {
                        struct ring_slot slot = {
                                .task = t->id, .position = at, .end = at, .flags = RING_TASK_END
                        };

                        if (!put(c, p, &slot, NULL))
                                goto over;
                }
        }
        ring_producer_close(p);
        if (reserve(c, p, NULL))
                while (take_packet(c, &credits))
                        ;
over:
        ring_producer_free(p);
}

/* ---- descriptor ---- */

static void serve_descriptor(struct connection *c) {
        uint32_t credits = 0;
        bool last = false;

        welcome(c, NULL, 0);
        do {
                for (; credits > 0 && !last; credits--) {
                        struct fake_task *t = take_task(c->f);
                        struct {
                                struct client_task t;
                                char path[256];
                        } x = {};

                        if (!t) {
                                send_packet(c->fd, CLIENT_LAST, NULL, 0, NULL, 0);
                                last = true;
                                break;
                        }
                        x.t = (struct client_task){
                                .task = t->id,
                                .start = t->start,
                                .end = t->end,
                                .offset = t->offset,
                                .path_size = (uint32_t)strlen(t->path),
                        };
                        memcpy(x.path, t->path, MIN(strlen(t->path), sizeof(x.path)));
                        send_packet(c->fd, CLIENT_TASK, &x, sizeof(x.t) + x.t.path_size, &t->fd, 1);
                        if (c->f->trim_task == t->id) {
                                struct client_trim trim = { t->id, c->f->trim_end };

                                send_packet(c->fd, CLIENT_TRIM, &trim, sizeof(trim), NULL, 0);
                        }
                }
        } while (take_packet(c, &credits));
}

/* ---- stdin ---- */

static bool feed_all(struct connection *c, const uint8_t *data, size_t size) {
        uint32_t credits = 0;

        /* Both ways at once: a trainer that acknowledges each record waits for us as we do for it. */
        while (size > 0) {
                struct pollfd w[2] = { { .fd = c->f->pipe_fd, .events = POLLOUT },
                                       { .fd = c->fd, .events = POLLIN } };
                ssize_t n = 0;

                (void)poll(w, 2, -1);
                if (w[0].revents != 0)
                        n = write(c->f->pipe_fd, data, MIN(size, (size_t)32768));
                if (n < 0 && errno != EAGAIN)
                        return false;
                n = MAX(n, 0);
                data += n;
                size -= (size_t)n;
                if (!drain(c, &credits))
                        return false;
        }
        return true;
}

static void span(struct connection *c, const struct fake_task *t, uint64_t stream, uint64_t position,
                 uint32_t flags) {
        struct client_span s = { .stream = stream, .position = position, .task = t->id, .flags = flags };

        if (c->f->ack == ACK_EXPLICIT || c->f->ack == ACK_CHECKPOINT)
                send_packet(c->fd, CLIENT_SPAN, &s, sizeof(s), NULL, 0);
}

static void serve_stdin(struct connection *c) {
        struct fake_task *t;
        uint64_t stream = 0;
        uint32_t credits = 0;

        welcome(c, NULL, 0);
        assert(fcntl(c->f->pipe_fd, F_SETFL, O_NONBLOCK) >= 0);
        while ((t = take_task(c->f))) {
                span(c, t, stream, t->offset, 0);
                if (!feed_all(c, t->data + t->offset, (size_t)(t->end - t->offset)))
                        break;
                stream += t->end - t->offset;
                if (t->end > 0 && t->data[t->end - 1] != '\n' && c->f->format.kind == RECORD_TEXT) {
                        (void)feed_all(c, (const uint8_t *)"\n", 1);
                        stream++;
                }
                span(c, t, stream, t->end, CLIENT_SPAN_END);
        }
        close(c->f->pipe_fd);
        while (take_packet(c, &credits))
                ;
}

static void *serve(void *argument) {
        struct connection *c = argument;
        uint32_t credits = 0;

        if (take_packet(c, &credits)) {
                while (state_have < state_size && take_packet(c, &credits))
                        ;
                switch (c->f->mode) {
                case DELIVERY_RING:
                        serve_ring(c);
                        break;
                case DELIVERY_DESCRIPTOR:
                        serve_descriptor(c);
                        break;
                default:
                        serve_stdin(c);
                }
        }
        close(c->fd);
        return NULL;
}

static void *listen_all(void *argument) {
        struct fake_feed *f = argument;
        struct connection *all = NULL;
        int fd;

        while ((fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
                struct connection *c = calloc(1, sizeof(*c));

                assert(c);
                *c = (struct connection){ .f = f, .fd = fd, .next = all };
                all = c;
                assert(pthread_create(&c->thread, NULL, serve, c) == 0);
        }
        while (all) {
                struct connection *c = all;

                all = c->next;
                pthread_join(c->thread, NULL);
                free(c);
        }
        return NULL;
}

int fake_feed_start(struct fake_feed *f) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        static int number;
        int n;

        for (size_t i = 0; i < f->n_files; i++)
                cut_file(f, f->files[i]);
        n = snprintf(f->name, sizeof(f->name), "@primus-feed/test/%d-%d", (int)getpid(), number++);
        memcpy(a.sun_path + 1, f->name + 1, (size_t)n - 1);
        (void)signal(SIGPIPE, SIG_IGN); /* a trainer may end before it has read everything */
        pthread_mutex_init(&f->lock, NULL);
        f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (f->listener < 0 ||
            bind(f->listener, (struct sockaddr *)&a,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n)) < 0 ||
            listen(f->listener, 16) < 0)
                return -errno;
        return -pthread_create(&f->thread, NULL, listen_all, f);
}

void fake_feed_stop(struct fake_feed *f) {
        (void)shutdown(f->listener, SHUT_RDWR);
        pthread_join(f->thread, NULL);
        close(f->listener);
        for (size_t i = 0; i < f->n_tasks; i++)
                if (i == 0 || f->tasks[i].fd != f->tasks[i - 1].fd) {
                        close(f->tasks[i].fd);
                        if (f->tasks[i].data)
                                munmap((void *)(uintptr_t)f->tasks[i].data, f->tasks[i].file_size);
                }
        free(f->tasks);
        f->tasks = NULL;
        f->n_tasks = f->next = 0;
}
