/* SPDX-License-Identifier: Apache-2.0 */
/* What each executor on this host uses, once a second: goes over the units, lets everyone who measures
 * something (a provider) fill in what he knows, and keeps the latest. A look allocates nothing and costs the
 * same for each unit; without units there is no timer. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "agentd/cgroup/cgroup.h"
#include "lib/base/cleanup.h"
#include "lib/base/unitname.h"
#include "lib/wire/tasks.h"
#include "lib/wire/telemetry.h"

struct sampler;

/* What a provider is told of a unit. */
struct sampled {
        const char *unit;
        const struct executor_id *id;
        struct cgroup *cgroup; /* NULL: there is none (yet) */
        uint64_t cgroup_id;    /* 0: not known */
        uint64_t now_boot;
};

/* Each is asked in the order of the table, so a later one has the last word on a field. All functions may be
 * NULL. */
struct sampler_provider {
        const char *name;
        /* Before a round: a look at all at once. ids: the control groups of the units that have one. < 0: not
         * available; fill is called all the same. */
        int (*look)(const uint64_t *ids, size_t n, void *userdata);
        /* Writes the values that it knows; the others are unknown or an earlier provider's. */
        void (*fill)(const struct sampled *unit, uint64_t values[static _TELEMETRY_MAX], void *userdata);
        /* The unit is gone. */
        void (*forget)(const struct sampled *unit, void *userdata);
        void *userdata;
};

struct sampler_ops {
        /* A round is over whose samples masterd is to get. May be NULL. */
        void (*telemetry)(uint64_t now_boot, void *userdata);
        /* The unit's page of progress is wanted: sampler_set_progress(), now or later, where it is to be had.
         * May be NULL. */
        void (*progress)(const char *unit, void *userdata);
        /* The unit's control group is there. May be NULL. */
        void (*opened)(const struct sampled *unit, void *userdata);
};

struct sampler_options {
        const char *root;        /* "" in life */
        uint64_t telemetry_usec; /* how often ops.telemetry is called; 0: never */
};

/* On a host without a cgroup v2 tree it works, without what it would have read there. The root stays the
 * caller's. */
int sampler_new(sd_event *event, const struct sampler_options *options, const struct sampler_ops *ops,
                void *userdata, struct sampler **ret);
void sampler_free(struct sampler *s);
DEFINE_CLEANUP(struct sampler *, sampler_free)

/* Before the first unit. -ENOBUFS: too many. */
int sampler_add_provider(struct sampler *s, const struct sampler_provider *p);

/* A unit is about to start, or was found; nothing if it is known. -ENOMEM. */
int sampler_add(struct sampler *s, const struct executor_id *id);
void sampler_remove(struct sampler *s, const struct executor_id *id);

/* The unit's page (progress.h), opened for reading and writing; taken in any case. */
void sampler_set_progress(struct sampler *s, const char *unit, int fd);

/* The executor's feed said this. */
void sampler_note_data(struct sampler *s, const struct executor_id *id, const struct feed_counters *c);

/* The latest; NULL: the unit is not known, or was not looked at yet. */
const struct telemetry_sample *sampler_find(struct sampler *s, const char *unit);
/* The same, measured now as far as it can be without a look at all; the next round comes as always. */
const struct telemetry_sample *sampler_refresh(struct sampler *s, const char *unit);
/* Of each unit that was looked at. f's negative result ends the walk and is returned. */
typedef int (*sampler_visitor)(const struct sampled *unit, const struct telemetry_sample *x, void *userdata);
int sampler_visit(struct sampler *s, sampler_visitor f, void *userdata);
size_t sampler_count(const struct sampler *s);

/* A round now; for tests. */
void sampler_round(struct sampler *s);
/* How many rounds there were, and the time they took. */
uint64_t sampler_rounds(const struct sampler *s, uint64_t *ret_usec);
