/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C. Invariant: once a job is submitted, leaving the tool always says that the job goes on, or kills it.
 */
#include "tools/primusctl/bus/interrupt.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "lib/base/clock.h"

struct interrupt {
        struct cli *cli;
        sd_event *event; /* borrowed */
        struct job_ref job;
        void (*detached)(void *userdata);
        bool (*needed)(void *userdata);
        void *userdata;
        sd_event_source *sigint, *sigterm, *timer, *again;
        unsigned refused; /* kills that a busy masterd has not taken */
        bool armed, killing;
};

void interrupt_block(void) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

void interrupt_free(struct interrupt *i) {
        if (!i)
                return;
        sd_event_source_disable_unref(i->sigint);
        sd_event_source_disable_unref(i->sigterm);
        sd_event_source_disable_unref(i->timer);
        sd_event_source_disable_unref(i->again);
        free(i);
}

static int leave(sd_event_source *s, uint64_t usec, void *userdata) {
        struct interrupt *i = userdata;

        return i->killing ? 0 : sd_event_exit(i->event, CLI_DETACHED);
}

static void kill_job(struct interrupt *i);

static int on_kill_again(sd_event_source *s, uint64_t usec, void *userdata) {
        struct interrupt *i = userdata;

        i->again = sd_event_source_disable_unref(i->again);
        i->killing = false;
        kill_job(i);
        return 0;
}

static int on_killed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct interrupt *i = userdata;

        (void)ret_error;
        if (cli_error_busy(sd_bus_message_get_error(m)) && i->refused < CLI_BUSY_TRIES)
                return sd_event_add_time_relative(i->event, &i->again, CLOCK_BOOTTIME,
                                                  cli_busy_pause(i->refused++), 0, on_kill_again, i);
        if (sd_bus_message_is_method_error(m, NULL))
                return sd_event_exit(
                        i->event, cli_call_failed(i->cli, sd_bus_message_get_error(m), -EIO, NULL, &i->job));
        cli_note("Killed job %" PRIu32, i->job.number);
        return sd_event_exit(i->event, CLI_KILLED);
}

static void kill_job(struct interrupt *i) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;

        if (i->killing)
                return;
        i->killing = true;
        if (cli_job_call(i->cli, &i->job, "Kill", &m) ||
            sd_bus_message_append(m, "s",
                                  i->needed && i->needed(i->userdata)
                                          ? "Ctrl-C, before all of its standard input was there"
                                          : "Ctrl-C, twice") < 0 ||
            sd_bus_call_async(i->cli->bus, NULL, m, on_killed, i, 0) < 0)
                (void)sd_event_exit(i->event, cli_fail(i->cli, "cannot kill job %" PRIu32, i->job.number));
}

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *info, void *userdata) {
        struct interrupt *i = userdata;

        if (!i->armed && i->needed && i->needed(i->userdata)) {
                if (i->detached)
                        i->detached(i->userdata);
                fprintf(stderr,
                        "\nJob %" PRIu32 " is killed: what is to come from here will not come any more.\n",
                        i->job.number);
                i->armed = true;
                kill_job(i);
                return 0;
        }
        if (i->armed) {
                kill_job(i);
                return 0;
        }
        i->armed = true;
        if (i->detached)
                i->detached(i->userdata);
        fflush(stdout);
        if (!i->cli->json)
                putc('\n', stderr); /* behind the "^C" */
        cli_note("Detached: job %" PRIu32 " goes on. Back to it: primusctl logs -f %" PRIu32
                 "   Kill it: primusctl kill %" PRIu32 " (or Ctrl-C again now)",
                 i->job.number, i->job.number, i->job.number);
        if (info->ssi_signo != SIGINT ||
            sd_event_add_time_relative(i->event, &i->timer, CLOCK_BOOTTIME, USEC_PER_SEC, 1000, leave, i) < 0)
                return sd_event_exit(i->event, CLI_DETACHED);
        return 0;
}

void interrupt_kill_if(struct interrupt *i, bool (*needed)(void *userdata)) {
        i->needed = needed;
}

int interrupt_new(struct cli *c, sd_event *event, const struct job_ref *job, void (*detached)(void *userdata),
                  void *userdata, struct interrupt **ret) {
        _cleanup_(interrupt_free_p) struct interrupt *i = malloc(sizeof(*i));
        int r;

        if (!i)
                return cli_oom(c);
        *i = (struct interrupt){
                .cli = c, .event = event, .job = *job, .detached = detached, .userdata = userdata
        };
        interrupt_block();
        r = sd_event_add_signal(event, &i->sigint, SIGINT, on_signal, i);
        if (r >= 0)
                r = sd_event_add_signal(event, &i->sigterm, SIGTERM, on_signal, i);
        if (r < 0)
                return cli_fail(c, "cannot wait for signals: %s", strerror(-r));
        *ret = TAKE_PTR(i);
        return 0;
}

int interrupt_catch(sd_event *event, sd_event_signal_handler_t handler, void *userdata) {
        static const int ending[] = { SIGTERM, SIGHUP, SIGINT };
        sigset_t mask;
        int r = 0;

        sigemptyset(&mask);
        for (size_t i = 0; i < ELEMENTSOF(ending); i++)
                sigaddset(&mask, ending[i]);
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(ending) && r >= 0; i++)
                r = sd_event_add_signal(event, NULL, ending[i], handler, userdata);
        return r;
}
