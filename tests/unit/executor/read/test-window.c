/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "executor/read/bytes.h"
#include "tests/kit/read-kit.h"

static void test_order(void **state) {
        uint32_t a[1000], b[1000];
        bool seen[1000];

        for (uint32_t n = 0; n <= 1000; n = n * 3 + 1) {
                memset(seen, 0, sizeof seen);
                window_order(a, n, 7, 100);
                window_order(b, n, 7, 100);
                for (uint32_t i = 0; i < n; i++) {
                        assert_true(a[i] < n && !seen[a[i]]);
                        seen[a[i]] = true;
                        assert_int_equal(a[i], b[i]);
                }
        }
        window_order(a, 1000, 7, 100);
        window_order(b, 1000, 8, 100);
        assert_memory_not_equal(a, b, sizeof a);
        window_order(b, 1000, 7, 101);
        assert_memory_not_equal(a, b, sizeof a);
}

/* Every record once; another order than in the file; the same whatever the buffer is; and after a resume at
 * any chunk (position, skip), exactly the rest. */
static void test_shuffle(void **state) {
        static const enum record_format formats[] = { FORMAT_TEXT, FORMAT_TFRECORD, FORMAT_CSV, FORMAT_RAW,
                                                      FORMAT_TAR };

        for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
                for (unsigned seed = 0; seed < 4; seed++) {
                        size_t *lengths, total = 0;
                        struct bytes file;
                        struct delivery whole;
                        struct kit k;

                        kit_begin(&k, formats[f]);
                        make_file(formats[f], seed, 50, 25, &file, &lengths);
                        kit_write(&k, file.data, file.size);
                        k.input.window = 16;
                        k.task.seed = seed;
                        kit_read(&k, 4096, &whole);
                        assert_int_equal(whole.r, 0);
                        assert_int_equal(whole.records, 50);
                        for (size_t i = 0; i < 50; i++)
                                total += lengths[i];
                        /* the last line may have got its newline */
                        assert_true(whole.bytes.size == total || whole.bytes.size == total + 1);
                        assert_int_equal(whole.end, file.size);
                        if (formats[f] != FORMAT_RAW)
                                assert_memory_not_equal(whole.bytes.data, file.data + (file.size - total),
                                                        total);
                        for (size_t buffer = 10; buffer < 200; buffer += 31) {
                                struct delivery d;

                                k.task.offset = k.task.skip = 0;
                                kit_read(&k, buffer, &d);
                                assert_int_equal(d.r, 0);
                                assert_int_equal(d.records, 50);
                                assert_int_equal(d.bytes.size, whole.bytes.size);
                                assert_memory_equal(d.bytes.data, whole.bytes.data, d.bytes.size);
                                for (size_t i = 0; i < d.n_chunks; i++) {
                                        struct delivery rest;

                                        k.task.offset = d.positions[i];
                                        k.task.skip = d.skips[i];
                                        kit_read(&k, 333, &rest);
                                        assert_int_equal(rest.r, 0);
                                        assert_int_equal(rest.bytes.size, whole.bytes.size - d.sizes[i]);
                                        if (rest.bytes.size > 0)
                                                assert_memory_equal(rest.bytes.data,
                                                                    whole.bytes.data + d.sizes[i],
                                                                    rest.bytes.size);
                                        delivery_done(&rest);
                                }
                                delivery_done(&d);
                        }
                        delivery_done(&whole);
                        bytes_done(&file);
                        free(lengths);
                        kit_end(&k);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_shuffle),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
