/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs, roles, executors in memory. Invariant: role.n_state[] always is the count of its executors by state.
 */
#include "masterd/job/job.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/base/utf8.h"
#include "masterd/job/array.h"
#include "masterd/job/peers.h"
#include "masterd/job/reshape.h"
#include "masterd/job/series.h"
#include "masterd/node/node.h"

int text_set(char **field, const char *format, ...) {
        char *text = NULL;
        va_list ap;

        if (format) {
                va_start(ap, format);
                if (vasprintf(&text, format, ap) < 0)
                        text = NULL;
                va_end(ap);
                if (!text)
                        return -ENOMEM;
                /* What was cut to fit somewhere may end within a character; cleaning never makes it longer.
                 */
                (void)utf8_clean(text, strlen(text), text, strlen(text) + 1);
        }
        free(*field);
        *field = text;
        return 0;
}

struct executor *executor_new(struct job *j, uint32_t role, uint32_t index, uint32_t rank) {
        struct executor *e = calloc(1, sizeof(*e));

        if (!e)
                return NULL;
        e->job = j;
        e->role = role;
        e->index = index;
        e->rank = rank;
        e->end.memory_peak = e->end.cpu_usec = e->end.io_read = e->end.io_write = UINT64_MAX;
        return e;
}

void executor_free(struct executor *e) {
        if (!e)
                return;
        free(e->place.ports);
        free(e->place.cpus);
        free(e->place.amounts);
        free(e->reason);
        free(e->watch.telemetry);
        sd_event_source_disable_unref(e->restart.timer);
        sd_event_source_disable_unref(e->orders.start_timer);
        free(e);
}

struct scope *scope_new(struct job *j) {
        struct scope *s = calloc(1, sizeof(*s));

        if (s)
                s->job = j;
        return s;
}

void scope_free(struct scope *s) {
        if (!s)
                return;
        sd_event_source_disable_unref(s->timer);
        free(s);
}

int job_new(uint32_t number, sd_id128_t uid, uint32_t owner, struct job_spec *spec, struct job **ret) {
        _cleanup_(job_free_p) struct job *j = calloc(1, sizeof(*j));
        uint32_t rank = 0;

        if (!j) {
                spec_free(spec);
                return -ENOMEM;
        }
        j->spec = spec;
        j->number = number;
        j->uid = uid;
        j->owner = owner;
        j->attempt = 1;
        j->change.version = 1;
        j->scope.job = j;
        j->n_executors = spec_executors(spec);
        j->name = strdup(spec->name);
        j->given.cwd = strdup(spec->cwd ? spec->cwd : "");
        j->roles = calloc(spec->n_roles, sizeof(*j->roles));
        j->executors = calloc(j->n_executors, sizeof(*j->executors));
        if (!j->name || !j->given.cwd || !j->roles || !j->executors)
                return -ENOMEM;
        for (uint32_t i = 0; i < spec->n_roles; i++) {
                struct role *r = j->roles + i;
                r->spec = spec->roles + i;
                r->scope = scope_new(j);
                if (!r->scope)
                        return -ENOMEM;
                r->executors = j->executors + rank;
                r->n_state[EXECUTOR_PENDING] = r->spec->num;
                for (uint32_t k = 0; k < r->spec->num; k++, rank++) {
                        j->executors[rank] = executor_new(j, i, k, rank);
                        if (!j->executors[rank])
                                return -ENOMEM;
                }
        }
        *ret = TAKE_PTR(j);
        return 0;
}

static void forget_private(struct job_given *g) {
        for (size_t i = 0; i < g->n_secrets; i++) {
                free(g->secrets[i].name);
                explicit_bzero(g->secrets[i].data, g->secrets[i].size);
                free(g->secrets[i].data);
        }
        free(g->secrets);
        strings_free(g->env);
        g->secrets = NULL;
        g->n_secrets = 0;
        g->env = NULL;
}

void job_forget_private(struct job *j) {
        forget_private(&j->given);
}

void job_given_done(struct job_given *g) {
        forget_private(g);
        free(g->cwd);
        *g = (struct job_given){};
}

