/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting and giving way, as options. The master judges the values. */
#include "tools/primusctl/commands/turn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"

int option_priority(const char *value, void *target, const char **ret_why) {
        uint32_t n;

        *ret_why = "a number from -1000 to 1000";
        if (parse_u32(value + (*value == '-'), 0, 1000, &n) < 0)
                return -EINVAL;
        *(const char **)target = value;
        return 0;
}

int option_visible(const char *value, void *target, const char **ret_why) {
        static const char *const words[] = { "owner", "group", "pool", "all" };

        *ret_why = "owner, group, pool or all";
        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (strcmp(value, words[i]) == 0) {
                        *(const char **)target = value;
                        return 0;
                }
        return -EINVAL;
}

int turn_append(sd_bus_message *m, const struct turn_options *t) {
        int r = 0;

        if (t->queue)
                r = sd_bus_message_append(m, "{sv}", "queue", "s", t->queue);
        if (r >= 0 && t->priority)
                r = sd_bus_message_append(m, "{sv}", "priority", "i", (int32_t)strtol(t->priority, NULL, 10));
        if (r >= 0 && t->requeue)
                r = sd_bus_message_append(m, "{sv}", "requeue", "b", 1);
        if (r >= 0 && t->preemptible)
                r = sd_bus_message_append(m, "{sv}", "preemptible", "b", 1);
        if (r >= 0 && t->for_hosts)
                r = sd_bus_message_append(m, "{sv}", "waitForHosts", "b", 1);
        if (r >= 0 && t->visible)
                r = sd_bus_message_append(m, "{sv}", "visible", "s", t->visible);
        if (r >= 0 && t->signal)
                r = sd_bus_message_append(m, "{sv}", "signal", "s", t->signal);
        if (r >= 0 && t->time)
                r = sd_bus_message_append(m, "{sv}", "timeLimit", "s", t->time);
        if (t->with_parent)
                r = r < 0 ? r : sd_bus_message_append(m, "{sv}", "withParent", "b", 1);
        if (t->start_within)
                r = r < 0 ? r : sd_bus_message_append(m, "{sv}", "startWithin", "s", t->start_within);
        return r;
}
