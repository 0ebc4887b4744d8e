/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: GetStatus and ListExecutors. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/unitname.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/looking.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/job/array.h"
#include "masterd/queue/start-within.h"
#include "masterd/relay/logs.h"
#include "masterd/watch/telemetry.h"

/* ---- GetStatus ---- */

/* Hosts that it is kept off, until when; UINT64_MAX: until somebody says otherwise. */
static int append_avoids(sd_bus_message *reply, const struct job *j) {
        const struct exclusions *x = &j->hosts.exclusions;
        uint64_t now = now_real();
        int r;

        if (job_state_ended(j->state))
                return 0;
        r = reply_open_array(reply, "avoids", "a(st)");
        for (size_t i = 0; r >= 0 && i < j->hosts.n_avoided; i++)
                r = sd_bus_message_append(reply, "(st)", j->hosts.avoided[i], UINT64_MAX);
        for (size_t i = 0; r >= 0 && i < x->n; i++)
                if (x->hosts[i].until_real > now && !job_avoids(j, x->hosts[i].node))
                        r = sd_bus_message_append(reply, "(st)", x->hosts[i].node, x->hosts[i].until_real);
        return r < 0 ? r : reply_close_array(reply);
}

static int append_placing(sd_bus_message *reply, const struct job *j) {
        uint64_t fails = start_within_real(j);
        int r = fails > 0 ? sd_bus_message_append(reply, "{sv}", "failsAt", "t", fails) : 0;

        return r < 0 ? r : append_avoids(reply, j);
}

static int append_roles(sd_bus_message *reply, const struct job *j) {
        int r = reply_open_array(reply, "roles", "a(suuuuuuu)");

        if (r >= 0 && j->array) { /* whoever shows roles shows its elements */
                const uint32_t *n = j->array->n_state;
                r = sd_bus_message_append(reply, "(suuuuuuu)", "elements", j->array->range.n, n[ELEMENT_RUNS],
                                          n[ELEMENT_UNMADE] + n[ELEMENT_WAITS] + n[ELEMENT_PARKED],
                                          n[ELEMENT_SUCCEEDED], n[ELEMENT_FAILED], n[ELEMENT_KILLED], 0u);
        }
        for (size_t i = 0; r >= 0 && !j->array && i < j->spec->n_roles; i++) {
                const struct role *role = j->roles + i;
                const uint32_t *n = role->n_state;
                r = sd_bus_message_append(reply, "(suuuuuuu)", role->spec->name, role->spec->num,
                                          n[EXECUTOR_RUNNING],
                                          n[EXECUTOR_PENDING] + n[EXECUTOR_PLACED] + n[EXECUTOR_STARTING],
                                          n[EXECUTOR_SUCCEEDED], n[EXECUTOR_FAILED],
                                          n[EXECUTOR_KILLED] + n[EXECUTOR_STOPPING], n[EXECUTOR_LOST]);
        }
        return r < 0 ? r : reply_close_array(reply);
}

static int append_source(sd_bus_message *reply, const struct feeding_source_view *v, const char *time_point) {
        int r = sd_bus_message_open_container(reply, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "name", "s", v->name, "kind",
                                          "s", v->kind, "files", "t", v->files, "tasks", "t", v->tasks,
                                          "done", "t", v->done, "failed", "t", v->failed, "leased", "t",
                                          v->leased);
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "bytes", "t", v->bytes,
                                          "acked", "t", v->acked, "records", "t", v->records, "rate", "d",
                                          v->rate, "recordRate", "d", v->record_rate, "scanned", "b",
                                          (int)v->scanned, "waitingFor", "s", v->waiting_for);
        if (*time_point)
                r = r < 0 ? r : sd_bus_message_append(reply, "{sv}", "timePoint", "s", time_point);
        if (v->steering.weight > 0)
                r = r < 0 ? r : sd_bus_message_append(reply, "{sv}", "weight", "u", v->steering.weight);
        if (v->steering.paused)
                r = r < 0 ? r : sd_bus_message_append(reply, "{sv}", "paused", "b", true);
        if (v->steering.ended)
                r = r < 0 ? r : sd_bus_message_append(reply, "{sv}", "ended", "b", true);
        if (v->steering.removed)
                r = r < 0 ? r : sd_bus_message_append(reply, "{sv}", "removed", "b", true);
        if (r >= 0 && v->eta_usec != UINT64_MAX)
                r = sd_bus_message_append(reply, "{sv}", "eta", "t", v->eta_usec);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_sources(sd_bus_message *reply, struct job *j) {
        _cleanup_free_ uint64_t *at = feeding_time_points(j);
        struct feeding_source_view view;
        char time_point[TIME_POINT_MAX] = "";
        int r = reply_open_array(reply, "sources", "aa{sv}");

        for (uint32_t i = 0; r >= 0 && feeding_source_view(j, i, &view) >= 0; i++)
                r = append_source(reply, &view, at ? feeding_time_point(j, i, at[i], time_point) : "");
        return r < 0 ? r : reply_close_array(reply);
}

