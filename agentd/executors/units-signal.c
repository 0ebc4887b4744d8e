/* SPDX-License-Identifier: Apache-2.0 */
/* A signal for the program of an executor. */
#include "agentd/executors/units-internal.h"

int units_signal(struct units *u, const struct executor_id *id, int signal) {
        struct executor *e = executor_find(u, id);

        if (!e || !e->started || e->state >= EXECUTOR_STOPPING)
                return -ENOENT;
        return u->ops.signal ? u->ops.signal(&e->id, e->unit, signal, u->userdata) : -EOPNOTSUPP;
}