struct job *job_free(struct job *j) {
        if (!j)
                return NULL;
        job_peers_drop(j);
        for (uint32_t i = 0; j->executors && i < j->n_executors; i++)
                executor_free(j->executors[i]);
        job_leaving_done(j);
        job_given_done(&j->given);
        for (size_t i = 0; j->roles && i < j->spec->n_roles; i++) {
                scope_free(j->roles[i].scope);
                series_free(j->roles[i].series);
        }
        sd_event_source_disable_unref(j->scope.timer);
        exclusions_done(&j->hosts.exclusions);
        strings_free(j->element.env);
        free(j->depend.after);
        free(j->usage);
        array_free(j->array);
        sd_event_source_disable_unref(j->depend.begin_timer);
        sd_event_source_disable_unref(j->slot.timer);
        sd_event_source_disable_unref(j->grace_timer);
        sd_event_source_disable_unref(j->requeue.timer);
        sd_event_source_disable_unref(j->slot.signal_timer);
        sd_event_source_disable_unref(j->queue.timer);
        sd_event_source_disable_unref(j->queue.within_timer);
        sd_event_source_disable_unref(j->rendezvous.timer);
        free(j->hosts.left);
        for (size_t i = 0; i < j->hosts.n_avoided; i++)
                free(j->hosts.avoided[i]);
        free(j->hosts.avoided);
        free(j->executors);
        free(j->roles);
        free(j->name);
        free(j->reason);
        free(j->first_error);
        free(j->warnings);
        spec_free(j->spec);
        free(j);
        return NULL;
}

struct executor *job_executor(struct job *j, const char *role, uint32_t index) {
        for (size_t i = 0; i < j->spec->n_roles; i++)
                if (strcmp(j->spec->roles[i].name, role) == 0)
                        return index < j->spec->roles[i].num ? j->roles[i].executors[index] : NULL;
        return NULL;
}

struct executor *job_attempt(struct job *j, const char *role, uint32_t index, uint32_t attempt) {
        struct executor *e = job_executor(j, role, index);

        if (e && e->attempt == attempt)
                return e;
        DL_FOREACH2 (j->leavers.list, e, leaver.next)
                if (e->index == index && e->attempt == attempt && strcmp(e->leaver.role->name, role) == 0)
                        return e;
        return NULL;
}

struct executor *job_behind(const struct job *j, const struct executor *e) {
        uint32_t rank = e ? e->rank + 1 : 0;

        if (e && e->leaver.leaves)
                return e->leaver.next;
        return rank < j->n_executors ? j->executors[rank] : j->leavers.list;
}

int job_transition(struct job *j, enum job_event event) {
        enum job_state next = job_next(j->state, event);

        if (next < 0)
                return log_full(LOG_ERR, -EPROTO, &(struct log_fields){ .job = j->number },
                                "Job %u: '%s' does not happen in state %s", j->number,
                                job_event_to_string(event), job_state_to_string(j->state));
        j->state = next;
        /* Starts come in bursts, and this is the end of one; what is asked for later is computed then. */
        if (next == JOB_RUNNING || next == JOB_STOPPING)
                job_peers_drop(j);
        return 0;
}

void executor_restore_state(struct executor *e, enum executor_state state) {
        struct role *r = e->job->roles + e->role;

        if (e->leaver.leaves) {
                e->state = state;
                return;
        }
        /* Into or out of a place. */
        if ((e->state == EXECUTOR_PENDING) != (state == EXECUTOR_PENDING))
                job_peers_drop(e->job);
        assert(r->n_state[e->state] > 0);
        r->n_state[e->state]--;
        e->state = state;
        r->n_state[e->state]++;
}

int executor_transition(struct executor *e, enum executor_event event) {
        enum executor_state next = executor_next(e->state, event);

        if (next < 0)
                return log_full(LOG_ERR, -EPROTO, &(struct log_fields){ .job = e->job->number },
                                "Job %u %s/%u: '%s' does not happen in state %s", e->job->number,
                                executor_role(e)->name, e->index, executor_event_to_string(event),
                                executor_state_to_string(e->state));
        executor_restore_state(e, next);
        return 0;
}

int executor_again(struct executor *e) {
        return executor_transition(e, EXECUTOR_EVENT_AGAIN);
}

uint32_t executor_next_attempt(const struct executor *e) {
        return (e->attempt > 0 ? e->attempt : e->job->leavers.attempt_base) + 1;
}

void executor_number(struct executor *e, uint32_t attempt) {
        if (e->attempt > 0 && !e->bounced && !e->leaver.leaves) {
                e->restart.n++;
                e->job->roles[e->role].restarts++;
        }
        e->attempt = attempt;
        e->bounced = false;
}

void executor_move(struct executor *e, struct node *node) {
        struct job *j = e->job;
        struct node **bigger;
        bool known = !e->node || e->node == node;

        for (size_t i = 0; !known && i < j->hosts.n_left; i++)
                known = j->hosts.left[i] == e->node;
        if (!known) {
                bigger = reallocarray(j->hosts.left, j->hosts.n_left + 1, sizeof(*bigger));
                if (bigger) { /* otherwise the node asks at its next registration */
                        j->hosts.left = bigger;
                        j->hosts.left[j->hosts.n_left++] = e->node;
                }
        }
        e->node = node;
}

