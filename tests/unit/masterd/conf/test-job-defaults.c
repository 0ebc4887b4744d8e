/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/conf/job-defaults.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "tests/kit/json.h"

struct place {
        char path[64];
        struct pools pools;
};

static int set_up(void **state) {
        struct place *p = calloc(1, sizeof(*p));

        snprintf(p->path, sizeof(p->path), "/tmp/job-defaults.XXXXXX");
        assert_non_null(mkdtemp(p->path));
        assert_int_equal(pools_new(&p->pools), 0);
        *state = p;
        return 0;
}

static int tear_down(void **state) {
        struct place *p = *state;

        assert_int_equal(remove_tree(p->path), 0);
        pools_done(&p->pools);
        free(p);
        return 0;
}

static void put(const struct place *p, const char *name, const char *text) {
        char path[192];

        snprintf(path, sizeof(path), "%s/%s", p->path, name);
        text = json_text(text);
        assert_int_equal(write_file_atomic(path, text, strlen(text), 0644, false), 0);
}

static int read_all(const struct place *p, struct layers **ret) {
        return job_defaults_read(p->path, &p->pools, ret);
}

static void test_none(void **state) {
        const struct place *p = *state;
        struct layers *l = NULL;

        assert_int_equal(job_defaults_read("/tmp/is-not-there", &p->pools, &l), 0);
        assert_null(l);
        assert_int_equal(read_all(p, &l), 0);
        assert_null(l);
        put(p, "README", "no JSON");
        put(p, ".hidden.json", "no JSON");
        put(p, "a.json.dpkg-new", "no JSON");
        assert_int_equal(read_all(p, &l), 0);
        assert_null(l);
}

static void test_order(void **state) {
        const struct place *p = *state;
        _cleanup_(layers_free_p) struct layers *l = NULL;

        put(p, "20-b.json", "{'defaults': {'priority': 2}}");
        put(p, "10-a.json", "{'pools': ['default'], 'forced': {'memory': '1G'}}");
        assert_int_equal(read_all(p, &l), 0);
        assert_int_equal(layers_n(l), 2);
        assert_string_equal(layers_name(l, 0), "10-a.json");
        assert_string_equal(layers_text(l, 1), json_text("{'defaults':{'priority':2}}"));
}

/* One bad file is all of them; what was there is not touched. */
static void test_bad(void **state) {
        const struct place *p = *state;
        struct layers *l = NULL;
        char path[192];

        put(p, "a.json", "{'defaults': {'priority': 2}}");
        put(p, "b.json", "{'defaults': {'priorty': 2}}");
        assert_int_equal(read_all(p, &l), -EINVAL);
        assert_null(l);
        put(p, "b.json", "{'pools': ['nowhere']}");
        assert_int_equal(read_all(p, &l), -EINVAL);
        put(p, "b.json", "{}");
        snprintf(path, sizeof(path), "%s/b.json", p->path);
        assert_int_equal(chmod(path, 0666), 0);
        assert_int_equal(read_all(p, &l), -EINVAL);
        assert_int_equal(chmod(path, 0644), 0);
        assert_int_equal(chmod(p->path, 0777), 0);
        assert_int_equal(read_all(p, &l), -EINVAL);
        assert_int_equal(chmod(p->path, 0700), 0);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkdir(path, 0755), 0);
        assert_int_equal(read_all(p, &l), -EINVAL);
        assert_null(l);
}

static void test_too_many(void **state) {
        const struct place *p = *state;
        _cleanup_(layers_free_p) struct layers *l = NULL;
        struct layers *none = NULL;
        char name[32];

        for (unsigned i = 0; i < LAYERS_MAX; i++) {
                snprintf(name, sizeof(name), "%02u.json", i);
                put(p, name, "{}");
        }
        assert_int_equal(read_all(p, &l), 0);
        assert_int_equal(layers_n(l), LAYERS_MAX);
        put(p, "99.json", "{}");
        assert_int_equal(read_all(p, &none), -EINVAL);
        assert_null(none);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_none, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_bad, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_too_many, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
