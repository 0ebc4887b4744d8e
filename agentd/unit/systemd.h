/* SPDX-License-Identifier: Apache-2.0 */
/* An asynchronous client of systemd: on the system bus for what it says, by way of primus-starter for what it
 * does. At most SYSTEMD_WINDOW calls are under way
 * (dbus-daemon allows 128 pending replies per connection), and at most SYSTEMD_JOBS jobs of ours wait in
 * systemd or are asked for, SYSTEMD_SHARE of one user: users take turns (lib/base/turns.h). What systemd has
 * begun to run does not count, however long a user makes it last, and neither does a stop: it waits for
 * nothing but calls under way. Four matches in all, whatever the number of units. Nothing here blocks; when
 * the bus is lost the event loop exits with a failure, so that systemd starts agentd anew. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"

#define SYSTEMD_WINDOW 64u
#define SYSTEMD_JOBS 128u
/* Enough to keep systemd at work, which begins one after the other; few enough that somebody else's start is
 * not behind a second of theirs. */
#define SYSTEMD_SHARE 24u

struct systemd;

struct systemd_handlers {
        /* Signals will arrive from now on; r < 0: they will not. */
        void (*ready)(int r, void *userdata);
        void (*job_removed)(const char *unit, const char *job, const char *result, void *userdata);
        void (*unit_removed)(const char *unit, void *userdata);
        /* A daemon-reload is over; signals may have been lost: list again. */
        void (*reloaded)(void *userdata);
};

/* reply is an error message where the call failed (sd_bus_message_get_error()). Not called after
 * systemd_free(). */
typedef void (*systemd_reply_handler)(sd_bus_message *reply, void *userdata);

/* bus: the system bus, on which systemd is asked; starter: of primus-starter, which does what only root may
 * (dbus/org.primus.Starter1.xml). Both are attached to an event loop and stay the caller's. */
int systemd_new(sd_bus *bus, sd_bus *starter, const struct systemd_handlers *handlers, void *userdata,
                struct systemd **ret);
void systemd_free(struct systemd *s);
DEFINE_CLEANUP(struct systemd *, systemd_free)

/* An empty call of a method of systemd's Manager. */
int systemd_message(struct systemd *s, const char *member, sd_bus_message **ret);
/* An empty call of the starter's. Calls to it are carried out in the order in which they are sent. */
int starter_message(struct systemd *s, const char *member, sd_bus_message **ret);
/* Sends it at once; where it fails that is logged. */
int starter_send(struct systemd *s, sd_bus_message *m);
/* When the file was written by which the unit says that it is ready: a pipe, see Written in
 * dbus/org.primus.Starter1.xml. */
int systemd_ask_written(struct systemd *s, const char *unit, sd_bus_slot **ret,
                        sd_bus_message_handler_t handler, void *userdata);
void starter_tell(struct systemd *s, const char *member, const char *types, ...);
/* Queues a call of either (takes a reference); handler may be NULL. urgent: before
 * those that wait and are not. */
int systemd_call(struct systemd *s, sd_bus_message *m, bool urgent, systemd_reply_handler handler,
                 void *userdata);

/* The same for a call whose answer is the path of a job of that unit, in the user's turn; what is asked for
 * on one user's account keeps its order. */
int systemd_call_job(struct systemd *s, uint32_t uid, const char *unit, sd_bus_message *m,
                     systemd_reply_handler handler, void *userdata);

/* At once: of what systemd has been told of. */
int systemd_stop(struct systemd *s, const char *unit, systemd_reply_handler handler, void *userdata);
/* Behind all that was asked for on the user's account. */
int systemd_stop_in_turn(struct systemd *s, uint32_t uid, const char *unit);
/* whom: all, main or control. */
int systemd_kill(struct systemd *s, const char *unit, const char *whom, int signal,
                 systemd_reply_handler handler, void *userdata);
int systemd_list(struct systemd *s, const char *pattern, systemd_reply_handler handler, void *userdata);
/* Goes into the reply, then reads one row at a time: 1, 0 at the end. Strings live as long as the message. */
struct systemd_unit {
        const char *name, *active_state, *sub_state, *path;
};
int systemd_list_enter(sd_bus_message *m);
int systemd_list_next(sd_bus_message *m, struct systemd_unit *ret);
/* interface is without "org.freedesktop.systemd1.". */
int systemd_get(struct systemd *s, const char *path, const char *interface, const char *property,
                systemd_reply_handler handler, void *userdata);

/* For tests and org.primus.Agent1. */
unsigned systemd_pending(const struct systemd *s);
/* Jobs that wait in systemd or were asked for. */
unsigned systemd_jobs(const struct systemd *s);
