/* SPDX-License-Identifier: Apache-2.0 */
/* Exact counts, against processes that know what they did: in control groups that this program makes and
 * removes, so as root and on a kernel that takes BPF. Exit status 77 (skipped) elsewhere. */
#include "agentd/probe/probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "starter/observe/programs.h"

#define SKIPPED 77
#define CGROUP2_MAGIC 0x63677270
#define BLOCK 4096
#define HELD ((size_t)64 << 20)
#define HELD_ABOUT (4u << 20) /* what else comes, and what CPUs have not told yet */

static char top[128]; /* stands for primus.slice */
static int top_fd = -1;
static struct programs *programs; /* the starter's side */
static struct probe *probe;       /* the agent's */

/* As they come to the agent. */
static struct probe_descriptors hand_over(void) {
        return (struct probe_descriptors){
                .state = fcntl(programs_descriptor(programs, OBSERVE_MAP_STATE), F_DUPFD_CLOEXEC, 3),
                .units = fcntl(programs_descriptor(programs, OBSERVE_MAP_UNITS), F_DUPFD_CLOEXEC, 3),
                .flows = fcntl(programs_descriptor(programs, OBSERVE_MAP_FLOWS), F_DUPFD_CLOEXEC, 3),
                .events = fcntl(programs_descriptor(programs, OBSERVE_MAP_EVENTS), F_DUPFD_CLOEXEC, 3),
                .tasks = fcntl(programs_descriptor(programs, OBSERVE_LINK_TASKS), F_DUPFD_CLOEXEC, 3),
        };
}

static int adopt(struct probe *p) {
        const struct program_state *s = programs_states(programs);
        struct probe_program how[_OBSERVE_PROGRAM_MAX];
        struct probe_descriptors d = hand_over();

        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++) {
                how[i] = (struct probe_program){ .up = s[i].up, .out_of_place = s[i].out_of_place };
                strcpy(how[i].why, s[i].why);
        }
        return probe_adopt(p, how, &d);
}

/* The kernel's programs, and who reads what they count. */
static int start(void) {
        int r;

        if ((r = programs_new(&programs)) < 0 || (r = programs_set_slice(programs, top_fd)) < 0 ||
            (r = probe_new(&probe)) < 0 || (r = probe_set_slice(probe, top_fd)) < 0)
                return r;
        return adopt(probe);
}

static void stop(void) {
        probe_free(probe);
        programs_free(programs);
}

/* ---- control groups ---- */

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

/* Also what a test that failed has left there. */
static void remove_all(const char *path, int depth) {
        DIR *dir = depth < 6 ? opendir(path) : NULL;
        struct dirent *entry;
        char below[512];
        int fd;

        if (depth == 0) {
                snprintf(below, sizeof(below), "%s/cgroup.kill", path);
                fd = open(below, O_WRONLY | O_CLOEXEC);
                if (fd >= 0)
                        (void)!write(fd, "1", 1);
                close_fd(fd);
        }
        while (dir && (entry = readdir(dir))) {
                if (entry->d_type != DT_DIR || *entry->d_name == '.')
                        continue;
                if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) < (int)sizeof(below))
                        remove_all(below, depth + 1);
        }
        if (dir)
                closedir(dir);
        remove_group(path);
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

/* ---- processes that know what they did ---- */

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

static bool is_up(const char *name) {
        const struct probe_program *how;
        size_t n = probe_programs(probe, &how);

        for (size_t i = 0; i < n; i++)
                if (strcmp(how[i].name, name) == 0)
                        return how[i].up;
        fail_msg("no program is called %s", name);
        return false;
}

/* ---- tests ---- */

