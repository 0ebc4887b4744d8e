/* SPDX-License-Identifier: Apache-2.0 */
/* Of a job's configuration (spec.h), what says when an executor counts as sick and what follows. What is not
 * given is the job's, and then the site's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The order of enum verdict_kind (masterd/health/health.h). */
enum health_kind {
        HEALTH_HUNG,
        HEALTH_STRAGGLER,
        HEALTH_IDLE,
        HEALTH_STARVED,
        HEALTH_THRASHING,
        HEALTH_LEAKING,
        HEALTH_OOM,
        HEALTH_CRASH_LOOP,
        _HEALTH_KIND_MAX,
};

/* The numbers are stored. */
enum health_action {
        HEALTH_OFF,        /* nobody looks */
        HEALTH_NOTE,       /* an event, and shown */
        HEALTH_WARN,       /* and people are told */
        HEALTH_RESTART,    /* another attempt of the executor, on any host */
        HEALTH_REPLACE,    /* on another host, which the job avoids from then on */
        HEALTH_QUARANTINE, /* the same, and it counts against the host */
        HEALTH_STOP,       /* the job ends */
        _HEALTH_ACTION_MAX /* not given */
};
const char *health_action_to_string(enum health_action a);   /* NULL outside the table */
enum health_action health_action_from_string(const char *s); /* _HEALTH_ACTION_MAX: no such */

struct health_rule_spec {
        uint32_t action;     /* enum health_action */
        uint64_t after_usec; /* 0: not given, as of all below */
        uint32_t share;      /* percent */
        uint32_t count;
        uint64_t within_usec;
};

struct health_spec {
        struct health_rule_spec of[_HEALTH_KIND_MAX];
};
