/* SPDX-License-Identifier: Apache-2.0 */
/* What the starter looks at, asked: org.primus.Starter1.Observe on the agent's connection to it. Every call
 * is asynchronous: its handler is called once, from the loop, unless its slot is released before
 * (sd_bus_slot_unref()); then what the answer brings is closed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"
#include "lib/observe/observe.h"

struct observer;
/* starter: connected, attached to the loop, and passing descriptors. */
int observer_new(sd_bus *starter, struct observer **ret);
void observer_free(struct observer *o);
DEFINE_CLEANUP(struct observer *, observer_free)

/* In all of these: 0, or negative errno, and then no handler is called. r < 0 in a handler: error says why,
 * for people. */

/* How a program of the starter's is. */
struct observed_program {
        bool up, out_of_place;
        char why[OBSERVE_WHY_MAX];
};
/* fds: by enum, -EBADF for what is not there; each is the handler's. */
enum observed_fd {
        OBSERVED_STATE,
        OBSERVED_UNITS,
        OBSERVED_FLOWS,
        OBSERVED_EVENTS,
        OBSERVED_TASKS,
        _OBSERVED_FD_MAX
};
typedef void (*observer_probes_handler)(int r, const char *error, const int fds[static _OBSERVED_FD_MAX],
                                        const struct observed_program programs[static _OBSERVE_PROGRAM_MAX],
                                        void *userdata);
int observer_probes(struct observer *o, observer_probes_handler handler, void *userdata, sd_bus_slot **ret);

/* The descriptors are the handler's; -EBADF where r < 0. */
typedef void (*observer_trace_handler)(int r, const char *error, int settings, int latencies, void *userdata);
/* To be said again within OBSERVE_TRACE_LEASE_USEC as long as it is wanted. */
int observer_trace(struct observer *o, enum observe_trace k, observer_trace_handler handler, void *userdata,
                   sd_bus_slot **ret);
void observer_untrace(struct observer *o, enum observe_trace k);

/* fd: the handler's; -EBADF where r < 0. */
typedef void (*observer_fd_handler)(int r, const char *error, int fd, void *userdata);
/* file: OBSERVE_FILE_... destroy, if not NULL, is called of userdata afterwards in any case, also where this
 * fails or the connection ends. ret may be NULL: then it is not to be released before. */
int observer_open(struct observer *o, const char *unit, const char *file, observer_fd_handler handler,
                  void *userdata, sd_bus_destroy_t destroy, sd_bus_slot **ret);
/* fd: a pipe of records (lib/observe/stream.h), not blocking. work: the job's, see work_name(). */
int observer_capture(struct observer *o, const char *unit, const char *work, int signal,
                     observer_fd_handler handler, void *userdata, sd_bus_slot **ret);
int observer_usage(struct observer *o, const char *const *units, size_t n, observer_fd_handler handler,
                   void *userdata, sd_bus_slot **ret);

typedef void (*observer_signal_handler)(int r, const char *error, uint32_t told, uint32_t processes,
                                        void *userdata);
/* destroy is called of userdata afterwards in any case, also where this fails or the connection ends. */
int observer_signal(struct observer *o, const char *unit, int signal, observer_signal_handler handler,
                    void *userdata, sd_bus_destroy_t destroy);

/* fd stays the caller's and may be closed at once. Nobody hears how it went: the pipe works in any case. */
void observer_widen(struct observer *o, int fd, uint32_t size);
