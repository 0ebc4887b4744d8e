/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in C: whole or not there, whoever is killed at which call; several ranks; which are kept. That
 * Python reads them, and they Python's, is tests/python/test_store.py. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/checkpoint/tree.h"
#include "lib/primus/primus.h"
#include "tests/kit/json.h"

DEFINE_CLEANUP(struct primus_saved *, primus_saved_free)

/* ---- a process that is gone, as by SIGKILL, ahead of its nth call that changes something ---- */

static int calls_left = -1; /* negative: nobody counts */

static void count_call(void) {
        if (calls_left >= 0 && calls_left-- == 0)
                _exit(9);
}

#define WRAP(name, arguments, ...)                                                                           \
        int __real_##name arguments;                                                                         \
        int __wrap_##name arguments;                                                                         \
        int __wrap_##name arguments {                                                                        \
                count_call();                                                                                \
                return __real_##name(__VA_ARGS__);                                                           \
        }

WRAP(rename, (const char *from, const char *to), from, to)
WRAP(fsync, (int fd), fd)
WRAP(mkdir, (const char *path, mode_t mode), path, mode)
WRAP(rmdir, (const char *path), path)
WRAP(unlink, (const char *path), path)

/* ---- a directory of a test's own ---- */

static int setup(void **state) {
        static char top[64];

        strcpy(top, "/tmp/test-store-XXXXXX");
        assert_non_null(mkdtemp(top));
        unsetenv("RANK");
        unsetenv("WORLD_SIZE");
        unsetenv("PRIMUS_SOCKET");
        unsetenv("PRIMUS_FROM");
        *state = top;
        return 0;
}

static int teardown(void **state) {
        tree_remove(*state);
        return 0;
}

static char *at(const char *top, const char *name) {
        static char path[512];

        snprintf(path, sizeof(path), "%s/%s", top, name);
        return path;
}

static void write_file(const char *path, const char *text) {
        _cleanup_fclose_ FILE *f = fopen(path, "we");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
}

static bool has_text(const char *path, const char *text) {
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        char is[4096] = "";

        if (!f)
                return false;
        is[fread(is, 1, sizeof(is) - 1, f)] = 0;
        return strcmp(is, text) == 0;
}

static struct primus_store *open_store(const char *top, uint32_t keep, uint32_t rank, uint32_t world) {
        const struct primus_store_options o = {
                .size = sizeof(o), .keep = keep, .rank = rank, .world = world
        };
        struct primus_store *s = NULL;

        assert_int_equal(primus_store_open(top, &o, &s), 0);
        return s;
}

static void write_model(const char *directory, const char *text) {
        char path[512];

        snprintf(path, sizeof(path), "%s/sub", directory);
        assert_int_equal(mkdir(path, 0777), 0);
        snprintf(path, sizeof(path), "%s/sub/model", directory);
        write_file(path, text);
}

static void save(struct primus_store *s, uint64_t step, const char *text, double loss) {
        const char *directory;

        if (primus_store_begin(s, step, NULL, &directory) < 0)
                fail_msg("%s", primus_store_error(s));
        write_model(directory, text);
        if (primus_store_commit(s, (const char *const[]){ "loss" }, &loss, 1, NULL) < 0)
                fail_msg("%s", primus_store_error(s));
}

static struct primus_saved *latest(struct primus_store *s) {
        struct primus_saved *c = NULL;

        assert_true(primus_store_latest(s, PRIMUS_STORE_VERIFY, &c) >= 0);
        return c;
}

static bool has_model(const struct primus_saved *c, const char *text) {
        return has_text(at(primus_saved_path(c), "sub/model"), text);
}

/* ---- tests ---- */

