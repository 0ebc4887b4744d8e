/* SPDX-License-Identifier: Apache-2.0 */
/* A job gets another configuration. Invariants: the new configuration, its version and the stops that follow
 * are one transaction; what was refused has changed nothing. */
#include "masterd/life/change.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/wire/errors.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/core/space.h"
#include "masterd/feed/feeding.h"
#include "masterd/job/array.h"
#include "masterd/job/footprint.h"
#include "masterd/job/reshape.h"
#include "masterd/life/epochs.h"
#include "masterd/life/holdings.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/limits.h"
#include "masterd/life/requeue.h"
#include "masterd/life/restart-scopes.h"
#include "masterd/life/time-limit.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/queueing.h"
#include "masterd/queue/submit-layers.h"
#include "masterd/queue/submit-placement.h"
#include "masterd/queue/submit-pool.h"

/* ---- what is remembered of changes ---- */

static int remember(struct job *j, uint64_t version, uint32_t uid, const char *text) {
        struct change_note *note;
        char *copy = strdup(text);

        if (!copy)
                return -ENOMEM;
        if (!j->change.notes) {
                j->change.notes = calloc(CHANGES_KEPT, sizeof(*j->change.notes));
                if (!j->change.notes) {
                        free(copy);
                        return -ENOMEM;
                }
        }
        if (j->change.n_notes == CHANGES_KEPT) {
                free(j->change.notes[0].text);
                memmove(j->change.notes, j->change.notes + 1, (CHANGES_KEPT - 1) * sizeof(*j->change.notes));
                j->change.n_notes--;
        }
        note = j->change.notes + j->change.n_notes++;
        *note = (struct change_note){ version, uid, copy };
        j->change.version = version;
        return 0;
}

static int add_cut(struct job *j, const char *role, uint32_t from, uint32_t attempt) {
        struct change_cut *bigger = reallocarray(j->change.cuts, j->change.n_cuts + 1, sizeof(*bigger));

        if (!bigger)
                return -ENOMEM;
        j->change.cuts = bigger;
        bigger += j->change.n_cuts++;
        *bigger = (struct change_cut){ .from = from, .attempt = attempt };
        snprintf(bigger->role, sizeof(bigger->role), "%s", role);
        j->leavers.attempt_base = MAX(j->leavers.attempt_base, attempt);
        return 0;
}

bool change_has_left(const struct job *j, const char *role, uint32_t index, uint32_t attempt) {
        for (size_t i = 0; i < j->change.n_cuts; i++)
                if (index >= j->change.cuts[i].from && attempt <= j->change.cuts[i].attempt &&
                    strcmp(j->change.cuts[i].role, role) == 0)
                        return true;
        return false;
}

int change_load_cut(struct job *j, const struct cut_record *r) {
        return add_cut(j, r->role, r->from, r->attempt);
}

int change_load(struct job *j, const struct change_record *r) {
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        struct job_spec *spec;
        int k = remember(j, r->version, r->uid, r->text);

        if (k < 0 || r->before.size == 0)
                return k;
        k = spec_load(r->before.data, r->before.size, &spec, &d);
        return k < 0 ? k : job_retire(j, spec);
}

void change_free(struct job *j) {
        for (uint32_t i = 0; i < j->change.n_notes; i++)
                free(j->change.notes[i].text);
        free(j->change.notes);
        free(j->change.cuts);
        j->change.notes = NULL;
        j->change.cuts = NULL;
        j->change.n_notes = 0;
        j->change.n_cuts = 0;
}

const char *change_latest(const struct job *j) {
        return j->change.n_notes > 0 ? j->change.notes[j->change.n_notes - 1].text : "";
}

/* ---- refusals ---- */

static int refuse_state(const struct job *j, bool sight, sd_bus_error *error) {
        if (sight && j->element.array > 0)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Job %u is an element of array %u, which says who may look at it: "
                                         "primusctl update %u visible=...",
                                         j->number, j->element.array, j->element.array);
        if (sight)
                return 0;
        /* One configuration stands for all of them on disk. */
        if (j->array || j->element.array > 0)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "Job %u is %s: its configuration is for all elements and stays as it is", j->number,
                        j->array ? "an array" : "an element of an array");
        if (!job_state_ended(j->state) && j->state != JOB_STOPPING)
                return 0;
        return sd_bus_error_setf(error, ERROR_REFUSED, "Job %u is %s: it cannot be changed any more",
                                 j->number, job_state_to_string(j->state));
}

