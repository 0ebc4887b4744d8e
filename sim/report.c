/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a replay. They are made as JSON, and text is that, laid out. */
#include "sim/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/base/cleanup.h"
#include "lib/base/format.h"

void recorder_segment(void *userdata, size_t job, const struct sched_hold *hold, uint64_t from, uint64_t to) {
        struct recorder *r = userdata;
        struct segment *bigger;

        if (from == to || r->error < 0)
                return;
        if (r->n == r->allocated) {
                size_t m = r->n ? r->n * 2 : 256;
                bigger = reallocarray(r->list, m, sizeof(*bigger));
                if (!bigger) {
                        r->error = -ENOMEM;
                        return;
                }
                r->list = bigger;
                r->allocated = m;
        }
        r->list[r->n++] = (struct segment){ .job = job,
                                            .host = hold->slot,
                                            .cpu_milli = hold->cpu_milli,
                                            .gpus = (uint32_t)__builtin_popcountll(hold->gpus),
                                            .from = from,
                                            .to = to };
}

/* The larger part of the cluster's CPUs and GPUs that an executor has. */
static double part_of(const struct world *w, const struct segment *s) {
        double cpu = w->all.cpu_milli ? (double)s->cpu_milli / (double)w->all.cpu_milli : 0,
               gpus = w->all.gpus ? (double)s->gpus / (double)w->all.gpus : 0;

        return MAX(cpu, gpus);
}

static int compare_u64(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

/* Rounded, so that the last digit of a sum does not depend on the order of its parts. */
static json_t *rounded(double v) {
        return json_real((double)(int64_t)(v * 1000 + (v < 0 ? -0.5 : 0.5)) / 1000);
}

static json_t *percentile(const uint64_t *sorted, size_t n, size_t percent) {
        uint64_t usec = sorted[(n - 1) * percent / 100];

        return rounded((double)usec / 1e6);
}

static json_t *wait_numbers(uint64_t *waits, size_t n) {
        double sum = 0;

        if (n == 0)
                return json_object();
        qsort(waits, n, sizeof(*waits), compare_u64);
        for (size_t i = 0; i < n; i++)
                sum += (double)waits[i] / 1e6;
        return json_pack("{s:o,s:o,s:o,s:o}", "mean", rounded(sum / (double)n), "p50",
                         percentile(waits, n, 50), "p95", percentile(waits, n, 95), "max",
                         percentile(waits, n, 100));
}

/* Those of a pool, of a user, or of all (NULL). */
struct group {
        const char *name;
        uint32_t pool, user; /* UINT32_MAX: any */
        double usage;        /* of cluster time */
};

static bool in_group(const struct group *g, const struct world_job *j) {
        return (g->pool == UINT32_MAX || g->pool == j->pool) && (g->user == UINT32_MAX || g->user == j->user);
}

static json_t *group_numbers(const struct world *w, const struct group *g, double all) {
        uint64_t *waits = calloc(w->n_jobs + 1, sizeof(*waits));
        size_t n = 0, done = 0;
        json_t *o;

        if (!waits)
                return NULL;
        for (size_t i = 0; i < w->n_jobs; i++) {
                const struct world_job *j = w->jobs + i;
                if (!in_group(g, j))
                        continue;
                done += j->state == WORLD_DONE;
                if (j->first_started != UINT64_MAX)
                        waits[n++] = j->first_started - j->submitted;
        }
        o = json_pack("{s:s,s:I,s:I,s:o,s:o}", "name", g->name, "started", (json_int_t)n, "done",
                      (json_int_t)done, "share", rounded(all > 0 ? g->usage / all : 0), "wait",
                      wait_numbers(waits, n));
        free(waits);
        return o;
}

static double jain(const double *x, size_t n) {
        double sum = 0, squares = 0;

        for (size_t i = 0; i < n; i++) {
                sum += x[i];
                squares += x[i] * x[i];
        }
        return squares > 0 ? sum * sum / ((double)n * squares) : 1;
}

/* The pools that had jobs, by what they used and what their weights say. */
static int add_pools(json_t *root, const struct trace *t, const struct world *w, const double *usage,
                     double all) {
        _cleanup_free_ double *relative = calloc(t->n_pools, sizeof(*relative));
        _cleanup_free_ bool *present = calloc(t->n_pools, sizeof(*present));
        json_t *list = json_array();
        double weights = 0;
        size_t n = 0;

        if (!relative || !present || !list)
                return -ENOMEM;
        for (size_t i = 0; i < w->n_jobs; i++)
                present[w->jobs[i].pool] = true;
        for (size_t i = 0; i < t->n_pools; i++)
                weights += present[i] ? t->pools[i].weight : 0;
        for (uint32_t i = 0; i < t->n_pools; i++) {
                struct group g = { t->pools[i].name, i, UINT32_MAX, usage[i] };
                json_t *o;
                if (!present[i])
                        continue;
                relative[n++] = usage[i] / t->pools[i].weight;
                o = group_numbers(w, &g, all);
                if (json_object_set_new(o, "weight", json_integer(t->pools[i].weight)) < 0 ||
                    json_object_set_new(o, "due", rounded(t->pools[i].weight / weights)) < 0 ||
                    json_array_append_new(list, o) < 0)
                        return -ENOMEM;
        }
        return json_object_set_new(root, "pools", list) < 0 ||
                               json_object_set_new(root, "jain", rounded(jain(relative, n))) < 0
                       ? -ENOMEM
                       : 0;
}

static int add_users(json_t *root, const struct trace *t, const struct world *w, const double *usage,
                     double all) {
        _cleanup_free_ bool *present = calloc(t->n_users, sizeof(*present));
        json_t *list = json_array();

        if (!present || !list)
                return -ENOMEM;
        for (size_t i = 0; i < w->n_jobs; i++)
                present[w->jobs[i].user] = true;
        for (uint32_t i = 0; i < t->n_users; i++) {
                struct group g = { t->users[i], UINT32_MAX, i, usage[i] };
                if (present[i] && json_array_append_new(list, group_numbers(w, &g, all)) < 0)
                        return -ENOMEM;
        }
        return json_object_set_new(root, "users", list) < 0 ? -ENOMEM : 0;
}

static json_t *totals(const struct world *w) {
        json_int_t done = 0, never = 0, waiting = 0, backfilled = 0, preempted = 0, failed = 0, over = 0;
        double lost = 0;

        for (size_t i = 0; i < w->n_jobs; i++) {
                const struct world_job *j = w->jobs + i;
                done += j->state == WORLD_DONE;
                never += j->state == WORLD_WAITING && j->why.reason == POLICY_NEVER;
                waiting += j->state == WORLD_WAITING && j->why.reason != POLICY_NEVER;
                backfilled += j->backfilled;
                preempted += j->preempted;
                failed += j->failed;
                over += j->over_limit;
                lost += (double)j->lost / 1e6;
        }
        return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o}", "jobs", (json_int_t)w->n_jobs,
                         "done", done, "never", never, "waiting", waiting, "backfilled", backfilled,
                         "preempted", preempted, "failed", failed, "over_limit", over,
                         "lost_executor_seconds", rounded(lost), "makespan",
                         rounded((double)w->last_end / 1e6), "cpu_used",
                         rounded(w->cpu_capacity > 0 ? w->cpu_time / w->cpu_capacity : 0), "gpu_used",
                         rounded(w->gpu_capacity > 0 ? w->gpu_time / w->gpu_capacity : 0));
}

