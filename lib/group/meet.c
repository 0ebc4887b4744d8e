/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/group/meet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/try.h"

#define HANDSHAKE_USEC (5 * USEC_PER_SEC)
#define RETRY_MSEC 100
#define STRANGERS_MAX 64 /* who have not proven yet who they are, at a time */
#define NONCE_BYTES 16u
#define PROOF_BYTES SHA256_DIGEST_SIZE

/* What a member says of itself; over a Unix socket its rank alone. */
struct introduction {
        uint8_t rank[4]; /* little-endian */
        uint8_t nonce[NONCE_BYTES];
        uint8_t proof[PROOF_BYTES];
};

static int msec_until(uint64_t until) {
        uint64_t left = usec_sub(until, now_boot());

        return left ? (int)MIN(left / USEC_PER_MSEC + 1, UINT64_C(60000)) : 0;
}

static void put_rank(uint8_t to[static 4], uint32_t rank) {
        for (unsigned i = 0; i < 4; i++)
                to[i] = (uint8_t)(rank >> (8 * i));
}

static uint32_t get_rank(const uint8_t from[static 4]) {
        return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static void prove(const struct meeting *m, const char *who, const uint8_t *first, const uint8_t *second,
                  const uint8_t rank[static 4], uint8_t ret[static PROOF_BYTES]) {
        struct hmac_sha256_ctx h;

        hmac_sha256_set_key(&h, m->secret_size, m->secret);
        hmac_sha256_update(&h, strlen(who), (const uint8_t *)who);
        hmac_sha256_update(&h, NONCE_BYTES, first);
        hmac_sha256_update(&h, NONCE_BYTES, second);
        hmac_sha256_update(&h, 4, rank);
        hmac_sha256_digest(&h, PROOF_BYTES, ret);
}

static int unix_address(const char *path, struct sockaddr_un *ret) {
        *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
        if (strlen(path) >= sizeof(ret->sun_path))
                return -ENAMETOOLONG;
        strcpy(ret->sun_path, path);
        return 0;
}

static void settle_socket(const struct meeting *m, int fd) {
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        if (!m->path)
                (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
}

/* ---- rank 0 ---- */

struct stranger {
        int fd; /* negative: nobody */
        uint64_t until;
        uint8_t nonce[NONCE_BYTES]; /* ours */
        size_t n;                   /* bytes that have come */
        struct introduction said;
};

struct reception {
        const struct meeting *m;
        int *peers;
        uint32_t there; /* of the others */
        int listener;
        struct stranger strangers[STRANGERS_MAX];
};

static int listen_unix(const char *path) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un a;

        TRY(unix_address(path, &a));
        (void)unlink(path);
        if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, SOMAXCONN) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int listen_tcp(const struct meeting *m) {
        bool v6 = strchr(m->host, ':');
        _cleanup_close_ int fd =
                socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(m->port) };
        struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(m->port) };

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0 ||
            bind(fd, v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4, v6 ? sizeof(a6) : sizeof(a4)) <
                    0 ||
            listen(fd, SOMAXCONN) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static struct stranger *free_place(struct reception *r) {
        for (size_t i = 0; i < STRANGERS_MAX; i++)
                if (r->strangers[i].fd < 0)
                        return &r->strangers[i];
        return NULL;
}