int change_check_version(const struct job *j, uint64_t version, sd_bus_error *error) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f;

        if (version == CHANGE_ANY_VERSION || version == j->change.version)
                return 0;
        if (version > j->change.version)
                return sd_bus_error_setf(error, ERROR_CONFLICT,
                                         "Job %u is at version %" PRIu64 ", not yet %" PRIu64, j->number,
                                         j->change.version, version);
        f = open_memstream(&text, &size);
        if (!f)
                return -ENOMEM;
        for (uint32_t i = 0; i < j->change.n_notes; i++)
                if (j->change.notes[i].version > version)
                        fprintf(f, "; version %" PRIu64 " by uid %u: %s", j->change.notes[i].version,
                                j->change.notes[i].uid, j->change.notes[i].text);
        if (fclose(f) != 0)
                return -ENOMEM;
        return sd_bus_error_setf(
                error, ERROR_CONFLICT,
                "Job %u is at version %" PRIu64 ", it was changed since version %" PRIu64
                "%s. Look at it again ('primusctl config %u') and repeat what you still want",
                j->number, j->change.version, version, text, j->number);
}

/* What leaves stays a while, so only what comes counts. */
static int refuse_growth(const struct manager *m, const struct job *j, const struct job_spec *spec,
                         sd_bus_error *error) {
        size_t before = footprint_of_spec(j->spec), after = footprint_of_spec(spec);

        int r = after > before ? holdings_admit(m, j->owner, after - before, error) : 0;

        if (r >= 0 && after > before)
                r = space_admit_disk(m, after, error);
        return r;
}

/* ---- leaving ---- */

void change_gone(struct manager *m, struct executor *e) {
        executor_set_gone(e);
        feeding_settled(m, e);
        executor_move(e, NULL); /* its host keeps files of the job */
        job_dismiss(e);
}

void change_let_go(struct manager *m, struct job *j) {
        struct executor *e, *next;

        DL_FOREACH_SAFE2 (j->leavers.list, e, next, leaver.next) {
                const char *why = spec_role(j->spec, e->leaver.role->name)
                                          ? "the job was scaled down"
                                          : "its role was removed from the job";
                if (!executor_state_holds(e->state))
                        change_gone(m, e);
                else if (!e->orders.stopped && !restart_scopes_keep_leaving(e))
                        lifecycle_stop_executor(m, e, why);
        }
}

/* ---- the change ---- */

/* Remembers who will leave. *ret_role: a whole role goes. */
static int cut(struct job *j, const struct job_spec *spec, bool *ret_role) {
        uint32_t most = j->leavers.attempt_base, base = j->leavers.attempt_base;
        size_t was = j->change.n_cuts;
        bool role = false;

        for (size_t i = 0; i < j->spec->n_roles; i++) {
                const struct role *before = j->roles + i;
                const struct role_spec *after = spec_role(spec, before->spec->name);
                for (uint32_t k = after ? after->num : 0; k < before->spec->num; k++)
                        most = MAX(most, before->executors[k]->attempt);
        }
        for (size_t i = 0; i < j->spec->n_roles; i++) {
                const struct role_spec *before = j->spec->roles + i, *after = spec_role(spec, before->name);
                if ((!after || after->num < before->num) &&
                    add_cut(j, before->name, after ? after->num : 0, most) < 0) {
                        j->change.n_cuts = was;
                        j->leavers.attempt_base = base;
                        return -ENOMEM;
                }
                role = role || !after;
        }
        *ret_role = role;
        return 0;
}

/* The roles that have another number of executors, were added or removed: each as it is afterwards, or was.
 * To be freed. */
static int find_resized(const struct job_spec *before, const struct job_spec *after,
                        const struct role_spec ***ret, size_t *ret_n) {
        const struct role_spec **list = calloc(before->n_roles + after->n_roles, sizeof(*list));
        size_t n = 0;

        if (!list)
                return -ENOMEM;
        for (size_t i = 0; i < after->n_roles; i++) {
                const struct role_spec *was = spec_role(before, after->roles[i].name);
                if (!was || was->num != after->roles[i].num)
                        list[n++] = after->roles + i;
        }
        for (size_t i = 0; i < before->n_roles; i++)
                if (!spec_role(after, before->roles[i].name))
                        list[n++] = before->roles + i;
        *ret = list;
        *ret_n = n;
        return 0;
}

static uint32_t step_of(const struct job *j, const char *role) {
        for (uint32_t i = 0; i < j->spec->n_order; i++)
                if (strcmp(j->spec->order[i].role, role) == 0)
                        return i;
        return UINT32_MAX;
}

/* How many of the first steps of an ordered start are behind us, without those that go. */
static uint32_t steps_left(const struct job *j, const struct job_spec *spec) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < spec->n_order; i++)
                n += step_of(j, spec->order[i].role) < j->order_step;
        return n;
}

