/* SPDX-License-Identifier: Apache-2.0 */
/* primus-provider REQUEST: runs a verb of a provider for masterd. REQUEST is "NAME.VERB.TOKEN"; the
 * executable is SYSCONFDIR/primus/providers/NAME/VERB. What it is asked comes from masterd over the bus and
 * goes to its standard input; its exit status and what it prints go back the same way; what it says on stderr
 * is the journal's.
 *
 * Invariants: only what root alone may change is run, by way of links that root alone may change; it is over,
 * with all its processes, when its time is, or when it has printed more than it may; what is no text is no
 * answer, for part of a list, or none of it, would be a list. Exit status: its own; 70 where it could not be
 * run. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"

#define PROVIDERS_DIR PRIMUS_SYSCONFDIR "/providers"
#define STATE_DIR "/var/lib/primus-provider"
#define MASTER "org.primus.Master1"
#define MASTER_OBJECT "/org/primus/Master1"
#define MASTER_MANAGER "org.primus.Master1.Manager"
#define OUTPUT_MAX ((size_t)1 << 20)
#define ASK_FOR_USEC (120 * USEC_PER_SEC) /* so long a master that is away is waited for */
#define NAME_MAX_ 32u

struct request {
        const char *text;
        char name[NAME_MAX_ + 1], verb[8], token[32];
        char cluster[33];
        char *json;
        uint64_t limit_usec;
};

static int fail(const char *what, const char *why) {
        fprintf(stderr, "primus-provider: %s: %s\n", what, why);
        return EX_SOFTWARE;
}

/* NAME.VERB.TOKEN: what ends up in paths and in the environment. */
static bool parse_request(const char *text, struct request *r) {
        char end;

        r->text = text;
        return strlen(text) < 80 &&
               sscanf(text, "%32[a-z0-9-].%7[a-z].%31[0-9a-f-]%c", r->name, r->verb, r->token, &end) == 3 &&
               r->name[0] != '-' &&
               (strcmp(r->verb, "list") == 0 || strcmp(r->verb, "up") == 0 || strcmp(r->verb, "down") == 0);
}

/* ---- masterd ---- */

/* One that is away comes again: it was restarted, and asks for the same. */
static bool worth_again(const sd_bus_error *e, int r) {
        return sd_bus_error_has_name(e, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
               sd_bus_error_has_name(e, SD_BUS_ERROR_NAME_HAS_NO_OWNER) ||
               sd_bus_error_has_name(e, SD_BUS_ERROR_NO_REPLY) || sd_bus_error_has_name(e, ERROR_NOT_FOUND) ||
               r == -ETIMEDOUT || r == -ECONNRESET || r == -ENOTCONN;
}

static int ask_master(const char *method, sd_bus_message **ret, const char *types, ...) {
        uint64_t until = now_boot() + ASK_FOR_USEC;
        int r;

        for (;;) {
                _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
                va_list ap;

                va_start(ap, types);
                r = sd_bus_open_system(&bus);
                r = r < 0 ? r
                          : sd_bus_call_methodv(bus, MASTER, MASTER_OBJECT, MASTER_MANAGER, method, &error,
                                                ret, types, ap);
                va_end(ap);
                if (r >= 0)
                        return 0;
                if (!worth_again(&error, r) || now_boot() >= until)
                        return fail(method, error.message ? error.message : strerror(-r));
                (void)usleep(500 * USEC_PER_MSEC);
        }
}

static int take_request(struct request *r) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *json, *cluster;
        int k = ask_master("TakeProviderRequest", &reply, "s", r->text);

        if (k)
                return k;
        if (sd_bus_message_read(reply, "ts", &r->limit_usec, &json) < 0 || !(r->json = strdup(json)))
                return fail("TakeProviderRequest", "the answer cannot be read");
        cluster = strstr(json, "\"cluster\":\"");
        if (cluster && strspn(cluster + strlen("\"cluster\":\""), "0123456789abcdef") == 32)
                snprintf(r->cluster, sizeof(r->cluster), "%.32s", cluster + strlen("\"cluster\":\""));
        return 0;
}

