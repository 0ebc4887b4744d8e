/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: whether somebody may look is decided of the job as it is at that moment, after everything that
 * had to be waited for; and polkit is asked only about those to whom the job itself does not say yes. */
#include "masterd/api/looking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/api/api-parts.h"
#include "masterd/api/api.h"
#include "masterd/api/audience.h"
#include "masterd/api/turn.h"
#include "masterd/caller/audit.h"
#include "masterd/caller/authorize.h"
#include "masterd/caller/polkit.h"
#include "masterd/core/manager.h"
#include "masterd/core/sight.h"

/* A call on its way. */
struct looking {
        struct manager *manager;
        uint32_t number, uid;
        bool control;
        const char *action;
        caller_handler work, masked;
        sd_bus_message *call;
        unsigned n_ref;
};

static void looking_unref(void *userdata) {
        struct looking *q = userdata;

        if (--q->n_ref > 0)
                return;
        sd_bus_message_unref(q->call);
        free(q);
}

static struct sight sight_at(struct manager *m, uint32_t uid, const struct job *j) {
        return (struct sight){
                .visible = j->spec->visible,
                .owner = j->owner,
                .caller = uid,
                .pools = &m->conf.pools,
                .pool = pools_find(&m->conf.pools, j->spec->queue),
                .who = people_find(m->api->people, uid),
                .of = people_find(m->api->people, j->owner),
                .min_uid = m->conf.min_uid,
        };
}

bool api_sees(struct manager *m, uint32_t uid, const struct job *j) {
        const struct sight s = sight_at(m, uid, j);

        return sight_may(&s);
}

/* ---- refusals ---- */

static const struct {
        const char *member, *what;
} deeds[] = {
        { "Kill", "kill it" },
        { "KillWith", "kill it" },
        { "Delete", "delete it" },
        { "Update", "change it" },
        { "Scale", "change it" },
        { "AddRole", "change it" },
        { "RemoveRole", "change it" },
        { "AddSource", "change it" },
        { "ReplaceSources", "change it" },
        { "Suspend", "suspend it" },
        { "SuspendAs", "suspend it" },
        { "Resume", "resume it" },
        { "Requeue", "requeue it" },
        { "RestartRole", "restart it" },
        { "Rerun", "run it again" },
        { "OpenSession", "run a command in it" },
        { "OpenArtifacts", "fetch what it has left" },
        { "Capture", "see its stacks" },
        { "Trace", "trace it" },
};

static const char *deed_of(sd_bus_message *call) {
        const char *member = sd_bus_message_get_member(call);

        for (size_t i = 0; i < ELEMENTSOF(deeds); i++)
                if (strcmp(deeds[i].member, member) == 0)
                        return deeds[i].what;
        return "do this";
}

#define NAME_SHOWN 64u

/* Its number, name and owner are for all to see; the rest of the sentence is how the job is set. */
static int say_refusal(const struct looking *q, const struct job *j, char **ret) {
        const struct sight s = sight_at(q->manager, q->uid, j);
        char owner[PERSON_NAME_MAX], sight[SIGHT_TEXT_MAX];
        int n = (int)utf8_fit(j->name, NAME_SHOWN), r;

        if (s.of && *s.of->name)
                snprintf(owner, sizeof(owner), "%s", s.of->name);
        else
                snprintf(owner, sizeof(owner), "uid %u", j->owner);
        if (q->control)
                r = asprintf(
                        ret,
                        "Job %u (%.*s) is %s's: only %s and administrators of this cluster (polkit action "
                        "%s) may %s",
                        j->number, n, j->name, owner, owner, q->action, deed_of(q->call));
        else
                r = asprintf(ret,
                             "Job %u (%.*s) is %s's, and %s: ask %s (primusctl update %u visible=%s), or an "
                             "administrator of this cluster (polkit action %s)",
                             j->number, n, j->name, owner, sight_text(&s, owner, sight, sizeof(sight)), owner,
                             j->element.array > 0 ? j->element.array : j->number,
                             sight_of(s.visible, s.pool) == VISIBLE_OWNER ? "group" : "all", q->action);
        return r < 0 ? -ENOMEM : 0;
}

/* ---- a call ---- */

static int go(struct looking *q, sd_bus_message *call, bool looks, caller_handler work, sd_bus_error *error) {
        struct job *j = manager_job(q->manager, q->number);
        struct turn *t = turn_new(q->manager, work);
        int r;

        if (!t)
                return -ENOMEM;
        if (j)
                audience_add(j, call, q->uid, looks);
        r = turn_take(call, q->uid, t, error);
        free(t);
        return r;
}

static int on_manages(sd_bus_message *call, enum polkit_answer answer, void *userdata, sd_bus_error *error) {
        struct looking *q = userdata;

        return go(q, call, false, answer == POLKIT_YES ? q->work : q->masked, error);
}

/* Of what is masked for who may look alone, it is asked whether he may do more, without a dialog. */
static int on_granted(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct looking *q = userdata;

        if (!q->masked)
                return go(q, call, false, q->work, error);
        q->n_ref++;
        return polkit_check(callers_polkit(q->manager->api->callers), call, uid, ACTION_MANAGE_JOBS, false,
                            on_manages, q, looking_unref, error);
}

static int decide(struct looking *q, sd_bus_error *error) {
        struct job *j = manager_job(q->manager, q->number);
        _cleanup_free_ char *text = NULL;
        int r;

        if (!j)
                return sd_bus_error_set(error, ERROR_NO_SUCH_JOB,
                                        "The job is not in memory any more; ask for it again by GetJob");
        if (!q->control && api_sees(q->manager, q->uid, j))
                return go(q, q->call, true, q->masked ?: q->work, error);
        r = say_refusal(q, j, &text);
        if (r < 0)
                return r;
        q->n_ref++;
        return authorize_saying(q->manager->api->callers, q->call, OWNER_ANOTHER, q->action, text, on_granted,
                                q, looking_unref, error);
}

