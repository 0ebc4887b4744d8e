/* SPDX-License-Identifier: Apache-2.0 */
/* The joining side: blocking, one deadline for everything. Invariant: the token's secret is sent only to a
 * server that proved to be the token's cluster. */
#include "lib/wire/join.h"

#include <endian.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/names.h"
#include "lib/base/utf8.h"
#include "lib/wire/join-wire.h"
#include "lib/wire/tls.h"

#define JOIN_USEC (30 * USEC_PER_SEC)
#define CONNECT_USEC (5 * USEC_PER_SEC)

DEFINE_CLEANUP(struct addrinfo *, freeaddrinfo)
DEFINE_CLEANUP(struct tls *, tls_free)
DEFINE_CLEANUP(struct tls_credentials *, tls_credentials_free)

/* Sets *ret_why and returns error; the text is NULL when there is no memory for it. */
static int say_why(char **ret_why, int error, const char *format, ...) _printf_(3, 4);
static int say_why(char **ret_why, int error, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        if (vasprintf(ret_why, format, ap) < 0)
                *ret_why = NULL;
        va_end(ap);
        return error;
}

static int wait_for(int fd, short events, uint64_t deadline) {
        for (;;) {
                struct pollfd p = { .fd = fd, .events = events };
                uint64_t left = usec_sub(deadline, now_boot());
                if (left == 0)
                        return -ETIMEDOUT;
                int r = poll(&p, 1, (int)(MIN(left, JOIN_USEC) / USEC_PER_MSEC) + 1);
                if (r > 0)
                        return 0;
                if (r < 0 && errno != EINTR)
                        return -errno;
        }
}

static int connect_one(const struct addrinfo *a, uint64_t deadline, int *ret) {
        _cleanup_close_ int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
                int error = 0;
                socklen_t size = sizeof error;
                if (errno != EINPROGRESS)
                        return -errno;
                int r = wait_for(fd, POLLOUT, MIN(deadline, usec_add(now_boot(), CONNECT_USEC)));
                if (r < 0)
                        return r;
                if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
                        return -errno;
                if (error != 0)
                        return -error;
        }
        *ret = TAKE_FD(fd);
        return 0;
}

/* Tries all addresses of the name in the resolver's order. */
static int connect_any(const char *host, uint16_t port, uint64_t deadline, int *ret, char **ret_why) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
        _cleanup_(freeaddrinfo_p) struct addrinfo *list = NULL;
        char service[8];
        (void)snprintf(service, sizeof service, "%u", port);
        int r = getaddrinfo(host, service, &hints, &list);
        if (r != 0)
                return say_why(
                        ret_why, -EHOSTUNREACH,
                        "cannot find the host %s: %s; give its address, or a line for it in /etc/hosts", host,
                        gai_strerror(r));
        r = -EHOSTUNREACH;
        for (const struct addrinfo *a = list; a; a = a->ai_next) {
                r = connect_one(a, deadline, ret);
                if (r == 0)
                        return 0;
        }
        return say_why(ret_why, r, "cannot connect to %s port %u: %s; %s", host, port, strerrordesc_np(-r),
                       r == -ECONNREFUSED ? "is primus-masterd running there?"
                                          : "is it up, and does its firewall let this port through?");
}

static int handshake(struct tls *t, uint64_t deadline, const char *host, char **ret_why) {
        for (;;) {
                int r = tls_handshake(t);
                if (r > 0)
                        return 0;
                if (r < 0)
                        return say_why(ret_why, r, "%s does not let us in: %s", host, t->end.why);
                r = wait_for(t->fd, tls_wants_write(t) ? POLLOUT : POLLIN, deadline);
                if (r < 0)
                        return say_why(ret_why, r, "%s does not answer", host);
        }
}