/* The latest change. first_cut: its cuts are those from there on; before: the configuration that it was of,
 * where a role has gone, else "". */
static void record_change(struct manager *m, struct job *j, size_t first_cut, const char *before,
                          const char *text) {
        const struct change_note *note = j->change.notes + j->change.n_notes - 1;
        struct change_record record = {
                .job = j->number,
                .version = j->change.version,
                .uid = note->uid,
                .at_real = now_real(),
                .text = note->text,
                .before = { before, strlen(before) },
                .config = { text, strlen(text) },
        };

        store_put_change(m->store, &record);
        for (size_t i = first_cut; i < j->change.n_cuts; i++)
                store_put_cut(m->store, &(struct cut_record){ .job = j->number,
                                                              .version = j->change.version,
                                                              .role = j->change.cuts[i].role,
                                                              .from = j->change.cuts[i].from,
                                                              .attempt = j->change.cuts[i].attempt });
        record_job(m, j, false);
        record_event(m, j, "changed", NULL, "version %" PRIu64 " by uid %u: %s", j->change.version, note->uid,
                     note->text);
}

/* What its data gets more of. */
static int prepare_growth(struct job *j, const struct job_spec *spec, struct feeding_growth **ret,
                          sd_bus_error *error) {
        char why[FEEDING_WHY_MAX] = "";
        int r;

        if (spec_n_sources(spec) <= spec_n_sources(j->spec))
                return 0;
        r = feeding_may_grow(j, spec, ret, why);
        return r == -EPERM ? sd_bus_error_setf(error, ERROR_REFUSED, "Job %u gets no more data: %s",
                                               j->number, why)
                           : r;
}

/* Takes spec over on success; text is it. */
static int apply(struct manager *m, struct job *j, uint32_t uid, struct job_spec *spec, const char *text,
                 const char *what, const struct edit_effects *effects, sd_bus_error *error) {
        _cleanup_(limits_done) struct limits limits = {};
        bool limit_changes = j->spec->time_limit_usec != spec->time_limit_usec;
        _cleanup_free_ const struct role_spec **resized = NULL;
        _cleanup_free_ char *before = NULL;
        _cleanup_(feeding_growth_free_p) struct feeding_growth *growth = NULL;
        uint32_t step = steps_left(j, spec);
        size_t n_cuts = j->change.n_cuts, n_resized;
        bool role_goes = false;
        int r = prepare_growth(j, spec, &growth, error);

        r = r < 0 ? r : find_resized(j->spec, spec, &resized, &n_resized);
        if (r < 0)
                return r;
        if (effects->limits) {
                r = limits_plan(m, j, spec, &limits, error);
                if (r < 0)
                        return r;
        }
        r = remember(j, j->change.version + 1, uid, what);
        if (r < 0) {
                limits_abandon(m, &limits);
                return r;
        }
        r = cut(j, spec, &role_goes);
        if (r >= 0 && role_goes)
                r = spec_effective(j->spec, &before);
        if (r >= 0)
                r = job_reshape(j, spec);
        if (r < 0) {
                limits_abandon(m, &limits);
                j->change.n_cuts = n_cuts;
                free(j->change.notes[--j->change.n_notes].text);
                j->change.version--;
                return r;
        }
        holdings_weigh(j);
        j->order_step = step;
        record_change(m, j, n_cuts, before ?: "", text);
        if (growth)
                feeding_grow(m, j, TAKE_PTR(growth));
        if (effects->limits) {
                limits_apply(m, j, &limits);
                record_job(m, j, false); /* since when */
        }
        for (size_t i = 0; i < n_resized; i++)
                restart_scopes_regroup(m, j, resized[i]);
        change_let_go(m, j);
        restart_scopes_recount(m, j);
        if (limit_changes) {
                j->slot.timer = sd_event_source_disable_unref(j->slot.timer);
                j->slot.signal_timer = sd_event_source_disable_unref(j->slot.signal_timer);
                time_limit_arm(m, j);
        }
        queueing_changed(m, j);
        requeue_not_needed(m, j); /* or it is decided anew */
        epochs_update(m, j);
        placement_enqueue(m, j);
        lifecycle_review(m, j);
        notice_job_changed(m, j);
        return 0;
}

/* Who may look at it is asked at each look, and by nothing else: so that alone may change of an array and of
 * what has ended, and in a configuration that many have. */
static bool is_sight(const struct spec_edit *edits, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (edits[i].kind != EDIT_SET || strcmp(edits[i].path, "visible") != 0)
                        return false;
        return n > 0;
}