static json_t *numbers(const struct trace *t, const struct world *w, const struct recorder *r) {
        _cleanup_free_ double *pools = calloc(t->n_pools + 1, sizeof(*pools));
        _cleanup_free_ double *users = calloc(t->n_users + 1, sizeof(*users));
        json_t *root = json_object();
        double all = 0;

        if (!pools || !users || !root) {
                json_decref(root);
                return NULL;
        }
        for (size_t i = 0; i < r->n; i++) {
                const struct segment *s = r->list + i;
                double used = part_of(w, s) * (double)(s->to - s->from) / 1e6;
                pools[w->jobs[s->job].pool] += used;
                users[w->jobs[s->job].user] += used;
                all += used;
        }
        if (json_object_set_new(root, "totals", totals(w)) < 0 ||
            json_object_set_new(
                    root, "all",
                    group_numbers(w, &(struct group){ "all", UINT32_MAX, UINT32_MAX, all }, all)) < 0 ||
            add_pools(root, t, w, pools, all) < 0 || add_users(root, t, w, users, all) < 0 ||
            json_object_set_new(root, "searches", searches_numbers(r->searches)) < 0) {
                json_decref(root);
                return NULL;
        }
        return root;
}

int report_json(FILE *f, const struct trace *t, const struct world *w, const struct recorder *r) {
        json_t *root = numbers(t, w, r);
        int q = root && json_dumpf(root, f, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) == 0 ? 0 : -ENOMEM;

        json_decref(root);
        fputc('\n', f);
        return q;
}

static const char *duration(const json_t *o, const char *key, char *buf, size_t size) {
        return format_duration((uint64_t)(json_number_value(json_object_get(o, key)) * 1e6), buf, size);
}

static void print_group(FILE *f, const json_t *g, bool due) {
        const json_t *wait = json_object_get(g, "wait");
        char a[FORMAT_DURATION_MAX], b[FORMAT_DURATION_MAX], c[FORMAT_DURATION_MAX], d[FORMAT_DURATION_MAX];

        fprintf(f, "%-16s %7" JSON_INTEGER_FORMAT " %6.1f%% ", json_string_value(json_object_get(g, "name")),
                json_integer_value(json_object_get(g, "done")),
                100 * json_number_value(json_object_get(g, "share")));
        if (due)
                fprintf(f, "%6.1f%% ", 100 * json_number_value(json_object_get(g, "due")));
        else
                fprintf(f, "%7s ", "");
        fprintf(f, "%12s %12s %12s %12s\n", duration(wait, "mean", a, sizeof(a)),
                duration(wait, "p50", b, sizeof(b)), duration(wait, "p95", c, sizeof(c)),
                duration(wait, "max", d, sizeof(d)));
}

