/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of bundles: one transfer for many, content checked, old ones gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include <fcntl.h>
#include <gnutls/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/feed/bundles.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/wire/messages.h"

#define SIZE 700000u /* three chunks */

struct state {
        sd_event *event;
        struct bundles *bundles;
        char directory[64];
        uint8_t content[SIZE];
        char sha[65];
        struct bundle_transfer *asked;
        uint64_t offset;
        unsigned gets, ready, failed;
        int refuse;
        char path[256], text[128];
};

static int get(void *userdata, uint32_t uid, const char *sha256, uint64_t offset, uint32_t max,
               struct bundle_transfer *t) {
        struct state *s = userdata;

        if (s->refuse)
                return s->refuse;
        s->gets++;
        s->asked = t;
        s->offset = offset;
        assert_int_equal(max, LINK_CHUNK_MAX);
        return 0;
}

static int give(void *userdata, int fd, uint32_t uid) {
        return fchmod(fd, 0400) < 0 || (uid != geteuid() && fchown(fd, uid, (gid_t)-1) < 0) ? -errno : 0;
}

static const struct bundle_ops ops = { get, give };

static void on_ready(void *userdata, int error, const char *text, const char *path) {
        struct state *s = userdata;

        if (error < 0) {
                s->failed++;
                snprintf(s->text, sizeof(s->text), "%s", text);
                return;
        }
        s->ready++;
        snprintf(s->path, sizeof(s->path), "%s", path);
}

static void open_cache(struct state *s, const struct bundle_limits *limits) {
        assert_int_equal(bundles_new(s->event, s->directory, limits, &ops, s, &s->bundles), 0);
}

static void name(struct state *s) {
        uint8_t digest[32];

        gnutls_hash_fast(GNUTLS_DIG_SHA256, s->content, SIZE, digest);
        for (unsigned i = 0; i < 32; i++)
                snprintf(s->sha + 2 * i, 3, "%02x", digest[i]);
}

static int setup(void **ret) {
        struct state *s = calloc(1, sizeof(*s));

        strcpy(s->directory, "/tmp/primus-bundles-XXXXXX");
        assert_non_null(mkdtemp(s->directory));
        for (unsigned i = 0; i < SIZE; i++)
                s->content[i] = (uint8_t)(i * 7);
        name(s);
        assert_true(sd_event_new(&s->event) >= 0);
        open_cache(s, NULL);
        *ret = s;
        return 0;
}

static int teardown(void **state) {
        struct state *s = *state;

        bundles_free(s->bundles);
        sd_event_unref(s->event);
        remove_tree(s->directory);
        free(s);
        return 0;
}

static void want(struct state *s) {
        assert_int_equal(bundles_want(s->bundles, getuid(), s->sha, on_ready, s), 0);
}

static void answer(struct state *s) {
        struct bundle_transfer *t = TAKE_PTR(s->asked);
        size_t n = MIN((size_t)(SIZE - s->offset), (size_t)LINK_CHUNK_MAX);

        bundles_chunk(t, 0, NULL, SIZE, s->content + s->offset, n);
}

static void turn(struct state *s) {
        assert_true(sd_event_run(s->event, 5 * USEC_PER_SEC) > 0);
}

