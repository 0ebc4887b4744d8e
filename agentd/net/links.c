/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces, as the kernel tells of them. Invariants: what is in the list is watched, and is as the last
 * message about it said; when messages were lost, everything is asked anew. */
#include "agentd/net/links.h"

#include <errno.h>
#include <fnmatch.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agentd/net/ethtool.h"
#include "lib/base/try.h"

#ifndef IFF_LOWER_UP
#define IFF_LOWER_UP 0x10000
#endif
#define BUFFER (32u << 10)
#define ADDRESSES_MAX 256u

struct links {
        struct nl_sock *ask, *hear;
        struct ethtool *ethtool;
        sd_event_source *source;
        struct links_ops ops;
        void *userdata;
        char *patterns;
        struct link_facts list[LINKS_MAX];
        size_t n;
        struct {
                int index;
                struct link_address address;
        } addresses[ADDRESSES_MAX]; /* of all interfaces */
        size_t n_addresses;
        bool seen[LINKS_MAX]; /* in the dump under way */
        uint32_t seq;
        _Alignas(8) uint8_t buffer[BUFFER];
};

static size_t find_link(const struct links *l, int index) {
        size_t i = 0;

        while (i < l->n && l->list[i].index != index)
                i++;
        return i;
}

const struct link_facts *links_list(const struct links *l, size_t *ret_n) {
        *ret_n = l->n;
        return l->list;
}

const struct link_facts *links_with(const struct links *l, const struct addr *a) {
        for (size_t i = 0; i < l->n; i++)
                for (size_t k = 0; k < l->list[i].n_addresses; k++)
                        if (l->list[i].addresses[k].address.family == a->family &&
                            memcmp(l->list[i].addresses[k].address.bytes, a->bytes,
                                   a->family == AF_INET6 ? 16 : 4) == 0)
                                return l->list + i;
        return NULL;
}

/* ---- what is watched ---- */

bool links_match(const char *patterns, const char *name) {
        char copy[256], *save = NULL;

        if (!patterns || strlen(patterns) >= sizeof(copy))
                return false;
        strcpy(copy, patterns);
        for (char *word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save))
                if (fnmatch(word, name, 0) == 0)
                        return true;
        return false;
}

static bool has_device(const char *name) {
        char path[80];
        struct stat st;

        snprintf(path, sizeof(path), "/sys/class/net/%s/device", name);
        return stat(path, &st) == 0;
}

/* A bridge or bond stands on what is in it, a vlan on its lower one. */
static bool stands_on_device(const struct links *l, const struct link_facts *f, int lower) {
        if (strcmp(f->kind, "bond") == 0 || strcmp(f->kind, "team") == 0)
                return true;
        if (strcmp(f->kind, "vlan") == 0) {
                size_t i = find_link(l, lower);
                return i < l->n && l->list[i].device;
        }
        if (strcmp(f->kind, "bridge") == 0)
                for (size_t i = 0; i < l->n; i++)
                        if (l->list[i].master == f->index && l->list[i].device)
                                return true;
        return false;
}

static bool is_host_made(const char *kind) {
        static const char *const kinds[] = { "bridge", "dummy", "tun",  "ifb", "wireguard",
                                             "vxlan",  "gre",   "ipip", "sit" };

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (strcmp(kind, kinds[i]) == 0)
                        return true;
        return false;
}

static void take_addresses(const struct links *l, struct link_facts *f) {
        f->n_addresses = 0;
        for (size_t i = 0; i < l->n_addresses && f->n_addresses < LINK_ADDRESSES_MAX; i++)
                if (l->addresses[i].index == f->index)
                        f->addresses[f->n_addresses++] = l->addresses[i].address;
}

static bool is_watched(const struct links *l, const struct link_facts *f) {
        return f->device || links_match(l->patterns, f->name) ||
               (f->n_addresses > 0 && !is_host_made(f->kind));
}

/* ---- messages ---- */

static void read_kind(struct nlattr *info, struct link_facts *f) {
        struct nlattr *nested[IFLA_INFO_MAX + 1];

        if (nla_parse_nested(nested, IFLA_INFO_MAX, info, NULL) >= 0 && nested[IFLA_INFO_KIND])
                nla_strlcpy(f->kind, nested[IFLA_INFO_KIND], sizeof(f->kind));
}

static void read_counters(const struct nlattr *attribute, struct link_facts *f) {
        struct rtnl_link_stats64 s = {};

        memcpy(&s, nla_data(attribute), MIN(sizeof(s), (size_t)nla_len(attribute)));
        f->rx_bytes = s.rx_bytes;
        f->tx_bytes = s.tx_bytes;
        f->rx_packets = s.rx_packets;
        f->tx_packets = s.tx_packets;
        f->rx_errors = s.rx_errors;
        f->tx_errors = s.tx_errors;
}

