/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests come back as they were written; others are refused. */
#include "tools/state/manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/json.h"

#define HASH_A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HASH_B "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"

static void make(struct manifest *m) {
        *m = (struct manifest){ .program = strdup("0.1.0"),
                                .store_version = 7,
                                .cluster = "00112233445566778899aabbccddeeff",
                                .host = strdup("n1"),
                                .created_real = UINT64_C(1767225600000000),
                                .state_directory = strdup("/var/lib/primus") };
        assert_int_equal(manifest_add(m, "primus.db", UINT64_C(5000000000), 0600, HASH_A), 0);
        assert_int_equal(manifest_add(m, "settings/masterd.conf", 12, 0644, HASH_B), 0);
        assert_int_equal(manifest_leave_out(m, "/etc/primus/hooks/fence", "Permission denied"), 0);
}

static void test_round_trip(void **state) {
        struct manifest m, n;
        const char *why, *name;
        char *text;

        make(&m);
        assert_int_equal(manifest_format(&m, &text), 0);
        assert_int_equal(manifest_parse(text, strlen(text), &n), 0);
        assert_string_equal(n.program, "0.1.0");
        assert_string_equal(n.host, "n1");
        assert_string_equal(n.cluster, m.cluster);
        assert_string_equal(n.state_directory, "/var/lib/primus");
        assert_int_equal(n.store_version, 7);
        assert_true(n.created_real == m.created_real);
        assert_false(n.bundles);
        assert_int_equal(n.n_left_out, 1);
        assert_string_equal(n.left_out[0], "/etc/primus/hooks/fence: Permission denied");
        assert_true(manifest_same_files(&m, &n, &why, &name));
        free(text);
        manifest_done(&n);
        manifest_done(&m);
}

/* One name that is no text does not spoil all of the backup. */
static void test_left_out(void **state) {
        struct manifest m, n;
        char *text;

        make(&m);
        assert_int_equal(manifest_leave_out(&m, "/etc/primus/hooks/\xff", "not a name that a backup takes"),
                         0);
        assert_int_equal(manifest_format(&m, &text), 0);
        assert_int_equal(manifest_parse(text, strlen(text), &n), 0);
        assert_string_equal(n.left_out[1],
                            "a file whose name cannot be shown: not a name that a backup takes");
        free(text);
        manifest_done(&n);
        manifest_done(&m);
}

static void test_differences(void **state) {
        struct manifest m, n;
        const char *why, *name;

        make(&m);
        make(&n);
        n.files[1].size++;
        assert_false(manifest_same_files(&m, &n, &why, &name));
        assert_string_equal(name, "settings/masterd.conf");
        n.files[1].size--;
        n.files[1].mode = 0777;
        assert_false(manifest_same_files(&m, &n, &why, &name));
        n.files[1].mode = 0644;
        memcpy(n.files[0].sha256, HASH_B, 65);
        assert_false(manifest_same_files(&m, &n, &why, &name));
        assert_string_equal(name, "primus.db");
        memcpy(n.files[0].sha256, HASH_A, 65);
        assert_true(manifest_same_files(&m, &n, &why, &name));
        assert_int_equal(manifest_add(&n, "settings/hooks/fence", 1, 0755, HASH_A), 0);
        assert_false(manifest_same_files(&m, &n, &why, &name));
        assert_false(manifest_same_files(&n, &m, &why, &name));
        manifest_done(&n);
        manifest_done(&m);
}

static void test_refused(void **state) {
        struct manifest m, n;
        char *text, *changed;
        static const char *const bad[][2] = {
                { "'format': 1", "'format': 0" },
                { "'format': 1", "'format': '1'" },
                { "settings/masterd.conf", "settings/../shadow" },
                { HASH_B, "f" },
                { "00112233445566778899aabbccddeeff", "00112233445566778899aabbccddeefg" },
                { "'mode': 420", "'mode': -1" },
                { "'mode': 420", "'mode': 4096" },
                { "'size': 12", "'size': -12" },
                { "/var/lib/primus", "var/lib/primus" },
                { "'bundles': false", "'bundles': 0" },
                { "'host'", "'ghost'" },
                /* What a terminal would take for an order. */
                { "\"n1\"", "\"n1\\u001b[2J\"" },
                { "\"n1\"", "\"n1\\u009b2J\"" },
                { "\"n1\"", "\"n1\\n\"" },
                { "\"0.1.0\"", "\"0.1.0\\u007f\"" },
                { "Permission denied", "\\u001b]0;x\\u0007" },
                { "/var/lib/primus\"", "/var/lib/primus\\u001b[1m\"" },
                { "{", "[" },
        };

        make(&m);
        assert_int_equal(manifest_format(&m, &text), 0);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                char *at = strstr(text, json_text(bad[i][0]));
                assert_non_null(at);
                assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, json_text(bad[i][1]),
                                     at + strlen(bad[i][0])) > 0);
                if (manifest_parse(changed, strlen(changed), &n) != -EBADMSG)
                        fail_msg("%s", bad[i][1]);
                free(changed);
        }
        for (size_t n_bytes = 0; n_bytes < strlen(text) - 1; n_bytes += 7)
                assert_int_equal(manifest_parse(text, n_bytes, &n), -EBADMSG);
        *strstr(text, "1,") = '2';
        assert_int_equal(manifest_parse(text, strlen(text), &n), -EPROTONOSUPPORT);
        free(text);
        manifest_done(&m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_left_out),
                cmocka_unit_test(test_differences),
                cmocka_unit_test(test_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