static int append_data(sd_bus_message *reply, struct job *j) {
        struct data_totals n;
        int r;

        if (j->spec->lockstep != LOCKSTEP_OFF)
                return sd_bus_message_append(reply, "{sv}", "lockstep", "s",
                                             lockstep_to_string((enum lockstep)j->spec->lockstep));
        if (feeding_totals(j, &n) < 0)
                return 0;
        r = reply_open_array(reply, "data", "a{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}", "tasks", "t", n.tasks, "done", "t",
                                          n.done + n.skipped, "failed", "t", n.failed, "leased", "t",
                                          n.leased, "bytes", "t", n.bytes);
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}", "read", "t", n.read, "acked", "t",
                                          n.acked, "records", "t", n.records, "scanned", "b",
                                          (int)feeding_scanned_all(j), "waiting", "u", feeding_waiting(j));
        if (r >= 0)
                r = append_sources(reply, j);
        return r < 0 ? r : reply_close_array(reply);
}

/* Nothing where there is none. */
static int append_words(sd_bus_message *reply, const char *key, const char *text, const char *separators) {
        int r;

        if (!text || !*text)
                return 0;
        r = reply_open_key(reply, key, "as");
        r = r < 0 ? r : reply_append_words(reply, text, separators);
        return r < 0 ? r : reply_close_key(reply);
}

int api_get_status(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct job *j = api_job_or_error(userdata, call, error);
        sd_bus_message *reply = NULL;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}", "reason", "s", j->reason ? j->reason : "",
                                          "firstError", "s", j->first_error ? j->first_error : "");
        if (r >= 0)
                r = api_append_visible(reply, userdata, j);
        r = r < 0 || j->parent == 0 ? r
                                    : sd_bus_message_append(reply, "{sv}{sv}", "parent", "u", j->parent,
                                                            "withParent", "b", (int)j->with_parent);
        if (r >= 0 && logs_awaited(userdata, j))
                r = sd_bus_message_append(reply, "{sv}", "errorComing", "b", 1);
        r = r < 0 ? r : append_placing(reply, j);
        r = r < 0 ? r : append_roles(reply, j);
        if (r >= 0)
                r = append_data(reply, j);
        if (r >= 0)
                r = api_append_array(reply, userdata, j);
        r = r < 0 ? r : api_append_search(reply, j);
        if (r >= 0)
                r = api_append_verdicts(reply, userdata, j);
        if (r >= 0)
                r = reply_open_key(reply, "cwd", "ay");
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', j->given.cwd, strlen(j->given.cwd));
        if (r >= 0)
                r = reply_close_key(reply);
        r = r < 0 ? r : append_words(reply, "warnings", j->warnings, "\n");
        return reply_list_send(reply, r);
}

/* ---- ListExecutors ---- */

#define EXECUTOR_ROW "suusssutta{sv}"

static int append_ports(sd_bus_message *reply, const struct executor_record *r) {
        int k = reply_open_array(reply, "ports", "au");

        for (uint32_t i = 0; k >= 0 && i < r->n_ports; i++)
                k = sd_bus_message_append(reply, "u", (uint32_t)r->ports[i]);
        return k < 0 ? k : reply_close_array(reply);
}

