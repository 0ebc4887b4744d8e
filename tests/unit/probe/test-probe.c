/* SPDX-License-Identifier: Apache-2.0 */
/* Exact counts, against processes that know what they did: in control groups that this program makes and
 * removes, so as root and on a kernel that takes BPF. Exit status 77 (skipped) elsewhere. */
#include "agentd/probe/probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#define SKIPPED 77
#define CGROUP2_MAGIC 0x63677270
#define BLOCK 4096

static char top[128]; /* stands for primus.slice */
static int top_fd = -1;
static struct probe *probe;

/* ---- control groups
 * ------------------------------------------------------------------------------------------------------- */

static const char *v2_root(void) {
        static const char *const roots[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
        struct statfs fs;

        for (size_t i = 0; i < ELEMENTSOF(roots); i++)
                if (statfs(roots[i], &fs) == 0 && fs.f_type == CGROUP2_MAGIC)
                        return roots[i];
        return NULL;
}

struct group {
        char path[256];
        uint64_t id;
};

static void make_group(const char *path, struct group *ret) {
        struct stat st;

        snprintf(ret->path, sizeof(ret->path), "%s/%s", top, path);
        assert_true(mkdir(ret->path, 0755) == 0 || errno == EEXIST);
        assert_int_equal(stat(ret->path, &st), 0);
        ret->id = st.st_ino;
}

/* A directory whose last process has just ended may be busy for a moment. */
static void remove_group(const char *path) {
        for (int i = 0; rmdir(path) < 0 && errno == EBUSY && i < 500; i++)
                usleep(2000);
}

/* Bytes that were written to get there. */
static size_t enter(const struct group *g) {
        char path[300];
        int fd;

        snprintf(path, sizeof(path), "%s/cgroup.procs", g->path);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
                _exit(99);
        close(fd);
        return 1;
}

static void make_unit(const char *name, struct group *ret) {
        struct group job;
        char path[128];

        make_group("primus-1.slice", &job);
        snprintf(path, sizeof(path), "primus-1.slice/%s", name);
        make_group(path, ret);
}

/* ---- processes that know what they did
 * ------------------------------------------------------------------------------------- */

static void read_blocks(unsigned n) {
        char buf[BLOCK];
        int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

        for (unsigned i = 0; i < n; i++)
                if (read(fd, buf, sizeof(buf)) != BLOCK)
                        _exit(98);
        close(fd);
}

static void write_blocks(unsigned n) {
        static const char buf[BLOCK];
        int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

        for (unsigned i = 0; i < n; i++)
                if (write(fd, buf, sizeof(buf)) != BLOCK)
                        _exit(98);
        close(fd);
}

static pid_t fork_into(const struct group *g) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0)
                (void)enter(g);
        return pid;
}

static int finish(pid_t pid) {
        int status;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

static void clear(uint64_t values[static _TELEMETRY_MAX]) {
        for (size_t i = 0; i < _TELEMETRY_MAX; i++)
                values[i] = TELEMETRY_UNKNOWN;
}

static bool is_up(const char *name) {
        const struct probe_program *programs;
        size_t n = probe_programs(probe, &programs);

        for (size_t i = 0; i < n; i++)
                if (strcmp(programs[i].name, name) == 0)
                        return programs[i].up;
        fail_msg("no program is called %s", name);
        return false;
}

/* ---- tests
 * --------------------------------------------------------------------------------------------------------- */

static void test_programs(void **state) {
        static const char *const base[] = { "exits", "tasks", "ingress", "egress", "retransmits", "victims" };
        const struct probe_program *programs;
        size_t n = probe_programs(probe, &programs);

        for (size_t i = 0; i < n; i++) {
                print_message("%s: %s %s\n", programs[i].name, programs[i].up ? "up" : "down", programs[i].why);
                assert_int_equal(programs[i].up, *programs[i].why == 0);
        }
        for (size_t i = 0; i < ELEMENTSOF(base); i++)
                assert_true(is_up(base[i]));
}

/* Two processes, one of them with a child that it waits for and a child that it does not. */
static void test_ended(void **state) {
        uint64_t v[_TELEMETRY_MAX];
        struct group unit;
        pid_t pid;

        make_unit("ended", &unit);
        clear(v);
        assert_false(probe_final(probe, unit.id, v));
        pid = fork_into(&unit);
        if (pid == 0) {
                pid_t child = fork();

                read_blocks(child == 0 ? 3 : 5);
                if (child == 0)
                        _exit(0);
                if (waitpid(child, NULL, 0) != child)
                        _exit(97);
                write_blocks(7);
                _exit(3);
        }
        assert_int_equal(WEXITSTATUS(finish(pid)), 3);
        assert_true(probe_final(probe, unit.id, v));
        assert_int_equal(v[TELEMETRY_READ_BYTES], 8 * BLOCK);
        assert_int_equal(v[TELEMETRY_WRITE_BYTES], 7 * BLOCK + 1);
        remove_group(unit.path);
        probe_forget(probe, unit.id);
        clear(v);
        assert_false(probe_final(probe, unit.id, v));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_programs),
                cmocka_unit_test(test_ended),
        };
        const char *root = v2_root();
        char job[160];
        int r;

        if (geteuid() != 0 || !root) {
                fprintf(stderr, "skipped: makes control groups on a v2 hierarchy, so it wants root and one\n");
                return SKIPPED;
        }
        snprintf(top, sizeof(top), "%s/primus-test-%d", root, getpid());
        if (mkdir(top, 0755) < 0) {
                fprintf(stderr, "skipped: cannot make %s: %s\n", top, strerror(errno));
                return SKIPPED;
        }
        top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = probe_new(top_fd, &probe);
        if (r < 0 || probe_scrape(probe) < 0) {
                const struct probe_program *programs;

                (void)probe_programs(probe, &programs);
                fprintf(stderr, "skipped: %s\n", programs[0].why);
                r = SKIPPED;
        } else {
                r = cmocka_run_group_tests(tests, NULL, NULL);
        }
        probe_free(probe);
        close(top_fd);
        snprintf(job, sizeof(job), "%s/primus-1.slice", top);
        remove_group(job);
        remove_group(top);
        return r;
}
