/* SPDX-License-Identifier: Apache-2.0 */
/* The site's prolog and epilog of a job on this host. Invariant: no unit of the job is started before its
 * prolog has succeeded, and where it has, the epilog runs once the job has left, before its files go. */
#include <limits.h>
#include <string.h>

#include "agentd/executors/units-internal.h"

static int run_hook(struct job *j, const char *name, hook_handler handler) {
        char text[4][PATH_MAX + 32], number[16], *env[5];
        _cleanup_free_ char *work = work_path(j->units->options.root, j->number, j->uid);

        if (!work)
                return -ENOMEM;
        snprintf(text[0], sizeof(text[0]), "PRIMUS_JOB=%u", j->number);
        snprintf(text[1], sizeof(text[1]), "PRIMUS_UID=%u", j->owner);
        snprintf(text[2], sizeof(text[2]), "PRIMUS_NODE=%s", j->units->options.node);
        snprintf(text[3], sizeof(text[3]), "PRIMUS_WORK=%s", work);
        for (size_t i = 0; i < ELEMENTSOF(text); i++)
                env[i] = text[i];
        env[ELEMENTSOF(text)] = NULL;
        snprintf(number, sizeof(number), "%u", j->number);
        return hooks_run(j->units->hooks, name, number, env, j->number, handler, j);
}

static void mark(struct job *j, bool on) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct systemd *s = j->units->systemd;
        int r;

        if ((r = starter_message(s, "MarkHooked", &m)) < 0 || (r = job_append(j, m)) < 0 ||
            (r = sd_bus_message_append(m, "b", (int)on)) < 0 || (r = starter_send(s, m)) < 0)
                log_full(LOG_WARNING, r, &(struct log_fields){ .job = j->number },
                         "Cannot mark that the prolog of job %u has been", j->number);
}

static void tell_hook(struct job *j, const char *name, bool ok, const char *text) {
        struct units *u = j->units;

        if (!ok)
                log_full(LOG_ERR, 0, &(struct log_fields){ .job = j->number }, "The %s of job %u failed: %s",
                         name, j->number, text);
        if (u->ops.hook)
                u->ops.hook(name, j->number, ok, text, u->userdata);
}

/* Nothing under way any more: what came meanwhile gets its turn. */
static void next(struct job *j) {
        if (j->waiting)
                job_run_prolog(j);
        else if (j->n_units == 0)
                job_idle(j);
}

static void on_prolog(bool ok, const char *text, void *userdata) {
        struct job *j = userdata;
        char why[HOOK_TEXT_MAX + 32];

        if (ok)
                mark(j, true);
        j->hooked = ok;
        tell_hook(j, "prolog", ok, text);
        snprintf(why, sizeof(why), "prolog: %s", text);
        /* Those that are refused leave the job, which stays until we are through. */
        starts_go(j, ok, why);
        j->hook = HOOK_NONE;
        next(j);
}

bool job_hooked(struct job *j) {
        if (j->hooked)
                return true;
        if (j->hook != HOOK_NONE || hooks_present("prolog"))
                return false;
        if (hooks_present("epilog")) {
                j->hooked = true;
                mark(j, true);
        }
        return true;
}

void job_run_prolog(struct job *j) {
        int r;

        if (j->hook != HOOK_NONE)
                return;
        j->hook = HOOK_PROLOG;
        r = run_hook(j, "prolog", on_prolog);
        if (r < 0)
                on_prolog(false, strerror(-r), j);
}

static void on_epilog(bool ok, const char *text, void *userdata) {
        struct job *j = userdata;

        tell_hook(j, "epilog", ok, text);
        j->hook = HOOK_NONE;
        next(j);
}

bool job_run_epilog(struct job *j) {
        int r;

        if (!j->hooked)
                return false;
        /* Once, however it ends: whoever looks after the host takes it from there. */
        j->hooked = false;
        mark(j, false);
        if (!hooks_present("epilog"))
                return false;
        j->hook = HOOK_EPILOG;
        if (j->owner == 0) /* its units were an earlier agentd's to see */
                j->owner = work_owner(j->units->options.root, j->number, j->uid);
        r = run_hook(j, "epilog", on_epilog);
        if (r < 0) {
                j->hook = HOOK_NONE;
                tell_hook(j, "epilog", false, strerror(-r));
        }
        return r >= 0;
}
