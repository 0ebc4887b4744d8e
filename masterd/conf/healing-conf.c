/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of verdicts. */
#include "masterd/conf/healing-conf.h"

#include <errno.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"

void health_conf_init(struct health_conf *c) {
        c->rules = health_defaults;
        for (size_t k = 0; k < _VERDICT_MAX; k++)
                c->actions[k] = HEALTH_NOTE;
}

int health_conf_parse_action(const char *value, void *target, const char **ret_why) {
        enum health_action a = health_action_from_string(value);

        *ret_why = "expected off, note, warn, restart, replace, quarantine or stop";
        if (a == _HEALTH_ACTION_MAX)
                return -EINVAL;
        *(uint32_t *)target = a;
        return 0;
}

int health_conf_parse_after(const char *value, void *target, const char **ret_why) {
        uint64_t usec;

        *ret_why = "expected a time from 1s to 30d, such as 10min";
        if (parse_duration(value, &usec) < 0 || usec < USEC_PER_SEC || usec > 30 * 86400 * USEC_PER_SEC)
                return -EINVAL;
        *(uint64_t *)target = usec;
        return 0;
}
