/* SPDX-License-Identifier: Apache-2.0 */
/* lib/wire/artifacts.c: which names a host may say, and records in pieces of any size. */
#include "lib/wire/artifacts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_paths(void **state) {
        static const char *const good[] = { "a", "worker-0/model.pt", "a/..b/.c", "two\nlines", "a/ /b" };
        static const char *const bad[] = { "",     "/a",   "a/",    "a//b",   ".", "..",
                                           "a/..", "../a", "a/./b", "a/../b", "/" };
        char text[ARTIFACT_PATH_MAX + 8];

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                assert_true(artifact_path_valid(good[i], strlen(good[i])));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_false(artifact_path_valid(bad[i], strlen(bad[i])));
        assert_false(artifact_path_valid("a\0b", 3));
        memset(text, 'a', sizeof(text));
        assert_true(artifact_path_valid(text, 255));
        assert_false(artifact_path_valid(text, 256));
        for (size_t i = 1; i < sizeof(text); i += 2)
                text[i] = '/';
        assert_true(artifact_path_valid(text, 2 * ARTIFACT_DEPTH_MAX + 1));
        assert_false(artifact_path_valid(text, 2 * ARTIFACT_DEPTH_MAX + 3));
        assert_false(artifact_path_valid(text, sizeof(text)));
}

static void test_links(void **state) {
        static const struct {
                const char *path, *target;
                bool inside;
        } cases[] = {
                { "w/a", "b", true },
                { "w/a", "./b/c", true },
                { "w/d/a", "../b", true },
                { "w/d/a", "../..", true },
                { "w/a", "/etc", false },
                { "w/a", "../../b", false },
                { "w/a", "", false },
                { "a", "..", false },
                { "w/d/a", "b/../../../x", false },
                { "w/d/a", "s/../../x", false }, /* s may be a link that goes up */
                { "w/a", "b//c/", true },
                { "w/a", "..b", true },
                { "w/a", ".././../x", false },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(artifact_link_inside(cases[i].path, cases[i].target), cases[i].inside);
}

struct seen {
        unsigned n;
        size_t bytes;
        int answer;
};

static int on_record(const struct artifact *a, const uint8_t *payload, void *userdata) {
        struct seen *s = userdata;

        assert_int_equal(a->type, s->n % 2 ? ARTIFACT_DATA : ARTIFACT_END);
        assert_int_equal(a->payload_size, s->n % 2 ? s->n * 1000 : 0);
        assert_int_equal(a->size, UINT64_C(0x1122334455667788));
        assert_int_equal(a->mtime_nsec, s->n);
        assert_int_equal(payload[a->payload_size], 0);
        s->bytes += a->payload_size;
        s->n++;
        return s->answer;
}

static void test_pieces(void **state) {
        static const size_t pieces[] = { 1, 7, 24, 25, 4096, 1 << 20 };
        static uint8_t stream[1 << 20];
        size_t size = 0;

        (void)state;
        for (unsigned i = 0; i < 20; i++) {
                const struct artifact a = { .type = i % 2 ? ARTIFACT_DATA : ARTIFACT_END,
                                            .payload_size = (uint16_t)(i % 2 ? i * 1000 : 0),
                                            .size = UINT64_C(0x1122334455667788),
                                            .mtime_nsec = i };
                artifact_write(&a, stream + size);
                memset(stream + size + ARTIFACT_HEAD_SIZE, (int)i, a.payload_size);
                size += ARTIFACT_HEAD_SIZE + a.payload_size;
        }
        for (size_t i = 0; i < ELEMENTSOF(pieces); i++) {
                struct artifact_decoder *d = calloc(1, sizeof(*d));
                struct seen s = {};

                assert_non_null(d);
                for (size_t at = 0; at < size; at += pieces[i])
                        assert_int_equal(
                                artifact_decode(d, stream + at, MIN(pieces[i], size - at), on_record, &s), 0);
                assert_int_equal(s.n, 20);
                assert_int_equal(s.bytes, 100000);
                assert_int_equal(d->have, 0);
                s = (struct seen){ .answer = -EBADMSG };
                assert_int_equal(artifact_decode(d, stream, size, on_record, &s), -EBADMSG);
                assert_int_equal(s.n, 1);
                free(d);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_paths),
                cmocka_unit_test(test_links),
                cmocka_unit_test(test_pieces),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
