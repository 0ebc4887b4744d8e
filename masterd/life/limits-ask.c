/* SPDX-License-Identifier: Apache-2.0 */
/* Whether units can do with less memory: their hosts know what they use. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "masterd/core/manager.h"
#include "masterd/life/limits.h"
#include "masterd/link/orders.h"

struct question {
        struct limits_ask ask;
        uint32_t n_left;
        char problem[512];
};

static void answered(struct question *q) {
        if (--q->n_left > 0)
                return;
        q->ask.done(q->ask.userdata, *q->problem ? q->problem : NULL);
        free(q);
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct question *q = userdata;

        /* Whoever has ended, or cannot be reached, uses nothing that we know of. */
        if (failure && strcmp(failure->name, LINK_ERROR_REFUSED) == 0 && !*q->problem)
                snprintf(q->problem, sizeof(q->problem), "%s; nothing was changed", failure->message);
        answered(q);
        return 0;
}

int limits_ask(struct manager *m, struct job *j, const struct job_spec *spec, const struct limits_ask *ask) {
        struct question *q = calloc(1, sizeof(*q));
        uint32_t n = 0;

        if (!q)
                return -ENOMEM;
        q->ask = *ask;
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *e = j->executors[i];
                const struct role_spec *now = executor_role(e), *after = spec_role(spec, now->name);
                struct unit_limits limits = { .check = true };
                if (!after || e->state != EXECUTOR_RUNNING || after->memory == 0 ||
                    (now->memory > 0 && limits_memory(e, after) >= executor_memory(e)) ||
                    e->index >= after->num)
                        continue;
                limits.cpu_usec_per_sec = (uint64_t)after->cpu_milli * 1000;
                limits.memory_max = limits_memory(e, after);
                if (orders_limits_send(m, e, &limits, on_answer, q) >= 0)
                        n++;
        }
        q->n_left = n;
        if (n == 0)
                free(q);
        return (int)n;
}
