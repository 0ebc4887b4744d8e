/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a TCP connection, of its struct tcp_info: apart, because libnl's headers bring the
 * C library's older one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tcp_facts {
        uint64_t received, acked; /* bytes of payload */
        uint32_t retransmits, rtt_usec;
};

/* What a shorter one (of an older kernel) does not have is 0. */
void tcp_facts_read(const void *info, size_t size, struct tcp_facts *ret);
