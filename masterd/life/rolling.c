/* SPDX-License-Identifier: Apache-2.0 */
/* Rolling restarts. Invariants: who is still to be started again follows from when its attempt was placed,
 * which is on disk; while it goes on, at most a batch of those concerned is not up. */
#include "masterd/life/rolling.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/life/lifecycle.h"

static bool concerns(const struct job *j, const struct executor *e) {
        return (!*j->rolling.role || strcmp(j->rolling.role, executor_role(e)->name) == 0) &&
               (j->rolling.index == UINT32_MAX || j->rolling.index == e->index);
}

static bool is_old(const struct job *j, const struct executor *e) {
        return executor_state_holds(e->state) && e->placed_real < j->rolling.since_real;
}

/* Those that were started again are waited for until they are ready; of the others it is not asked. */
static bool is_up(const struct job *j, const struct executor *e) {
        return is_old(j, e) ? e->state == EXECUTOR_RUNNING : executor_is_ready(e);
}

static void over(struct manager *m, struct job *j, const char *text) {
        j->rolling = (struct job_rolling){};
        record_event(m, j, "restarted", NULL, "%s", text);
        record_job(m, j, false);
}

void rolling_go_on(struct manager *m, struct job *j) {
        uint32_t down = 0, old = 0;

        if (j->rolling.since_real == 0)
                return;
        if (job_state_ended(j->state) || j->state == JOB_STOPPING || j->state == JOB_QUEUED) {
                over(m, j, "the rolling restart is over: the job is stopped");
                return;
        }
        for (uint32_t i = 0; i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                if (!concerns(j, e))
                        continue;
                old += is_old(j, e);
                down += !e->gone && !is_up(j, e);
        }
        if (old == 0 && down == 0) {
                over(m, j, "the rolling restart is complete");
                return;
        }
        for (uint32_t i = 0; i < j->n_executors && down < j->rolling.batch; i++) {
                struct executor *e = j->executors[i];
                if (!concerns(j, e) || !is_up(j, e) || !is_old(j, e))
                        continue;
                lifecycle_move(m, e, "it is started again", "it is its turn in the rolling restart");
                down++;
        }
}

int rolling_begin(struct manager *m, struct job *j, uint32_t uid, const char *role, uint32_t index,
                  uint32_t batch, uint32_t *ret_n, sd_bus_error *error) {
        struct job_rolling before = j->rolling;
        uint32_t n = 0;

        if (j->state != JOB_STARTING && !job_state_up(j->state))
                return sd_bus_error_setf(error, ERROR_REFUSED, "Job %u is %s: nothing of it can be restarted",
                                         j->number, job_state_to_string(j->state));
        if (j->array)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Job %u is an array: restart its elements (%u[INDEX])", j->number,
                                         j->number);
        if (*role && !spec_role(j->spec, role))
                return sd_bus_error_setf(error, ERROR_NOT_FOUND, "Job %u has no role %.*s", j->number,
                                         utf8_fit(role, 64), role);
        if (*role && index != UINT32_MAX && !job_executor(j, role, index))
                return sd_bus_error_setf(error, ERROR_NOT_FOUND, "Job %u has no executor %s/%u", j->number,
                                         role, index);
        if (!*role && index != UINT32_MAX)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "An index needs a role");
        j->rolling = (struct job_rolling){ .since_real = MAX(now_real(), j->attempt_real + 1),
                                           .batch = MAX(batch, 1u),
                                           .index = index };
        snprintf(j->rolling.role, sizeof(j->rolling.role), "%s", role);
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *e = j->executors[i];
                if (!concerns(j, e) || !executor_state_holds(e->state))
                        continue;
                n++;
                /* Also where a clock went back: what runs now is old. */
                j->rolling.since_real = MAX(j->rolling.since_real, e->placed_real + 1);
        }
        if (n == 0) {
                j->rolling = before;
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Nothing of that runs: there is nothing to restart");
        }
        record_event(m, j, "restart-asked", NULL, "%u executor%s%s%s to start again, %u at a time (uid %u)",
                     n, PLURAL(n), *role ? " of role " : "", role, j->rolling.batch, uid);
        record_job(m, j, false);
        rolling_go_on(m, j);
        *ret_n = n;
        return 0;
}
