/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to verdicts that stand. Invariants: a verdict that people were told of is an episode of its
 * job and a row of the store; whatever is done about it is recorded there first. */
#include "masterd/watch/healing-parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/watch/watch-parts.h"

#define JUDGE_EVERY (2 * USEC_PER_SEC)
/* The kinds of the configuration are those of the engine. */
_Static_assert((int)_HEALTH_KIND_MAX == (int)_VERDICT_MAX &&
                       (int)HEALTH_CRASH_LOOP == (int)VERDICT_CRASH_LOOP &&
                       (int)HEALTH_OOM == (int)VERDICT_OOM && (int)HEALTH_LEAKING == (int)VERDICT_LEAKING,
               "one list of verdicts");

struct executor *healing_executor(const struct job *j, const struct episode *p) {
        uint32_t role = p->role == EPISODE_ALL ? p->suspect_role : p->role,
                 index = p->role == EPISODE_ALL ? p->suspect : p->index;

        if (role == EPISODE_ALL || role >= j->spec->n_roles || index >= j->roles[role].spec->num)
                return NULL;
        return j->roles[role].executors[index];
}

struct episode *episode_find(const struct job *j, uint32_t role, uint32_t index, enum verdict_kind k) {
        struct episode *p;

        if (!j->health)
                return NULL;
        DL_FOREACH (j->health->episodes, p)
                if (p->kind == k && p->role == role && (role == EPISODE_ALL || p->index == index))
                        return p;
        return NULL;
}

static struct verdict_record record_of(const struct job *j, const struct episode *p) {
        return (struct verdict_record){ .job = j->number,
                                        .role = p->role == EPISODE_ALL ? "" : j->spec->roles[p->role].name,
                                        .index = p->index,
                                        .kind = p->kind,
                                        .attempt = p->attempt,
                                        .since_real = p->since_real,
                                        .begun_real = p->begun_real,
                                        .action = p->action,
                                        .acted_real = p->acted_real,
                                        .text = p->text ?: "" };
}

void episode_record(struct manager *m, const struct job *j, const struct episode *p) {
        struct verdict_record r = record_of(j, p);

        store_put_verdict(m->store, &r);
        manager_touch(m);
}

static void episode_free(struct job *j, struct episode *p) {
        looking_abandon(p);
        DL_DELETE(j->health->episodes, p);
        free(p->text);
        free(p);
}

static void episode_drop(struct manager *m, struct job *j, struct episode *p) {
        struct verdict_record r = record_of(j, p);

        store_delete_verdict(m->store, &r);
        manager_touch(m);
        episode_free(j, p);
}

static struct job_health *health_of(struct job *j) {
        struct job_health *h = j->health;

        if (h)
                return h;
        h = calloc(1, sizeof(*h));
        if (!h)
                return NULL;
        if (health_gang_new(&h->gang) < 0) {
                free(h);
                return NULL;
        }
        return j->health = h;
}

void healing_forget(struct job *j) {
        if (!j->health)
                return;
        while (j->health->episodes)
                episode_free(j, j->health->episodes);
        health_gang_free(j->health->gang);
        free(j->health);
        j->health = NULL;
}

/* ---- rules */
static const struct health_rule_spec *rule_of(const struct job *j, uint32_t role, enum verdict_kind k,
                                              bool ofrole) {
        return (ofrole ? j->spec->roles[role].health.of : j->spec->health.of) + k;
}

enum health_action healing_action(const struct manager *m, const struct job *j, uint32_t role,
                                  enum verdict_kind k) {
        if (role < j->spec->n_roles && rule_of(j, role, k, true)->action < _HEALTH_ACTION_MAX)
                return (enum health_action)rule_of(j, role, k, true)->action;
        if (rule_of(j, role, k, false)->action < _HEALTH_ACTION_MAX)
                return (enum health_action)rule_of(j, role, k, false)->action;
        return (enum health_action)m->conf.health.actions[k];
}

