/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: the C library's own parts are on every host. */
#include "lib/base/library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct api {
        double (*cos)(double);
        void (*missing)(void);
};

static const struct library_symbol symbols[] = {
        { "cos", offsetof(struct api, cos), false },
        { "no_such_function", offsetof(struct api, missing), true },
};

static void loads(void **state) {
        const struct library l = { .sonames = { "libnone.so.7", "libm.so.6" },
                                   .symbols = symbols,
                                   .n_symbols = 2 };
        struct api api = { .missing = abort };
        char error[LIBRARY_ERROR_MAX];
        void *handle = NULL;

        (void)state;
        assert_int_equal(library_load(&l, &api, &handle, error), 0);
        assert_non_null(handle);
        assert_true(api.cos(0) == 1);
        assert_null(api.missing);
        library_unload(handle);
        library_unload(NULL);
}

static void is_not_there(void **state) {
        const struct library l = {
                .sonames = { "libnone.so.7" },
                .purpose = "libnone, which does nothing",
                .remedy = "install libnone7",
                .symbols = symbols,
                .n_symbols = 2,
        };
        const char *begin = "this host has no libnone, which does nothing; install libnone7 (libnone.so.7: ";
        char error[LIBRARY_ERROR_MAX];
        void *handle = NULL;
        struct api api = {};

        (void)state;
        assert_int_equal(library_load(&l, &api, &handle, error), -ENOENT);
        assert_memory_equal(error, begin, strlen(begin));
        assert_null(handle);
}

static void lacks_a_function(void **state) {
        static const struct library_symbol more[] = { { "no_such_function", offsetof(struct api, missing),
                                                        false } };
        const struct library l = { .sonames = { "libm.so.6" },
                                   .purpose = "libm",
                                   .remedy = "install it",
                                   .symbols = more,
                                   .n_symbols = 1 };
        char error[LIBRARY_ERROR_MAX];
        struct api api = {};

        (void)state;
        assert_int_equal(library_load(&l, &api, NULL, error), -ENOSYS);
        assert_string_equal(error, "this host has no libm; install it (what it has lacks no_such_function)");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(loads),
                cmocka_unit_test(is_not_there),
                cmocka_unit_test(lacks_a_function),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