static void set_visible(struct manager *m, struct job *j, uint32_t visible) {
        j->spec->visible = visible;
        if (j->array && j->array->element)
                j->array->element->visible = visible;
        if (j->array && j->array->searcher.spec)
                j->array->searcher.spec->visible = visible;
        for (struct job *e = j->array ? m->jobs.by_number : NULL; e; e = e->hh.next)
                if (e->element.array == j->number)
                        e->spec->visible = visible;
}

static int change_sight(struct manager *m, struct job *j, uint32_t uid, struct job_spec *spec,
                        const char *what, sd_bus_error *error) {
        _cleanup_free_ char *text = NULL;
        int r = submit_pool_visible(&m->conf.pools, spec, error);

        if (r >= 0)
                r = spec_effective(spec, &text);
        if (r >= 0)
                r = remember(j, j->change.version + 1, uid, what);
        if (r < 0)
                return r;
        set_visible(m, j, spec->visible);
        record_change(m, j, j->change.n_cuts, "", text);
        notice_job_changed(m, j);
        return 0;
}

int change_job(struct manager *m, struct job *j, uint32_t uid, uint64_t version,
               const struct spec_edit *edits, size_t n, const struct limits_ask *ask, uint64_t *ret_version,
               sd_bus_error *error) {
        _cleanup_(spec_free_p) struct job_spec *spec = NULL;
        _cleanup_free_ char *text = NULL, *what = NULL, *said = NULL;
        char why[SPEC_EDIT_TEXT_MAX] = "";
        struct edit_effects effects;
        struct executor *e;
        int r = refuse_state(j, is_sight(edits, n), error);

        if (r >= 0)
                r = change_check_version(j, version, error);
        if (r >= 0 && store_full(m->store))
                r = sd_bus_error_set(error, ERROR_BUSY,
                                     "The master's store is slow or its disk is full; try again in a moment");
        if (r < 0)
                return r;
        r = spec_edit(j->spec, edits, n, &spec, &text, &what, &effects, why);
        if (r < 0)
                return *why ? sd_bus_error_set(error, ERROR_BAD_CONFIG, why) : r;
        r = submit_layers_admit(m->conf.layers, j->spec, spec, error);
        if (r < 0)
                return r;
        if (is_sight(edits, n)) {
                r = effects.stays ? 0 : change_sight(m, j, uid, spec, what, error);
                if (r >= 0)
                        *ret_version = j->change.version;
                return r;
        }
        DL_FOREACH2 (j->leavers.list, e, leaver.next)
                if (!spec_role(j->spec, e->leaver.role->name) && spec_role(spec, e->leaver.role->name))
                        return sd_bus_error_setf(
                                error, ERROR_REFUSED,
                                "Executors of the role %s that was removed have not ended yet; try again in a "
                                "moment",
                                e->leaver.role->name);
        if (spec_role(spec, SCAN_ROLE))
                return sd_bus_error_setf(error, ERROR_BAD_CONFIG, "role: the name %s is reserved", SCAN_ROLE);
        if (strcmp(spec->queue, j->spec->queue) != 0 || spec->waits.priority != j->spec->waits.priority ||
            spec->time_limit_usec != j->spec->time_limit_usec) {
                r = submit_pool_admit(&m->conf.pools, uid, spec, error);
                if (r < 0)
                        return r;
                free(text); /* the pool may have filled something in */
                text = NULL;
                r = spec_effective(spec, &text);
                if (r < 0)
                        return r;
        }
        if (spec->visible != j->spec->visible) {
                r = submit_pool_visible(&m->conf.pools, spec, error);
                free(text);
                text = NULL;
                if (r >= 0)
                        r = spec_effective(spec, &text);
                if (r < 0)
                        return r;
        }
        r = refuse_growth(m, j, spec, error);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                if (edits[i].kind == EDIT_ADD_ROLE && (r = submit_placement_admit(m, spec, error)) < 0)
                        return r;
        if (effects.limits && ask) {
                r = limits_ask(m, j, spec, ask);
                if (r != 0)
                        return r < 0 ? r : CHANGE_LATER;
        }
        r = submit_placement_admit_change(m, j->spec, spec, error);
        if (r < 0)
                return r;
        if (!effects.stays) {
                if (asprintf(&said, "%s%s", what,
                             effects.next ? " (attempts that begin from now on have it)" : "") < 0)
                        return -ENOMEM;
                r = apply(m, j, uid, spec, text, said, &effects, error);
                if (r < 0)
                        return r;
                spec = NULL;
        }
        *ret_version = j->change.version;
        return 0;
}