static void receive_stranger(struct reception *r) {
        struct stranger *s = free_place(r);
        int fd = s ? accept4(r->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

        if (fd < 0)
                return;
        *s = (struct stranger){ .fd = fd, .until = now_boot() + HANDSHAKE_USEC };
        if (r->m->path)
                return;
        if (getrandom(s->nonce, NONCE_BYTES, 0) != NONCE_BYTES ||
            send(fd, s->nonce, NONCE_BYTES, MSG_NOSIGNAL) != NONCE_BYTES)
                s->fd = close_fd(fd);
}

static bool is_proven(const struct reception *r, const struct stranger *s) {
        uint8_t proof[PROOF_BYTES];
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (r->m->path)
                return getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid();
        prove(r->m, "member", s->nonce, s->said.nonce, s->said.rank, proof);
        return memeql_sec(proof, s->said.proof, PROOF_BYTES);
}

/* Of one who has said all: a member, or nobody. */
static void admit_stranger(struct reception *r, struct stranger *s) {
        uint32_t rank = get_rank(s->said.rank);
        bool good = is_proven(r, s) && rank > 0 && rank < r->m->size && r->peers[rank] < 0;
        uint8_t proof[PROOF_BYTES];

        if (good && !r->m->path) {
                prove(r->m, "first", s->said.nonce, s->nonce, s->said.rank, proof);
                good = send(s->fd, proof, PROOF_BYTES, MSG_NOSIGNAL) == PROOF_BYTES;
        }
        if (!good) {
                s->fd = close_fd(s->fd);
                return;
        }
        settle_socket(r->m, s->fd);
        r->peers[rank] = TAKE_FD(s->fd);
        r->there++;
}

static void hear_stranger(struct reception *r, struct stranger *s) {
        size_t most = r->m->path ? sizeof(s->said.rank) : sizeof(s->said);
        ssize_t n = recv(s->fd, (uint8_t *)&s->said + s->n, most - s->n, MSG_DONTWAIT);

        if (n > 0)
                s->n += (size_t)n;
        if (s->n == most)
                admit_stranger(r, s);
        else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || now_boot() > s->until)
                s->fd = close_fd(s->fd);
}

/* Until something has happened, a stranger's time is over, or all the time is. */
static int wait_for_any(struct reception *r) {
        struct pollfd fds[STRANGERS_MAX + 1] = { { .fd = free_place(r) ? r->listener : -1,
                                                   .events = POLLIN } };
        uint64_t until = r->m->until;

        for (size_t i = 0; i < STRANGERS_MAX; i++) {
                fds[i + 1] = (struct pollfd){ .fd = r->strangers[i].fd, .events = POLLIN };
                if (r->strangers[i].fd >= 0)
                        until = MIN(until, r->strangers[i].until);
        }
        if (poll(fds, STRANGERS_MAX + 1, msec_until(until)) < 0 && errno != EINTR)
                return -errno;
        if (fds[0].revents)
                receive_stranger(r);
        for (size_t i = 0; i < STRANGERS_MAX; i++)
                if (r->strangers[i].fd >= 0 && (fds[i + 1].revents || now_boot() > r->strangers[i].until))
                        hear_stranger(r, &r->strangers[i]);
        return 0;
}

static int receive_all(const struct meeting *m, int peers[], char why[static MEET_WHY_MAX]) {
        struct reception r = { .m = m,
                               .peers = peers,
                               .listener = m->path ? listen_unix(m->path) : listen_tcp(m) };
        int result = MIN(r.listener, 0);

        for (size_t i = 0; i < STRANGERS_MAX; i++)
                r.strangers[i].fd = -1;
        if (result < 0)
                snprintf(why, MEET_WHY_MAX, "cannot listen at %s: %s", m->path ? m->path : "the port",
                         strerror(-result));
        while (result >= 0 && r.there < m->size - 1) {
                result = wait_for_any(&r);
                if (result >= 0 && r.there < m->size - 1 && now_boot() > m->until) {
                        snprintf(why, MEET_WHY_MAX, "%" PRIu32 " of %" PRIu32 " ranks have come", r.there + 1,
                                 m->size);
                        result = -ETIMEDOUT;
                }
        }
        for (size_t i = 0; i < STRANGERS_MAX; i++)
                (void)close_fd(r.strangers[i].fd);
        (void)close_fd(r.listener);
        if (m->path)
                (void)unlink(m->path);
        return result;
}

/* ---- the others ---- */

