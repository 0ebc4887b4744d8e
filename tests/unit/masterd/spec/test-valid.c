/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for single texts: what is taken, what is not, and that whoever is refused hears what is expected. */
#include "masterd/spec/valid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define TEXTS_MAX 14

static const struct {
        bool (*valid)(const char *s, const char **ret_why);
        const char *good[TEXTS_MAX], *bad[TEXTS_MAX];
} rules[] = {
        { valid_role_name,
          { "w", "worker_1", "_x", "abcdefghijklmnopqrstuvwxyz012345" },
          { "", "1w", "a-b", "a b", "é", "abcdefghijklmnopqrstuvwxyz0123456" } },
        { valid_env_name, { "A", "_", "a1" }, { "", "1", "A=B", "A-B" } },
        { valid_label, { "", "a job, with blanks" }, { "a/b", "a\nb", "\x1b[2J" } },
        { valid_queue, { "default", "a.b-c_9" }, { "", "a b", "a/b", "é" } },
        { valid_stack_signal,
          { "USR2", "SIGUSR2", "42", "none" },
          { "KILL", "STOP", "USR2@60s", "0", "65", "x" } },
        { valid_plain_signal, { "USR1", "SIGTERM" }, { "USR1@60s", "KILL", "none" } },
        { valid_signal, { "USR1", "USR1@60s", "TERM@1d" }, { "USR1@", "USR1@2d", "KILL@60s", "@60s" } },
        { valid_file, { "train.py", "/opt/lib" }, { "", "https://x/y", "a\nb" } },
        { valid_directory, { "/", "/home/ml", "/with blanks/x" }, { "", "home", "/a\n", "/a ", "/a\\" } },
        { valid_output, { "out", "out/%j-%r-%i.%a", "%%%n" }, { "%", "%x", "a%", "a\nb" } },
        { valid_after, { "417", "417:any", "417:ok", "417[3]" }, { "", "x", "417:never", "0" } },
        { valid_array, { "0-9", "1,3-5" }, { "", "x", "5-1" } },
        { valid_begin,
          { "2026-01-31T08:00:00Z", "2026-01-31T09:00:00+01:00" },
          { "", "soon", "2026-02-31T08:00:00Z", "2026-01-31T08:00:00" } },
        { valid_data_path,
          { "/data/*", "file:///data", "https://h/x", "s3://bucket/key", "gs://bucket/key", "hdfs://h:8020/x",
            "/d/{{YYYY}}/{{MM}}" },
          { "data", "file://data", "https:///x", "https://u:p@h/x", "https://h/a b", "s3://bucket",
            "gs://bucket", "gs:///key", "hdfs://h", "hdfs://u@h/x", "hdfs://h/a b", "ftp://h/x",
            "/d/{{WEEK}}" } },
        { valid_name_pattern, { "*", "part-{{HH}}*" }, { "a/b", "{{x}}" } },
        { valid_marker, { "_SUCCESS", "/a/{{DD}}/_SUCCESS" }, { "", "{{" } },
        { valid_reader_class,
          { "a:B", "a.b_c:D.E" },
          { "", "com.example.Reader", "a:", ":B", "a:B;id", "a:B c", "a/b:C", "a" } },
        { valid_endpoint,
          { "http://h", "https://s3.example.org" },
          { "h", "http://", "https://u@h", "http://a b" } },
        { valid_endpoints,
          { "http://h", "http://a:9870,https://b" },
          { "", ",", "h", "http://a,b", "http://a, http://b",
            "http://a,http://a,http://a,http://a,http://a,http://a,http://a,http://a,http://a" } },
        { valid_topic, { "t", "a.b-c_9" }, { ".", "..", "a/b", "é" } },
        { valid_property, { "bootstrap.servers" }, { "", "a=b", "a b" } },
};

static void test_rules(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(rules); i++) {
                for (size_t k = 0; k < TEXTS_MAX && rules[i].good[k]; k++) {
                        const char *why = NULL;

                        if (!rules[i].valid(rules[i].good[k], &why))
                                fail_msg("rule %zu refuses \"%s\": it %s", i, rules[i].good[k], why);
                }
                for (size_t k = 0; k < TEXTS_MAX && rules[i].bad[k]; k++) {
                        const char *why = NULL;

                        if (rules[i].valid(rules[i].bad[k], &why))
                                fail_msg("rule %zu takes \"%s\"", i, rules[i].bad[k]);
                        assert_non_null(why); /* a clause behind the text itself */
                        if (strncmp(why, "must ", 5) != 0)
                                fail_msg("\"%s\" %s", rules[i].bad[k], why);
                }
        }
}

static void test_lengths(void **state) {
        _cleanup_free_ char *text = malloc(4097);
        const char *why;

        assert_non_null(text);
        memset(text, 'x', 4096);
        text[4096] = 0;
        assert_false(valid_file(text, &why));
        assert_false(valid_marker(text, &why));
        text[4095] = 0;
        assert_true(valid_file(text, &why));
        assert_true(valid_marker(text, &why));
        text[256] = 0;
        assert_false(valid_property(text, &why));
        text[255] = 0;
        assert_true(valid_property(text, &why));
        text[64] = 0;
        assert_false(valid_queue(text, &why));
        text[63] = 0;
        assert_true(valid_queue(text, &why));
}

static void test_has_date(void **state) {
        assert_true(valid_has_date("/d/{{YYYY}}"));
        assert_true(valid_has_date("{{HH}}"));
        assert_false(valid_has_date("/d/{YYYY}"));
        assert_false(valid_has_date("/d/{{yyyy}}"));
        assert_false(valid_has_date(""));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rules),
                cmocka_unit_test(test_lengths),
                cmocka_unit_test(test_has_date),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
