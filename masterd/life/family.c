/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: an active job that ends with its parent is among its wards while that is active; what follows
 * from a parent's end is done in a turn of its own, so that a chain of any length is no recursion, and again
 * by a master that was started in between. */
#include "masterd/life/family.h"

#include <stdlib.h>

#include <utlist.h>

#include "lib/wire/errors.h"
#include "masterd/core/manager.h"
#include "masterd/life/lifecycle.h"

static struct job *find_active(struct manager *m, uint32_t number) {
        struct job *j = number > 0 ? manager_job(m, number) : NULL;

        return j && !job_state_ended(j->state) ? j : NULL;
}

int family_admit(struct manager *m, uint32_t parent, uint32_t owner, bool with, sd_bus_error *error) {
        const struct job *p = find_active(m, parent);

        if (!with)
                return 0;
        if (parent == 0)
                return sd_bus_error_set(error, ERROR_REFUSED,
                                        "withParent: this does not come from inside a job, so there is none "
                                        "that it could end with");
        if (!p)
                return sd_bus_error_setf(error, ERROR_REFUSED, "withParent: job %u has ended", parent);
        return 0;
}

static void run_end(struct manager *m, void *data) {
        uint32_t *number = data;
        struct job *j = find_active(m, *number);
        char text[64];

        free(number);
        if (!j || find_active(m, j->parent))
                return;
        snprintf(text, sizeof(text), "its parent, job %u, has ended", j->parent);
        lifecycle_stop_job(m, j, JOB_EVENT_KILLED, text);
}

static void end_soon(struct manager *m, const struct job *j) {
        uint32_t *number = malloc(sizeof(*number));

        if (!number)
                return; /* by the next master */
        *number = j->number;
        (void)manager_effect(m, run_end, number);
}

void family_admitted(struct manager *m, struct job *j) {
        struct job *p = j->with_parent ? find_active(m, j->parent) : NULL;

        if (p) {
                DL_APPEND2(p->family.wards, j, family.prev, family.next);
                j->family.guardian = p;
        } else if (j->with_parent)
                end_soon(m, j);
}

int family_load(struct manager *m) {
        for (struct job *j = m->jobs.by_number; j; j = j->hh.next)
                if (!job_state_ended(j->state))
                        family_admitted(m, j);
        return 0;
}

static void leave_family(struct job *j) {
        if (j->family.guardian)
                DL_DELETE2(j->family.guardian->family.wards, j, family.prev, family.next);
        j->family.guardian = NULL;
}

void family_job_ended(struct manager *m, struct job *j) {
        leave_family(j);
        while (j->family.wards) {
                struct job *ward = j->family.wards;

                leave_family(ward);
                end_soon(m, ward);
        }
}

void family_job_freed(struct job *j) {
        leave_family(j);
        while (j->family.wards)
                leave_family(j->family.wards);
}