static void test_saved_and_found(void **state) {
        const char *const names[] = { "loss", "accuracy", "nan" };
        const double values[] = { 0.5, 0.25, NAN };
        char *top = at(*state, "a/b//");
        struct primus_saved *c = NULL;
        struct primus_store *s;
        const char *directory;
        size_t size;

        assert_int_equal(primus_store_open(top, NULL, &s), 0);
        assert_int_equal(primus_store_latest(s, 0, &c), 0);
        assert_int_equal(primus_store_begin(s, 10, NULL, &directory), 0);
        write_file(at(directory, "model"), "m");
        assert_int_equal(primus_store_begin(s, 11, NULL, &directory), -EBUSY);
        assert_int_equal(primus_store_latest(s, 0, &c), 0);
        assert_int_equal(primus_store_commit(s, names, values, 3, json_text("{'epoch': 1}")), 0);
        assert_int_equal(primus_store_settle(s), 1);
        primus_store_close(s);

        assert_int_equal(primus_store_open(at(*state, "a/b"), NULL, &s), 0);
        assert_int_equal(primus_store_latest(s, PRIMUS_STORE_VERIFY, &c), 1);
        assert_int_equal(primus_saved_step(c), 10);
        assert_int_equal(primus_saved_world(c), 1);
        assert_true(primus_saved_metric(c, "loss") == 0.5 && primus_saved_metric(c, "accuracy") == 0.25);
        assert_true(isnan(primus_saved_metric(c, "nan")) && isnan(primus_saved_metric(c, "none")));
        assert_true(primus_saved_time(c) > 1.7e9);
        assert_string_equal(primus_saved_metadata(c), json_text("{'epoch':1}"));
        assert_null(primus_saved_data(c, &size));
        assert_true(has_text(at(primus_saved_path(c), "model"), "m"));
        primus_saved_free(c);
        assert_int_equal(primus_store_begin(s, 10, NULL, &directory), -EEXIST);
        assert_non_null(strstr(primus_store_error(s), "has a checkpoint of step 10"));
        primus_store_close(s);
        /* By its path, as who goes on from another training has it. */
        assert_int_equal(primus_saved_open(NULL, &c), 0);
        assert_int_equal(primus_saved_open(at(*state, "a/b/step-000000000010"), &c), 1);
        assert_int_equal(primus_saved_step(c), 10);
        primus_saved_free(c);
        assert_int_equal(primus_saved_open(*state, &c), -EBADMSG);
        assert_int_equal(primus_saved_open("s3://b/c", &c), -EPROTONOSUPPORT);
}

static void test_which_are_kept(void **state) {
        static const struct {
                uint64_t step;
                double loss;
        } saved[] = { { 1, 0.4 }, { 2, 0.1 }, { 3, 0.3 }, { 4, NAN }, { 5, 0.9 }, { 6, 0.8 } };
        struct primus_store_options o = {
                .size = sizeof(o), .keep = 2, .keep_best = 2, .metric = "loss", .world = 1
        };
        struct primus_saved *c = NULL;
        struct primus_store *s;

        assert_int_equal(primus_store_open(*state, &o, &s), 0);
        for (size_t i = 0; i < ELEMENTSOF(saved); i++)
                save(s, saved[i].step, "x", saved[i].loss);
        for (unsigned step = 1; step <= 6; step++) {
                char name[32];

                snprintf(name, sizeof(name), "step-%012u", step);
                assert_int_equal(access(at(*state, name), F_OK) == 0, step != 1 && step != 4);
        }
        assert_int_equal(primus_store_best(s, 0, &c), 1);
        assert_int_equal(primus_saved_step(c), 2);
        primus_saved_free(c);
        assert_int_equal(primus_store_forget_after(s, 3), 0);
        save(s, 4, "x", 0.7);
        primus_store_close(s);
        o.flags = PRIMUS_STORE_LARGER | PRIMUS_STORE_LOOKS;
        assert_int_equal(primus_store_open(*state, &o, &s), 0);
        assert_int_equal(primus_store_best(s, 0, &c), 1);
        assert_int_equal(primus_saved_step(c), 4);
        primus_saved_free(c);
        primus_store_close(s);
}

static void begin(struct primus_store *s, const char **ret) {
        assert_int_equal(primus_store_begin(s, 2, NULL, ret), 0);
}

