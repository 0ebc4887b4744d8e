/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/view/logview.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

/* One view over a memory stream and two executors. */
struct scene {
        struct logview view;
        struct logsource a, b;
        char *out;
        size_t n;
};

static void scene_open(struct scene *s, bool tty) {
        *s = (struct scene){ .view = { .tty = tty, .prefixed = true } };
        s->view.out = open_memstream(&s->out, &s->n);
        s->a = (struct logsource){ .prefix = strdup("a | "), .role = "a", .index = 0, .attempt = 1 };
        s->b = (struct logsource){ .prefix = strdup("b | "), .role = "b", .index = 7, .attempt = 2 };
}

static void put(struct scene *s, struct logsource *source, const char *text) {
        assert_int_equal(logview_data(&s->view, source, text, strlen(text)), 0);
}

static void scene_close(struct scene *s, const char *expected) {
        assert_int_equal(logview_end(&s->view, &s->a), 0);
        assert_int_equal(logview_end(&s->view, &s->b), 0);
        fclose(s->view.out);
        assert_string_equal(s->out, expected);
        logsource_done(&s->a);
        logsource_done(&s->b);
        free(s->out);
}

static void test_lines_stay_whole(void **state) {
        struct scene s;

        scene_open(&s, false);
        put(&s, &s.a, "one\ntw");
        put(&s, &s.b, "x\n");
        put(&s, &s.a, "o\nthree");
        scene_close(&s, "a | one\nb | x\na | two\na | three\n");
}

static void test_carriage_returns(void **state) {
        struct scene s;

        /* A pipe gets every byte, a terminal what it would be showing in the end. */
        scene_open(&s, false);
        put(&s, &s.a, "\r10%\r20%\n");
        scene_close(&s, "a | \r10%\r20%\n");
        scene_open(&s, true);
        put(&s, &s.a, "\r10%\r20%\ndos\r\n");
        scene_close(&s, "a | 20%\na | dos\n");
}

static void test_unfinished_bar(void **state) {
        struct scene s;

        /* The bar is on its way, is wiped for another's line, and ends. */
        scene_open(&s, true);
        put(&s, &s.a, "\r10%");
        put(&s, &s.b, "x\n");
        put(&s, &s.a, "\r20%");
        put(&s, &s.a, "\r30%\n");
        scene_close(&s, "\r\033[Ka | 10%\r\033[Kb | x\n\r\033[Ka | 20%\r\033[Ka | 30%\n");
}

/* What matches, and what is around it, by executor. */
static void test_filter(void **state) {
        struct scene s;
        char *why = NULL;

        scene_open(&s, false);
        assert_int_equal(logfilter_new("LOSS [0-9]+$", true, 0, &s.view.filter, &why), 0);
        put(&s, &s.a, "begin\nloss 7\nlo");
        put(&s, &s.b, "loss 8\nno loss\n");
        put(&s, &s.a, "ss 9");
        logview_end(&s.view, &s.a);
        assert_int_equal(s.view.filter->matched, 3);
        s.view.filter = logfilter_free(s.view.filter);
        scene_close(&s, "a | loss 7\nb | loss 8\na | loss 9\n");

        /* No line twice, none before one that was shown, and lines that were left out are marked. */
        scene_open(&s, false);
        assert_int_equal(logfilter_new("x", false, 2, &s.view.filter, &why), 0);
        put(&s, &s.a, "1\n2\n3\nx4\n5\nx6\n7\n8\n9\n10\n11\n12\nx13\n14\n");
        put(&s, &s.b, "1\nx2\n");
        s.view.filter = logfilter_free(s.view.filter);
        scene_close(
                &s,
                "a | 2\na | 3\na | x4\na | 5\na | x6\na | 7\na | 8\na | --\na | 11\na | 12\na | x13\na | 14\n"
                "b | 1\nb | x2\n");

        /* Next to each other is no gap; one executor alone has no prefix, and is looked through by lines,
         * too. */
        scene_open(&s, false);
        s.view.prefixed = false;
        assert_int_equal(logfilter_new("^x", false, 1, &s.view.filter, &why), 0);
        put(&s, &s.a, "x1\n2\n3\nx4\n");
        s.view.filter = logfilter_free(s.view.filter);
        scene_close(&s, "x1\n2\n3\nx4\n");

        assert_int_equal(logfilter_new("a(", false, 1, &s.view.filter, &why), -EINVAL);
        assert_non_null(why);
        free(why);
}

static void test_filter_json(void **state) {
        struct scene s;
        char *why = NULL;

        scene_open(&s, false);
        s.view.json = true;
        assert_int_equal(logfilter_new("b", false, 1, &s.view.filter, &why), 0);
        put(&s, &s.a, "a\nb\n");
        s.view.filter = logfilter_free(s.view.filter);
        scene_close(&s, "{\"role\":\"a\",\"index\":0,\"attempt\":1,\"line\":\"a\",\"match\":false}\n"
                        "{\"role\":\"a\",\"index\":0,\"attempt\":1,\"line\":\"b\",\"match\":true}\n");
}

static void test_alone(void **state) {
        struct scene s;

        scene_open(&s, false);
        s.view.prefixed = false;
        put(&s, &s.a, "10%\r");
        put(&s, &s.a, "20%\033[2J\xff");
        scene_close(&s, "10%\r20%\033[2J\xff");
        scene_open(&s, true);
        s.view.prefixed = false;
        put(&s, &s.a, "10%\r20%\033[2J\n");
        scene_close(&s, "10%\r20%\n");
}

static void test_long_line(void **state) {
        _cleanup_free_ char *line = malloc(200001), *expected = NULL;
        struct scene s;

        memset(line, 'x', 200000);
        line[200000] = 0;
        /* Comes in small pieces and never ends: shown in pieces, bounded in memory. */
        scene_open(&s, false);
        for (size_t i = 0; i < 200000; i += 1000)
                assert_int_equal(logview_data(&s.view, &s.a, line + i, 1000), 0);
        assert_true(s.a.n_partial <= 65536);
        assert_int_equal(logview_end(&s.view, &s.a), 0);
        fflush(s.view.out);
        assert_int_equal(s.n, 200000 + 4 * strlen("a | \n"));
        expected = strdup(s.out);
        scene_close(&s, expected);
}

static void test_json(void **state) {
        struct scene s;

        scene_open(&s, false);
        s.view.json = true;
        put(&s, &s.b, "say \"hi\"\xff\n");
        scene_close(&s, "{\"role\":\"b\",\"index\":7,\"attempt\":2,\"line\":\"say \\\"hi\\\"?\"}\n");
}

static void test_silent(void **state) {
        struct scene s;

        scene_open(&s, false);
        put(&s, &s.a, "one\ntwo");
        s.view.silent = true;
        put(&s, &s.a, "three\n");
        scene_close(&s, "a | one\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines_stay_whole), cmocka_unit_test(test_carriage_returns),
                cmocka_unit_test(test_unfinished_bar),   cmocka_unit_test(test_filter),
                cmocka_unit_test(test_filter_json),      cmocka_unit_test(test_alone),
                cmocka_unit_test(test_long_line),        cmocka_unit_test(test_json),
                cmocka_unit_test(test_silent),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