/* NULL: it does not avoid it. */
static char **find_avoided(const struct job *j, const char *node) {
        for (size_t i = 0; i < j->hosts.n_avoided; i++)
                if (strcmp(j->hosts.avoided[i], node) == 0)
                        return j->hosts.avoided + i;
        return NULL;
}

bool job_avoids(const struct job *j, const char *node) {
        return find_avoided(j, node);
}

int job_avoid(struct job *j, const char *node) {
        char **bigger, *copy;

        if (job_avoids(j, node))
                return 0;
        bigger = reallocarray(j->hosts.avoided, j->hosts.n_avoided + 1, sizeof(*bigger));
        if (!bigger)
                return -ENOMEM;
        j->hosts.avoided = bigger;
        copy = strdup(node);
        if (!copy)
                return -ENOMEM;
        j->hosts.avoided[j->hosts.n_avoided++] = copy;
        return 0;
}

void job_stop_avoiding(struct job *j, const char *node) {
        char **avoided = find_avoided(j, node);

        if (!avoided)
                return;
        free(*avoided);
        *avoided = j->hosts.avoided[--j->hosts.n_avoided];
}

void job_forget_node(struct job *j, const struct node *node) {
        struct executor *e;

        JOB_FOREACH (j, e)
                if (e->node == node)
                        e->node = NULL;
        for (size_t i = 0; i < j->hosts.n_left; i++)
                if (j->hosts.left[i] == node)
                        j->hosts.left[i--] = j->hosts.left[--j->hosts.n_left];
}

void executor_set_gone(struct executor *e) {
        struct role *r = e->job->roles + e->role;

        if (e->gone)
                return;
        e->gone = true;
        if (e->leaver.leaves)
                return;
        if (e->end.fate == FATE_IGNORE)
                r->n_ignored++;
        else if (e->state == EXECUTOR_SUCCEEDED)
                r->n_succeeded++;
        else if (e->state == EXECUTOR_FAILED || e->state == EXECUTOR_LOST)
                r->n_failed++;
}

void executor_return(struct executor *e) {
        struct role *r = e->job->roles + e->role;

        if (!e->gone)
                return;
        e->gone = false;
        if (e->end.fate == FATE_IGNORE)
                r->n_ignored--;
        else if (e->state == EXECUTOR_SUCCEEDED)
                r->n_succeeded--;
        else if (e->state == EXECUTOR_FAILED || e->state == EXECUTOR_LOST)
                r->n_failed--;
}

struct scope *executor_scope(const struct executor *e) {
        if (e->leaver.leaves) /* it goes in any case */
                return NULL;
        switch (spec_restart_scope(e->job->spec, executor_role(e))) {
        case RESTART_SCOPE_ROLE:
                return e->job->roles[e->role].scope;
        case RESTART_SCOPE_JOB:
                return &e->job->scope;
        default:
                return NULL;
        }
}

uint32_t job_running(const struct job *j) {
        uint32_t n = 0;

        for (size_t i = 0; i < j->spec->n_roles; i++)
                n += j->roles[i].n_state[EXECUTOR_RUNNING];
        return n;
}

uint32_t job_active(const struct job *j) {
        uint32_t n = j->leavers.n;

        if (j->array)
                return array_active(j->array) + array_searcher_active(j->array);
        for (size_t i = 0; i < j->spec->n_roles; i++)
                for (enum executor_state s = EXECUTOR_PLACED; s <= EXECUTOR_STOPPING; s++)
                        n += j->roles[i].n_state[s];
        return n;
}

bool job_all_up(const struct job *j) {
        for (size_t i = 0; i < j->spec->n_roles; i++) {
                const struct role *r = j->roles + i;
                uint32_t up = r->n_state[EXECUTOR_RUNNING] + r->n_succeeded + r->n_failed + r->n_ignored;
                if (up < r->spec->min_num)
                        return false;
        }
        return true;
}

uint32_t job_exit_status(const struct job *j) {
        return j->state == JOB_KILLED && j->kill_status > 0 ? j->kill_status
                                                            : job_state_exit_status(j->state);
}

uint64_t job_grace(const struct job *j) {
        return j->kill_grace > 0 ? j->kill_grace - 1 : j->spec->stop_grace_usec;
}

uint64_t executor_grace(const struct executor *e) {
        uint64_t grace = job_grace(e->job);

        return e->job->state == JOB_STOPPING || !e->node ? grace : holds_grace(e->node->holds, grace);
}
