/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: whoever is refused is told what he has, what he may have, and what he can do about it. What is
 * added up are the jobs themselves, so no count can go wrong. */
#include "masterd/life/holdings.h"

#include "lib/base/format.h"
#include "lib/wire/errors.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/data/data.h"
#include "masterd/feed/feeding.h"
#include "masterd/job/footprint.h"

struct holdings holdings_of(const struct manager *m, uint32_t uid) {
        struct holdings h = {};
        struct job *j, *next;

        HASH_ITER (hh, m->jobs.by_number, j, next) {
                if (j->owner != uid || job_state_ended(j->state))
                        continue;
                h.jobs += j->element.array == 0;
                h.bytes += j->bytes;
                if (j->data && j->data->data)
                        h.bytes += data_memory(j->data->data);
        }
        return h;
}

int holdings_admit_job(const struct manager *m, uint32_t uid, sd_bus_error *error) {
        uint32_t own = uid == 0 ? 0 : holdings_of(m, uid).jobs;

        if (uid == 0 || own < m->conf.jobs_per_user_max)
                return 0;
        return sd_bus_error_setf(
                error, ERROR_REFUSED,
                "You have %u active jobs, which is the most a user may have (JobsPerUserMax=)", own);
}

int holdings_admit(const struct manager *m, uint32_t uid, uint64_t more, sd_bus_error *error) {
        char has[FORMAT_SIZE_MAX], may[FORMAT_SIZE_MAX], wants[FORMAT_SIZE_MAX];
        uint64_t max = m->conf.bytes_per_user_max;
        struct holdings own;

        if (uid == 0)
                return 0;
        own = holdings_of(m, uid);
        if (own.bytes < max && more <= max - own.bytes)
                return 0;
        format_size(own.bytes, has, sizeof(has));
        format_size(max, may, sizeof(may));
        format_size(more, wants, sizeof(wants));
        if (more > max)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "This job would take %s of the master's memory; all active jobs of a user may take "
                        "%s (BytesPerUserMax=). Put large variables and commands into files (files[]), or "
                        "ask for fewer executors",
                        wants, may);
        return sd_bus_error_setf(error, ERROR_REFUSED,
                                 "Your %u active job%s take %s of the master's memory%s%s, and all of a user "
                                 "may take %s (BytesPerUserMax=). Wait until some have ended, or kill some",
                                 own.jobs, PLURAL(own.jobs), has, more > 0 ? ", this would take more: " : "",
                                 more > 0 ? wants : "", may);
}

void holdings_weigh(struct job *j) {
        j->bytes = footprint_of_job(j);
}