static struct health_rule resolve(const struct manager *m, const struct job *j, uint32_t role,
                                  enum verdict_kind k) {
        struct health_rule rule = m->conf.health.rules.of[k];

        for (int i = 0; i < 2; i++) { /* the job's, and over it the role's */
                const struct health_rule_spec *s = rule_of(j, role, k, i == 1);

                rule.after_usec = s->after_usec ?: rule.after_usec;
                rule.share_milli = s->share ? s->share * 10 : rule.share_milli;
                rule.count = s->count ?: rule.count;
                rule.within_usec = s->within_usec ?: rule.within_usec;
        }
        rule.off = healing_action(m, j, role, k) == HEALTH_OFF;
        return rule;
}

static void rules_refresh(const struct manager *m, struct job *j) {
        struct job_health *h = j->health;

        if (h->version == j->change.version && h->spec == j->spec)
                return;
        for (uint32_t i = 0; i < j->spec->n_roles; i++) {
                struct health_rules rules;

                for (size_t k = 0; k < _VERDICT_MAX; k++)
                        rules.of[k] = resolve(m, j, i, (enum verdict_kind)k);
                if (health_set_rules(h->gang, i, &rules) < 0)
                        return;
        }
        h->version = j->change.version;
        h->spec = j->spec;
}

bool healing_counts(const struct manager *m, const struct executor *e, enum verdict_kind k) {
        return !e->leaver.leaves && e->state == EXECUTOR_RUNNING &&
               healing_action(m, e->job, e->role, k) != HEALTH_OFF;
}

/* ---- samples */
void healing_observe(struct manager *m, struct executor *e, uint64_t now_usec,
                     const uint64_t values[static _TELEMETRY_MAX]) {
        struct job *j = e->job;
        struct job_health *h;

        if (j->array || e->leaver.leaves || e->state != EXECUTOR_RUNNING)
                return;
        h = health_of(j);
        if (!h)
                return;
        rules_refresh(m, j);
        if (e->watch.judged != e->attempt) {
                struct health_facts facts = { .gpus = executor_role(e)->gpus,
                                              .cpu_milli = executor_role(e)->cpu_milli,
                                              .memory = executor_memory(e) };

                if (health_join(h->gang, e->role, e->index, now_usec, &facts) < 0)
                        return;
                e->watch.judged = e->attempt;
        }
        /* It waits because nothing is left to give, or nothing is there yet. */
        health_dry(h->gang, e->role, e->index, j->data && feeding_idle(e));
        health_observe(h->gang, e->role, e->index, now_usec, values);
}

/* ---- verdicts */
/* What the engines say is carried out when all of them have spoken: it may end jobs. */
struct judging {
        uint32_t job; /* that is being judged */
        struct found {
                uint32_t job;
                struct health_verdict verdict;
        } * found;
        size_t n, allocated;
};

static void on_verdict(const struct health_verdict *v, void *userdata) {
        struct judging *g = userdata;

        if (g->n == g->allocated) {
                size_t more = MAX(2 * g->allocated, (size_t)16);
                struct found *found = reallocarray(g->found, more, sizeof(*found));

                if (!found)
                        return (void)log_oom();
                g->found = found;
                g->allocated = more;
        }
        g->found[g->n++] = (struct found){ g->job, *v };
}

static uint64_t boot_to_real(uint64_t boot) {
        return usec_sub(now_real(), usec_sub(now_boot(), boot));
}

/* "on n2", "(worker/2 on n3)": where, for the sentence. */
static void tell_begin(struct manager *m, struct job *j, const struct episode *p) {
        const struct executor *e = healing_executor(j, p);
        const char *kind = verdict_kind_to_string(p->kind);

        if (p->role != EPISODE_ALL)
                record_event(m, j, kind, e, "on %s: %s", e && e->node ? e->node->name : "?", p->text);
        else if (e)
                record_event(m, j, kind, e, "%s (%s/%" PRIu32 " on %s)", p->text, executor_role(e)->name,
                             e->index, e->node ? e->node->name : "?");
        else
                record_event(m, j, kind, NULL, "%s", p->text);
}

