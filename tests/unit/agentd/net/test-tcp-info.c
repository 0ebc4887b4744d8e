/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a connection, from the struct of this kernel and of others. */
#include "agentd/net/tcp-info.h"

#include <linux/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static const struct tcp_info info = {
        .tcpi_rtt = 250, .tcpi_total_retrans = 3, .tcpi_bytes_acked = 1000, .tcpi_bytes_received = 77
};

static void test_whole(void **state) {
        uint8_t longer[sizeof(info) + 64] = {};
        struct tcp_facts f;

        memcpy(longer, &info, sizeof(info));
        memset(longer + sizeof(info), 0xff, 64); /* of a newer kernel: nobody looks */
        for (size_t size = sizeof(info); size <= sizeof(longer); size += 64) {
                tcp_facts_read(longer, size, &f);
                assert_true(f.received == 77 && f.acked == 1000 && f.retransmits == 3 && f.rtt_usec == 250);
        }
}

/* Of an older kernel: what is not there is 0, and nothing behind it is read (as the sanitizer would see). */
static void test_short(void **state) {
        const size_t rtt = offsetof(struct tcp_info, tcpi_rtt),
                     acked = offsetof(struct tcp_info, tcpi_bytes_acked);

        for (size_t size = 0; size <= sizeof(info); size += 8) {
                _cleanup_free_ uint8_t *data = malloc(size + (size == 0));
                struct tcp_facts f;

                assert_non_null(data);
                memcpy(data, &info, size);
                tcp_facts_read(data, size, &f);
                assert_int_equal(f.rtt_usec, size >= rtt + sizeof(info.tcpi_rtt) ? 250 : 0);
                assert_int_equal(f.acked, size >= acked + sizeof(info.tcpi_bytes_acked) ? 1000 : 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whole),
                cmocka_unit_test(test_short),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
