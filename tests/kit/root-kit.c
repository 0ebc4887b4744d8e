/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/root-kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

char root_kit[] = "/tmp/primus-root-XXXXXX";

int root_setup(void **state) {
        strcpy(strrchr(root_kit, '-'), "-XXXXXX"); /* where it was made before */
        return mkdtemp(root_kit) ? 0 : -1;
}

int root_teardown(void **state) {
        return remove_tree(root_kit);
}

void root_put_bytes(const char *path, const void *data, size_t size) {
        _cleanup_free_ char *full = NULL, *directory = NULL;

        assert_true(asprintf(&full, "%s%s", root_kit, path) >= 0);
        directory = strndup(full, (size_t)(strrchr(full, '/') - full));
        assert_non_null(directory);
        assert_int_equal(make_directories(directory, 0755), 0);
        assert_int_equal(write_file_atomic(full, data, size, 0644, false), 0);
}

void root_put(const char *path, const char *text) {
        root_put_bytes(path, text, strlen(text));
}