static void test_fetch(void **state) {
        struct state *s = *state;
        _cleanup_free_ char *data = NULL;
        struct stat st;
        size_t n;

        want(s);
        want(s);
        while (s->asked)
                answer(s);
        want(s); /* between the last byte and the announcement */
        while (s->ready < 3)
                turn(s);
        assert_int_equal(s->gets, 3);
        assert_int_equal(read_file(s->path, SIZE, &data, &n), 0);
        assert_int_equal(n, SIZE);
        assert_memory_equal(data, s->content, SIZE);
        assert_int_equal(stat(s->path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0400);
        assert_int_equal(st.st_uid, getuid());
        /* It is there from now on, also for the next agentd of this boot. */
        bundles_free(s->bundles);
        open_cache(s, NULL);
        want(s);
        while (s->ready < 4)
                turn(s);
        assert_int_equal(s->gets, 3);
}

static void test_wrong_content(void **state) {
        struct state *s = *state;

        want(s);
        s->content[SIZE - 1] ^= 1;
        while (s->asked)
                answer(s);
        while (s->failed == 0)
                turn(s);
        assert_non_null(strstr(s->text, "SHA-256"));
        /* and nothing is left, so that the next try begins anew */
        s->content[SIZE - 1] ^= 1;
        want(s);
        assert_int_equal(s->offset, 0);
        while (s->asked)
                answer(s);
        while (s->ready == 0)
                turn(s);
}

static void test_errors(void **state) {
        struct state *s = *state;

        assert_int_equal(bundles_want(s->bundles, 1, "short", on_ready, s), -EINVAL);
        assert_int_equal(bundles_want(s->bundles, 1,
                                      "../../../../../../../../../../../../../../../../../../../../../etc/x",
                                      on_ready, s),
                         -EINVAL);
        want(s);
        bundles_chunk(TAKE_PTR(s->asked), -EIO, "masterd has no such bundle", 0, NULL, 0);
        while (s->failed < 1)
                turn(s);
        assert_string_equal(s->text, "masterd has no such bundle");
        s->refuse = -ENOTCONN;
        want(s);
        while (s->failed < 2)
                turn(s);
        s->refuse = 0;
        want(s);
        bundles_chunk(TAKE_PTR(s->asked), 0, NULL, SIZE, s->content, 0); /* no progress */
        while (s->failed < 3)
                turn(s);
        want(s);
        bundles_chunk(TAKE_PTR(s->asked), 0, NULL, UINT64_MAX, s->content, 10);
        while (s->failed < 4)
                turn(s);
}

static void test_going_away(void **state) {
        struct state *s = *state;

        want(s);
        bundles_free(s->bundles);
        s->bundles = NULL;
        assert_int_equal(s->failed, 1);
        bundles_chunk(s->asked, -ECANCELED, "", 0, NULL, 0); /* the answer that was on its way */
}

static void test_prune(void **state) {
        struct state *s = *state;
        struct bundle_limits limits = { .bundle_bytes = 1u << 20,
                                        .cache_bytes = 2 * SIZE - 1,
                                        .age_usec = 3600 * USEC_PER_SEC };
        char first[256];

        bundles_free(s->bundles);
        open_cache(s, &limits);
        for (unsigned i = 0; i < 3; i++) {
                s->content[0] = (uint8_t)i;
                name(s);
                want(s);
                while (s->asked)
                        answer(s);
                while (s->ready < i + 1)
                        turn(s);
                if (i == 0)
                        strcpy(first, s->path);
        }
        bundles_prune(s->bundles, NULL);
        assert_int_equal(access(first, F_OK), -1);
        assert_int_equal(access(s->path, F_OK), 0); /* the latest */
        struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
        assert_int_equal(utimensat(AT_FDCWD, s->path, old, 0), 0);
        bundles_prune(s->bundles, s->path);
        assert_int_equal(access(s->path, F_OK), 0);
        bundles_prune(s->bundles, NULL);
        assert_int_equal(access(s->path, F_OK), -1);
}

static void put_file(struct state *s, const char *user, char sign, size_t size, off_t length,
                     char path[static 256]) {
        char name[65], *text = calloc(1, size + 1), file[256];
        int fd;

        memset(name, sign, 64);
        name[64] = 0;
        snprintf(file, sizeof(file), "%s/%s", s->directory, user);
        (void)mkdir(file, 0711);
        snprintf(file, sizeof(file), "%s/%s/%s", s->directory, user, name);
        memcpy(path, file, sizeof(file));
        fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(text && fd >= 0 && write_all(fd, text, size) >= 0 && fsync(fd) >= 0);
        assert_true(length == 0 || ftruncate(fd, length) >= 0);
        close(fd);
        free(text);
}

/* What one user does to his files costs another nothing: a length without blocks, a time to come, or more of
 * them. */
static void test_users(void **state) {
        struct state *s = *state;
        struct bundle_limits limits = { .bundle_bytes = 1u << 20,
                                        .cache_bytes = 4 * SIZE,
                                        .age_usec = 3600 * USEC_PER_SEC };
        char theirs[256], sparse[256], path[3][256];
        struct timespec later[2] = { { .tv_sec = INT32_MAX }, { .tv_sec = INT32_MAX } };

        bundles_free(s->bundles);
        open_cache(s, &limits);
        put_file(s, "4001", 'a', SIZE, 0, theirs);
        put_file(s, "4002", 'b', 10, (off_t)1 << 40, sparse);
        bundles_prune(s->bundles, NULL);
        assert_int_equal(access(theirs, F_OK), 0);
        assert_int_equal(access(sparse, F_OK), 0);
        for (unsigned i = 0; i < 3; i++) {
                put_file(s, "4002", (char)('c' + i), 2 * SIZE, 0, path[i]);
                assert_int_equal(utimensat(AT_FDCWD, path[i], later, 0), 0);
        }
        bundles_prune(s->bundles, NULL);
        assert_int_equal(access(theirs, F_OK), 0); /* though it was used longest ago */
        assert_int_equal((access(path[0], F_OK) == 0) + (access(path[1], F_OK) == 0) +
                                 (access(path[2], F_OK) == 0),
                         1);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = { T(test_fetch),      T(test_wrong_content), T(test_errors),
                                            T(test_going_away), T(test_prune),         T(test_users) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
