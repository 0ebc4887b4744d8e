/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <gnutls/crypto.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "masterd/relay/bundle-files.h"

#define UID 1000u
#define KIB UINT64_C(1024)

struct place {
        char path[64];
        struct bundle_files *files;
        const char *used; /* by a job */
        uint64_t now;
};

static bool in_use(uint32_t uid, const char *sha256, void *userdata) {
        const struct place *p = userdata;

        return p->used && strcmp(p->used, sha256) == 0;
}

static void open_files(struct place *p) {
        struct bundle_limits limits = { .bundle_max = 600 * KIB, .per_user_max = 1000 * KIB };

        assert_int_equal(bundle_files_new(p->path, &limits, in_use, p, &p->files), 0);
}

static int setup(void **state) {
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        strcpy(p->path, "/tmp/test-bundles.XXXXXX");
        assert_non_null(mkdtemp(p->path));
        p->now = now_real();
        open_files(p);
        *state = p;
        return 0;
}

static int teardown(void **state) {
        struct place *p = *state;

        bundle_files_free(p->files);
        assert_int_equal(remove_tree(p->path), 0);
        free(p);
        return 0;
}

/* Content number k of that size, and its name. */
static char *content(unsigned k, size_t size, char sha256[static 65]) {
        char *p = malloc(size);
        uint8_t digest[32];

        assert_non_null(p);
        for (size_t i = 0; i < size; i++)
                p[i] = (char)(i * 7 + k * 13 + i / 251);
        assert_int_equal(gnutls_hash_fast(GNUTLS_DIG_SHA256, p, size, digest), 0);
        for (size_t i = 0; i < sizeof(digest); i++)
                snprintf(sha256 + 2 * i, 3, "%02x", digest[i]);
        return p;
}

static int put(struct place *p, const char *sha256, uint64_t size, uint64_t offset, const void *chunk,
               size_t n, uint64_t *ret_next) {
        struct bundle_finish finish;
        int r = bundle_files_put(p->files, UID, sha256, size, offset, chunk, n, p->now, ret_next, &finish);

        if (r == BUNDLE_RECEIVED) {
                uint64_t next;
                assert_false(bundle_files_have(p->files, UID, sha256, p->now));
                assert_int_equal(
                        bundle_files_put(p->files, UID, sha256, size, 0, chunk, 0, p->now, &next, &finish),
                        BUNDLE_FINISHING);
                assert_int_equal(bundle_finish(&finish), 0);
                /* Under its name, but nobody has heard yet that it is durable. */
                assert_int_equal(
                        bundle_files_put(p->files, UID, sha256, size, 0, chunk, 0, p->now, &next, &finish),
                        BUNDLE_FINISHING);
                bundle_files_finished(p->files, UID, sha256, 0);
                *ret_next = size;
                return BUNDLE_OK;
        }
        return r;
}

static int put_all(struct place *p, unsigned k, size_t size, char sha256[static 65]) {
        _cleanup_free_ char *bytes = content(k, size, sha256);
        uint64_t next = 0;

        while (next < size) {
                int r = put(p, sha256, size, next, bytes + next, MIN(size - next, (size_t)BUNDLE_CHUNK_MAX),
                            &next);
                if (r != BUNDLE_OK)
                        return r;
        }
        return BUNDLE_OK;
}

