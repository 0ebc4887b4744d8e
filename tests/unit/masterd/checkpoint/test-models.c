/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/checkpoint/models.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct model *add_version(struct models *all, uint32_t owner, const char *name, uint32_t version,
                                 int expected) {
        const struct model m = { .owner = owner,
                                 .name = name,
                                 .version = version,
                                 .path = "/p",
                                 .host = "n1",
                                 .metric = "",
                                 .value = NAN,
                                 .note = "",
                                 .labels = "" };
        struct model *x = NULL;

        assert_int_equal(models_add(all, &m, &x), expected);
        return x;
}

static void test_versions(void **state) {
        struct models *all;
        struct model *one, *two;

        assert_int_equal(models_new(&all), 0);
        one = add_version(all, 1000, "digits", 0, 0);
        two = add_version(all, 1000, "digits", 0, 0);
        assert_int_equal(one->version, 1);
        assert_int_equal(two->version, 2);
        assert_int_equal(add_version(all, 1001, "digits", 0, 0)->version, 1);
        assert_int_equal(add_version(all, 1000, "other", 7, 0)->version, 7);
        (void)add_version(all, 1000, "other", 7, -EEXIST);
        assert_int_equal(add_version(all, 1000, "other", 0, 0)->version, 8);
        assert_ptr_equal(models_find(all, 1000, "digits", 0), two);
        assert_ptr_equal(models_find(all, 1000, "digits", 1), one);
        two->archived = true;
        assert_ptr_equal(models_find(all, 1000, "digits", 0), one);
        assert_ptr_equal(models_find(all, 1000, "digits", 2), two);
        assert_int_equal(add_version(all, 1000, "digits", 0, 0)->version, 3); /* no version twice */
        assert_null(models_find(all, 1002, "digits", 0));
        assert_ptr_equal(models_next(all, NULL), one);
        assert_ptr_equal(models_next(all, one), two);
        assert_int_equal(models_edit(two, "a note", NULL), 0);
        assert_int_equal(models_edit(two, NULL, "a b"), 0);
        assert_string_equal(two->note, "a note");
        assert_string_equal(two->labels, "a b");
        models_free(all);
        models_free(NULL);
}

static void test_bounds(void **state) {
        struct models *all;

        assert_int_equal(models_new(&all), 0);
        for (uint32_t i = 0; i < MODELS_PER_USER_MAX; i++)
                (void)add_version(all, 1000, "m", i + 1, 0);
        (void)add_version(all, 1000, "other", 0, -EDQUOT);
        for (uint32_t i = MODELS_PER_USER_MAX; i < MODELS_MAX; i++)
                (void)add_version(all, 1000 + i / MODELS_PER_USER_MAX, "m", i, 0);
        (void)add_version(all, 5000, "m", 0, -ENOSPC);
        models_free(all);
}

static void test_words(void **state) {
        static const char *const bad[] = { "",    "1",   "1a",   "-a",  ".a",       "_a",
                                           "a b", "a/b", "../a", "a@1", "\xc3\xa4", "<a>" };
        char text[MODEL_NOTE_MAX + 2];

        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                assert_false(model_name_valid(bad[i]));
        assert_true(model_name_valid("Digits_2.0-rc"));
        memset(text, 'a', sizeof(text));
        text[MODEL_NAME_MAX] = 0;
        assert_true(model_name_valid(text) && model_label_valid(text));
        text[MODEL_NAME_MAX] = 'a';
        text[MODEL_NAME_MAX + 1] = 0;
        assert_false(model_name_valid(text) || model_label_valid(text));
        assert_true(model_label_valid("2026-11"));
        assert_false(model_label_valid("") || model_label_valid("a b") || model_label_valid("<b>"));
        assert_true(model_note_valid("") && model_note_valid("f\xc3\xbcr <alle>"));
        assert_false(model_note_valid("a\nb") || model_note_valid("\x1b[2J") || model_note_valid("\xff"));
        memset(text, 'a', sizeof(text));
        text[MODEL_NOTE_MAX + 1] = 0;
        assert_false(model_note_valid(text));
        text[MODEL_NOTE_MAX] = 0;
        assert_true(model_note_valid(text));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_versions),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
