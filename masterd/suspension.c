/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose data is held back. Invariant: what feeders are told follows from the job's state on disk. */
#include "masterd/suspension.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/log.h"
#include "masterd/feeding.h"
#include "masterd/lifecycle.h"
#include "masterd/manager.h"
#include "masterd/record.h"

struct hold {
        uint32_t number;
        sd_id128_t uid;
};

/* What holds by now is told, not what held when it was recorded: another word may have come in between. */
static void run_hold(struct manager *m, void *data) {
        struct hold *h = data;
        struct job *j = manager_job(m, h->number);

        if (j && j->data && sd_id128_equal(j->uid, h->uid)) {
                if (j->state == JOB_SUSPENDED)
                        feeding_suspend(m, j);
                else if (j->state == JOB_RUNNING)
                        feeding_resume(m, j);
        }
        free(h);
}

static void hold_later(struct manager *m, const struct job *j) {
        struct hold *h = malloc(sizeof(*h));

        if (!h) {
                (void)sd_event_exit(m->event, log_oom()); /* what is on disk stays right */
                return;
        }
        *h = (struct hold){ j->number, j->uid };
        (void)manager_effect(m, run_hold, h);
}

static int refuse_hold(const struct job *j, const char *verb, char text[static SUSPENSION_TEXT_MAX]) {
        const char *state = job_state_to_string(j->state);

        if (job_state_ended(j->state) || j->state == JOB_STOPPING) {
                snprintf(text, SUSPENSION_TEXT_MAX, "Job %u is %s: there is nothing to %s", j->number, state,
                         verb);
                return -ESRCH;
        }
        if (!j->data) {
                snprintf(text, SUSPENSION_TEXT_MAX, "Job %u is not fed with data: there is nothing to %s",
                         j->number, verb);
                return -ENODATA;
        }
        if (!job_state_up(j->state)) {
                snprintf(text, SUSPENSION_TEXT_MAX, "Job %u is %s; wait until it is RUNNING", j->number,
                         state);
                return -EAGAIN;
        }
        snprintf(text, SUSPENSION_TEXT_MAX, "Job %u is %s already", j->number, state);
        return -EALREADY;
}

int suspension_begin(struct manager *m, struct job *j, uint32_t uid, char text[static SUSPENSION_TEXT_MAX]) {
        if (j->state != JOB_RUNNING || !j->data)
                return refuse_hold(j, "suspend", text);
        if (job_transition(j, JOB_EVENT_SUSPEND) < 0)
                return -EPROTO;
        record_event(m, j, "suspended", NULL, "its data is held back (uid %u)", uid);
        lifecycle_job_changed(m, j);
        hold_later(m, j);
        return 0;
}

int suspension_end(struct manager *m, struct job *j, uint32_t uid, char text[static SUSPENSION_TEXT_MAX]) {
        if (j->state != JOB_SUSPENDED)
                return refuse_hold(j, "resume", text);
        if (job_transition(j, JOB_EVENT_RESUME) < 0)
                return -EPROTO;
        j->saving = false;
        record_event(m, j, "resumed", NULL, "its data goes on (uid %u)", uid);
        lifecycle_job_changed(m, j);
        hold_later(m, j);
        return 0;
}

void suspension_restored(struct manager *m, struct job *j) {
        if (!j->saving)
                return;
        j->saving = false;
        if (j->state != JOB_SUSPENDED || job_transition(j, JOB_EVENT_RESUME) < 0)
                return;
        record_event(
                m, j, "resumed", NULL,
                "the master was restarted before the savepoint was complete; the job goes on without it");
        lifecycle_job_changed(m, j);
        hold_later(m, j);
}
