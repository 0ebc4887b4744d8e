/* SPDX-License-Identifier: Apache-2.0 */
/* primus-alone: stops the executors with onPartition=stop of a host that has not heard of its master for too
 * long, when agentd has not done it: it is stopped, hangs, or is gone. Runs while there are such executors
 * (primus-alone.path). Invariant: it asks nobody. What it goes by are the names in ALONE_DIR, the time of the
 * master's last answer, which agentd writes down with each, and PID 1, by systemctl's private socket. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/unitname.h"
#include "lib/unit/linkstate.h"
#include "starter/files/alone.h"
#include "starter/files/private.h"

#define LOOK_USEC (2 * USEC_PER_SEC)  /* whether anything is left; a third of WatchdogSec= */
#define AGAIN_USEC (3 * USEC_PER_SEC) /* not while primus-exit writes down the end that we have made */
#define BATCH 64u

static const char usage[] =
        "primus-alone\n"
        "\n"
        "Stops executors with onPartition=stop in time on a host whose primus-agentd does "
        "not; see primus-agentd(8).\n"
        "Started by systemd (primus-alone.path).\n"
        "\n"
        "      --help     this text\n"
        "      --version  the version\n";

struct stopping {
        const char *argv[BATCH + 4];
        char names[BATCH][UNIT_NAME_MAX];
        unsigned n, all;
};

static void kill_batch(struct stopping *s) {
        pid_t pid;

        if (s->n == 0)
                return;
        s->argv[0] = "systemctl";
        s->argv[1] = "kill";
        s->argv[2] = "--signal=KILL";
        for (unsigned i = 0; i < s->n; i++)
                s->argv[3 + i] = s->names[i];
        s->argv[3 + s->n] = NULL;
        s->n = 0;
        (void)sd_notify(false, "WATCHDOG=1"); /* PID 1 may have much to do just now */
        pid = fork();
        if (pid == 0) {
                (void)execv("/usr/bin/systemctl", (char **)s->argv);
                _exit(127);
        }
        if (pid < 0)
                log_warning_errno(-errno, "Cannot start systemctl");
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

static int stop_one(const char *unit, void *userdata) {
        struct stopping *s = userdata;

        /* So that its end is no failure of the job's. */
        (void)private_put("", unit, "stop", "alone", 5);
        strcpy(s->names[s->n++], unit);
        s->all++;
        if (s->n == BATCH)
                kill_batch(s);
        return 0;
}

static int count_one(const char *unit, void *userdata) {
        return 0;
}

/* How many there are in all, or < 0. */
static int stop_or_count(bool late, bool *told) {
        static struct stopping s;
        int r;

        s.n = s.all = 0;
        r = alone_visit("", late ? stop_one : count_one, &s);
        kill_batch(&s);
        if (s.all > 0 && !*told)
                log_warning("masterd has not been heard for too long, and primus-agentd does nothing about "
                            "it: %u executors with onPartition=stop are killed",
                            s.all);
        *told = late && (*told || s.all > 0);
        return r;
}

static void sleep_until(uint64_t usec) {
        const struct timespec ts = { .tv_sec = (time_t)(usec / USEC_PER_SEC),
                                     .tv_nsec = (long)(usec % USEC_PER_SEC) * 1000 };

        while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
}

/* What was known before holds where the file is gone, or makes no sense. */
static uint64_t deadline(struct link_state *known) {
        struct link_state s;

        if (link_state_load("", &s) >= 0 && link_state_deadline(&s) != USEC_INFINITY)
                *known = s;
        return link_state_alone(known);
}

static int watch_link(void) {
        struct link_state known = {};
        bool told = false;

        /* Ahead of the first look: an end without it is a failure to systemd, which would begin again and
         * again. */
        (void)sd_notify(false, "READY=1");
        for (;;) {
                const uint64_t at = deadline(&known), now = now_boot();
                const bool late = now >= at;
                const int n = stop_or_count(late, &told);

                if (n == 0)
                        return EXIT_SUCCESS; /* primus-alone.path starts it again */
                if (n < 0)
                        log_warning_errno(n, "Cannot look through /run/primus/alone");
                (void)sd_notify(false, "WATCHDOG=1");
                sleep_until(late ? now + AGAIN_USEC : MIN(at, now + LOOK_USEC));
        }
}

int main(int argc, char **argv) {
        static const struct option options[] = {
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'v' },
                { NULL, 0, NULL, 0 },
        };
        const int c = getopt_long(argc, argv, "", options, NULL);

        if (c == 'h') {
                fputs(usage, stdout);
                return EXIT_SUCCESS;
        }
        if (c == 'v') {
                puts("primus-alone " PRIMUS_VERSION);
                return EXIT_SUCCESS;
        }
        if (c != -1 || optind < argc) {
                if (c == -1)
                        fprintf(stderr, "primus-alone: unexpected argument '%s'\n", argv[optind]);
                return 2;
        }
        log_open("primus-alone");
        return watch_link();
}
