/* SPDX-License-Identifier: Apache-2.0 */
/* Connections by cgroup. Invariants: units are sorted by id, connections of a look by cookie; nothing is
 * allocated in a look but to grow. */
#include "agentd/net/sockets.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "agentd/net/tcp-info.h"
#include "lib/base/clock.h"

#define BATCH                                                                                                \
        256u /* units in one question: their filter is 16 bytes each, and a jump goes 64 KiB at most         \
              */
#define CONNECTIONS_MAX 65536u /* looked at; what is beyond is not counted */
#define BUFFER (32u << 10)
#define SHARE 200u /* looks take no more than that part of the time */
#define STATE_ESTABLISHED 1
#define STATE_CLOSE_WAIT 8

struct connection {
        uint64_t cookie;
        uint64_t received, acked, unread;
        uint64_t tuple, reverse; /* of those within this host; 0: it goes elsewhere */
        uint32_t unit, retransmits, rtt;
        bool inside; /* both ends are in the same unit */
};

struct unit {
        uint64_t cgroup_id;
        uint64_t received, acked, retransmits, looks, looks_unread;
        uint64_t unread, rtt;
        uint32_t connections, n_rtt;
        bool looked, waiting;
};

struct sockets {
        struct nl_sock *netlink;
        int fd;
        uint32_t seq;
        size_t batch;
        bool unfiltered; /* the kernel does not take the filter */
        struct unit *units;
        size_t n_units, units_allocated;
        struct connection *now, *before;
        size_t n_now, n_before, now_allocated, before_allocated;
        uint32_t *wanted; /* units of the look, as indexes */
        size_t wanted_allocated;
        uint8_t *request;
        size_t request_size;
        uint64_t not_before;
        _Alignas(8) uint8_t buffer[BUFFER];
};

/* Room for n elements. */
static int grow_array(void *array, size_t *allocated, size_t n, size_t element) {
        void **target = array, *bigger;

        if (n <= *allocated)
                return 0;
        n += n / 2 + 16;
        bigger = reallocarray(*target, n, element);
        if (!bigger)
                return -ENOMEM;
        *target = bigger;
        *allocated = n;
        return 0;
}

/* ---- units ---- */

