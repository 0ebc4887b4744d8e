/* SPDX-License-Identifier: Apache-2.0 */
/* S3's addresses, and its listings whatever is in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "executor/read/s3.h"
#include "lib/base/cleanup.h"

static void test_url(void **state) {
        struct input_source s = { .s3_endpoint = (char *)"http://minio:9000/", .s3_region = (char *)"eu" };
        _cleanup_free_ char *a = NULL, *b = NULL, *c = NULL;

        assert_int_equal(s3_url(&s, "s3://bucket/a b/c+d&e=ä/../x", NULL, &a), 0);
        assert_string_equal(a, "http://minio:9000/bucket/a%20b/c%2Bd%26e%3D%C3%A4/../x");
        assert_int_equal(s3_url(&s, "s3://bucket", "list-type=2", &b), 0);
        assert_string_equal(b, "http://minio:9000/bucket?list-type=2");
        s.s3_endpoint = NULL;
        assert_int_equal(s3_url(&s, "s3://bucket/x", NULL, &c), 0);
        assert_string_equal(c, "https://s3.eu.amazonaws.com/bucket/x");
        assert_int_equal(s3_url(&s, "s3:///x", NULL, &c), -EINVAL);
        assert_int_equal(s3_url(&s, "s3://", NULL, &c), -EINVAL);
        assert_int_equal(s3_url(&s, "http://x/y", NULL, &c), -EINVAL);
}

static char got[8192];

static int on_object(void *userdata, const struct s3_object *o) {
        size_t n = strlen(got);

        snprintf(got + n, sizeof(got) - n, "%s=%llu%s ", o->key, (unsigned long long)o->size, o->tag);
        return strcmp(o->key, "stop") == 0 ? -ECANCELED : 0;
}

static int read_list(const char *xml, char *token, size_t size) {
        got[0] = 0;
        return s3_list_read(xml, strlen(xml), on_object, NULL, token, size);
}

#define HEAD "<?xml version=\"1.0\"?>\n<!-- x --><ListBucketResult xmlns='y'>"
#define ONE(key, size) "<Contents><Key>" key "</Key><ETag>&quot;t&#34;</ETag><Size>" size "</Size></Contents>"
#define TAIL "</ListBucketResult>\n"

static void test_list(void **state) {
        static const char *const wrong[] = {
                "",
                "x",
                "<Error/>",
                "<ListBucketResult>",
                "<ListBucketResult><Contents></ListBucketResult>",
                "</ListBucketResult>",
                "<!DOCTYPE x><ListBucketResult/>",
                HEAD TAIL HEAD TAIL,
                HEAD ONE("", "1") TAIL,
                HEAD ONE("k", "") TAIL,
                HEAD ONE("k", "-1") TAIL,
                HEAD ONE("k%0", "1") TAIL,
                HEAD ONE("k%00", "1") TAIL,
                HEAD ONE("k&nbsp;", "1") TAIL,
                HEAD ONE("k&#0;", "1") TAIL,
                HEAD ONE("k&amp", "1") TAIL,
                HEAD "<IsTruncated>true</IsTruncated>" TAIL,
                "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>",
                HEAD "<>" TAIL,
                HEAD "<!-- " TAIL,
        };
        char token[32] = "";

        assert_int_equal(
                read_list(HEAD "<IsTruncated>false</IsTruncated><Empty/><Empty a='b' />" ONE("a%2Fb+c", "12")
                                  ONE("&lt;&amp;",
                                      "0") "<CommonPrefixes><Prefix>p</Prefix></CommonPrefixes>" TAIL,
                          token, sizeof(token)),
                0);
        assert_string_equal(got, "a/b c=12\"t\" <&=0\"t\" ");
        assert_string_equal(token, "");
        assert_int_equal(read_list(HEAD "<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</"
                                        "NextContinuationToken>" TAIL,
                                   token, sizeof(token)),
                         0);
        assert_string_equal(token, "a&b");
        assert_int_equal(read_list(HEAD ONE("stop", "1") ONE("x", "1") TAIL, token, sizeof(token)),
                         -ECANCELED);
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                assert_int_equal(read_list(wrong[i], token, sizeof(token)), -EBADMSG);
        /* Every beginning of a good one is none. */
        for (size_t i = 0; i < strlen(HEAD ONE("k", "1") TAIL) - 2; i++) {
                char *part = strndup(HEAD ONE("k", "1") TAIL, i);

                assert_int_equal(s3_list_read(part, i, on_object, NULL, token, sizeof(token)), -EBADMSG);
                free(part);
        }
}

static void test_error(void **state) {
        char code[16];

        s3_error_code("<Error><Code>NoSuchKey</Code></Error>", code, sizeof(code));
        assert_string_equal(code, "NoSuchKey");
        s3_error_code("<Error><Code>MuchTooLongForThePlace</Code></Error>", code, sizeof(code));
        assert_string_equal(code, "");
        s3_error_code("nothing", code, sizeof(code));
        assert_string_equal(code, "");
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_url), cmocka_unit_test(test_list),
                                            cmocka_unit_test(test_error) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