static void print_search(FILE *f, const json_t *s) {
        const json_t *best = json_object_get(s, "best_trial");
        char buf[FORMAT_DURATION_MAX];

        fprintf(f,
                "search %s (%s): %" JSON_INTEGER_FORMAT " trials, %" JSON_INTEGER_FORMAT
                " of them stopped early, %" JSON_INTEGER_FORMAT " results; trained %.1f%% of all units in %s",
                json_string_value(json_object_get(s, "name")),
                json_string_value(json_object_get(s, "method")),
                json_integer_value(json_object_get(s, "trials")),
                json_integer_value(json_object_get(s, "stopped_early")),
                json_integer_value(json_object_get(s, "results")),
                100 * json_number_value(json_object_get(s, "trained")),
                duration(s, "took", buf, sizeof(buf)));
        if (best)
                fprintf(f, "; best: trial %" JSON_INTEGER_FORMAT ", %.4f", json_integer_value(best),
                        json_number_value(json_object_get(s, "best")));
        fputs(json_is_true(json_object_get(s, "over")) ? "\n" : " (not over)\n", f);
}

static json_int_t count_of(const json_t *o, const char *key) {
        return json_integer_value(json_object_get(o, key));
}

int report_text(FILE *f, const struct trace *t, const struct world *w, const struct recorder *r) {
        json_t *root = numbers(t, w, r), *o, *all;
        char buf[FORMAT_DURATION_MAX];
        size_t i;

        if (!root)
                return -ENOMEM;
        all = json_object_get(root, "totals");
        fprintf(f, "%" JSON_INTEGER_FORMAT " jobs on %u hosts: %" JSON_INTEGER_FORMAT " done in %s",
                count_of(all, "jobs"), w->n_hosts, count_of(all, "done"),
                duration(all, "makespan", buf, sizeof(buf)));
        if (count_of(all, "never") + count_of(all, "waiting") > 0)
                fprintf(f, ", %" JSON_INTEGER_FORMAT " can never run, %" JSON_INTEGER_FORMAT " wait",
                        count_of(all, "never"), count_of(all, "waiting"));
        fprintf(f, "\nused: CPU %.1f%%, GPU %.1f%%\n",
                100 * json_number_value(json_object_get(all, "cpu_used")),
                100 * json_number_value(json_object_get(all, "gpu_used")));
        fprintf(f,
                "backfilled %" JSON_INTEGER_FORMAT ", preempted %" JSON_INTEGER_FORMAT
                ", ended by their limit %" JSON_INTEGER_FORMAT ", hit by failures %" JSON_INTEGER_FORMAT
                ", lost %s of executors\n",
                count_of(all, "backfilled"), count_of(all, "preempted"), count_of(all, "over_limit"),
                count_of(all, "failed"), duration(all, "lost_executor_seconds", buf, sizeof(buf)));
        fprintf(f, "fairness of pools (Jain, 1 is best): %.3f\n\n",
                json_number_value(json_object_get(root, "jain")));
        fprintf(f, "%-16s %7s %7s %7s %12s %12s %12s %12s\n", "", "done", "share", "due", "waited mean",
                "p50", "p95", "max");
        print_group(f, json_object_get(root, "all"), false);
        json_array_foreach (json_object_get(root, "pools"), i, o)
                print_group(f, o, true);
        fputc('\n', f);
        json_array_foreach (json_object_get(root, "users"), i, o)
                print_group(f, o, false);
        if (json_array_size(json_object_get(root, "searches")) > 0)
                fputc('\n', f);
        json_array_foreach (json_object_get(root, "searches"), i, o)
                print_search(f, o);
        json_decref(root);
        return 0;
}

static void print_time(FILE *f, uint64_t t, const char *end) {
        if (t != UINT64_MAX)
                fprintf(f, "%.3f", (double)t / 1e6);
        fputs(end, f);
}

int report_jobs(FILE *f, const struct trace *t, const struct world *w) {
        fprintf(f, "name,pool,user,submitted,promised,started,ended,waited,backfilled,preempted,failed\n");
        for (size_t i = 0; i < w->n_jobs; i++) {
                const struct world_job *j = w->jobs + i;
                char name[TRACE_NAME_MAX + 16];

                trace_name(t, j, name);
                fprintf(f, "%s,%s,%s,", name, t->pools[j->pool].name, t->users[j->user]);
                print_time(f, j->submitted, ",");
                print_time(f, j->first_promise, ",");
                print_time(f, j->first_started, ",");
                print_time(f, j->state == WORLD_DONE ? j->ended : UINT64_MAX, ",");
                print_time(f, j->first_started == UINT64_MAX ? UINT64_MAX : j->first_started - j->submitted,
                           ",");
                fprintf(f, "%s,%u,%u\n", j->backfilled ? "yes" : "no", j->preempted, j->failed);
        }
        return ferror(f) ? -EIO : 0;
}