static void test_what_fails_leaves_nothing(void **state) {
        struct primus_store *s = open_store(*state, 2, 0, 1);
        const char *directory;

        save(s, 1, "before", 0);
        assert_int_equal(primus_store_commit(s, NULL, NULL, 0, NULL), -EINVAL);
        begin(s, &directory);
        write_model(directory, "x");
        assert_int_equal(primus_store_abandon(s), 0);
        begin(s, &directory);
        assert_int_equal(symlink("/etc/passwd", at(directory, "link")), 0);
        assert_int_equal(primus_store_commit(s, NULL, NULL, 0, NULL), -EINVAL);
        assert_non_null(strstr(primus_store_error(s), "link is neither a file nor a directory"));
        begin(s, &directory);
        assert_int_equal(mkfifo(at(directory, "fifo"), 0600), 0);
        assert_int_equal(primus_store_commit(s, NULL, NULL, 0, NULL), -EINVAL);
        begin(s, &directory);
        assert_int_equal(primus_store_commit(s, NULL, NULL, 0, "{"), -EINVAL);
        assert_non_null(strstr(primus_store_error(s), "metadata is no JSON"));
        begin(s, &directory);
        write_file(at(directory, "\xff"), "");
        assert_int_equal(primus_store_commit(s, NULL, NULL, 0, NULL), -EILSEQ);
        assert_int_not_equal(access(at(*state, ".step-000000000002"), F_OK), 0);
        save(s, 2, "after", 0);
        _cleanup_(primus_saved_free_p) struct primus_saved *c = latest(s);
        assert_true(primus_saved_step(c) == 2 && has_model(c, "after"));
        primus_store_close(s);
}

static void test_wrong(void **state) {
        struct primus_store_options o = { .size = sizeof(o) };
        struct primus_store *s;
        const char *directory;

        setenv("RANK", "2", 1);
        setenv("WORLD_SIZE", "2", 1);
        assert_int_equal(primus_store_open(*state, &o, &s), -EINVAL);
        assert_string_equal(primus_store_error(NULL), "rank 2 of 2");
        setenv("RANK", "1x", 1);
        assert_int_equal(primus_store_open(*state, &o, &s), -EINVAL);
        assert_string_equal(primus_store_error(NULL), "RANK is '1x', and no number of a rank");
        unsetenv("RANK");
        unsetenv("WORLD_SIZE");
        o.keep_best = 1;
        assert_int_equal(primus_store_open(*state, &o, &s), -EINVAL);
        o = (struct primus_store_options){ .size = 4 };
        assert_int_equal(primus_store_open(*state, &o, &s), -EINVAL);
        assert_int_equal(primus_store_open("s3://bucket/x", NULL, &s), -EPROTONOSUPPORT);
        write_file(at(*state, "file"), "");
        assert_int_equal(primus_store_open(at(*state, "file/x"), NULL, &s), -ENOTDIR);
        o = (struct primus_store_options){ .size = sizeof(o), .flags = PRIMUS_STORE_LOOKS };
        assert_int_equal(primus_store_open(at(*state, "none"), &o, &s), 0);
        assert_int_equal(primus_store_begin(s, 1, NULL, &directory), -EINVAL);
        assert_int_equal(primus_store_begin(s, UINT64_MAX, NULL, &directory), -EINVAL);
        assert_int_equal(primus_store_forget_after(s, 0), -EINVAL);
        assert_null(latest(s));
        assert_int_not_equal(access(at(*state, "none"), F_OK), 0);
        primus_store_close(s);
}

/* Of a child's that saves step 2 and is gone ahead of its nth call. Whether it came to its end. */
static bool crash_at(const char *top, int n) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                struct primus_store *s;
                const char *directory;

                calls_left = n;
                s = open_store(top, 1, 0, 1);
                if (primus_store_begin(s, 2, NULL, &directory) < 0)
                        _exit(2);
                write_model(directory, "after");
                _exit(primus_store_commit(s, NULL, NULL, 0, NULL) < 0 ? 2 : 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9));
        return WEXITSTATUS(status) == 0;
}

