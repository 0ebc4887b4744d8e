/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as values. Invariant: bytes behind the family's length are zero, so that equal addresses are
 * equal bytes. */
#include "lib/base/addr.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"

#define HOST_MAX 253

/* Cuts "HOST", "HOST:PORT", "[V6]", "[V6]:PORT" or a bare V6 into host and port; nothing about the host is
 * checked but its length. ret_bracketed: it stood in brackets or has colons, so only a V6 address can be
 * meant. */
static int split(const char *s, uint16_t default_port, char host[static HOST_MAX + 1], bool *ret_v6,
                 uint16_t *ret_port) {
        const char *begin = s, *end, *port = NULL, *colon;
        uint32_t p = default_port;
        bool v6;
        int r;

        if (!s)
                return -EINVAL;
        if (*s == '[') {
                begin = s + 1;
                end = strchr(begin, ']');
                if (!end || (end[1] && end[1] != ':'))
                        return -EINVAL;
                if (end[1] == ':')
                        port = end + 2;
                v6 = true;
        } else {
                colon = strchr(s, ':');
                v6 = colon && strchr(colon + 1, ':');
                end = s + strlen(s);
                if (colon && !v6) {
                        end = colon;
                        port = colon + 1;
                }
        }
        if (end == begin || end - begin > HOST_MAX)
                return -EINVAL;
        if (port) {
                r = parse_u32(port, 1, UINT16_MAX, &p);
                if (r < 0)
                        return -EINVAL;
        }
        memcpy(host, begin, (size_t)(end - begin));
        host[end - begin] = 0;
        *ret_v6 = v6;
        *ret_port = (uint16_t)p;
        return 0;
}

int addr_parse(const char *s, uint16_t default_port, struct addr *ret) {
        char host[HOST_MAX + 1];
        struct addr a = {};
        bool v6;
        int r = split(s, default_port, host, &v6, &a.port);

        if (r < 0)
                return r;
        a.family = v6 ? AF_INET6 : AF_INET;
        if (inet_pton(a.family, host, a.bytes) != 1)
                return -EINVAL;
        *ret = a;
        return 0;
}

static bool host_name_valid(const char *s) {
        if (*s == '.' || *s == '-')
                return false;
        for (; *s; s++)
                if (!isalnum((unsigned char)*s) && *s != '-' && *s != '.' && *s != '_')
                        return false;
        return true;
}

int addr_split(const char *s, uint16_t default_port, char **ret_host, uint16_t *ret_port) {
        char host[HOST_MAX + 1], *copy;
        uint8_t bytes[16];
        uint16_t port;
        bool v6;
        int r = split(s, default_port, host, &v6, &port);

        if (r < 0)
                return r;
        if (v6 ? inet_pton(AF_INET6, host, bytes) != 1 : !host_name_valid(host))
                return -EINVAL;
        copy = strdup(host);
        if (!copy)
                return -ENOMEM;
        *ret_host = copy;
        *ret_port = port;
        return 0;
}

char *addr_format(const struct addr *a, char buf[static ADDR_TEXT_MAX]) {
        char text[INET6_ADDRSTRLEN];

        if ((a->family != AF_INET && a->family != AF_INET6) ||
            !inet_ntop(a->family, a->bytes, text, sizeof(text)))
                strcpy(buf, "none");
        else if (a->port == 0)
                strcpy(buf, text);
        else
                snprintf(buf, ADDR_TEXT_MAX, a->family == AF_INET6 ? "[%s]:%u" : "%s:%u", text,
                         (unsigned)a->port);
        return buf;
}

bool addr_equal(const struct addr *a, const struct addr *b) {
        return a->family == b->family && a->port == b->port &&
               memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

socklen_t addr_to_sockaddr(const struct addr *a, struct sockaddr_storage *ret) {
        memset(ret, 0, sizeof(*ret));
        if (a->family == AF_INET) {
                struct sockaddr_in *in = (struct sockaddr_in *)ret;
                in->sin_family = AF_INET;
                in->sin_port = htons(a->port);
                memcpy(&in->sin_addr, a->bytes, sizeof(in->sin_addr));
                return sizeof(*in);
        }
        if (a->family == AF_INET6) {
                struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;
                in6->sin6_family = AF_INET6;
                in6->sin6_port = htons(a->port);
                memcpy(&in6->sin6_addr, a->bytes, sizeof(in6->sin6_addr));
                return sizeof(*in6);
        }
        return 0;
}

int addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret) {
        struct addr a = { .family = sa->sa_family };

        if (sa->sa_family == AF_INET) {
                struct sockaddr_in in;
                memcpy(&in, sa, sizeof(in));
                memcpy(a.bytes, &in.sin_addr, sizeof(in.sin_addr));
                a.port = ntohs(in.sin_port);
        } else if (sa->sa_family == AF_INET6) {
                struct sockaddr_in6 in6;
                memcpy(&in6, sa, sizeof(in6));
                memcpy(a.bytes, &in6.sin6_addr, sizeof(in6.sin6_addr));
                a.port = ntohs(in6.sin6_port);
        } else
                return -EAFNOSUPPORT;
        *ret = a;
        return 0;
}

/* A V4 address that came in as ::ffff:V4 (a socket that listens on both families) becomes the V4 one. */
static struct addr unmapped(const struct addr *a) {
        static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };
        struct addr v4 = { .family = AF_INET, .port = a->port };

        if (a->family != AF_INET6 || memcmp(a->bytes, prefix, sizeof(prefix)) != 0)
                return *a;
        memcpy(v4.bytes, a->bytes + sizeof(prefix), 4);
        return v4;
}

int addr_parse_cidr(const char *s, struct addr_cidr *ret) {
        char host[INET6_ADDRSTRLEN];
        const char *slash;
        struct addr_cidr c;
        uint32_t bits, width;
        size_t n;
        int r;

        if (!s)
                return -EINVAL;
        slash = strchr(s, '/');
        n = slash ? (size_t)(slash - s) : strlen(s);
        if (n == 0 || n >= sizeof(host))
                return -EINVAL;
        memcpy(host, s, n);
        host[n] = 0;
        r = addr_parse(host, 0, &c.base);
        if (r < 0)
                return r;
        if (c.base.port != 0)
                return -EINVAL;
        width = bits = c.base.family == AF_INET ? 32 : 128;
        if (slash) {
                r = parse_u32(slash + 1, 0, width, &bits);
                if (r < 0)
                        return -EINVAL;
        }
        for (uint32_t i = bits; i < width;
             i++) /* bits behind the prefix mean nothing; the base is stored without */
                c.base.bytes[i / 8] &= (uint8_t) ~(0x80 >> (i % 8));
        c.bits = (uint8_t)bits;
        *ret = c;
        return 0;
}

bool addr_cidr_contains(const struct addr_cidr *c, const struct addr *a) {
        struct addr v = unmapped(a);

        if (v.family != c->base.family)
                return false;
        for (unsigned i = 0; i < c->bits; i++)
                if ((v.bytes[i / 8] ^ c->base.bytes[i / 8]) & (0x80 >> (i % 8)))
                        return false;
        return true;
}

bool addr_is_loopback(const struct addr *a) {
        static const uint8_t one[16] = { [15] = 1 };
        struct addr v = unmapped(a);

        return v.family == AF_INET    ? v.bytes[0] == 127
               : v.family == AF_INET6 ? memcmp(v.bytes, one, sizeof(one)) == 0
                                      : false;
}
