/* SPDX-License-Identifier: Apache-2.0 */
/* agentd/net/sockets.c against the kernel: connections of processes in cgroups made for it, where that can be
 * done (root, a cgroup v2 tree that may be written); by the test's own cgroup otherwise. */
#include "agentd/net/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"

static char root[256];

/* The v2 tree, and the place of this process in it. */
static bool find_tree(char *own, size_t size) {
        static const char *const trees[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
        char line[256];
        FILE *f = fopen("/proc/self/cgroup", "re");

        *own = 0;
        while (f && fgets(line, sizeof(line), f))
                if (strncmp(line, "0::", 3) == 0) {
                        line[strcspn(line, "\n")] = 0;
                        snprintf(own, size, "%s", line + 3);
                }
        if (f)
                (void)fclose(f);
        for (size_t i = 0; i < ELEMENTSOF(trees); i++) {
                char path[128];
                snprintf(path, sizeof(path), "%s/cgroup.procs", trees[i]);
                if (access(path, R_OK) == 0) {
                        snprintf(root, sizeof(root), "%s", trees[i]);
                        return *own;
                }
        }
        return false;
}

static uint64_t id_of(const char *path) {
        struct stat st;

        assert_int_equal(stat(path, &st), 0);
        return st.st_ino;
}

static void nap(unsigned msec) {
        usleep(msec * 1000);
}

static int listener(uint16_t *ret_port) {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t l = sizeof(in);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
        assert_int_equal(listen(fd, 16), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &l), 0);
        *ret_port = ntohs(in.sin_port);
        return fd;
}

static int dial(uint16_t port) {
        struct sockaddr_in in = { .sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0)
                _exit(1);
        return fd;
}

static void join_cgroup(const char *path) {
        char procs[640], pid[16];
        int fd, l;

        snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
        fd = open(procs, O_WRONLY | O_CLOEXEC);
        l = snprintf(pid, sizeof(pid), "%d", getpid());
        if (fd < 0 || write(fd, pid, (size_t)l) != l)
                _exit(77);
        close(fd);
}

/* Both ends in one unit do not count. */
static void test_own(void **state) {
        _cleanup_(sockets_free_p) struct sockets *s = NULL;
        uint64_t id, values[_TELEMETRY_MAX];
        char own[256], path[600];
        int listening, a, b, r;
        uint16_t port;

        if (!find_tree(own, sizeof(own)))
                skip();
        snprintf(path, sizeof(path), "%s%s", root, own);
        if (access(path, F_OK) < 0)
                skip();
        id = id_of(path);
        assert_int_equal(sockets_new(&s), 0);
        listening = listener(&port);
        a = dial(port);
        b = accept(listening, NULL, NULL);
        assert_true(b >= 0);
        for (unsigned batch = 0; batch < 3; batch++) {
                sockets_set_batch(s, batch);
                nap(1100);
                r = sockets_look(s, &id, 1);
                if (r == -EOPNOTSUPP)
                        skip();
                assert_true(r >= 0);
        }
        telemetry_clear(values);
        sockets_fill(s, id, values);
        assert_true(values[TELEMETRY_LOOKS] >= 1 && values[TELEMETRY_LOOKS] <= 3);
        assert_int_equal(values[TELEMETRY_LOOKS_UNREAD], 0);
        assert_true(values[TELEMETRY_TCP_CONNECTIONS] != TELEMETRY_UNKNOWN);
        sockets_forget(s, id);
        telemetry_clear(values);
        sockets_fill(s, id, values);
        assert_true(values[TELEMETRY_LOOKS] == TELEMETRY_UNKNOWN);
        close(a);
        close(b);
        close(listening);
}

/* Two ranks: both get their neighbour's data every 100 ms. One reads at once and waits; the other computes
 * for eight seconds, longer than two looks are apart on a host where they take long, and reads then. Who is
 * waited for is the one whose data lies there. */
