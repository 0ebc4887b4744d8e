/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/authority.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define HOUR (UINT64_C(3600) * USEC_PER_SEC)

static void test_certificates(void **state) {
        _cleanup_(certificate_done) struct certificate ca = {}, master = {}, node = {}, again = {};
        _cleanup_free_ char *key = NULL, *csr = NULL, *name = NULL, *master_name = NULL;
        char serial[41];
        uint64_t now = now_real(), not_after;
        assert_int_equal(authority_new("lab", now, 10 * HOUR, &ca), 0);
        assert_non_null(strstr(ca.key_pem, "PRIVATE KEY"));
        assert_int_equal(authority_issue_master(&ca, now, HOUR, &master), 0);
        assert_int_equal(certificate_info(master.cert_pem, &master_name, serial, &not_after), 0);
        assert_string_equal(master_name, AUTHORITY_MASTER_NAME);
        assert_string_equal(serial, master.serial_hex);

        assert_int_equal(certificate_request_new("n1", &key, &csr), 0);
        /* The name is the caller's, not the request's; the end is never behind the CA's. */
        assert_int_equal(authority_issue_node(&ca, csr, strlen(csr), "n2", now, 1000 * HOUR, &node), 0);
        assert_null(node.key_pem);
        assert_int_equal(certificate_info(node.cert_pem, &name, serial, &not_after), 0);
        assert_string_equal(name, "n2");
        assert_string_equal(serial, node.serial_hex);
        assert_true(not_after <= now + 10 * HOUR && not_after + 2 * USEC_PER_SEC >= now + 10 * HOUR);
        assert_int_equal(authority_issue_node(&ca, csr, strlen(csr), "n2", now, HOUR, &again), 0);
        assert_string_not_equal(again.serial_hex, node.serial_hex);
}

/* The same key and name, good from the beginning of the first, and longer. */
static void test_authority_renewed(void **state) {
        _cleanup_(certificate_done) struct certificate ca = {}, next = {}, other = {}, node = {};
        _cleanup_free_ char *key = NULL, *csr = NULL, *before = NULL, *after = NULL;
        uint64_t now = now_real() / USEC_PER_SEC * USEC_PER_SEC, from, until, ignored;
        char serial[41];
        assert_int_equal(authority_new("lab", now, HOUR, &ca), 0);
        assert_int_equal(authority_new("lab", now, HOUR, &other), 0);
        assert_int_equal(authority_renew(&ca, now + 30 * HOUR, 2 * HOUR, &next), 0);
        assert_string_equal(ca.key_pem, next.key_pem);
        assert_string_not_equal(ca.cert_pem, next.cert_pem);
        assert_int_equal(authority_same_key(ca.cert_pem, next.cert_pem), 1);
        assert_int_equal(authority_same_key(ca.cert_pem, other.cert_pem), 0);
        assert_int_equal(authority_same_key(ca.cert_pem, "x"), -EBADMSG);
        assert_int_equal(certificate_validity(next.cert_pem, &from, &until), 0);
        assert_true(from == now - AUTHORITY_BACKDATE_USEC && until == now + 32 * HOUR);
        assert_int_equal(certificate_info(ca.cert_pem, &before, serial, &ignored), 0);
        assert_int_equal(certificate_info(next.cert_pem, &after, serial, &ignored), 0);
        assert_string_equal(before, after);
        assert_int_equal(certificate_request_new("n1", &key, &csr), 0);
        assert_int_equal(authority_issue_node(&next, csr, strlen(csr), "n1", now, 100 * HOUR, &node), 0);
        assert_true(node.not_after_real == now + 32 * HOUR);
}

static void test_requests_refused(void **state) {
        _cleanup_(certificate_done) struct certificate ca = {}, out = {};
        _cleanup_free_ char *key = NULL, *csr = NULL;
        uint64_t now = now_real();
        assert_int_equal(authority_new("lab", now, HOUR, &ca), 0);
        assert_int_equal(certificate_request_new("n1", &key, &csr), 0);
        assert_int_equal(certificate_request_new("N1 bad", &key, &csr), -EINVAL);
        assert_int_equal(authority_issue_node(&ca, csr, strlen(csr), "../n1", now, HOUR, &out), -EINVAL);
        assert_int_equal(authority_issue_node(&ca, csr, strlen(csr), AUTHORITY_MASTER_NAME, now, HOUR, &out),
                         -EINVAL);
        assert_int_equal(authority_issue_node(&ca, "", 0, "n1", now, HOUR, &out), -EBADMSG);
        assert_int_equal(authority_issue_node(&ca, key, strlen(key), "n1", now, HOUR, &out), -EBADMSG);
        assert_int_equal(authority_issue_node(&ca, csr, strlen(csr) / 2, "n1", now, HOUR, &out), -EBADMSG);
        /* One flipped letter in the middle breaks the form or the self-signature. */
        size_t at = strlen(csr) / 2;
        csr[at] = csr[at] == 'A' ? 'B' : 'A';
        assert_int_equal(authority_issue_node(&ca, csr, strlen(csr), "n1", now, HOUR, &out), -EBADMSG);
        _cleanup_free_ char *huge = calloc(1, 20000);
        memset(huge, 'A', 19999);
        assert_int_equal(authority_issue_node(&ca, huge, 19999, "n1", now, HOUR, &out), -EBADMSG);
        assert_null(out.cert_pem);
}

static void test_tokens(void **state) {
        _cleanup_(certificate_done) struct certificate ca = {};
        struct join_token a, b, parsed;
        uint8_t fingerprint[32], hash_a[32], hash_b[32];
        char text[TOKEN_TEXT_MAX], padded[TOKEN_TEXT_MAX + 8];
        assert_int_equal(authority_new("lab", now_real(), HOUR, &ca), 0);
        assert_int_equal(authority_fingerprint(ca.cert_pem, fingerprint), 0);
        assert_int_equal(authority_fingerprint("nonsense", fingerprint), -EBADMSG);
        assert_int_equal(join_token_new(fingerprint, &a), 0);
        assert_int_equal(join_token_new(fingerprint, &b), 0);
        assert_memory_not_equal(a.secret, b.secret, sizeof a.secret);
        join_secret_hash(a.secret, hash_a);
        join_secret_hash(b.secret, hash_b);
        assert_memory_not_equal(hash_a, hash_b, sizeof hash_a);

        assert_int_equal(join_token_format(&a, text), 0);
        assert_int_equal(strlen(text), 8 + 90);
        assert_int_equal(join_token_parse(text, &parsed), 0);
        assert_memory_equal(&parsed, &a, sizeof a);
        (void)snprintf(padded, sizeof padded, "  %s\r\n", text);
        assert_int_equal(join_token_parse(padded, &parsed), 0);

        static const char *const bad[] = { "", "primus1.", "primus2.abc", "primus1.abc", "   " };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(join_token_parse(bad[i], &parsed), -EINVAL);
        (void)snprintf(padded, sizeof padded, "%sa", text);
        assert_int_equal(join_token_parse(padded, &parsed), -EINVAL);
        (void)snprintf(padded, sizeof padded, "%s x", text);
        assert_int_equal(join_token_parse(padded, &parsed), -EINVAL);
        text[20] = '1';
        assert_int_equal(join_token_parse(text, &parsed), -EINVAL);
        text[20] = 'a';
        text[strlen(text) - 1] = 'b'; /* a spare bit that is not zero */
        assert_int_equal(join_token_parse(text, &parsed), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_certificates),
                cmocka_unit_test(test_authority_renewed),
                cmocka_unit_test(test_requests_refused),
                cmocka_unit_test(test_tokens),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
