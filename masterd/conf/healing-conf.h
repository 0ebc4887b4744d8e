/* SPDX-License-Identifier: Apache-2.0 */
/* What the site says of verdicts: [Health] of masterd.conf, a pair of keys for each. */
#pragma once

#include "masterd/health/health.h"
#include "masterd/spec/spec-health.h"

/* What the site says where a job says nothing (masterd.conf, [Health]). */
struct health_conf {
        struct health_rules rules;
        uint32_t actions[_VERDICT_MAX]; /* enum health_action */
};

/* For conf.c's table. */
int health_conf_parse_action(const char *value, void *target, const char **ret_why);
int health_conf_parse_after(const char *value, void *target, const char **ret_why);
void health_conf_init(struct health_conf *c);