static void test_programs(void **state) {
        static const char *const base[] = { "exits", "tasks", "ingress", "egress", "retransmits", "victims" };
        const struct probe_program *how;
        size_t n = probe_programs(probe, &how);

        for (size_t i = 0; i < n; i++) {
                print_message("%s: %s %s\n", how[i].name, how[i].up ? "up" : "down", how[i].why);
                assert_int_equal(how[i].up, *how[i].why == 0);
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
        telemetry_clear(v);
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
        telemetry_clear(v);
        assert_false(probe_final(probe, unit.id, v));
}

static uint64_t live(const struct group *g, enum telemetry_field f) {
        uint64_t v[_TELEMETRY_MAX];

        assert_int_equal(probe_scrape(probe), 0);
        telemetry_clear(v);
        probe_fill(probe, g->id, v);
        return v[f];
}

/* A process that does what it is told, a letter at a time, and says when it has. */
struct puppet {
        pid_t pid;
        int orders, answers;
};

static void *read_three(void *unused) {
        read_blocks(3);
        return NULL;
}

static void *stay(void *unused) {
        for (;;)
                (void)pause();
        return NULL;
}

/* By a process that has a second thread from now on. */
static void hold_memory(void) {
        pthread_t thread;
        char *p = mmap(NULL, HELD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

        if (p == MAP_FAILED || pthread_create(&thread, NULL, stay, NULL) != 0)
                _exit(96);
}

static _Noreturn void dance(int orders, int answers) {
        pthread_t thread;
        char order;

        /* These are counted like any other: a byte read for an order, a byte written for an answer. */
        while (read(orders, &order, 1) == 1) {
                switch (order) {
                case 'r':
                        read_blocks(1);
                        break;
                case 't':
                        if (pthread_create(&thread, NULL, read_three, NULL) != 0 ||
                            pthread_join(thread, NULL) != 0)
                                _exit(96);
                        break;
                case 'm':
                        hold_memory();
                        break;
                case 'c': /* a child that is waited for */
                case 'z': /* and one that is not */
                        if (fork() == 0) {
                                read_blocks(5);
                                _exit(0);
                        }
                        if (order == 'c' && wait(NULL) < 0)
                                _exit(96);
                        break;
                default:
                        break;
                }
                if (write(answers, &order, 1) != 1)
                        break;
        }
        _exit(0);
}

static struct puppet puppet_new(const struct group *g) {
        struct puppet p;
        int orders[2], answers[2];

        assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
        assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
        p.pid = fork();
        assert_true(p.pid >= 0);
        if (p.pid == 0) {
                close(orders[1]);
                close(answers[0]);
                (void)enter(g);
                dance(orders[0], answers[1]);
        }
        close(orders[0]);
        close(answers[1]);
        p.orders = orders[1];
        p.answers = answers[0];
        return p;
}

static void tell(const struct puppet *p, char order) {
        char answer;

        assert_int_equal(write(p->orders, &order, 1), 1);
        assert_int_equal(read(p->answers, &answer, 1), 1);
}

static void puppet_end(struct puppet *p) {
        close(p->orders);
        assert_int_equal(finish(p->pid), 0);
        close(p->answers);
}

/* Until a sample says this: who was joined or has answered may still be on its way out, or awake. Above the
 * truth it never is. */
static void becomes(const struct group *g, enum telemetry_field f, uint64_t expected) {
        uint64_t now;

        for (int i = 0; (now = live(g, f)) != expected && i < 5000; i++) {
                if (f == TELEMETRY_READ_BYTES || f == TELEMETRY_WRITE_BYTES)
                        assert_true(now < expected);
                usleep(2000);
        }
        assert_int_equal(now, expected);
}

/* Between threads and children that live, that have ended, and that are zombies, nothing is counted twice. */
static void test_live(void **state) {
        uint64_t v[_TELEMETRY_MAX];
        struct group unit;
        struct puppet p;

        make_unit("live", &unit);
        p = puppet_new(&unit);
        tell(&p, 'r');
        becomes(&unit, TELEMETRY_READ_BYTES, BLOCK + 1);
        becomes(&unit, TELEMETRY_TASKS, 1);
        becomes(&unit, TELEMETRY_TASKS_RUNNING, 0);
        becomes(&unit, TELEMETRY_WRITE_BYTES, 1 + 1);
        tell(&p, 't');
        becomes(&unit, TELEMETRY_READ_BYTES, 4 * BLOCK + 2);
        tell(&p, 'c');
        becomes(&unit, TELEMETRY_READ_BYTES, 9 * BLOCK + 3);
        tell(&p, 'z');
        becomes(&unit, TELEMETRY_READ_BYTES, 14 * BLOCK + 4);
        becomes(&unit, TELEMETRY_TASKS, 1); /* and a zombie */
        assert_int_equal(kill(p.pid, SIGSTOP), 0);
        assert_int_equal(waitpid(p.pid, &(int){ 0 }, WUNTRACED), p.pid);
        becomes(&unit, TELEMETRY_TASKS_STOPPED, 1);
        usleep(300000);
        assert_in_range(live(&unit, TELEMETRY_LAST_RUN_USEC), 250000, 30000000);
        assert_int_equal(kill(p.pid, SIGCONT), 0);
        puppet_end(&p);
        assert_int_equal(live(&unit, TELEMETRY_TASKS), 0);
        telemetry_clear(v);
        assert_true(probe_final(probe, unit.id, v));
        assert_int_equal(v[TELEMETRY_READ_BYTES], 14 * BLOCK + 4);
        assert_int_equal(v[TELEMETRY_WRITE_BYTES], 1 + 4);
        remove_group(unit.path);
        probe_forget(probe, unit.id);
}

/* Memory of processes, where no controller has counted it: once for each, however many threads it has. */
static void test_memory(void **state) {
        uint64_t all, anon, v[_TELEMETRY_MAX];
        struct probe *without;
        struct group unit;
        struct puppet p;

        make_unit("memory", &unit);
        p = puppet_new(&unit);
        tell(&p, 'r');
        all = live(&unit, TELEMETRY_MEMORY_BYTES);
        anon = live(&unit, TELEMETRY_MEMORY_ANON_BYTES);
        assert_true(anon <= all && all < HELD);
        tell(&p, 'm');
        assert_int_equal(live(&unit, TELEMETRY_TASKS), 2);
        assert_in_range(live(&unit, TELEMETRY_MEMORY_BYTES), HELD, all + HELD + HELD_ABOUT);
        assert_in_range(live(&unit, TELEMETRY_MEMORY_ANON_BYTES), HELD - HELD_ABOUT,
                        anon + HELD + HELD_ABOUT);
        assert_int_equal(probe_new(&without), 0); /* by /proc */
        assert_int_equal(probe_set_slice(without, top_fd), 0);
        telemetry_clear(v);
        probe_fill(without, unit.id, v);
        assert_in_range(v[TELEMETRY_MEMORY_BYTES], HELD, all + HELD + HELD_ABOUT);
        assert_in_range(v[TELEMETRY_MEMORY_ANON_BYTES], HELD - HELD_ABOUT, anon + HELD + HELD_ABOUT);
        probe_free(without);
        /* The controller's count is the better one. */
        assert_int_equal(probe_scrape(probe), 0);
        telemetry_clear(v);
        v[TELEMETRY_MEMORY_BYTES] = 7;
        probe_fill(probe, unit.id, v);
        assert_int_equal(v[TELEMETRY_MEMORY_BYTES], 7);
        puppet_end(&p);
        telemetry_clear(v);
        assert_int_equal(live(&unit, TELEMETRY_MEMORY_BYTES), TELEMETRY_UNKNOWN);
        remove_group(unit.path);
        probe_forget(probe, unit.id);
}

/* Threads come and go all the time: a sample is never above the truth and never falls, and in the end it is
 * exact. */
static void *come_and_go(void *unused) {
        for (int i = 0; i < 300; i++) {
                pthread_t thread;

                if (pthread_create(&thread, NULL, read_three, NULL) != 0 || pthread_join(thread, NULL) != 0)
                        _exit(95);
        }
        return NULL;
}

static void test_never_twice(void **state) {
        const uint64_t all = (uint64_t)4 * 300 * 3 * BLOCK;
        uint64_t last = 0, v[_TELEMETRY_MAX];
        unsigned samples = 0;
        struct group unit;
        pid_t pid;

        make_unit("churn", &unit);
        pid = fork_into(&unit);
        if (pid == 0) {
                pthread_t threads[4];

                for (size_t i = 0; i < ELEMENTSOF(threads); i++)
                        if (pthread_create(&threads[i], NULL, come_and_go, NULL) != 0)
                                _exit(95);
                for (size_t i = 0; i < ELEMENTSOF(threads); i++)
                        (void)pthread_join(threads[i], NULL);
                _exit(0);
        }
        while (waitpid(pid, NULL, WNOHANG) == 0) {
                uint64_t now = live(&unit, TELEMETRY_READ_BYTES);

                assert_true(now >= last);
                assert_true(now <= all);
                last = now;
                samples++;
                usleep(500);
        }
        telemetry_clear(v);
        assert_true(probe_final(probe, unit.id, v));
        assert_int_equal(v[TELEMETRY_READ_BYTES], all);
        print_message("%u samples while 1200 threads came and went\n", samples);
        remove_group(unit.path);
        probe_forget(probe, unit.id);
}

/* Control groups that a unit makes below itself are the unit; those beside it, and another host's, are not.
 */
static void test_below(void **state) {
        struct group unit, deep, beside;
        uint64_t v[_TELEMETRY_MAX];
        pid_t pid;

        make_unit("tree", &unit);
        make_group("primus-1.slice/tree/a", &deep);
        make_group("primus-1.slice/tree/a/b", &deep);
        make_group("other.service", &beside);
        for (int i = 0; i < 2; i++) {
                pid = fork_into(i == 0 ? &deep : &beside);
                if (pid == 0) {
                        read_blocks(2);
                        _exit(0);
                }
                assert_int_equal(finish(pid), 0);
        }
        telemetry_clear(v);
        assert_true(probe_final(probe, unit.id, v));
        assert_int_equal(v[TELEMETRY_READ_BYTES], 2 * BLOCK);
        telemetry_clear(v);
        assert_false(probe_final(probe, deep.id, v));
        assert_false(probe_final(probe, beside.id, v));
        remove_group(deep.path);
        *strrchr(deep.path, '/') = 0;
        remove_group(deep.path);
        remove_group(unit.path);
        remove_group(beside.path);
        probe_forget(probe, unit.id);
}

/* CPU time against the process's own getrusage(), to a tick of the scheduler for each time it ended a slice.
 */
static void test_cpu(void **state) {
        uint64_t v[_TELEMETRY_MAX], own;
        struct group unit;
        int fds[2];
        pid_t pid;

        make_unit("cpu", &unit);
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid = fork_into(&unit);
        if (pid == 0) {
                struct rusage usage;

                do {
                        getrusage(RUSAGE_SELF, &usage);
                        own = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * USEC_PER_SEC +
                              (uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec;
                } while (own < 200000);
                _exit(write(fds[1], &own, sizeof(own)) == sizeof(own) ? 0 : 94);
        }
        assert_int_equal(finish(pid), 0);
        assert_int_equal(read(fds[0], &own, sizeof(own)), sizeof(own));
        close(fds[0]);
        close(fds[1]);
        telemetry_clear(v);
        assert_true(probe_final(probe, unit.id, v));
        print_message("CPU: %lu us by the process, %lu by the probe\n", own, v[TELEMETRY_CPU_USEC]);
        assert_in_range(v[TELEMETRY_CPU_USEC], own - 12000, own + 12000);
        /* What others know better stays. */
        telemetry_clear(v);
        v[TELEMETRY_CPU_USEC] = own;
        assert_true(probe_final(probe, unit.id, v));
        assert_int_equal(v[TELEMETRY_CPU_USEC], own);
        remove_group(unit.path);
        probe_forget(probe, unit.id);
}

/* Datagrams: 28 bytes of headers each, and no acknowledgements. */
static void test_network(void **state) {
        uint64_t v[_TELEMETRY_MAX];
        struct group unit;
        pid_t pid;

        make_unit("network", &unit);
        pid = fork_into(&unit);
        if (pid == 0) {
                struct sockaddr_in address = { .sin_family = AF_INET,
                                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
                socklen_t size = sizeof(address);
                int in = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), out;
                char buf[1000] = { 0 };

                out = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
                if (bind(in, (struct sockaddr *)&address, size) < 0 ||
                    getsockname(in, (struct sockaddr *)&address, &size) < 0)
                        _exit(93);
                for (int i = 0; i < 50; i++)
                        if (sendto(out, buf, sizeof(buf), 0, (struct sockaddr *)&address, size) < 0 ||
                            recv(in, buf, sizeof(buf), 0) != sizeof(buf))
                                _exit(93);
                _exit(0);
        }
        assert_int_equal(finish(pid), 0);
        telemetry_clear(v);
        assert_true(probe_final(probe, unit.id, v));
        assert_int_equal(v[TELEMETRY_NET_TX_PACKETS], 50);
        assert_int_equal(v[TELEMETRY_NET_RX_PACKETS], 50);
        assert_int_equal(v[TELEMETRY_NET_TX_BYTES], 50 * 1028);
        assert_int_equal(v[TELEMETRY_NET_RX_BYTES], 50 * 1028);
        assert_int_equal(v[TELEMETRY_TCP_RETRANSMITS], 0);
        remove_group(unit.path);
        probe_forget(probe, unit.id);
}

static void note_event(const struct probe_event *e, void *userdata) {
        *(struct probe_event *)userdata = *e;
}

static void test_killed(void **state) {
        struct probe_event event = { 0 };
        struct group unit;
        pid_t pid;

        make_unit("killed", &unit);
        assert_true(probe_fd(probe) >= 0);
        pid = fork_into(&unit);
        if (pid == 0) {
                (void)raise(SIGKILL);
                _exit(1);
        }
        assert_int_equal(WTERMSIG(finish(pid)), SIGKILL);
        assert_int_equal(probe_dispatch(probe, note_event, &event), 1);
        assert_int_equal(event.kind, PROBE_KILLED);
        assert_int_equal(event.signal, SIGKILL);
        assert_int_equal(event.cgroup_id, unit.id);
        assert_string_equal(event.comm, "test-probe");
        assert_int_equal(probe_dispatch(probe, note_event, &event), 0);
        remove_group(unit.path);
        probe_forget(probe, unit.id);
}

/* Another agentd, and an executor that was there before it: what its processes have, with the threads that
 * ended and the children that it waited for, is not lost. */
static void test_restart(void **state) {
        uint64_t v[_TELEMETRY_MAX];
        struct group unit;
        struct puppet p;

        make_unit("restart", &unit);
        p = puppet_new(&unit);
        tell(&p, 'r');
        tell(&p, 't');
        tell(&p, 'c');
        becomes(&unit, TELEMETRY_READ_BYTES, 9 * BLOCK + 3);
        stop();
        assert_int_equal(start(), 0);
        becomes(&unit, TELEMETRY_READ_BYTES, 9 * BLOCK + 3);
        tell(&p, 't');
        tell(&p, 'c');
        becomes(&unit, TELEMETRY_READ_BYTES, 17 * BLOCK + 5);
        puppet_end(&p);
        telemetry_clear(v);
        assert_true(probe_final(probe, unit.id, v));
        assert_int_equal(v[TELEMETRY_READ_BYTES], 17 * BLOCK + 5);
        remove_group(unit.path);
        probe_forget(probe, unit.id);
}

/* Without a pass of the kernel's, /proc is asked. */
static void test_procfs(void **state) {
        struct probe *without;
        uint64_t v[_TELEMETRY_MAX];
        struct group unit;
        struct puppet p;

        make_unit("procfs", &unit);
        p = puppet_new(&unit);
        tell(&p, 't');
        tell(&p, 'c');
        assert_int_equal(probe_new(&without), 0);
        assert_int_equal(probe_set_slice(without, top_fd), 0);
        /* The kernel counts a write when it is over, and that may be after its byte has arrived here. */
        for (unsigned i = 0; i < 5000; i++) {
                telemetry_clear(v);
                probe_fill(without, unit.id, v);
                if (v[TELEMETRY_WRITE_BYTES] >= 1 + 2)
                        break;
                usleep(1000);
        }
        assert_int_equal(v[TELEMETRY_READ_BYTES], 8 * BLOCK + 2);
        assert_int_equal(v[TELEMETRY_WRITE_BYTES], 1 + 2);
        assert_int_equal(v[TELEMETRY_TASKS], 1);
        assert_in_range(v[TELEMETRY_TASKS_RUNNING], 0, 1);
        assert_int_not_equal(v[TELEMETRY_RUNQUEUE_WAIT_USEC], TELEMETRY_UNKNOWN);
        telemetry_clear(v);
        probe_fill(without, unit.id + 1000000, v);
        assert_int_equal(v[TELEMETRY_TASKS], TELEMETRY_UNKNOWN);
        probe_free(without);
        puppet_end(&p);
        remove_group(unit.path);
        probe_forget(probe, unit.id);
}

/* 200 of them, each for a moment: not one is missed. */
static void test_short_lives(void **state) {
        enum {
                LIVES = 200
        };
        static struct group units[LIVES];
        pid_t pids[LIVES];

        for (size_t i = 0; i < LIVES; i++) {
                char name[32];

                snprintf(name, sizeof(name), "short-%zu", i);
                make_unit(name, &units[i]);
        }
        for (size_t i = 0; i < LIVES; i++) {
                pids[i] = fork_into(&units[i]);
                if (pids[i] == 0) {
                        read_blocks(1);
                        _exit(0);
                }
        }
        for (size_t i = 0; i < LIVES; i++)
                assert_int_equal(finish(pids[i]), 0);
        for (size_t i = 0; i < LIVES; i++) {
                uint64_t v[_TELEMETRY_MAX];

                telemetry_clear(v);
                assert_true(probe_final(probe, units[i].id, v));
                assert_int_equal(v[TELEMETRY_READ_BYTES], BLOCK);
                remove_group(units[i].path);
                probe_forget(probe, units[i].id);
        }
        assert_int_equal(probe_dropped(probe), 0);
}

/* A process that may nothing: it reads what the programs count, passes over the tasks, hears of events, and
 * cannot say what is counted at all. */
static void test_nobody(void **state) {
        struct group unit, outside;
        struct puppet p;
        pid_t pid;

        make_unit("nobody", &unit);
        make_group("stray", &outside);
        p = puppet_new(&unit);
        tell(&p, 'r');
        becomes(&unit, TELEMETRY_READ_BYTES, BLOCK + 1);
        pid = fork();
        if (pid == 0) {
                struct probe *mine = NULL;
                uint64_t v[_TELEMETRY_MAX];

                if (syscall(SYS_setgroups, 0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
                    setresuid(65534, 65534, 65534) < 0)
                        _exit(1);
                if (probe_new(&mine) < 0 || adopt(mine) < 0 || probe_fd(mine) < 0)
                        _exit(2);
                if (probe_scrape(mine) < 0)
                        _exit(3);
                telemetry_clear(v);
                probe_fill(mine, unit.id, v);
                if (v[TELEMETRY_READ_BYTES] != BLOCK + 1 || v[TELEMETRY_TASKS] != 1)
                        _exit(4);
                if (probe_dispatch(mine, note_event, &(struct probe_event){ 0 }) < 0)
                        _exit(5);
                probe_forget(mine, unit.id);
                probe_free(mine);
                _exit(0);
        }
        assert_int_equal(WEXITSTATUS(finish(pid)), 0);
        puppet_end(&p);
        remove_group(unit.path);
        remove_group(outside.path);
        probe_forget(probe, unit.id);
}

/* What the starter read of /proc, where nothing counts: said as long as it is fresh, and never lower. */
static void test_usage(void **state) {
        const struct probe_usage usage = { .read_bytes = 7, .write_bytes = 8, .block_read_bytes = 9 };
        uint64_t v[_TELEMETRY_MAX];
        struct probe *without;

        assert_int_equal(probe_new(&without), 0);
        telemetry_clear(v);
        probe_fill(without, 1, v);
        assert_true(v[TELEMETRY_READ_BYTES] == TELEMETRY_UNKNOWN && !probe_counts(without));
        probe_note_usage(without, 1, &usage);
        telemetry_clear(v);
        probe_fill(without, 1, v);
        assert_true(v[TELEMETRY_READ_BYTES] == 7 && v[TELEMETRY_WRITE_BYTES] == 8 &&
                    v[TELEMETRY_BLOCK_READ_BYTES] == 9 && v[TELEMETRY_BLOCK_WRITE_BYTES] == 0);
        probe_note_usage(without, 1, &(struct probe_usage){ .read_bytes = 3 });
        telemetry_clear(v);
        probe_fill(without, 1, v);
        assert_true(v[TELEMETRY_READ_BYTES] == 7);
        probe_free(without);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_programs), cmocka_unit_test(test_ended),
                cmocka_unit_test(test_live),     cmocka_unit_test(test_never_twice),
                cmocka_unit_test(test_below),    cmocka_unit_test(test_cpu),
                cmocka_unit_test(test_network),  cmocka_unit_test(test_killed),
                cmocka_unit_test(test_restart),  cmocka_unit_test(test_procfs),
                cmocka_unit_test(test_memory),   cmocka_unit_test(test_short_lives),
                cmocka_unit_test(test_nobody),   cmocka_unit_test(test_usage),
        };
        const char *root = v2_root();
        int r;

        if (geteuid() != 0 || !root) {
                fprintf(stderr,
                        "skipped: makes control groups on a v2 hierarchy, so it wants root and one\n");
                return SKIPPED;
        }
        snprintf(top, sizeof(top), "%s/primus-test-%d", root, getpid());
        if (mkdir(top, 0755) < 0) {
                fprintf(stderr, "skipped: cannot make %s: %s\n", top, strerror(errno));
                return SKIPPED;
        }
        top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = start();
        if (r < 0 || probe_scrape(probe) < 0) {
                const struct probe_program *how;

                (void)probe_programs(probe, &how);
                fprintf(stderr, "skipped: %s\n", how[0].why);
                r = SKIPPED;
        } else {
                r = cmocka_run_group_tests(tests, NULL, NULL);
        }
        stop();
        close(top_fd);
        remove_all(top, 0);
        return r;
}
