/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/frame.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define AUTH "\0AUTH ANONYMOUS\r\nBEGIN\r\n"

static size_t message(uint8_t *p, char order, uint32_t body, uint32_t fields) {
        memset(p, 0, 16);
        p[0] = (uint8_t)order;
        for (int i = 0; i < 4; i++) {
                int shift = order == 'l' ? 8 * i : 24 - 8 * i;
                p[4 + i] = (uint8_t)(body >> shift);
                p[12 + i] = (uint8_t)(fields >> shift);
        }
        return 16;
}

/* The same whether it comes in one piece or byte by byte. */
static int feed(const uint8_t *p, size_t n, size_t step, uint32_t max) {
        struct frame_watch w = { .max = max };
        for (size_t i = 0; i < n; i += step) {
                int r = frame_watch_feed(&w, p + i, n - i < step ? n - i : step);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void test_streams(void **state) {
        static const struct {
                char order;
                uint32_t body, fields;
                int r;
        } table[] = {
                { 'l', 100, 13, 0 },
                { 'B', 100, 13, 0 },
                { 'l', 2000, 13, -EMSGSIZE },
                { 'B', 2000, 13, -EMSGSIZE },
                { 'l', 0xffffffff, 0xffffffff, -EMSGSIZE },
                { 'l', 0, 0xfffffff9, -EMSGSIZE },
                { 'x', 0, 0, -EBADMSG },
                { 'l', 1000 - 16 - 16, 13, 0 },
                { 'l', 1000 - 16 - 15, 13, -EMSGSIZE },
        };
        static const size_t steps[] = { 1, 3, 7, 4096 };
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
                for (size_t s = 0; s < 4; s++) {
                        uint8_t stream[4096] = {};
                        size_t n = sizeof AUTH - 1;
                        memcpy(stream, AUTH, n);
                        n += message(stream + n, 'l', 40, 9); /* 40 + 16 bytes follow */
                        n += 56;
                        n += message(stream + n, table[i].order, table[i].body, table[i].fields);
                        assert_int_equal(feed(stream, n, steps[s], 1000), table[i].r);
                }
}

static void test_endless_authentication(void **state) {
        uint8_t noise[5000];
        memset(noise, 'A', sizeof noise);
        assert_int_equal(feed(noise, sizeof noise, 100, 1000), -EBADMSG);
        assert_int_equal(feed((const uint8_t *)"\0NOTBEGIN\r\n", 11, 1, 1000), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_streams),
                cmocka_unit_test(test_endless_authentication),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