static void begin(struct manager *m, struct job *j, const struct health_verdict *v, uint64_t since_real) {
        uint32_t role = v->gang ? EPISODE_ALL : v->role, index = v->gang ? 0 : v->index;
        struct episode *p = episode_find(j, role, index, v->kind);
        const struct executor *e;
        bool fresh = !p;

        if (!p) {
                p = calloc(1, sizeof(*p));
                if (!p)
                        return (void)log_oom();
                *p = (struct episode){ .kind = v->kind,
                                       .role = role,
                                       .index = index,
                                       .since_real = since_real,
                                       .begun_real = now_real() };
                DL_APPEND(j->health->episodes, p);
        }
        p->suspect_role = v->gang && !v->suspect ? EPISODE_ALL : v->role;
        p->suspect = v->index;
        e = v->gang ? NULL : healing_executor(j, p);
        p->attempt = v->gang ? j->attempt : e ? e->attempt : 0;
        p->action = healing_action(m, j, v->gang && !v->suspect ? 0 : v->role, v->kind);
        p->recalled_boot = 0;
        memcpy(p->numbers, v->numbers, sizeof(p->numbers));
        p->n_numbers = v->n_numbers;
        if (fresh) {
                if (text_set(&p->text, "%s", v->text) < 0)
                        (void)log_oom();
                episode_record(m, j, p);
                tell_begin(m, j, p);
        }
        if (p->kind == VERDICT_HUNG)
                healing_look(m, j, p);
        else
                healing_act(m, j, p);
        notice_job_changed(m, j);
}

static void end(struct manager *m, struct job *j, struct episode *p) {
        char took[FORMAT_DURATION_MAX];

        record_event(m, j, "recovered", p->role == EPISODE_ALL ? NULL : healing_executor(j, p),
                     "no longer %s, after %s", verdict_kind_to_string(p->kind),
                     format_duration(usec_sub(now_real(), p->since_real) / USEC_PER_SEC * USEC_PER_SEC, took,
                                     sizeof(took)));
        episode_drop(m, j, p);
        notice_job_changed(m, j);
}

static void carry_out(struct manager *m, const struct found *f) {
        const struct health_verdict *v = &f->verdict;
        struct job *j = manager_job(m, f->job);
        struct episode *p;

        if (!j || !j->health)
                return;
        if (v->begins) {
                begin(m, j, v, boot_to_real(v->since_usec));
                return;
        }
        p = episode_find(j, v->gang ? EPISODE_ALL : v->role, v->index, v->kind);
        if (p)
                end(m, j, p);
}

/* Some that it cannot do without wait for a place, or start: who waits for them is not sick. */
static bool is_complete(const struct job *j) {
        for (size_t i = 0; i < j->spec->n_roles; i++) {
                const struct role *r = j->roles + i;
                uint32_t missing = r->n_state[EXECUTOR_PENDING] + r->n_state[EXECUTOR_PLACED] +
                                   r->n_state[EXECUTOR_STARTING];

                if (missing > 0 && r->spec->num - MIN(missing, r->spec->num) < r->spec->min_num)
                        return false;
        }
        return true;
}

/* What a master before this one found, and this one does not find again in all the time that it takes. */
static void review_recalled(struct manager *m, struct job *j, uint64_t now) {
        struct episode *p, *next;

        DL_FOREACH_SAFE (j->health->episodes, p, next) {
                uint32_t role = p->role == EPISODE_ALL ? 0 : p->role;

                if (p->recalled_boot > 0 && p->kind != VERDICT_CRASH_LOOP &&
                    usec_sub(now, p->recalled_boot) >
                            2 * resolve(m, j, role, p->kind).after_usec + 60 * USEC_PER_SEC)
                        end(m, j, p);
        }
}

/* ---- crash loops, which outlive attempts */
static bool crashes(struct manager *m, const struct executor *e, struct health_verdict *v) {
        struct health_rule rule = resolve(m, e->job, e->role, VERDICT_CRASH_LOOP);
        const struct scope *scope = executor_scope(e);
        const struct failover_history *h = scope ? &scope->history : &e->restart.history;

        return health_crashes(&rule, h->failures, h->n_at, h->n_failures, now_boot(), v);
}

void healing_failed(struct manager *m, struct executor *e) {
        struct health_verdict v;

        if (e->leaver.leaves || e->job->array || e->job->state == JOB_STOPPING ||
            job_state_ended(e->job->state) || !crashes(m, e, &v) || !health_of(e->job) ||
            episode_find(e->job, e->role, e->index, VERDICT_CRASH_LOOP))
                return;
        v.role = e->role;
        v.index = e->index;
        begin(m, e->job, &v, boot_to_real(v.since_usec));
}

