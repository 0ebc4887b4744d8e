/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/primus/primus.h"

/* RFC 3720 has the CRC of 32 zeros, 8a9136aa; the mask is TensorFlow's (record_writer.h). */
static void test_vectors(void **state) {
        static const uint8_t zeros[32];
        uint32_t crc = 0x8a9136aau;

        assert_int_equal(primus_tfrecord_checksum(zeros, sizeof(zeros)),
                         (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8u));
        assert_int_equal(primus_tfrecord_checksum("", 0), 0xa282ead8u);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_vectors) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