static void test_names(void **state) {
        char sha256[65];

        memset(sha256, 'a', 64);
        sha256[64] = 0;
        assert_true(bundle_name_valid(sha256));
        sha256[3] = 'A';
        assert_false(bundle_name_valid(sha256));
        sha256[3] = '/';
        assert_false(bundle_name_valid(sha256));
        assert_false(bundle_name_valid(""));
        assert_false(bundle_name_valid("../../../../etc/passwd"));
        assert_false(bundle_name_valid("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static void test_upload(void **state) {
        struct place *p = *state;
        char sha256[65], buf[1000];
        size_t size = 300 * KIB, n;
        _cleanup_free_ char *bytes = content(1, size, sha256);
        uint64_t next = 99, all;

        /* A question is no upload. */
        assert_int_equal(put(p, sha256, size, 0, bytes, 0, &next), BUNDLE_OK);
        assert_int_equal(next, 0);
        assert_int_equal(bundle_files_stored(p->files, UID), 0);
        assert_int_equal(put(p, sha256, size, 4096, bytes, 100, &next), BUNDLE_OK);
        assert_int_equal(next, 0);

        assert_int_equal(put(p, sha256, size, 0, bytes, 100 * KIB, &next), BUNDLE_OK);
        assert_int_equal(next, 100 * KIB);
        assert_int_equal(bundle_files_stored(p->files, UID), size);
        /* Out of order, or told twice: where it is. */
        assert_int_equal(put(p, sha256, size, 0, bytes, 100 * KIB, &next), BUNDLE_OK);
        assert_int_equal(next, 100 * KIB);
        assert_int_equal(put(p, sha256, size + 1, next, bytes + next, 1, &next), BUNDLE_E_SIZE);
        assert_int_equal(put(p, sha256, size, next, bytes + next, (size_t)(size - next), &next), BUNDLE_OK);
        assert_int_equal(next, size);
        assert_true(bundle_files_have(p->files, UID, sha256, p->now));
        assert_false(bundle_files_have(p->files, UID + 1, sha256, p->now));
        /* It is there: nothing is wanted. */
        assert_int_equal(put(p, sha256, size, 0, bytes, 0, &next), BUNDLE_OK);
        assert_int_equal(next, size);

        assert_int_equal(bundle_files_read(p->files, UID, sha256, size - 10, buf, sizeof(buf), &all, &n), 0);
        assert_int_equal(all, size);
        assert_int_equal(n, 10);
        assert_memory_equal(buf, bytes + size - 10, 10);
        assert_int_equal(bundle_files_read(p->files, UID, sha256, UINT64_MAX, buf, sizeof(buf), &all, &n), 0);
        assert_int_equal(n, 0);
        assert_int_equal(bundle_files_read(p->files, UID + 1, sha256, 0, buf, sizeof(buf), &all, &n),
                         -ENOENT);
        assert_int_equal(bundle_files_read(p->files, UID, "../x", 0, buf, sizeof(buf), &all, &n), -ENOENT);
}

static void test_refused(void **state) {
        struct place *p = *state;
        char sha256[65];
        _cleanup_free_ char *bytes = content(1, 1000, sha256);
        uint64_t next;

        assert_int_equal(put(p, "abc", 1000, 0, bytes, 10, &next), -EINVAL);
        assert_int_equal(put(p, sha256, 0, 0, bytes, 0, &next), BUNDLE_E_SIZE);
        assert_int_equal(put(p, sha256, 1000, 0, bytes, 1001, &next), BUNDLE_E_SIZE);
        assert_int_equal(put(p, sha256, 1000, UINT64_MAX, bytes, 2, &next), BUNDLE_E_SIZE);
        assert_int_equal(put(p, sha256, 601 * KIB, 0, bytes, 10, &next), BUNDLE_E_LARGE);
        bytes[7] ^= 1;
        assert_int_equal(put(p, sha256, 1000, 0, bytes, 1000, &next), BUNDLE_E_CONTENT);
        assert_int_equal(bundle_files_stored(p->files, UID), 0);
        bytes[7] ^= 1;
        assert_int_equal(put(p, sha256, 1000, 0, bytes, 1000, &next), BUNDLE_OK);
        assert_int_equal(next, 1000);
        assert_int_equal(put(p, sha256, 1001, 0, bytes, 10, &next), BUNDLE_E_SIZE);
}

/* A new process: files are counted, parts are gone and begin anew. */
static void test_restart(void **state) {
        struct place *p = *state;
        char whole[65], part[65], path[256];
        _cleanup_free_ char *bytes = content(2, 5000, part);
        uint64_t next;

        assert_int_equal(put_all(p, 1, 3000, whole), BUNDLE_OK);
        assert_int_equal(put(p, part, 5000, 0, bytes, 1000, &next), BUNDLE_OK);
        snprintf(path, sizeof(path), "%s/%u/%s.part", p->path, UID, part);
        assert_int_equal(access(path, F_OK), 0);
        bundle_files_free(p->files);
        open_files(p);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(bundle_files_stored(p->files, UID), 3000);
        assert_true(bundle_files_have(p->files, UID, whole, p->now));
        assert_int_equal(put(p, part, 5000, 1000, bytes + 1000, 1000, &next), BUNDLE_OK);
        assert_int_equal(next, 0);
}

static void test_quota(void **state) {
        struct place *p = *state;
        char a[65], b[65], c[65], d[65];

        assert_int_equal(put_all(p, 1, 400 * KIB, a), BUNDLE_OK);
        (void)bundle_files_have(p->files, UID, a, p->now);
        p->now += 10 * USEC_PER_SEC;
        assert_int_equal(put_all(p, 2, 400 * KIB, b), BUNDLE_OK);
        (void)bundle_files_have(p->files, UID, b, p->now);
        /* Young ones stay: their job is perhaps about to be submitted. */
        assert_int_equal(put_all(p, 3, 400 * KIB, c), BUNDLE_E_QUOTA);
        assert_int_equal(bundle_files_stored(p->files, UID), 800 * KIB);
        p->now += 3600 * USEC_PER_SEC;
        p->used = a;
        assert_int_equal(put_all(p, 3, 400 * KIB, c), BUNDLE_OK);
        assert_true(bundle_files_have(p->files, UID, a, p->now));
        assert_false(bundle_files_have(p->files, UID, b, p->now));
        assert_true(bundle_files_have(p->files, UID, c, p->now));
        p->now += 3600 * USEC_PER_SEC;
        /* Uploads side by side count in full. */
        char e[65];
        _cleanup_free_ char *bytes = content(4, 150 * KIB, d), *more = content(5, 600 * KIB, e);
        uint64_t next;
        assert_int_equal(put(p, d, 150 * KIB, 0, bytes, 10, &next), BUNDLE_OK);
        p->used = NULL;
        (void)bundle_files_have(p->files, UID, a, p->now);
        (void)bundle_files_have(p->files, UID, c, p->now);
        assert_int_equal(put(p, e, 600 * KIB, 0, more, 10, &next), BUNDLE_E_QUOTA);
        assert_int_equal(bundle_files_stored(p->files, UID), 950 * KIB);
}

static void test_uploads_bounded(void **state) {
        struct place *p = *state;
        char sha256[65];
        uint64_t next;

        for (unsigned k = 0; k < BUNDLE_UPLOADS_PER_USER_MAX + 1; k++) {
                _cleanup_free_ char *bytes = content(k, 1000, sha256);
                assert_int_equal(put(p, sha256, 1000, 0, bytes, 10, &next),
                                 k < BUNDLE_UPLOADS_PER_USER_MAX ? BUNDLE_OK : BUNDLE_E_UPLOADS);
        }
        /* Those that nobody goes on with give way. */
        p->now += 120 * USEC_PER_SEC;
        assert_int_equal(put_all(p, 100, 1000, sha256), BUNDLE_OK);
        assert_int_equal(bundle_files_stored(p->files, UID), 1000);
}

static void test_sweep(void **state) {
        struct place *p = *state;
        char a[65], b[65], c[65];
        _cleanup_free_ char *bytes = content(3, 1000, c);
        uint64_t next, age = 30 * UINT64_C(86400) * USEC_PER_SEC;

        assert_int_equal(put_all(p, 1, 1000, a), BUNDLE_OK);
        assert_int_equal(put_all(p, 2, 1000, b), BUNDLE_OK);
        assert_int_equal(put(p, c, 1000, 0, bytes, 10, &next), BUNDLE_OK);
        p->used = b;
        bundle_files_sweep(p->files, p->now, age);
        assert_int_equal(bundle_files_stored(p->files, UID), 3000);
        p->now += age + 60 * USEC_PER_SEC;
        bundle_files_sweep(p->files, p->now, age);
        assert_int_equal(bundle_files_stored(p->files, UID), 1000);
        assert_true(bundle_files_have(p->files, UID, b, p->now));
        p->used = NULL;
        bundle_files_sweep(p->files, p->now + age / 2, age);
        assert_int_equal(bundle_files_stored(p->files, UID), 1000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test_setup_teardown(test_upload, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
                cmocka_unit_test_setup_teardown(test_quota, setup, teardown),
                cmocka_unit_test_setup_teardown(test_uploads_bounded, setup, teardown),
                cmocka_unit_test_setup_teardown(test_sweep, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