static void test_killed_at_every_call(void **state) {
        bool over = false;
        int n = 0;

        for (; !over; n++) {
                struct primus_store *s;
                char top[128], name[32];

                snprintf(name, sizeof(name), "%d", n);
                snprintf(top, sizeof(top), "%s/%d", (char *)*state, n);
                s = open_store(top, 1, 0, 1);
                save(s, 1, "before", 0);
                primus_store_close(s);
                over = crash_at(top, n);
                s = open_store(top, 1, 0, 1);
                struct primus_saved *c = latest(s);
                assert_non_null(c);
                assert_true((primus_saved_step(c) == 1 && has_model(c, "before")) ||
                            (primus_saved_step(c) == 2 && has_model(c, "after")));
                assert_true(!over || primus_saved_step(c) == 2);
                primus_saved_free(c);
                /* Who is started again goes on, and nothing of the crash stays. */
                save(s, 3, "then", 0);
                c = latest(s);
                assert_true(primus_saved_step(c) == 3 && has_model(c, "then"));
                primus_saved_free(c);
                primus_store_close(s);
                assert_int_equal(unlink(at(top, ".lock")), 0);
                tree_remove(at(top, "step-000000000003"));
                assert_int_equal(rmdir(top), 0);
        }
        assert_true(n > 15);
}

static void test_ranks(void **state) {
        struct primus_store *s[3], *again;
        struct primus_saved *c;

        for (uint32_t rank = 0; rank < 3; rank++)
                s[rank] = open_store(*state, 2, rank, 3);
        save(s[2], 5, "of 2", 0.1);
        save(s[0], 5, "of 0", 0.5);
        assert_null(latest(s[0]));
        assert_int_equal(primus_store_settle(s[0]), 0);
        save(s[1], 5, "of 1", 0.2);
        assert_true(primus_store_settle(s[0]) == 1 && primus_store_settle(s[2]) == 1);
        for (uint32_t rank = 0; rank < 3; rank++) {
                char text[16];

                snprintf(text, sizeof(text), "of %u", rank);
                c = latest(s[rank]);
                assert_true(has_model(c, text) && primus_saved_metric(c, "loss") == 0.5 &&
                            primus_saved_world(c) == 3);
                primus_saved_free(c);
        }
        /* Another rank is started again while its part lies there: it is not part of anything. */
        save(s[0], 6, "x", 0);
        save(s[1], 6, "x", 0);
        again = open_store(*state, 2, 1, 3);
        save(s[2], 6, "x", 0);
        c = latest(s[2]);
        assert_int_equal(primus_saved_step(c), 5);
        primus_saved_free(c);
        save(again, 6, "again", 0);
        assert_int_equal(primus_store_settle(s[2]), 1);
        c = latest(again);
        assert_true(primus_saved_step(c) == 6 && has_model(c, "again"));
        primus_saved_free(c);
        primus_store_close(again);
        /* More ranks than before. */
        again = open_store(*state, 2, 3, 4);
        c = latest(again);
        assert_true(primus_saved_step(c) == 6 && !primus_saved_path(c));
        primus_saved_free(c);
        primus_store_close(again);
        for (uint32_t rank = 0; rank < 3; rank++)
                primus_store_close(s[rank]);
}