/* e: the attempt is in memory. */
static int append_executor(sd_bus_message *reply, const struct executor_record *r, uint32_t restarts,
                           const struct executor *e) {
        char unit[UNIT_NAME_MAX] = "";
        int k = sd_bus_message_open_container(reply, 'r', EXECUTOR_ROW);

        if (r->attempt > 0)
                executor_unit_name(r->job, r->role, r->index, r->attempt, unit);
        if (k >= 0)
                k = sd_bus_message_append(reply, "suusssutt", r->role, r->index, r->attempt,
                                          executor_state_to_string((enum executor_state)r->state),
                                          r->node ? r->node : "", unit, r->rank, r->started_real,
                                          r->ended_real);
        if (k >= 0)
                k = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (k >= 0)
                k = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}", "result", "s",
                                          r->result ? r->result : "", "status", "i", r->status, "reason", "s",
                                          r->reason ? r->reason : "", "restarts", "u", restarts);
        if (k >= 0 && r->placed_real > 0)
                k = sd_bus_message_append(reply, "{sv}", "placed", "t", r->placed_real);
        if (k >= 0 && r->memory_peak != UINT64_MAX)
                k = sd_bus_message_append(reply, "{sv}", "memoryPeak", "t", r->memory_peak);
        if (k >= 0 && e && e->watch.telemetry &&
            e->watch.telemetry->latest.now[TELEMETRY_MEMORY_BYTES] != TELEMETRY_UNKNOWN)
                k = sd_bus_message_append(reply, "{sv}", "memory", "t",
                                          e->watch.telemetry->latest.now[TELEMETRY_MEMORY_BYTES]);
        if (k >= 0 && r->cpu_usec != UINT64_MAX)
                k = sd_bus_message_append(reply, "{sv}", "cpu", "t", r->cpu_usec);
        if (k >= 0 && r->io_read != UINT64_MAX)
                k = sd_bus_message_append(reply, "{sv}{sv}", "readBytes", "t", r->io_read, "writeBytes", "t",
                                          r->io_write);
        if (k >= 0 && r->n_ports > 0)
                k = append_ports(reply, r);
        k = k < 0 ? k : append_words(reply, "gpus", r->gpus, " ");
        if (k >= 0 && e && e->job->data && executor_role(e)->input_policy == INPUT_STREAMING)
                k = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}", "dataTasks", "u", e->feed.n_leases,
                                          "dataWait", "t", e->feed.data_wait_usec, "trainerWait", "t",
                                          e->feed.trainer_wait_usec, "dataIdle", "b", (int)feeding_idle(e));
        if (k >= 0)
                k = sd_bus_message_close_container(reply);
        return k < 0 ? k : sd_bus_message_close_container(reply);
}

static void on_executors(void *userdata, int error, const struct executor_record *list, size_t n) {
        sd_bus_message *call = userdata, *reply = NULL;
        int r = error < 0 ? error : reply_list_new(call, EXECUTOR_ROW, &reply);

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = append_executor(reply, list + i, list[i].attempt - 1, NULL);
        reply_list_answer(call, reply, r);
}

int api_list_executors(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        sd_bus_message *reply = NULL;
        struct executor *e;
        int all, r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read_basic(call, 'b', &all);
        if (r < 0)
                return r;
        if (all) {
                r = store_query_executors(m->store, j->number, true, 0, on_executors,
                                          sd_bus_message_ref(call));
                if (r < 0)
                        sd_bus_message_unref(call);
                return r;
        }
        r = reply_list_new(call, EXECUTOR_ROW, &reply);
        JOB_FOREACH (j, e) { /* also those that are leaving, until they have ended */
                if (r < 0 || j->array)
                        break;
                struct executor_record record = record_of_executor(e);
                _cleanup_free_ char *gpus = executor_gpus(e);
                if (!gpus) {
                        r = -ENOMEM;
                        break;
                }
                record.gpus = gpus;
                r = append_executor(reply, &record, e->restart.n, e);
        }
        return reply_list_send(reply, r);
}
