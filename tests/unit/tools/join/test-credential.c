/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/join/credential.h"
#include "tools/join/place.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static char token[TOKEN_TEXT_MAX];

/* With the token for '%'. */
static int parse(const char *pattern, struct join_credential *ret, const char **ret_why) {
        char text[2 * CREDENTIAL_MAX];
        const char *mark = strchr(pattern, '%');

        snprintf(text, sizeof(text), "%.*s%s%s", mark ? (int)(mark - pattern) : (int)strlen(pattern), pattern,
                 mark ? token : "", mark ? mark + 1 : "");
        return credential_parse(text, ret, ret_why);
}

static void test_good(void **state) {
        static const struct {
                const char *text, *target, *name;
        } table[] = {
                { "n1 cloud-17 %", "n1", "cloud-17" },
                { "n1:8000 cloud-17 %\n", "n1:8000", "cloud-17" },
                { "  [2001:db8::1]:7747\ta.b %\r\n", "[2001:db8::1]:7747", "a.b" },
                { "192.0.2.1 x %", "192.0.2.1", "x" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct join_credential c;
                const char *why = NULL;
                char text[TOKEN_TEXT_MAX];
                assert_int_equal(parse(table[i].text, &c, &why), 0);
                assert_string_equal(c.target, table[i].target);
                assert_string_equal(c.name, table[i].name);
                assert_int_equal(join_token_format(&c.token, text), 0);
                assert_string_equal(text, token);
        }
}

static void test_bad(void **state) {
        static const struct {
                const char *text, *why;
        } table[] = {
                { "", "three words" },
                { "n1", "three words" },
                { "n1 %", "three words" },
                { "n1 x % y", "three words" },
                { "n1 x %\nn2 y", "three words" },
                { "n1:99999999 x %", "HOST[:PORT]" },
                { ":1 x %", "HOST[:PORT]" },
                { "--local x %", "HOST[:PORT]" },
                { "n1\x01"
                  "b x %",
                  "HOST[:PORT]" },
                { "n\xc3\xa4 x %", "HOST[:PORT]" },
                { "n1 X %", "a node's name" },
                { "n1 ../x %", "a node's name" },
                { "n1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa %", "a node's name" },
                { "n1 x primus1.abcde", "no token" },
        };
        char *longest = malloc(CREDENTIAL_MAX);
        struct join_credential c;
        const char *why = NULL;

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                assert_int_equal(parse(table[i].text, &c, &why), -EINVAL);
                assert_non_null(strstr(why, table[i].why));
        }
        memset(longest, 'a', CREDENTIAL_MAX);
        strcpy(longest + CREDENTIAL_MAX - 8, " x %");
        assert_int_equal(parse(longest, &c, &why), -EINVAL);
        free(longest);
}

static void test_files(void **state) {
        char path[] = "/tmp/test-credential.XXXXXX";
        struct join_credential c;
        FILE *f = fdopen(mkstemp(path), "w");

        assert_non_null(f);
        fprintf(f, "n1 x %s\n", token);
        fflush(f);
        assert_int_equal(credential_read(path, &c), JOIN_OK);
        assert_string_equal(c.name, "x");
        fputc('\0', f);
        fflush(f);
        assert_int_equal(credential_read(path, &c), JOIN_CONFIG);
        for (size_t i = 0; i < CREDENTIAL_MAX; i++)
                fputc(' ', f);
        fclose(f);
        assert_int_equal(credential_read(path, &c), JOIN_CONFIG);
        unlink(path);
        assert_int_equal(credential_read(path, &c), JOIN_CONFIG);
}

static int make_token(void **state) {
        static const uint8_t fingerprint[32] = { 1, 2, 3 };
        struct join_token t;

        return join_token_new(fingerprint, &t) < 0 || join_token_format(&t, token) < 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_good),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_files),
        };
        return cmocka_run_group_tests(tests, make_token, NULL);
}