static void review_crashes(struct manager *m, struct job *j) {
        struct health_verdict unused;
        struct episode *p, *next;

        DL_FOREACH_SAFE (j->health->episodes, p, next) {
                struct executor *e = p->kind == VERDICT_CRASH_LOOP ? healing_executor(j, p) : NULL;

                if (e && e->state == EXECUTOR_RUNNING && !crashes(m, e, &unused))
                        end(m, j, p);
        }
}

static void judge(struct manager *m, struct job *j, struct judging *g, uint64_t now) {
        rules_refresh(m, j);
        if (j->state != JOB_RUNNING || !is_complete(j)) {
                if (!j->health->paused)
                        health_pause(j->health->gang);
                j->health->paused = true;
        } else
                j->health->paused = false;
        g->job = j->number;
        health_judge(j->health->gang, now, on_verdict, g);
        review_crashes(m, j);
        if (j->health->paused)
                return;
        review_recalled(m, j, now);
}

void healing_judge(struct manager *m, uint64_t now_usec) {
        struct judging g = {};
        struct job *j, *next;

        HASH_ITER (hh, m->jobs.by_number, j, next)
                if (j->health && !job_state_ended(j->state))
                        judge(m, j, &g, now_usec);
        healing_peek(m, now_usec);
        for (size_t i = 0; i < g.n; i++)
                carry_out(m, g.found + i);
        free(g.found);
}

static int on_time(sd_event_source *s, uint64_t usec, void *userdata) {
        healing_judge(userdata, now_boot());
        (void)sd_event_source_set_time_relative(s, JUDGE_EVERY);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

int healing_start(struct manager *m) {
        return sd_event_add_time_relative(m->event, &m->watch->health_timer, CLOCK_BOOTTIME, JUDGE_EVERY,
                                          100 * USEC_PER_MSEC, on_time, m);
}

void healing_stop(struct manager *m) {
        m->watch->health_timer = sd_event_source_disable_unref(m->watch->health_timer);
}

/* ---- ends */
void healing_ended(struct manager *m, struct executor *e) {
        struct job *j = e->job;
        struct episode *p, *next;

        e->watch.judged = 0;
        if (!j->health || e->leaver.leaves)
                return;
        health_leave(j->health->gang, e->role, e->index);
        DL_FOREACH_SAFE (j->health->episodes, p, next)
                if (p->role == e->role && p->index == e->index && p->kind != VERDICT_CRASH_LOOP)
                        episode_drop(m, j, p);
}

void healing_job_ended(struct manager *m, struct job *j) {
        while (j->health && j->health->episodes)
                episode_drop(m, j, j->health->episodes);
        healing_forget(j);
}

/* ---- from the store */
static int load(void *userdata, const struct verdict_record *r) {
        struct manager *m = userdata;
        struct job *j = manager_job(m, r->job);
        const struct executor *e = j && *r->role ? job_executor(j, r->role, r->index) : NULL;
        struct episode *p;

        /* Of an attempt that is over since, which was in the same batch as the end; or of a kind that is
         * none. */
        if (!j || r->kind >= _VERDICT_MAX || (*r->role && !e) ||
            (r->kind != VERDICT_CRASH_LOOP && r->attempt != (e ? e->attempt : j->attempt)))
                return 0;
        p = calloc(1, sizeof(*p));
        if (!p || !health_of(j)) {
                free(p);
                return -ENOMEM;
        }
        *p = (struct episode){ .kind = (enum verdict_kind)r->kind,
                               .role = e ? e->role : EPISODE_ALL,
                               .index = e ? e->index : 0,
                               .suspect_role = e ? e->role : EPISODE_ALL,
                               .suspect = e ? e->index : 0,
                               .attempt = r->attempt,
                               .since_real = r->since_real,
                               .begun_real = r->begun_real,
                               .acted_real = r->acted_real,
                               .action = (enum health_action)MIN(r->action, (uint32_t)HEALTH_STOP),
                               .recalled_boot = now_boot() };
        DL_APPEND(j->health->episodes, p);
        return text_set(&p->text, "%s", r->text);
}

int healing_load(struct manager *m) {
        return store_load_verdicts(m->store, load, m);
}