static void test_what_is_none(void **state) {
        static const char *const manifests[] = {
                "",
                "[]",
                "{",
                "null",
                "7",
                "{'version': 1}",
                "{'version': 1, 'step': 1e999}",
                "{'version': 2, 'step': 2, 'time': 1, 'rank': 0, 'world': 1, 'metrics': {}, 'metadata': null, 'data': null, 'files': {}}",
                "{'version': 1, 'step': -1, 'time': 1, 'rank': 0, 'world': 1, 'metrics': {}, 'metadata': null, 'data': null, 'files': {}}",
                "{'version': 1, 'step': 2, 'time': 1, 'rank': 1, 'world': 1, 'metrics': {}, 'metadata': null, 'data': null, 'files': {}}",
                "{'version': 1, 'step': 2, 'time': 1, 'rank': 0, 'world': 1099511627776, 'metrics': {}, 'metadata': null, 'data': null, 'files': {}}",
                "{'version': 1, 'step': 2, 'time': 1, 'rank': 0, 'world': 1, 'metrics': null, 'metadata': null, 'data': null, 'files': {}}",
                "{'version': 1, 'step': 2, 'time': 1, 'rank': 0, 'world': 1, 'metrics': {}, 'metadata': null, 'data': '%%%', 'files': {}}",
                "{'version': 1, 'step': 2, 'time': 1, 'rank': 0, 'world': 1, 'metrics': {}, 'metadata': null, 'data': 5, 'files': {}}",
                "{'version': 1, 'step': 2, 'time': 1, 'rank': 0, 'world': 1, 'metrics': {}, 'metadata': null, 'data': null, 'files': []}",
                "{'version': 1, 'step': 2, 'time': 1, 'rank': 0, 'world': 1, 'metrics': {}, 'metadata': null, 'data': null, 'files': {'a': 1}}",
                "{'version': 1, 'step': 2, 'time': 1, 'rank': 0, 'world': 1, 'metrics': {}, 'metadata': null, 'data': null, 'files': {'../../../../etc/passwd': {'size': 1, 'sha256': ''}}}",
                "{'version': 1, 'step': 2, 'time': 1, 'rank': 0, 'world': 1, 'metrics': {}, 'metadata': null, 'data': null, 'files': {'/etc/passwd': {'size': 1, 'sha256': ''}}}",
                "{'version': 1, 'step': 2, 'time': 1, 'rank': 0, 'world': 1, 'metrics': {}, 'metadata': null, 'data': null, 'files': {'sub/..': {'size': 1, 'sha256': ''}}}",
                "{'version': 1, 'step': 2, 'time': 1, 'rank': 0, 'world': 1, 'metrics': {}, 'metadata': null, 'data': null, 'files': {'sub/model': {'size': 5, 'sha256': ''}}}",
        };
        struct primus_store *s = open_store(*state, 2, 0, 1);

        save(s, 1, "step 1", 0);
        save(s, 2, "step 2", 0);
        for (size_t i = 0; i < ELEMENTSOF(manifests); i++) {
                write_file(at(*state, "step-000000000002/manifest-0.json"), json_text(manifests[i]));
                _cleanup_(primus_saved_free_p) struct primus_saved *c = latest(s);
                assert_int_equal(primus_saved_step(c), 1);
        }
        primus_store_close(s);
}

static void test_files_that_are_not(void **state) {
        struct primus_store *s = open_store(*state, 5, 0, 1);
        struct primus_saved *c = NULL;

        for (uint64_t step = 1; step <= 5; step++)
                save(s, step, "the model", 0);
        assert_int_equal(unlink(at(*state, "step-000000000005/rank-0/sub/model")), 0);
        write_file(at(*state, "step-000000000004/rank-0/sub/model"), "x");
        assert_int_equal(unlink(at(*state, "step-000000000003/rank-0/sub/model")), 0);
        assert_int_equal(symlink("/etc/passwd", at(*state, "step-000000000003/rank-0/sub/model")), 0);
        write_file(at(*state, "step-000000000002/rank-0/sub/model"), "THE MODEL");
        assert_int_equal(primus_store_latest(s, 0, &c), 1);
        assert_int_equal(primus_saved_step(c), 2);
        primus_saved_free(c);
        c = latest(s);
        assert_int_equal(primus_saved_step(c), 1);
        primus_saved_free(c);
        /* What cannot be taken for a checkpoint is left alone. */
        assert_int_equal(mkdir(at(*state, "step-notes"), 0777), 0);
        assert_int_equal(mkdir(at(*state, "step-000000000009"), 0777), 0);
        save(s, 10, "x", 0);
        c = latest(s);
        assert_int_equal(primus_saved_step(c), 10);
        primus_saved_free(c);
        assert_int_equal(access(at(*state, "step-notes"), F_OK), 0);
        primus_store_close(s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_saved_and_found, setup, teardown),
                cmocka_unit_test_setup_teardown(test_which_are_kept, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_fails_leaves_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_wrong, setup, teardown),
                cmocka_unit_test_setup_teardown(test_killed_at_every_call, setup, teardown),
                cmocka_unit_test_setup_teardown(test_ranks, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_is_none, setup, teardown),
                cmocka_unit_test_setup_teardown(test_files_that_are_not, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
