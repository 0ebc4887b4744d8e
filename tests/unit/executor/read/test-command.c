/* SPDX-License-Identifier: Apache-2.0 */
/* What commands print, and how they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include <signal.h>

#include "executor/read/stream.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

static struct input_source source = { .name = (char *)"numbers", .kind = SOURCE_COMMAND };
static struct task_grant task = {
        .task = 7, .seed = 42, .end = TASK_TO_END, .size = TASK_UNKNOWN, .path = "/data/it's one"
};
static char error[READ_ERROR_MAX];

static struct stream *begin(const char *command, const atomic_bool *cancel) {
        struct reader_request q = { .source = &source, .task = &task, .cancel = cancel };
        struct stream *s = NULL;

        source.command = (char *)command;
        assert_int_equal(stream_open_command(&q, &s, error), 0);
        return s;
}

/* All that it prints; or how it failed. */
static ssize_t run(const char *command, char *text, size_t size) {
        struct stream *s = begin(command, NULL);
        size_t n = 0;
        ssize_t l;

        while ((l = s->ops->read(s, (uint8_t *)text + n, size - 1 - n, error)) > 0)
                n += (size_t)l;
        text[n] = 0;
        s->ops->close(s);
        return l < 0 ? l : (ssize_t)n;
}

static void test_prints(void **state) {
        char text[1 << 16];

        assert_int_equal(run("seq 1000", text, sizeof(text)), 3893);
        assert_int_equal(run("true", text, sizeof(text)), 0);
        source.path_pattern = (char *)"/data/*";
        assert_true(run("echo \"$PRIMUS_FILE $PRIMUS_SEED $PRIMUS_TASK $PRIMUS_SOURCE\"", text,
                        sizeof(text)) > 0);
        assert_string_equal(text, "/data/it's one 42 7 numbers\n");
        source.path_pattern = NULL;
        assert_int_equal(setenv("PRIMUS_FILE", "inherited", 1), 0);
        assert_true(run("echo \"${PRIMUS_FILE-none} $(cat | wc -c)\"", text, sizeof(text)) > 0);
        assert_string_equal(text, "none 0\n");
        assert_int_equal(unsetenv("PRIMUS_FILE"), 0);
}

static void test_fails(void **state) {
        char text[1 << 16];

        assert_int_equal(run("echo abc; exit 3", text, sizeof(text)), -EIO);
        assert_string_equal(text, "abc\n");
        assert_string_equal(error, "/data/it's one: the command ended with status 3, behind 4 bytes");
        assert_int_equal(run("kill -TERM $$", text, sizeof(text)), -EIO);
        assert_string_equal(error, "/data/it's one: the command was ended by signal 15, behind 0 bytes");
        assert_int_equal(run("exec /no/such", text, sizeof(text)), -EIO);
        assert_non_null(strstr(error, "status 127"));
        /* Its output is closed long before its end. */
        assert_int_equal(run("echo x; exec >&-; sleep 0.3; exit 4", text, sizeof(text)), -EIO);
        assert_non_null(strstr(error, "status 4, behind 2 bytes"));
}

static void test_signals(void **state) {
        char text[64];
        sigset_t all, old;

        /* As the feeder has them. */
        sigfillset(&all);
        assert_int_equal(sigprocmask(SIG_SETMASK, &all, &old), 0);
        (void)signal(SIGPIPE, SIG_IGN);
        assert_int_equal(run("yes | head -n 1; echo ${PIPESTATUS[0]}", text, sizeof(text)), 6);
        assert_string_equal(text, "y\n141\n");
        (void)signal(SIGPIPE, SIG_DFL);
        assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
}

/* What it has started goes with it. */
static void test_killed(void **state) {
        atomic_bool cancel = false;
        struct stream *s = begin("sleep 1000 & echo $!; wait", &cancel);
        uint64_t before = now_boot();
        char text[32] = "";
        pid_t child;

        assert_true(s->ops->read(s, (uint8_t *)text, sizeof(text) - 1, error) > 0);
        child = (pid_t)strtol(text, NULL, 10);
        assert_true(child > 0 && kill(child, 0) == 0);
        atomic_store(&cancel, true);
        assert_int_equal(s->ops->read(s, (uint8_t *)text, sizeof(text), error), -ECANCELED);
        s->ops->close(s);
        for (unsigned i = 0; i < 200 && kill(child, 0) == 0; i++) {
                char path[64], state_of[256] = "";
                FILE *f;

                /* Nobody may be there to reap it. */
                snprintf(path, sizeof(path), "/proc/%d/stat", child);
                f = fopen(path, "re");
                if (!f || !fgets(state_of, sizeof(state_of), f) || strstr(state_of, ") Z ")) {
                        if (f)
                                fclose(f);
                        break;
                }
                fclose(f);
                assert_true(i < 199);
                usleep(10000);
        }
        assert_true(now_boot() - before < 5 * USEC_PER_SEC);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_prints), cmocka_unit_test(test_fails),
                                            cmocka_unit_test(test_signals), cmocka_unit_test(test_killed) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
