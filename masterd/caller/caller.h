/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls, on a message bus: the uid behind a sender's unique name, as the bus itself vouches for it. Asked
 * for once per name and kept until the name goes away. Never blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"

#define CALLERS_MAX 4096u /* names known; behind it the one that has been silent for longest is forgotten */
#define CALLERS_WAITING_MAX                                                                                  \
        256u /* calls that wait for an answer of the bus, which takes it a millisecond                       \
              */
#define CALLERS_WAITING_PER_NAME 32u

struct callers;
struct polkit;

/* Goes on with a call when it is known who made it. The same contract as a handler of an sd-bus vtable:
 * replies and returns
 * >= 0, or fails with a negative errno or with *ret_error set, which is then sent as the reply. It may run
 * long after the call came in: userdata must live as long as the callers (the manager, not a job or a node:
 * those are looked up again). */
typedef int (*caller_handler)(sd_bus_message *m, uint32_t uid, void *userdata, sd_bus_error *ret_error);

/* bus must be a message bus and outlive the callers. 0 or negative errno. */
int callers_new(sd_bus *bus, struct callers **ret);

/* Calls f for every unique name that leaves the bus. */
void callers_on_gone(struct callers *c, void (*f)(const char *name, void *userdata), void *userdata);

/* Forgets everybody; calls that wait are not answered. */
struct callers *callers_free(struct callers *c);
DEFINE_CLEANUP(struct callers *, callers_free)

/* People on other hosts, whose agent says who they are. No bus has their names, which begin so; whoever makes
 * one (masterd/calls) answers for it. */
#define CALLER_FAR ":far."
#define CALLERS_FAR_MAX 8192u

bool caller_is_far(sd_bus_message *m);
/* From now on that name is this uid on this host, inside that job (0: in none). -EBUSY: there are as many as
 * there may be. */
int callers_far_add(struct callers *c, const char *name, uint32_t uid, const char *host, uint32_t job);
/* It is gone; those are told who asked to be (callers_on_gone()). */
void callers_far_gone(struct callers *c, const char *name);
/* The host that a name is of; NULL: this one. The job whose executor it is in; 0: in none, or not known. */
const char *callers_host(struct callers *c, const char *name);
uint32_t callers_job(struct callers *c, const char *name);

/* The unit that a known name's process is in; NULL: nobody has said so. */
const char *callers_unit(struct callers *c, const char *name);
void callers_set_unit(struct callers *c, const char *name, const char *unit);

/* Runs the handler with the uid of m's sender: at once where it is known, and then returns what the handler
 * returned; otherwise later, and returns 1. Negative errno with *ret_error set when nobody can be asked. Made
 * for "return caller_identify(...)" in a method's handler. */
int caller_identify(struct callers *c, sd_bus_message *m, caller_handler handler, void *userdata,
                    sd_bus_error *ret_error);

/* The same; destroy (may be NULL) is called with userdata after the handler, or instead of it. */
int caller_identify_full(struct callers *c, sd_bus_message *m, caller_handler handler, void *userdata,
                         void (*destroy)(void *userdata), sd_bus_error *ret_error);

/* Gives an argument of a wrong type, which sd-bus calls "No such device or address", a sentence. Returns r,
 * or the error's. */
int caller_explain(int r, sd_bus_error *error);
/* Sends what a handler returned as the reply, when that is an error. For handlers that run outside a vtable.
 */
void caller_answer(sd_bus_message *m, int r, const sd_bus_error *error);

/* What polkit is asked through for these callers. */
struct polkit *callers_polkit(struct callers *c);

/* Calls that wait until it is known who made them. */
size_t callers_waiting(const struct callers *c);

/* Names known. */
size_t callers_known(const struct callers *c);
