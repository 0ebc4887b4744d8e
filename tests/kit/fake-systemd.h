/* SPDX-License-Identifier: Apache-2.0 */
/* As much of systemd's bus interface as agentd uses, on the other end of a socketpair, in the same event
 * loop. Nothing happens by itself: a test says which job is over and which unit is gone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#define FAKE_UNITS 512
#define FAKE_BUSES 8

struct fake_unit {
        char name[128];
        const char *active, *sub; /* ListUnits' words */
        char **environment;       /* NULL-ended; NULL: none */
        bool transient;
        unsigned start_job; /* number of the job, 0: none */
};

struct fake_systemd {
        sd_event *event;
        sd_bus *server, *client;
        sd_bus *more[FAKE_BUSES]; /* servers' ends of other connections; signals go to the first alone */
        size_t n_more;
        unsigned calls_on[FAKE_BUSES + 1]; /* starts and stops by connection, the first is 0 */
        struct fake_unit units[FAKE_UNITS];
        size_t n_units;
        unsigned jobs; /* number of the last */
        bool hold;     /* answers to StartTransientUnit are kept back */
        sd_bus_message *held[FAKE_UNITS];
        size_t n_held;
        unsigned starts, stops, lists;
        const char *refuse; /* error message of every start */
        struct {
                char unit[128], whom[16];
                int signal;
        } kills[16];
        unsigned n_kills;
        char last_stop[128];
};

void fake_systemd_new(struct fake_systemd *f);
void fake_systemd_done(struct fake_systemd *f);

struct fake_unit *fake_unit_find(struct fake_systemd *f, const char *name);
struct fake_unit *fake_unit_add(struct fake_systemd *f, const char *name, const char *active,
                                const char *sub);
/* Answers what was held back. */
void fake_release(struct fake_systemd *f);
/* Another connection to the same systemd, to be started and attached. */
sd_bus *fake_systemd_connect(struct fake_systemd *f);
/* Signals. */
void fake_job_runs(struct fake_systemd *f, unsigned job);
void fake_job_removed(struct fake_systemd *f, unsigned job, const char *unit, const char *result);
void fake_unit_gone(struct fake_systemd *f, const char *name);
void fake_reloaded(struct fake_systemd *f);

/* Runs the loop until condition, failing the test after a few seconds. */
#define fake_run_until(f, condition)                                                                         \
        do {                                                                                                 \
                uint64_t _end = fake_deadline();                                                             \
                while (!(condition)) {                                                                       \
                        if (fake_deadline_over(_end))                                                        \
                                fail_msg("not within time: %s", #condition);                                 \
                        (void)sd_event_run((f)->event, 10000);                                               \
                }                                                                                            \
        } while (0)
uint64_t fake_deadline(void);
bool fake_deadline_over(uint64_t end);
/* Until nothing has happened for so long. */
void fake_settle(struct fake_systemd *f, uint64_t usec);