static int send_answer(const struct request *r, int status, const char *output) {
        return ask_master("AnswerProviderRequest", NULL, "sis", r->text, status, output);
}

/* ---- the executable ---- */

#define LINKS_MAX 40u

/* What a directory has in it may be others' to change where it is sticky: not what is root's. */
static bool is_roots(const struct stat *st) {
        bool others = !S_ISLNK(st->st_mode) && (st->st_mode & (S_IWGRP | S_IWOTH));

        return st->st_uid == 0 && (!others || (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX)));
}

/* A path of which every part is root's alone to change, those behind links as well: else it may be another
 * one by the time when it is run. What is at its end, in ret. */
static int check_path(const char *path, unsigned links, struct stat *ret) {
        char part[PATH_MAX], target[PATH_MAX], next[PATH_MAX * 2];
        size_t size = strlen(path), at = 0;

        if (size >= sizeof(part))
                return fail(path, strerror(ENAMETOOLONG));
        do {
                ssize_t n;
                at += strspn(path + at, "/");
                at += strcspn(path + at, "/");
                snprintf(part, sizeof(part), "%.*s", (int)MAX(at, (size_t)1), path);
                if (lstat(part, ret) < 0)
                        return fail(part, strerror(errno));
                if (!is_roots(ret))
                        return fail(
                                part,
                                "it is not run: others than root may change it, or a directory that it is in");
                if (!S_ISLNK(ret->st_mode))
                        continue;
                n = readlink(part, target, sizeof(target) - 1);
                if (n < 0 || links == 0)
                        return fail(part, strerror(n < 0 ? errno : ELOOP));
                target[n] = 0;
                snprintf(next, sizeof(next), "%.*s/%s", *target == '/' ? 0 : (int)(strrchr(part, '/') - part),
                         part, target);
                n = check_path(next, links - 1, ret);
                if (n != 0)
                        return (int)n;
        } while (at < size);
        return 0;
}

static int check_program(const char *path) {
        struct stat st;
        int r = check_path(path, LINKS_MAX, &st);

        return r                                               ? r
               : S_ISREG(st.st_mode) && (st.st_mode & S_IXUSR) ? 0
                                                               : fail(path, "it is no executable file");
}

static void run_child(const struct request *r, const char *path, const char *directory, int in, int out) {
        char *const argv[] = { (char *)path, NULL };

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setpgid(0, 0);
        if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || chdir(directory) < 0 ||
            setenv("PRIMUS_PROVIDER", r->name, true) < 0 || setenv("PRIMUS_VERB", r->verb, true) < 0 ||
            setenv("PRIMUS_TOKEN", strcmp(r->verb, "list") == 0 ? "" : r->token, true) < 0 ||
            setenv("PRIMUS_CLUSTER", r->cluster, true) < 0 || setenv("PRIMUS_DIRECTORY", directory, true) < 0)
                _exit(fail(path, strerror(errno)));
        execv(path, argv);
        _exit(fail(path, strerror(errno)));
}

/* What it is asked goes in, which is closed then, and what it prints comes out, until it closes its output or
 * its time is over. */
static int converse(const struct request *r, int in, int out, char *output, size_t *ret_size) {
        uint64_t until = now_boot() + r->limit_usec;
        size_t sent = 0, size = strlen(r->json), got = 0;
        const char *why = NULL;

        (void)fcntl(in, F_SETFL, O_NONBLOCK);
        while (!why) {
                struct pollfd p[2] = { { .fd = out, .events = POLLIN },
                                       { .fd = sent < size ? in : -1, .events = POLLOUT } };
                uint64_t now = now_boot();
                ssize_t n;
                if (now >= until) {
                        why = "its time is over";
                        break;
                }
                if (poll(p, 2, (int)MIN((until - now) / USEC_PER_MSEC + 1, (uint64_t)60000)) < 0 &&
                    errno != EINTR)
                        return -errno;
                if (p[1].revents) {
                        n = write(in, r->json + sent, size - sent);
                        sent = n > 0                      ? sent + (size_t)n
                               : n < 0 && errno == EAGAIN ? sent
                                                          : size; /* it does not want it */
                        if (sent == size)
                                in = close_fd(in);
                }
                if (!p[0].revents)
                        continue;
                n = read(out, output + got, OUTPUT_MAX + 1 - got);
                if (n <= 0)
                        break;
                got += (size_t)n;
                if (got > OUTPUT_MAX)
                        why = "it printed more than 1 MiB";
        }
        (void)close_fd(in);
        output[MIN(got, OUTPUT_MAX)] = 0;
        *ret_size = got;
        if (why)
                (void)fail(r->text, why);
        return why ? -ETIMEDOUT : 0;
}

