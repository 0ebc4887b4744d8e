/* SPDX-License-Identifier: Apache-2.0 */
/* How the host is: a set of conditions, by kind and subject. What gets worse is told at once; what gets
 * better is told when it has stayed so for a while, twice as long each time that it came back within the
 * hour: something that flaps is told a few times an hour, with how often. No clock, bus or file but by the
 * ops: the functions that end in _at take the time (CLOCK_BOOTTIME usec). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/wire/condition.h"

struct conditions;

struct conditions_ops {
        /* The condition is another than was told before; severity CONDITION_FINE: it is over. */
        void (*tell)(const struct host_condition *c, void *userdata);
        /* conditions_tick_at() wants to be called at that time, which is before the one said last. May be
         * NULL. */
        void (*due)(uint64_t boot_usec, void *userdata);
};

/* settle_usec: how long something is better before it is told so. */
int conditions_new(uint64_t settle_usec, const struct conditions_ops *ops, void *userdata,
                   struct conditions **ret);
void conditions_free(struct conditions *c);
DEFINE_CLEANUP(struct conditions *, conditions_free)

/* What a sensor sees. It may say the same as often as it likes. text: one line, for people, that says what
 * and how much; "" where it is FINE. A state holds until the sensor says another. Bounded: of more than
 * CONDITIONS_MAX the mildest are not told. */
void conditions_set_at(struct conditions *c, uint64_t now, enum condition_kind kind, const char *subject,
                       enum condition_severity severity, const char *text);
/* Something that happened: it is over when it has not happened again for for_usec. */
void conditions_happened_at(struct conditions *c, uint64_t now, enum condition_kind kind, const char *subject,
                            enum condition_severity severity, const char *text, uint64_t for_usec);
/* What is due by then. When it is due next; USEC_INFINITY: nothing is. */
uint64_t conditions_tick_at(struct conditions *c, uint64_t now);

/* The same, now. */
static inline void conditions_set(struct conditions *c, enum condition_kind kind, const char *subject,
                                  enum condition_severity severity, const char *text) {
        conditions_set_at(c, now_boot(), kind, subject, severity, text);
}

static inline void conditions_happened(struct conditions *c, enum condition_kind kind, const char *subject,
                                       enum condition_severity severity, const char *text,
                                       uint64_t for_usec) {
        conditions_happened_at(c, now_boot(), kind, subject, severity, text, for_usec);
}

/* Those that are not FINE, as they were told. */
int conditions_visit(const struct conditions *c, int (*f)(const struct host_condition *x, void *userdata),
                     void *userdata);
/* a(ssust) of them. */
int conditions_append(const struct conditions *c, sd_bus_message *m);

/* /run/primus/agent/conditions below root, so that an agent that is started again knows what it has seen in
 * this boot. What a sensor does not say again within two minutes of loading is over, but for things that
 * happened, which end when they would have. */
int conditions_save(const struct conditions *c, const char *root);
int conditions_load_at(struct conditions *c, uint64_t now, const char *root);
