/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: the sources of its data, steered one by one or replaced as a whole. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "lib/wire/input.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding.h"
#include "masterd/life/change.h"
#include "masterd/spec/source-plan.h"

/* ---- SteerSource ---- */

static int read_source_state(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        static const struct {
                const char *name;
                enum feeding_source_state state;
        } states[] = {
                { "running", FEEDING_SOURCE_RUNNING },
                { "paused", FEEDING_SOURCE_PAUSED },
                { "ended", FEEDING_SOURCE_ENDED },
                { "removed", FEEDING_SOURCE_REMOVED },
        };
        struct feeding_steering *how = target;
        const char *text;
        int r = sd_bus_message_read(call, "v", "s", &text);

        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                if (strcmp(states[i].name, text) == 0) {
                        how->state = states[i].state;
                        return 0;
                }
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                 "state: running, paused, ended or removed is expected, not '%.*s'",
                                 utf8_fit(text, 32), text);
}

static int read_source_weight(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        struct feeding_steering *how = target;
        int r = sd_bus_message_read(call, "v", "u", &how->weight);

        if (r < 0)
                return r;
        if (how->weight >= 1 && how->weight <= INPUT_WEIGHT_MAX)
                return 0;
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                 "weight: 1 to %u is expected, not %" PRIu32, INPUT_WEIGHT_MAX, how->weight);
}

static const struct call_option source_changes[] = {
        { "state", 0, 0, read_source_state },
        { "weight", 0, 0, read_source_weight },
        { NULL },
};

static int steer_refused(const struct job *j, const char *name, int r, sd_bus_error *error) {
        switch (r) {
        case -ENODATA:
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         !j->data                    ? "Job %" PRIu32 " is not fed with data"
                                         : job_state_ended(j->state) ? "Job %" PRIu32 " is over"
                                                                     : "All data of job %" PRIu32
                                                                       " is through",
                                         j->number);
        case -ENOENT:
                return sd_bus_error_setf(error, ERROR_NOT_FOUND, "Job %" PRIu32 " has no data source '%.*s'",
                                         j->number, utf8_fit(name, 64), name);
        case -ENOTUNIQ:
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Two data sources of job %" PRIu32
                                         " are called '%.*s': which is meant cannot be told; give each a "
                                         "name of its own at the next submission",
                                         j->number, utf8_fit(name, 64), name);
        case -ESTALE:
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Data source '%.*s' of job %" PRIu32 " was removed",
                                         utf8_fit(name, 64), name, j->number);
        case -EBUSY:
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "The data of job %" PRIu32
                                         " was steered too often, or is being read from the database: try "
                                         "again when it has gone on",
                                         j->number);
        default:
                return r;
        }
}

int api_steer_source(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct job *j = api_job_or_error(userdata, call, error);
        struct feeding_steering how = {};
        sd_bus_message *reply = NULL;
        const char *name;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read_basic(call, 's', &name);
        r = r < 0 ? r : options_read(call, "SteerSource", "change", source_changes, &how, error);
        if (r < 0)
                return r;
        if (how.state == FEEDING_SOURCE_AS_IT_IS && how.weight == 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "SteerSource: state or weight is expected");
        r = feeding_steer(userdata, j, name, &how);
        if (r < 0)
                return steer_refused(j, name, r, error);
        r = sd_bus_message_new_method_return(call, &reply);
        return r < 0 ? r : manager_reply_later(userdata, reply);
}

/* ---- ReplaceSources ---- */

static int plan_replacement(const struct job *j, const char *text, struct source_plan *ret,
                            sd_bus_error *error) {
        char why[SPEC_EDIT_TEXT_MAX] = "";
        _cleanup_free_ bool *removed = calloc(spec_n_sources(j->spec) + 1, sizeof(*removed));
        int r;

        if (!removed)
                return -ENOMEM;
        for (size_t i = 0; i < spec_n_sources(j->spec); i++) {
                struct data_steering s = {};

                data_steering(j->data->data, (uint32_t)i, &s);
                removed[i] = s.removed;
        }
        r = source_plan_make(j->spec, removed, text, ret, why);
        return r == -EINVAL ? sd_bus_error_set(error, ERROR_BAD_CONFIG, why) : r;
}

/* What is new, as one change of the configuration. */
static int add_planned(struct manager *m, struct job *j, uint32_t uid, uint64_t version,
                       const struct source_plan *p, uint32_t *ret_added, uint64_t *ret_version,
                       sd_bus_error *error) {
        struct spec_edit edits[SPEC_EDITS_MAX];
        size_t n = 0;
        int r = change_check_version(j, version, error);

        if (r < 0)
                return r;
        for (size_t i = 0; i < p->n; i++) {
                if (!p->wishes[i].add)
                        continue;
                if (n == SPEC_EDITS_MAX)
                        return sd_bus_error_setf(error, ERROR_REFUSED, "At most %u sources are added at once",
                                                 SPEC_EDITS_MAX);
                edits[n++] = (struct spec_edit){ .kind = EDIT_ADD_SOURCE, .value = p->wishes[i].add };
        }
        *ret_added = (uint32_t)n;
        *ret_version = j->change.version;
        return n == 0 ? 0 : change_job(m, j, uid, version, edits, n, NULL, ret_version, error);
}

/* Those that go, and what weights the others have. */
static int steer_planned(struct manager *m, struct job *j, const struct source_plan *p, uint32_t *ret_removed,
                         sd_bus_error *error) {
        for (size_t i = 0; i < p->n; i++) {
                const struct source_wish *w = p->wishes + i;
                struct feeding_steering how = { .weight = w->weight };
                int r;

                if (w->remove) {
                        how.state = FEEDING_SOURCE_REMOVED;
                        (*ret_removed)++;
                } else if (w->weight == 0)
                        continue;
                r = feeding_steer(m, j, w->name, &how);
                if (r < 0)
                        return steer_refused(j, w->name, r, error);
        }
        return 0;
}

int api_replace_sources(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        _cleanup_(source_plan_done) struct source_plan plan = {};
        struct job *j = api_job_or_error(userdata, call, error);
        uint32_t added = 0, removed = 0;
        sd_bus_message *reply = NULL;
        uint64_t version, now = 0;
        const char *text;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read(call, "ts", &version, &text);
        if (r < 0)
                return r;
        if (!j->data || !j->data->data || j->data->finished)
                return steer_refused(j, "", -ENODATA, error);
        r = plan_replacement(j, text, &plan, error);
        r = r < 0 ? r : add_planned(userdata, j, uid, version, &plan, &added, &now, error);
        r = r < 0 ? r : steer_planned(userdata, j, &plan, &removed, error);
        r = r < 0 ? r : sd_bus_message_new_method_return(call, &reply);
        r = r < 0 ? r : sd_bus_message_append(reply, "tuu", now, added, removed);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        return manager_reply_later(userdata, reply);
}
