/* SPDX-License-Identifier: Apache-2.0 */
/* Network addresses as typed values: family, bytes, port. Text is "192.0.2.1:7747" or "[2001:db8::1]:7747".
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct addr {
        int family;        /* AF_INET, AF_INET6, or AF_UNSPEC: none */
        uint8_t bytes[16]; /* network order; the first 4 for AF_INET */
        uint16_t port;     /* host order; 0: none */
};

#define ADDR_TEXT_MAX 64

/* Accepts "ADDR", "ADDR:PORT", "[V6]", "[V6]:PORT", a bare V6; numeric only (no names). default_port where
 * none is given. 0 or -EINVAL. */
int addr_parse(const char *s, uint16_t default_port, struct addr *ret);

/* "host" and port of "HOST[:PORT]" with a name or an address; *ret_host is allocated. 0, -EINVAL, -ENOMEM. */
int addr_split(const char *s, uint16_t default_port, char **ret_host, uint16_t *ret_port);

/* With port ("[::1]:80") or, where port is 0, without ("::1"). Returns buf. */
char *addr_format(const struct addr *a, char buf[static ADDR_TEXT_MAX]);

bool addr_equal(const struct addr *a, const struct addr *b);
bool addr_is_loopback(const struct addr *a); /* 127.0.0.0/8, ::1; of AF_UNSPEC not */

socklen_t addr_to_sockaddr(const struct addr *a, struct sockaddr_storage *ret);
int addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret);

/* An address block "192.0.2.0/24" or a single address. */
struct addr_cidr {
        struct addr base;
        uint8_t bits;
};
int addr_parse_cidr(const char *s, struct addr_cidr *ret);
bool addr_cidr_contains(const struct addr_cidr *c, const struct addr *a); /* v4-mapped v6 counts as v4 */