static int connect_within(int fd, const struct sockaddr *a, socklen_t size) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        int error = 0;
        socklen_t n = sizeof(error);

        if (connect(fd, a, size) == 0)
                return 0;
        if (errno != EINPROGRESS)
                return -errno;
        if (poll(&p, 1, (int)(HANDSHAKE_USEC / USEC_PER_MSEC)) <= 0)
                return -ETIMEDOUT;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
                return -errno;
        return -error;
}

static int dial_unix(const char *path) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un a;

        if (fd < 0)
                return -errno;
        TRY(unix_address(path, &a));
        TRY(connect_within(fd, (struct sockaddr *)&a, sizeof(a)));
        return TAKE_FD(fd);
}

static int dial_tcp(const struct meeting *m) {
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *found;
        int r = -EHOSTUNREACH;
        char port[8];

        snprintf(port, sizeof(port), "%u", m->port);
        if (getaddrinfo(m->host, port, &hints, &found) != 0)
                return -EHOSTUNREACH;
        for (struct addrinfo *a = found; a && r < 0; a = a->ai_next) {
                _cleanup_close_ int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

                r = fd < 0 ? -errno : connect_within(fd, a->ai_addr, a->ai_addrlen);
                if (r == 0)
                        r = TAKE_FD(fd);
        }
        freeaddrinfo(found);
        return r;
}

static int receive_bytes(int fd, uint8_t *to, size_t size) {
        uint64_t until = now_boot() + HANDSHAKE_USEC;

        while (size > 0) {
                struct pollfd p = { .fd = fd, .events = POLLIN };
                ssize_t n;

                if (poll(&p, 1, msec_until(until)) == 0)
                        return -ETIMEDOUT;
                n = recv(fd, to, size, MSG_DONTWAIT);
                if (n == 0)
                        return -ECONNRESET;
                if (n < 0 && errno != EAGAIN && errno != EINTR)
                        return -errno;
                to += MAX(n, 0);
                size -= (size_t)MAX(n, 0);
        }
        return 0;
}

static int introduce_self(const struct meeting *m, int fd) {
        uint8_t theirs[NONCE_BYTES], proof[PROOF_BYTES], is[PROOF_BYTES];
        struct introduction i;
        size_t size = m->path ? sizeof(i.rank) : sizeof(i);

        put_rank(i.rank, m->rank);
        if (!m->path) {
                TRY(receive_bytes(fd, theirs, sizeof(theirs)));
                if (getrandom(i.nonce, NONCE_BYTES, 0) != NONCE_BYTES)
                        return -EIO;
                prove(m, "member", theirs, i.nonce, i.rank, i.proof);
        }
        if (send(fd, &i, size, MSG_NOSIGNAL) != (ssize_t)size)
                return -EPIPE;
        if (m->path)
                return 0;
        TRY(receive_bytes(fd, is, sizeof(is)));
        prove(m, "first", i.nonce, theirs, i.rank, proof);
        return memeql_sec(proof, is, sizeof(is)) ? 0 : -EPERM; /* who listens there has another secret */
}

static int dial_first(const struct meeting *m) {
        _cleanup_close_ int fd = m->path ? dial_unix(m->path) : dial_tcp(m);

        if (fd < 0)
                return fd;
        TRY(introduce_self(m, fd));
        settle_socket(m, fd);
        return TAKE_FD(fd);
}

static int join_first(const struct meeting *m, int *peer, char why[static MEET_WHY_MAX]) {
        for (;;) {
                *peer = dial_first(m);
                if (*peer >= 0)
                        return 0;
                if (now_boot() > m->until) {
                        snprintf(why, MEET_WHY_MAX, "rank 0 at %s does not take this one: %s",
                                 m->path ? m->path : m->host, strerror(-*peer));
                        return -ETIMEDOUT;
                }
                (void)poll(NULL, 0, RETRY_MSEC);
        }
}

int meet_all(const struct meeting *m, int peers[], char why[static MEET_WHY_MAX]) {
        return m->rank == 0 ? receive_all(m, peers, why) : join_first(m, &peers[0], why);
}