static int send_all(struct tls *t, const void *data, size_t size, uint64_t deadline) {
        for (size_t done = 0; done < size;) {
                ssize_t n = tls_send(t, (const uint8_t *)data + done, size - done);
                if (n < 0)
                        return (int)n;
                done += (size_t)n;
                int r = n == 0 ? wait_for(t->fd, POLLOUT, deadline) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int receive_all(struct tls *t, void *data, size_t size, uint64_t deadline) {
        for (size_t done = 0; done < size;) {
                ssize_t n = tls_receive(t, (uint8_t *)data + done, size - done);
                if (n < 0)
                        return (int)n;
                done += (size_t)n;
                int r = n == 0 ? wait_for(t->fd, POLLIN, deadline) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int receive_text(struct tls *t, size_t size, uint64_t deadline, char **ret) {
        _cleanup_free_ char *s = malloc(size + 1);
        if (!s)
                return -ENOMEM;
        int r = receive_all(t, s, size, deadline);
        if (r < 0)
                return r;
        s[size] = '\0';
        *ret = TAKE_PTR(s);
        return 0;
}

static int send_request(struct tls *t, const struct join_token *token, const char *name, const char *csr,
                        uint64_t deadline) {
        uint8_t request[JOIN_REQUEST_MAX];
        size_t name_size = strlen(name), csr_size = strlen(csr), n = sizeof(struct join_head);
        if (name_size > JOIN_NAME_MAX || csr_size > LINK_CSR_MAX)
                return -E2BIG;
        struct join_head head = { .name_size = htobe16((uint16_t)name_size),
                                  .csr_size = htobe16((uint16_t)csr_size) };
        memcpy(head.id, token->id, sizeof head.id);
        memcpy(head.secret, token->secret, sizeof head.secret);
        memcpy(request, &head, sizeof head);
        memcpy(request + n, name, name_size);
        memcpy(request + n + name_size, csr, csr_size);
        int r = send_all(t, request, n + name_size + csr_size, deadline);
        explicit_bzero(&head, sizeof head);
        explicit_bzero(request, sizeof request);
        return r;
}

/* A refusal is the server's text: nothing in it may reach a terminal as more than one line of text. */
static int refusal(const char *text, char **ret_why) {
        char clean[JOIN_WHY_MAX + 1];
        utf8_clean(text, strlen(text), clean, sizeof clean);
        for (char *p = clean; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        *p = '?';
        return say_why(ret_why, -EACCES, "%s", clean);
}

static int receive_reply(struct tls *t, const char *name, uint64_t deadline, struct certificate *c,
                         char **ret_why) {
        _cleanup_free_ char *first = NULL, *second = NULL, *got = NULL;
        struct join_reply head;
        int r = receive_all(t, &head, sizeof head, deadline);
        if (r < 0)
                return say_why(ret_why, r, "no answer to the request: %s",
                               r == -ETIMEDOUT ? "it takes too long" : t->end.why);
        uint32_t n1 = be32toh(head.size[0]), n2 = be32toh(head.size[1]);
        if (head.status > JOIN_REFUSED || n1 > JOIN_PEM_MAX || n2 > JOIN_PEM_MAX)
                return say_why(ret_why, -EBADMSG,
                               "the answer is not of this protocol; is it another version?");
        if ((r = receive_text(t, n1, deadline, &first)) < 0 ||
            (r = receive_text(t, n2, deadline, &second)) < 0)
                return say_why(ret_why, r, "the answer is incomplete");
        if (head.status == JOIN_REFUSED)
                return refusal(first, ret_why);
        r = certificate_info(first, &got, c->serial_hex, &c->not_after_real);
        if (r < 0 || strcmp(got, name) != 0)
                return say_why(ret_why, -EBADMSG, "the certificate in the answer is not one for %s", name);
        c->cert_pem = TAKE_PTR(first);
        return 0;
}

static int converse(struct tls *t, const char *host, const struct join_token *token, const char *name,
                    const char *csr, struct certificate *c, char **ret_ca_pem, char **ret_why) {
        uint64_t deadline = usec_add(now_boot(), JOIN_USEC);
        _cleanup_free_ char *ca = NULL;
        int r = handshake(t, deadline, host, ret_why);
        if (r < 0)
                return r;
        if ((r = tls_verify_by_fingerprint(t, token->fingerprint, &ca)) < 0)
                return say_why(ret_why, r, "%s is not trusted: %s", host, t->end.why);
        if ((r = send_request(t, token, name, csr, deadline)) < 0)
                return say_why(ret_why, r, "cannot send the request to %s", host);
        if ((r = receive_reply(t, name, deadline, c, ret_why)) < 0)
                return r;
        tls_goodbye(t);
        *ret_ca_pem = TAKE_PTR(ca);
        return 0;
}

int join_cluster(const char *host, uint16_t port, const struct join_token *token, const char *name,
                 char **ret_ca_pem, struct certificate *ret, char **ret_why) {
        _cleanup_(certificate_done) struct certificate c = {};
        _cleanup_(tls_credentials_free_p) struct tls_credentials *nobody = NULL;
        _cleanup_(tls_free_p) struct tls *t = NULL;
        _cleanup_free_ char *csr = NULL;
        _cleanup_close_ int fd = -EBADF;
        *ret_why = NULL;
        if (!node_name_valid(name))
                return say_why(ret_why, -EINVAL,
                               "\"%.64s\" is not a node's name: small letters, digits, - and . only", name);
        int r = certificate_request_new(name, &c.key_pem, &csr);
        if (r < 0)
                return say_why(ret_why, r, "cannot make a key: %s", strerrordesc_np(-r));
        if ((r = connect_any(host, port, usec_add(now_boot(), JOIN_USEC), &fd, ret_why)) < 0)
                return r;
        if ((r = tls_credentials_new(NULL, NULL, NULL, &nobody)) < 0 ||
            (r = tls_new(nobody, TLS_CLIENT_JOIN, fd, NULL, &t)) < 0)
                return say_why(ret_why, r, "cannot set up TLS: %s", strerrordesc_np(-r));
        if ((r = converse(t, host, token, name, csr, &c, ret_ca_pem, ret_why)) < 0)
                return r;
        *ret = c;
        c = (struct certificate){};
        return 0;
}