static int wait_child(pid_t pid, bool over, uint64_t limit_usec) {
        uint64_t until = now_boot() + limit_usec;
        int status;

        for (;;) {
                pid_t w = waitpid(pid, &status, over ? 0 : WNOHANG);
                if (w == pid)
                        break;
                if (w < 0 && errno != EINTR)
                        return -errno;
                if (now_boot() >= until) { /* its output is closed, and it goes on */
                        (void)kill(-pid, SIGKILL);
                        over = true;
                } else if (w == 0)
                        (void)usleep(20 * USEC_PER_MSEC);
        }
        (void)kill(-pid, SIGKILL); /* what it left behind */
        return over ? -ETIMEDOUT : WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/* The exit status; negative: it has none that counts. */
static int run_verb(const struct request *r, const char *path, const char *directory, char *output) {
        size_t size = 0;
        int in[2], out[2], k;
        pid_t pid;

        if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                run_child(r, path, directory, in[0], out[1]);
        (void)close(in[0]);
        (void)close(out[1]);
        k = converse(r, in[1], out[0], output, &size);
        (void)close(out[0]);
        if (k < 0)
                (void)kill(-pid, SIGKILL);
        k = wait_child(pid, k < 0, r->limit_usec);
        if (k != 0 || (strlen(output) == size && utf8_valid(output, size)))
                return k;
        (void)fail(r->text,
                   "it ended well, but what it printed is no text in UTF-8: that counts as a failure");
        return -EBADMSG;
}

static int make_directory(const struct request *r, char *directory, size_t size) {
        snprintf(directory, size, STATE_DIR "/%s", r->name);
        if (mkdir(STATE_DIR, 0700) < 0 && errno != EEXIST)
                return fail(STATE_DIR, strerror(errno));
        return mkdir(directory, 0700) < 0 && errno != EEXIST ? fail(directory, strerror(errno)) : 0;
}

int main(int argc, char **argv) {
        char path[sizeof(PROVIDERS_DIR) + NAME_MAX_ + 16], directory[sizeof(STATE_DIR) + NAME_MAX_ + 2];
        _cleanup_free_ char *output = calloc(1, OUTPUT_MAX + 2);
        struct request r = {};
        int k, status;

        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                puts("primus-provider " PRIMUS_VERSION);
                return EXIT_SUCCESS;
        }
        if (argc != 2 || !parse_request(argv[1], &r)) {
                fputs("primus-provider NAME.VERB.TOKEN\n\nRuns a verb of a provider of hosts for primus-masterd, as a "
                      "unit primus-provider@ does.\n",
                      stderr);
                return EX_USAGE;
        }
        if (!output)
                return fail(argv[1], "out of memory");
        (void)signal(SIGPIPE, SIG_IGN);
        k = take_request(&r);
        if (k)
                return k;
        snprintf(path, sizeof(path), PROVIDERS_DIR "/%s/%s", r.name, r.verb);
        k = check_program(path);
        k = k ? k : make_directory(&r, directory, sizeof(directory));
        status = k ? -k : run_verb(&r, path, directory, output);
        explicit_bzero(r.json, strlen(r.json));
        free(r.json);
        if (status != 0)
                output[0] = 0;
        k = send_answer(&r, status < 0 ? -1 : status, output);
        return k ? k : status < 0 ? EX_SOFTWARE : status;
}