/* False: it is not one to look at. */
static bool read_link(const struct links *l, struct nlmsghdr *h, struct link_facts *f) {
        struct nlattr *a[IFLA_MAX + 1];
        const struct ifinfomsg *i = nlmsg_data(h);

        if (nlmsg_datalen(h) < (int)sizeof(*i) || nlmsg_parse(h, sizeof(*i), a, IFLA_MAX, NULL) < 0 ||
            !a[IFLA_IFNAME] || i->ifi_flags & IFF_LOOPBACK || i->ifi_family != AF_UNSPEC)
                return false;
        f->index = i->ifi_index;
        nla_strlcpy(f->name, a[IFLA_IFNAME], sizeof(f->name));
        f->kind[0] = 0;
        if (a[IFLA_LINKINFO])
                read_kind(a[IFLA_LINKINFO], f);
        f->up = i->ifi_flags & IFF_UP;
        f->carrier = i->ifi_flags & IFF_LOWER_UP;
        f->master = a[IFLA_MASTER] ? (int)nla_get_u32(a[IFLA_MASTER]) : 0;
        if (a[IFLA_STATS64])
                read_counters(a[IFLA_STATS64], f);
        if (a[IFLA_CARRIER_DOWN_COUNT])
                f->carrier_downs = nla_get_u32(a[IFLA_CARRIER_DOWN_COUNT]);
        if (a[IFLA_CARRIER_UP_COUNT])
                f->carrier_ups = nla_get_u32(a[IFLA_CARRIER_UP_COUNT]);
        take_addresses(l, f);
        f->device = has_device(f->name) ||
                    stands_on_device(l, f, a[IFLA_LINK] ? (int)nla_get_u32(a[IFLA_LINK]) : 0);
        return is_watched(l, f);
}

/* As fast as what is in it: a bridge. */
static void look_at_speed(struct links *l, struct link_facts *f) {
        ethtool_speed(l->ethtool, f->index, f->name, &f->mbps, &f->mbps_max);
        if (strcmp(f->kind, "bridge") != 0)
                return;
        f->mbps = f->mbps_max = 0;
        for (size_t i = 0; i < l->n; i++)
                if (l->list[i].master == f->index)
                        f->mbps = MAX(f->mbps, l->list[i].mbps);
}

static bool differs(const struct link_facts *a, const struct link_facts *b) {
        return a->up != b->up || a->carrier != b->carrier || a->mbps != b->mbps ||
               a->carrier_downs != b->carrier_downs || a->n_addresses != b->n_addresses ||
               memcmp(a->addresses, b->addresses, a->n_addresses * sizeof(*a->addresses)) != 0 ||
               strcmp(a->name, b->name) != 0;
}

static void drop_link(struct links *l, size_t i) {
        const struct link_facts f = l->list[i];

        l->n--;
        memmove(l->list + i, l->list + i + 1, (l->n - i) * sizeof(*l->list));
        memmove(l->seen + i, l->seen + i + 1, (l->n - i) * sizeof(*l->seen));
        if (l->ops.changed)
                l->ops.changed(&f, NULL, l->userdata);
}

/* speed: ask how fast it is, also where nothing says that this may have changed. */
static void on_link(struct links *l, struct nlmsghdr *h, bool speed) {
        struct link_facts before, f = {};
        size_t i;
        bool known;

        if (h->nlmsg_type == RTM_DELLINK) {
                const struct ifinfomsg *info = nlmsg_data(h);
                i = nlmsg_datalen(h) >= (int)sizeof(*info) && info->ifi_family == AF_UNSPEC
                            ? find_link(l, info->ifi_index)
                            : l->n;
                if (i < l->n)
                        drop_link(l, i);
                return;
        }
        if (nlmsg_datalen(h) < (int)sizeof(struct ifinfomsg))
                return;
        i = find_link(l, ((const struct ifinfomsg *)nlmsg_data(h))->ifi_index);
        known = i < l->n;
        if (known)
                f = before = l->list[i];
        if (!read_link(l, h, &f) || (!known && l->n == LINKS_MAX))
                return;
        if (!known)
                i = l->n++;
        if (!known || speed || f.carrier != before.carrier)
                look_at_speed(l, &f);
        l->seen[i] = true;
        l->list[i] = f;
        if (l->ops.changed && (!known || differs(&before, &f)))
                l->ops.changed(known ? &before : NULL, &f, l->userdata);
}

static void on_address(struct links *l, struct nlmsghdr *h) {
        const struct ifaddrmsg *i = nlmsg_data(h);
        struct nlattr *a[IFA_MAX + 1];
        const struct nlattr *local;
        struct link_address *to;

        if (h->nlmsg_type != RTM_NEWADDR || nlmsg_datalen(h) < (int)sizeof(*i) ||
            nlmsg_parse(h, sizeof(*i), a, IFA_MAX, NULL) < 0 || i->ifa_scope >= RT_SCOPE_LINK ||
            l->n_addresses == ADDRESSES_MAX || (i->ifa_family != AF_INET && i->ifa_family != AF_INET6) ||
            i->ifa_flags & (IFA_F_TENTATIVE | IFA_F_DEPRECATED | IFA_F_DADFAILED))
                return;
        local = a[IFA_LOCAL] ?: a[IFA_ADDRESS];
        if (!local || nla_len(local) < (i->ifa_family == AF_INET ? 4 : 16))
                return;
        l->addresses[l->n_addresses].index = (int)i->ifa_index;
        to = &l->addresses[l->n_addresses++].address;
        *to = (struct link_address){ .address.family = i->ifa_family, .bits = i->ifa_prefixlen };
        memcpy(to->address.bytes, nla_data(local), i->ifa_family == AF_INET ? 4 : 16);
}

