/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/store-fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

int fixture_setup(void **state) {
        struct fixture *f = calloc(1, sizeof(*f));

        if (!f)
                return -1;
        strcpy(f->directory, "/tmp/test-store.XXXXXX");
        if (!mkdtemp(f->directory) || sd_event_new(&f->event) < 0)
                return -1;
        snprintf(f->path, sizeof(f->path), "%s/primus.db", f->directory);
        *state = f;
        return store_open(f->path, f->event, NULL, &f->store);
}

int fixture_teardown(void **state) {
        struct fixture *f = *state;

        store_close(f->store);
        sd_event_unref(f->event);
        remove_tree(f->directory);
        free(f);
        return 0;
}

void reopen(struct fixture *f) {
        store_close(TAKE_PTR(f->store));
        assert_int_equal(store_open(f->path, f->event, NULL, &f->store), 0);
}

void count_effect(void *userdata, int error) {
        struct fixture *f = userdata;

        f->effects++;
        f->error = error;
}

void settle(struct fixture *f) {
        unsigned before = f->effects;

        assert_int_equal(store_commit(f->store, count_effect, f), 0);
        while (f->effects == before)
                assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
        assert_int_equal(f->error, 0);
}
