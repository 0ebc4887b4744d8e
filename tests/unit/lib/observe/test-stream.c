/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a look: there and back, and whatever else may come. */
#include "lib/observe/stream.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agentd/capture/found.h"

static struct stream_item out;
static uint8_t record[STREAM_RECORD_MAX];

static void test_there_and_back(void **state) {
        const struct stream_item thread = { .type = STREAM_THREAD,
                                            .thread = { .pid = 1,
                                                        .tid = 2,
                                                        .call = 7,
                                                        .state = 'S',
                                                        .class = CAPTURE_PIPE,
                                                        .name = "worker" } },
                                 usage = { .type = STREAM_USAGE,
                                           .usage = { .index = 3, .read_bytes = UINT64_MAX } },
                                 end = { .type = STREAM_END };
        size_t n = stream_write(&thread, "a b c", record);

        assert_int_equal(stream_read(record, n, &out), (int)n);
        assert_int_equal(out.type, STREAM_THREAD);
        assert_memory_equal(&out.thread, &thread.thread, sizeof(out.thread));
        assert_string_equal(out.text, "a b c");
        for (size_t i = 0; i < n; i++)
                assert_int_equal(stream_read(record, i, &out), 0);
        n = stream_write(&usage, NULL, record);
        assert_int_equal(stream_read(record, n, &out), (int)n);
        assert_true(out.usage.index == 3 && out.usage.read_bytes == UINT64_MAX);
        n = stream_write(&end, NULL, record);
        assert_int_equal(n, STREAM_HEAD_SIZE);
        assert_int_equal(stream_read(record, n, &out), (int)n);
}

/* The end of a text that is too long is kept. */
static void test_long_text(void **state) {
        const struct stream_item python = { .type = STREAM_PYTHON, .number = 9 };
        char *text = malloc(2 * CAPTURE_PYTHON_MAX);
        size_t n;

        memset(text, 'x', 2 * CAPTURE_PYTHON_MAX - 1);
        text[2 * CAPTURE_PYTHON_MAX - 2] = 'y';
        text[2 * CAPTURE_PYTHON_MAX - 1] = 0;
        n = stream_write(&python, text, record);
        assert_int_equal(stream_read(record, n, &out), (int)n);
        assert_int_equal(strlen(out.text), CAPTURE_PYTHON_MAX);
        assert_int_equal(out.text[CAPTURE_PYTHON_MAX - 1], 'y');
        free(text);
}

static void put_head(uint32_t type, uint32_t size) {
        memcpy(record, &type, 4);
        memcpy(record + 4, &size, 4);
}

static void test_bad(void **state) {
        static const struct {
                uint32_t type, size;
        } heads[] = { { 0, 0 },
                      { _STREAM_TYPE_MAX, 0 },
                      { UINT32_MAX, UINT32_MAX },
                      { STREAM_TOTAL, 3 },
                      { STREAM_TOTAL, 5 },
                      { STREAM_THREAD, 31 },
                      { STREAM_THREAD, 33 + CAPTURE_STACK_MAX },
                      { STREAM_PYTHON, 5 + CAPTURE_PYTHON_MAX },
                      { STREAM_USAGE, UINT32_MAX },
                      { STREAM_END, 1 } };
        const struct stream_item thread = { .type = STREAM_THREAD,
                                            .thread = { .class = _CAPTURE_CLASS_MAX } },
                                 call = { .type = STREAM_THREAD, .thread = { .call = -2 } };

        for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
                put_head(heads[i].type, heads[i].size);
                assert_int_equal(stream_read(record, STREAM_HEAD_SIZE, &out), -EBADMSG);
        }
        assert_int_equal(stream_read(record, stream_write(&thread, NULL, record), &out), -EBADMSG);
        assert_int_equal(stream_read(record, stream_write(&call, NULL, record), &out), -EBADMSG);
}

/* A name that fills its place, and NULs in a text. */
static void test_ends(void **state) {
        struct stream_item thread = { .type = STREAM_THREAD };
        size_t n;

        memset(thread.thread.name, 'n', sizeof(thread.thread.name));
        n = stream_write(&thread, "abc", record);
        record[n - 2] = 0;
        assert_int_equal(stream_read(record, n, &out), (int)n);
        assert_int_equal(strlen(out.thread.name), 15);
        assert_string_equal(out.text, "a");
}

/* Whatever comes, in any order: bounds hold, and nothing is found twice. */
static void test_anything(void **state) {
        struct capture c = {};

        srandom(4711);
        for (unsigned i = 0; i < 20000; i++) {
                size_t n = (size_t)random() % 200;
                int l;

                for (size_t k = 0; k < n; k++)
                        record[k] = (uint8_t)random();
                put_head((uint32_t)(1 + random() % 6), (uint32_t)(random() % 64));
                if (n > STREAM_HEAD_SIZE + 13) /* few threads, and classes that are */
                        record[STREAM_HEAD_SIZE + 13] %= 12,
                                memset(record + STREAM_HEAD_SIZE + 4, (int)(i % 3), 4),
                                memset(record + STREAM_HEAD_SIZE + 8, 0, 4);
                l = stream_read(record, n, &out);
                assert_true(l == -EBADMSG || (l >= 0 && (size_t)l <= n));
                if (l > 0)
                        assert_int_equal(found_add(&c, &out), 0);
        }
        assert_true(c.n <= CAPTURE_THREADS_MAX);
        for (size_t i = 0; i < c.n; i++)
                assert_ptr_equal(capture_find(&c, c.threads[i].tid), c.threads + i);
        capture_done(&c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_there_and_back),
                cmocka_unit_test(test_long_text),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_ends),
                cmocka_unit_test(test_anything),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