/* ---- asking ---- */

static int receive_links(struct links *l, bool links, bool speed) {
        for (;;) {
                ssize_t size = recv(nl_socket_get_fd(l->ask), l->buffer, sizeof(l->buffer), MSG_DONTWAIT);
                int left = (int)size;

                if (size < 0)
                        return -errno;
                for (struct nlmsghdr *h = (struct nlmsghdr *)l->buffer; nlmsg_ok(h, left);
                     h = nlmsg_next(h, &left)) {
                        if (h->nlmsg_seq != l->seq)
                                continue;
                        if (h->nlmsg_type == NLMSG_DONE)
                                return 0;
                        if (h->nlmsg_type == NLMSG_ERROR)
                                return ((const struct nlmsgerr *)nlmsg_data(h))->error ?: -EIO;
                        if (links)
                                on_link(l, h, speed);
                        else
                                on_address(l, h);
                }
        }
}

static int dump(struct links *l, uint16_t type, bool speed) {
        struct {
                struct nlmsghdr head;
                struct ifinfomsg info;
        } request = { .head = { .nlmsg_len = sizeof(request),
                                .nlmsg_type = type,
                                .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                                .nlmsg_seq = ++l->seq } };

        if (nl_sendto(l->ask, &request, sizeof(request)) < 0)
                return -EIO;
        return receive_links(l, type == RTM_GETLINK, speed);
}

static int look_at_links(struct links *l, bool speed) {
        int r;

        l->n_addresses = 0;
        memset(l->seen, 0, sizeof(l->seen));
        r = dump(l, RTM_GETADDR, false);
        if (r >= 0)
                r = dump(l, RTM_GETLINK, speed);
        for (size_t i = l->n; r >= 0 && i > 0; i--)
                if (!l->seen[i - 1])
                        drop_link(l, i - 1);
        return r;
}

int links_look(struct links *l) {
        return look_at_links(l, true);
}

/* ---- hearing ---- */

static int on_event(sd_event_source *s, int fd, uint32_t events, void *userdata) {
        struct links *l = userdata;
        bool again = false;

        /* So many at a time; what is left wakes us again. */
        for (unsigned i = 0; i < 64; i++) {
                ssize_t size = recv(fd, l->buffer, sizeof(l->buffer), MSG_DONTWAIT);
                int left = (int)size;

                if (size < 0 && errno == ENOBUFS) {
                        again = true; /* some were lost */
                        continue;
                }
                if (size <= 0)
                        break;
                for (struct nlmsghdr *h = (struct nlmsghdr *)l->buffer; nlmsg_ok(h, left);
                     h = nlmsg_next(h, &left))
                        if (h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK)
                                on_link(l, h, false);
                        else if (h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR)
                                again = true;
        }
        if (again)
                (void)look_at_links(l, false);
        return 0;
}

static int hear(struct links *l, sd_event *event) {
        l->hear = nl_socket_alloc();
        if (!l->hear)
                return -ENOMEM;
        nl_socket_disable_seq_check(l->hear);
        if (nl_connect(l->hear, NETLINK_ROUTE) < 0 ||
            nl_socket_add_memberships(l->hear, RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, 0) < 0)
                return -EOPNOTSUPP;
        (void)nl_socket_set_nonblocking(l->hear);
        return sd_event_add_io(event, &l->source, nl_socket_get_fd(l->hear), EPOLLIN, on_event, l);
}

int links_new(sd_event *event, const char *patterns, const struct links_ops *ops, void *userdata,
              struct links **ret) {
        _cleanup_(links_free_p) struct links *l = calloc(1, sizeof(*l));

        if (!l || (patterns && !(l->patterns = strdup(patterns))) || !(l->ask = nl_socket_alloc()))
                return -ENOMEM;
        l->ops = ops ? *ops : (struct links_ops){};
        l->userdata = userdata;
        if (nl_connect(l->ask, NETLINK_ROUTE) < 0)
                return -EOPNOTSUPP;
        TRY(ethtool_new(&l->ethtool));
        if (event)
                TRY(hear(l, event)); /* before the first look, so that nothing is missed in between */
        TRY(look_at_links(l, true));
        /* Bridges and vlans may come before what they stand on. */
        TRY(look_at_links(l, false));
        *ret = TAKE_PTR(l);
        return 0;
}

void links_free(struct links *l) {
        if (!l)
                return;
        sd_event_source_disable_unref(l->source);
        nl_socket_free(l->ask);
        nl_socket_free(l->hear);
        ethtool_free(l->ethtool);
        free(l->patterns);
        free(l);
}