static void on_people(void *userdata) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct looking *q = userdata;
        int r = caller_explain(decide(q, &error), &error);

        caller_answer(q->call, r, &error);
        sd_bus_error_free(&error);
        looking_unref(q);
}

static int on_identified(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct looking *q = userdata;
        const struct job *j = manager_job(q->manager, q->number);
        uint32_t uids[2] = { uid, j ? j->owner : uid };
        int r;

        q->uid = uid;
        if (uid == 0 || (j && uid == j->owner)) {
                audit_permission(call, j && uid == j->owner ? AUDIT_OWNER : AUDIT_ROOT, NULL);
                return go(q, call, false, q->work, error);
        }
        if (people_find(q->manager->api->people, uids[0]) && people_find(q->manager->api->people, uids[1]))
                return decide(q, error);
        q->n_ref++;
        r = people_ask(q->manager->api->people, uid, uids, ELEMENTSOF(uids), on_people, looking_unref, q);
        if (r < 0)
                looking_unref(q);
        return r < 0 ? r : 1;
}

static int call_job(struct job *j, sd_bus_message *call, const struct looking *from, sd_bus_error *error) {
        struct looking *q = malloc(sizeof(*q));
        int r;

        if (!q)
                return -ENOMEM;
        *q = *from;
        q->manager = j->manager;
        q->number = j->number;
        q->call = sd_bus_message_ref(call);
        q->n_ref = 1;
        r = caller_explain(
                caller_identify_full(j->manager->api->callers, call, on_identified, q, looking_unref, error),
                error);
        return r == 0 ? 1 : r; /* to sd-bus 0 means "not mine" */
}

int api_look(struct job *j, sd_bus_message *call, const char *action, caller_handler work,
             caller_handler masked, sd_bus_error *error) {
        return call_job(j, call, &(struct looking){ .action = action, .work = work, .masked = masked },
                        error);
}

int api_control(struct job *j, sd_bus_message *call, const char *action, caller_handler work,
                sd_bus_error *error) {
        return call_job(j, call, &(struct looking){ .control = true, .action = action, .work = work }, error);
}

/* ---- lists ---- */

struct listing {
        struct manager *manager;
        uint32_t uid;
        caller_handler work;
        sd_bus_message *call;
};

static void listing_free(void *userdata) {
        struct listing *q = userdata;

        sd_bus_message_unref(q->call);
        free(q);
}

static void on_known(void *userdata) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct listing *q = userdata;
        struct turn *t = turn_new(q->manager, q->work);
        int r;

        q->manager->api->known_for = q->call; /* whoever is not known by now, will not be */
        r = t ? turn_take(q->call, q->uid, t, &error) : -ENOMEM;
        q->manager->api->known_for = NULL;
        r = caller_explain(r, &error);
        caller_answer(q->call, r, &error);
        sd_bus_error_free(&error);
        free(t);
        listing_free(q);
}

static bool add(uint32_t uid, uint32_t *uids, size_t *n) {
        for (size_t i = 0; i < *n; i++)
                if (uids[i] == uid)
                        return true;
        if (*n < PEOPLE_ASKED_MAX)
                uids[(*n)++] = uid;
        return *n < PEOPLE_ASKED_MAX;
}

/* Of whom something has to be known that is not: the caller, and owners of jobs for their groups. */
static size_t unknown(struct manager *m, uint32_t uid, uint32_t uids[static PEOPLE_ASKED_MAX]) {
        size_t n = 0;

        for (struct job *j = uid == 0 ? NULL : m->jobs.by_number; j; j = j->hh.next) {
                const struct sight s = sight_at(m, uid, j);
                if (sight_needs_caller(&s) && !s.who)
                        (void)add(uid, uids, &n);
                if (sight_needs_owner(&s) && !s.of && !add(j->owner, uids, &n))
                        break;
        }
        return n;
}

int api_know(struct manager *m, sd_bus_message *call, uint32_t uid, caller_handler work) {
        uint32_t uids[PEOPLE_ASKED_MAX];
        size_t n = m->api->known_for == call ? 0 : unknown(m, uid, uids);
        struct listing *q;
        int r;

        if (n == 0)
                return 0;
        q = malloc(sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = (struct listing){ m, uid, work, sd_bus_message_ref(call) };
        r = people_ask(m->api->people, uid, uids, n, on_known, listing_free, q);
        if (r < 0)
                listing_free(q);
        return r < 0 ? r : 1;
}

int api_append_visible(sd_bus_message *reply, struct manager *m, const struct job *j) {
        const struct sight s = sight_at(m, j->owner, j);
        char text[SIGHT_TEXT_MAX], owner[32];

        if (s.of && *s.of->name)
                return sd_bus_message_append(reply, "{sv}{sv}", "visible", "s",
                                             visible_to_string(sight_of(s.visible, s.pool)), "visibleTo", "s",
                                             sight_text(&s, s.of->name, text, sizeof(text)));
        snprintf(owner, sizeof(owner), "uid %u", j->owner);
        return sd_bus_message_append(reply, "{sv}{sv}", "visible", "s",
                                     visible_to_string(sight_of(s.visible, s.pool)), "visibleTo", "s",
                                     sight_text(&s, owner, text, sizeof(text)));
}
