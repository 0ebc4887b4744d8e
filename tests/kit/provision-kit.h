/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of masterd/provision, asked for in a line; and an imagined provider with hosts on which tasks of one
 * host each run, which does what the plans say. */
#pragma once

#include "masterd/provision/decide.h"

#define KIT_SECOND UINT64_C(1000000)
#define KIT_MINUTE (60 * KIT_SECOND)
#define KIT_HOUR (60 * KIT_MINUTE)
#define KIT_NOW (UINT64_C(1700000000) * KIT_SECOND)

/* The settings of Determined's, with one shape of any number. */
struct provision_conf kit_conf(uint32_t min, uint32_t max);
/* Asserts that it works. Without troubles or a pace. */
struct provision_plan kit_decide(const struct provision_conf *conf,
                                 const struct provision_instance *instances, size_t n,
                                 const struct provision_demand *demand, size_t n_demand, uint64_t now);
/* How many actions of the plan are such. */
uint32_t kit_count(const struct provision_plan *p, enum provision_verb verb);
/* That of the instance; NULL: none. */
const struct provision_action *kit_action(const struct provision_plan *p, uint32_t instance);
/* For "READY for an hour, empty for so long" and so on. */
struct provision_instance kit_ready(uint64_t now, uint64_t empty_usec);
struct provision_instance kit_busy(uint64_t now);

struct kit_provider {
        struct provision_conf conf;
        struct provision_instance *instances; /* room for `room` */
        uint32_t n, room;
        uint64_t now, boot_usec;
        uint32_t did[_PROVISION_VERB_MAX]; /* actions so far */
        uint32_t waiting;                  /* tasks that run nowhere */
};
void kit_provider_init(struct kit_provider *p, const struct provision_conf *conf, uint32_t room);
void kit_provider_done(struct kit_provider *p);
/* The time is now; so many tasks are there, on as many hosts as can be; then decides until nothing is left to
 * do, and does that. */
void kit_provider_step(struct kit_provider *p, uint64_t now, uint32_t tasks);