static void rank(const char *cgroup, int in, int out, bool slow) {
        uint64_t until = now_boot() + 60 * USEC_PER_SEC, send = 0;
        char buffer[4096] = "";

        while (now_boot() < until) {
                if (now_boot() >= send) {
                        if (write(out, buffer, 1000) != 1000)
                                _exit(0);
                        send = now_boot() + 100 * USEC_PER_MSEC;
                }
                if (slow) {
                        uint64_t busy = now_boot() + 8000 * USEC_PER_MSEC;
                        while (now_boot() < busy)
                                nap(50); /* it might as well compute; the machine is not ours alone */
                }
                while (recv(in, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
                        ;
                nap(5);
        }
        _exit(0);
}

static void test_who_is_waited_for(void **state) {
        _cleanup_(sockets_free_p) struct sockets *s = NULL;
        char own[256], fast[512], slow[512];
        uint64_t ids[2], values[2][_TELEMETRY_MAX];
        int listening, ends[2], r = 0, looks = 0;
        uint16_t port;
        pid_t pids[2];

        if (geteuid() != 0 || !find_tree(own, sizeof(own)))
                skip();
        snprintf(fast, sizeof(fast), "%s/test-sockets-%d-fast", root, getpid());
        snprintf(slow, sizeof(slow), "%s/test-sockets-%d-slow", root, getpid());
        if (mkdir(fast, 0755) < 0)
                skip();
        assert_int_equal(mkdir(slow, 0755), 0);
        ids[0] = id_of(fast);
        ids[1] = id_of(slow);
        listening = listener(&port);
        for (int i = 0; i < 2; i++) {
                const char *cgroup = i ? slow : fast;
                pids[i] = fork();
                assert_true(pids[i] >= 0);
                if (pids[i] == 0) {
                        int fd;
                        join_cgroup(cgroup);
                        fd = dial(port);
                        rank(cgroup, fd, fd, i);
                }
                ends[i] = accept(listening, NULL, NULL);
                assert_true(ends[i] >= 0);
        }
        assert_int_equal(sockets_new(&s), 0);
        /* This process is the wire between the two. */
        for (unsigned i = 0; i < 25 && looks < 10 && r >= 0; i++) {
                for (unsigned k = 0; k < 20; k++) {
                        char buffer[8192];
                        for (int e = 0; e < 2; e++) {
                                ssize_t l = recv(ends[e], buffer, sizeof(buffer), MSG_DONTWAIT);
                                if (l > 0)
                                        assert_int_equal(send(ends[!e], buffer, (size_t)l, MSG_NOSIGNAL), l);
                        }
                        nap(50);
                }
                r = sockets_look(s, ids, 2);
                looks += r > 0;
        }
        for (int i = 0; i < 2; i++) {
                telemetry_clear(values[i]);
                sockets_fill(s, ids[i], values[i]);
                (void)kill(pids[i], SIGKILL);
                (void)waitpid(pids[i], NULL, 0);
                close(ends[i]);
        }
        close(listening);
        nap(50);
        (void)rmdir(fast);
        (void)rmdir(slow);
        if (r == -EOPNOTSUPP || values[0][TELEMETRY_TCP_CONNECTIONS] == TELEMETRY_UNKNOWN)
                skip();
        print_message(
                "fast: %llu of %llu looks, slow: %llu of %llu; unread %llu, received %llu, rtt %llu us\n",
                (unsigned long long)values[0][TELEMETRY_LOOKS_UNREAD],
                (unsigned long long)values[0][TELEMETRY_LOOKS],
                (unsigned long long)values[1][TELEMETRY_LOOKS_UNREAD],
                (unsigned long long)values[1][TELEMETRY_LOOKS],
                (unsigned long long)values[1][TELEMETRY_NET_UNREAD_BYTES],
                (unsigned long long)values[1][TELEMETRY_NET_RX_BYTES],
                (unsigned long long)values[1][TELEMETRY_TCP_RTT_USEC]);
        assert_int_equal(values[0][TELEMETRY_TCP_CONNECTIONS], 1);
        assert_int_equal(values[1][TELEMETRY_TCP_CONNECTIONS], 1);
        assert_true(values[0][TELEMETRY_NET_RX_BYTES] > 0 && values[0][TELEMETRY_NET_TX_BYTES] > 0);
        assert_true(values[1][TELEMETRY_LOOKS_UNREAD] >= 3);
        assert_true(values[0][TELEMETRY_LOOKS_UNREAD] + 2 < values[1][TELEMETRY_LOOKS_UNREAD]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_own),
                cmocka_unit_test(test_who_is_waited_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
