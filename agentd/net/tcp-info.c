/* SPDX-License-Identifier: Apache-2.0 */
/* struct tcp_info of the kernel. Invariant: nothing behind what was given is read. */
#include "agentd/net/tcp-info.h"

#include <linux/tcp.h>
#include <string.h>

#include "lib/base/cleanup.h"

void tcp_facts_read(const void *data, size_t size, struct tcp_facts *ret) {
        struct tcp_info info = {};

        memcpy(&info, data, MIN(size, sizeof(info)));
        *ret = (struct tcp_facts){ .received = info.tcpi_bytes_received,
                                   .acked = info.tcpi_bytes_acked,
                                   .retransmits = info.tcpi_total_retrans,
                                   .rtt_usec = info.tcpi_rtt };
}