/* Where it is or would be. */
static size_t unit_place(const struct sockets *s, uint64_t id) {
        size_t low = 0, high = s->n_units;

        while (low < high) {
                size_t middle = (low + high) / 2;
                if (s->units[middle].cgroup_id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static struct unit *unit_find(const struct sockets *s, uint64_t id) {
        size_t i = unit_place(s, id);

        return i < s->n_units && s->units[i].cgroup_id == id ? s->units + i : NULL;
}

/* Connections name units by index. */
static void renumber(struct sockets *s, size_t from, int by) {
        for (size_t i = 0; i < s->n_before; i++)
                if (s->before[i].unit >= from)
                        s->before[i].unit = (uint32_t)((int64_t)s->before[i].unit + by);
}

static int unit_get(struct sockets *s, uint64_t id) {
        size_t i = unit_place(s, id);
        int r;

        if (i < s->n_units && s->units[i].cgroup_id == id)
                return 0;
        r = grow_array(&s->units, &s->units_allocated, s->n_units + 1, sizeof(*s->units));
        if (r < 0)
                return r;
        memmove(s->units + i + 1, s->units + i, (s->n_units - i) * sizeof(*s->units));
        s->units[i] = (struct unit){ .cgroup_id = id };
        s->n_units++;
        renumber(s, i, 1);
        return 0;
}

void sockets_forget(struct sockets *s, uint64_t cgroup_id) {
        struct unit *u = unit_find(s, cgroup_id);
        size_t i, n = 0;

        if (!u)
                return;
        i = (size_t)(u - s->units);
        for (size_t k = 0; k < s->n_before; k++)
                if (s->before[k].unit != i)
                        s->before[n++] = s->before[k];
        s->n_before = n;
        s->n_units--;
        memmove(u, u + 1, (s->n_units - i) * sizeof(*u));
        renumber(s, i + 1, -1);
}

/* ---- asking ---- */

static int append_bytes(struct sockets *s, size_t *at, const void *data, size_t size) {
        int r = grow_array(&s->request, &s->request_size, *at + size, 1);

        if (r < 0)
                return r;
        memcpy(s->request + *at, data, size);
        *at += size;
        return 0;
}

/* "cgroup = A or cgroup = B ...": each condition goes on to a jump behind the last one (the socket is wanted)
 * when it holds, else to the next condition; the last one's way out is behind the end by 4, which is how a
 * filter says no. */
static int append_filter(struct sockets *s, size_t *at, const uint32_t *units, size_t n) {
        const unsigned condition = sizeof(struct inet_diag_bc_op) + sizeof(uint64_t),
                       jump = sizeof(struct inet_diag_bc_op);
        size_t left = n * (condition + jump);
        struct nlattr head = { .nla_len = (uint16_t)(NLA_HDRLEN + left), .nla_type = INET_DIAG_REQ_BYTECODE };
        int r = append_bytes(s, at, &head, sizeof(head));

        for (size_t i = 0; i < n && r >= 0; i++) {
                struct inet_diag_bc_op op = { .code = INET_DIAG_BC_CGROUP_COND,
                                              .yes = (unsigned char)condition,
                                              .no = (unsigned short)(condition + jump +
                                                                     (i + 1 == n ? 4 : 0)) };
                struct inet_diag_bc_op out = { .code = INET_DIAG_BC_JMP, .yes = (unsigned char)jump };

                left -= condition;
                out.no = (unsigned short)left; /* to the end */
                left -= jump;
                if ((r = append_bytes(s, at, &op, sizeof(op))) >= 0 &&
                    (r = append_bytes(s, at, &s->units[units[i]].cgroup_id, sizeof(uint64_t))) >= 0)
                        r = append_bytes(s, at, &out, sizeof(out));
        }
        return r;
}

static int ask_kernel(struct sockets *s, uint8_t family, const uint32_t *units, size_t n) {
        const struct inet_diag_req_v2 request = { .sdiag_family = family,
                                                  .sdiag_protocol = IPPROTO_TCP,
                                                  .idiag_ext = 1u << (INET_DIAG_INFO - 1),
                                                  .idiag_states =
                                                          1u << STATE_ESTABLISHED | 1u << STATE_CLOSE_WAIT };
        struct nlmsghdr head = { .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                                 .nlmsg_seq = ++s->seq };
        size_t at = 0;
        int r;

        if ((r = append_bytes(s, &at, &head, sizeof(head))) < 0 ||
            (r = append_bytes(s, &at, &request, sizeof(request))) < 0 ||
            (n > 0 && (r = append_filter(s, &at, units, n)) < 0))
                return r;
        ((struct nlmsghdr *)s->request)->nlmsg_len = (uint32_t)at;
        r = nl_sendto(s->netlink, s->request, at);
        return r < 0 ? -EIO : 0;
}

/* ---- answers ---- */

/* The two ends of a connection have each other's number the other way round. */
static uint64_t mix(uint64_t h, const void *data, size_t size) {
        const uint8_t *p = data;

        for (size_t i = 0; i < size; i++)
                h = (h ^ p[i]) * UINT64_C(0x100000001b3);
        return h;
}

static uint64_t tuple(const void *a, uint16_t a_port, const void *b, uint16_t b_port, size_t size) {
        uint64_t h = mix(UINT64_C(0xcbf29ce484222325), a, size);

        h = mix(h, &a_port, sizeof(a_port));
        h = mix(h, b, size);
        return mix(h, &b_port, sizeof(b_port)) | 1;
}

static bool is_within(const struct inet_diag_msg *d, size_t size) {
        static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
        const uint8_t *to = (const uint8_t *)d->id.idiag_dst;

        if (memcmp(d->id.idiag_src, d->id.idiag_dst, size) == 0)
                return true;
        if (size == 4)
                return to[0] == 127;
        return memcmp(to, mapped, sizeof(mapped)) == 0 && to[12] == 127;
}

static int take_socket(struct sockets *s, const struct nlmsghdr *h) {
        const struct inet_diag_msg *d = nlmsg_data(h);
        struct nlattr *attributes[INET_DIAG_MAX + 1] = {};
        struct tcp_facts facts;
        struct connection c = {};
        size_t size = d->idiag_family == AF_INET6 ? 16 : 4;
        const struct unit *u;
        int r;

        if (nlmsg_parse((struct nlmsghdr *)h, sizeof(*d), attributes, INET_DIAG_MAX, NULL) < 0)
                return -EBADMSG;
        if (!attributes[INET_DIAG_CGROUP_ID] ||
            nla_len(attributes[INET_DIAG_CGROUP_ID]) < (int)sizeof(uint64_t))
                return -EOPNOTSUPP;
        u = unit_find(s, nla_get_u64(attributes[INET_DIAG_CGROUP_ID]));
        if (!u || !u->looked || !attributes[INET_DIAG_INFO] || s->n_now >= CONNECTIONS_MAX)
                return 0;
        tcp_facts_read(nla_data(attributes[INET_DIAG_INFO]), (size_t)nla_len(attributes[INET_DIAG_INFO]),
                       &facts);
        c.cookie = (uint64_t)d->id.idiag_cookie[1] << 32 | d->id.idiag_cookie[0];
        c.unit = (uint32_t)(u - s->units);
        c.received = facts.received;
        c.acked = facts.acked;
        c.retransmits = facts.retransmits;
        c.rtt = facts.rtt_usec;
        c.unread = d->idiag_rqueue;
        if (d->idiag_state == STATE_CLOSE_WAIT && c.unread > 0)
                c.unread--; /* the other side's FIN counts as one */
        if (is_within(d, size)) {
                c.tuple = tuple(d->id.idiag_src, d->id.idiag_sport, d->id.idiag_dst, d->id.idiag_dport, size);
                c.reverse =
                        tuple(d->id.idiag_dst, d->id.idiag_dport, d->id.idiag_src, d->id.idiag_sport, size);
        }
        r = grow_array(&s->now, &s->now_allocated, s->n_now + 1, sizeof(*s->now));
        if (r < 0)
                return r;
        s->now[s->n_now++] = c;
        return 0;
}

/* All that the kernel answers. It does so while it is asked for more, so this waits for nothing. */
static int receive_sockets(struct sockets *s) {
        int result = 0;

        for (;;) {
                ssize_t l = recv(s->fd, s->buffer, sizeof(s->buffer), MSG_DONTWAIT);
                int left = (int)l;

                if (l < 0)
                        return errno == EINTR ? -EAGAIN : -errno;
                for (struct nlmsghdr *h = (struct nlmsghdr *)s->buffer; nlmsg_ok(h, left);
                     h = nlmsg_next(h, &left)) {
                        if (h->nlmsg_seq != s->seq)
                                continue;
                        if (h->nlmsg_type == NLMSG_DONE)
                                return result;
                        if (h->nlmsg_type == NLMSG_ERROR) {
                                const struct nlmsgerr *e = nlmsg_data(h);
                                return e->error < 0 ? e->error : -EIO;
                        }
                        if (h->nlmsg_type == SOCK_DIAG_BY_FAMILY &&
                            nlmsg_datalen(h) >= (int)sizeof(struct inet_diag_msg) && result >= 0)
                                result = take_socket(s, h);
                }
        }
}

static int ask_both(struct sockets *s, const uint32_t *units, size_t n) {
        static const uint8_t families[] = { AF_INET, AF_INET6 };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(families) && r >= 0; i++) {
                r = ask_kernel(s, families[i], units, n);
                if (r >= 0)
                        r = receive_sockets(s);
                if (r == -ENOENT && families[i] == AF_INET6)
                        r = 0; /* no IPv6 here */
        }
        return r;
}

/* ---- looking ---- */

static int by_cookie(const void *a, const void *b) {
        const struct connection *x = a, *y = b;

        return (x->cookie > y->cookie) - (x->cookie < y->cookie);
}

static int by_tuple(const void *a, const void *b) {
        const struct connection *x = a, *y = b;

        return (x->tuple > y->tuple) - (x->tuple < y->tuple);
}

/* Finds connections whose other end is one of the same unit. */
static void find_inside(struct sockets *s) {
        if (s->n_now > 0)
                qsort(s->now, s->n_now, sizeof(*s->now), by_tuple);
        for (size_t i = 0; i < s->n_now; i++) {
                const struct connection key = { .tuple = s->now[i].reverse };
                const struct connection *other =
                        s->now[i].tuple ? bsearch(&key, s->now, s->n_now, sizeof(*s->now), by_tuple) : NULL;

                s->now[i].inside = other && other->unit == s->now[i].unit;
        }
}

static void count_connection(struct unit *u, const struct connection *c, const struct connection *before) {
        u->received += sub_sat(c->received, before ? before->received : 0);
        u->acked += sub_sat(c->acked, before ? before->acked : 0);
        u->retransmits += c->retransmits - (before ? MIN(before->retransmits, c->retransmits) : 0);
        u->connections++;
        u->unread += c->unread;
        if (c->rtt > 0) {
                u->rtt += c->rtt;
                u->n_rtt++;
        }
        /* What had come by the look before, and is not read yet. */
        u->waiting |= before && c->unread > 0 && c->received - c->unread < before->received;
}

static void count_all(struct sockets *s) {
        size_t k = 0;

        for (size_t i = 0; i < s->n_units; i++)
                if (s->units[i].looked) {
                        s->units[i].connections = s->units[i].n_rtt = 0;
                        s->units[i].unread = s->units[i].rtt = 0;
                        s->units[i].waiting = false;
                }
        find_inside(s);
        if (s->n_now > 0)
                qsort(s->now, s->n_now, sizeof(*s->now), by_cookie);
        for (size_t i = 0; i < s->n_now; i++) {
                const struct connection *c = s->now + i;

                while (k < s->n_before && s->before[k].cookie < c->cookie)
                        k++;
                if (!c->inside)
                        count_connection(s->units + c->unit, c,
                                         k < s->n_before && s->before[k].cookie == c->cookie ? s->before + k
                                                                                             : NULL);
        }
        for (size_t i = 0; i < s->n_units; i++)
                if (s->units[i].looked) {
                        s->units[i].looks++;
                        s->units[i].looks_unread += s->units[i].waiting;
                }
}

/* The units of this look, as indexes in s->wanted. Units that are not among them keep their numbers. */
static int want(struct sockets *s, const uint64_t *ids, size_t n) {
        size_t k = 0;
        int r = 0;

        for (size_t i = 0; i < n && r >= 0; i++)
                r = unit_get(s, ids[i]);
        if (r < 0 || (r = grow_array(&s->wanted, &s->wanted_allocated, n, sizeof(*s->wanted))) < 0)
                return r;
        for (size_t i = 0; i < s->n_units; i++)
                s->units[i].looked = false;
        for (size_t i = 0; i < n; i++) {
                struct unit *u = unit_find(s, ids[i]);
                if (!u->looked)
                        s->wanted[k++] = (uint32_t)(u - s->units);
                u->looked = true;
        }
        return (int)k;
}

static int look_at_sockets(struct sockets *s, size_t n) {
        size_t batch = s->unfiltered ? 0 : s->batch;
        int r = 0;

        s->n_now = 0;
        if (batch == 0)
                return ask_both(s, NULL, 0);
        for (size_t i = 0; i < n && r >= 0; i += batch)
                r = ask_both(s, s->wanted + i, MIN(batch, n - i));
        if (r == -EINVAL && !s->unfiltered) {
                s->unfiltered = true;
                return look_at_sockets(s, n);
        }
        return r;
}

int sockets_look(struct sockets *s, const uint64_t *cgroup_ids, size_t n) {
        uint64_t started = now_boot();
        struct connection *other;
        size_t allocated;
        int r;

        if (n == 0)
                return 1;
        if (started < s->not_before)
                return 0;
        r = want(s, cgroup_ids, n);
        if (r >= 0)
                r = look_at_sockets(s, (size_t)r);
        /* The 1 s beat is not to be missed for a fraction. */
        s->not_before = started + (now_boot() - started) * SHARE;
        if (s->not_before < started + USEC_PER_SEC)
                s->not_before = 0;
        if (r < 0)
                return r;
        count_all(s);
        other = s->before;
        allocated = s->before_allocated;
        s->before = s->now;
        s->n_before = s->n_now;
        s->before_allocated = s->now_allocated;
        s->now = other;
        s->now_allocated = allocated;
        return 1;
}

void sockets_fill(struct sockets *s, uint64_t cgroup_id, uint64_t values[static _TELEMETRY_MAX]) {
        const struct unit *u = unit_find(s, cgroup_id);

        if (!u || u->looks == 0)
                return;
        values[TELEMETRY_TCP_CONNECTIONS] = u->connections;
        values[TELEMETRY_NET_UNREAD_BYTES] = u->unread;
        values[TELEMETRY_LOOKS] = u->looks;
        values[TELEMETRY_LOOKS_UNREAD] = u->looks_unread;
        if (u->n_rtt > 0)
                values[TELEMETRY_TCP_RTT_USEC] = u->rtt / u->n_rtt;
        if (values[TELEMETRY_TCP_RETRANSMITS] == TELEMETRY_UNKNOWN)
                values[TELEMETRY_TCP_RETRANSMITS] = u->retransmits;
        if (values[TELEMETRY_NET_RX_BYTES] == TELEMETRY_UNKNOWN)
                values[TELEMETRY_NET_RX_BYTES] = u->received;
        if (values[TELEMETRY_NET_TX_BYTES] == TELEMETRY_UNKNOWN)
                values[TELEMETRY_NET_TX_BYTES] = u->acked;
}

void sockets_set_batch(struct sockets *s, size_t units) {
        s->batch = MIN(units, 2048u);
}

int sockets_new(struct sockets **ret) {
        _cleanup_(sockets_free_p) struct sockets *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->batch = BATCH;
        s->netlink = nl_socket_alloc();
        if (!s->netlink)
                return -ENOMEM;
        if (nl_connect(s->netlink, NETLINK_SOCK_DIAG) < 0)
                return -EOPNOTSUPP;
        s->fd = nl_socket_get_fd(s->netlink);
        *ret = TAKE_PTR(s);
        return 0;
}

void sockets_free(struct sockets *s) {
        if (!s)
                return;
        nl_socket_free(s->netlink);
        free(s->units);
        free(s->now);
        free(s->before);
        free(s->wanted);
        free(s->request);
        free(s);
}
