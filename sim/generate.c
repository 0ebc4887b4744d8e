/* SPDX-License-Identifier: Apache-2.0 */
/* Makes up jobs of the shape that published traces of GPU clusters have: most are small and short, a few are
 * large or run for days; more come by day than by night; few users have most of them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "sim/random.h"
#include "sim/trace.h"

#define SECOND UINT64_C(1000000)
#define GIB (UINT64_C(1) << 30)
#define DAY 86400.0
#define USERS 24u

static double random_normal(uint64_t *seed) {
        double u = 1 - random_unit(seed), v = random_unit(seed);

        return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Units (GPUs, or CPUs where there are none) of a job: 1, 2, 4, ... */
static uint32_t random_size(uint64_t *seed, uint32_t of_host) {
        static const double chances[] = { 0.55, 0.12, 0.12, 0.14, 0.04, 0.02, 0.01 };
        double u = random_unit(seed);
        uint32_t size = 1;

        for (size_t i = 0; i + 1 < ELEMENTSOF(chances) && u >= chances[i]; size *= 2)
                u -= chances[i++];
        return of_host < 8 ? MIN(size, of_host * 4) : size;
}

static double clamp(double v, double low, double high) {
        return v < low ? low : v > high ? high : v;
}

static int make_job(struct trace *t, struct trace_job *j, uint64_t *seed) {
        const struct sched_capacity *host = t->hosts;
        uint32_t on_host = host->gpus ?: MAX(host->cpu_milli / 1000, 1u), size = random_size(seed, on_host),
                 user;
        struct world_job *w = &j->job;
        struct sched_shape *h = w->shapes;
        double runtime = clamp(exp(6.3 + 1.9 * random_normal(seed)) * (size >= 8 ? 3 : 1), 30, 5 * DAY);

        user = (uint32_t)(USERS * pow(random_unit(seed), 2.5)); /* the first ones have most of them */
        w->user = user;
        w->pool = (user * 7 + 1) % (uint32_t)t->n_pools;
        w->n_shapes = 1;
        w->runtime = (uint64_t)runtime * SECOND;
        w->limit = UINT64_MAX;
        if (random_unit(seed) < 0.7) { /* estimates are generous, and round */
                double limit = runtime * (1.1 + 3 * random_unit(seed));
                w->limit = (uint64_t)(ceil(limit / 600) * 600) * SECOND;
        }
        w->preemptible = random_unit(seed) < 0.5;
        w->priority = random_unit(seed) < 0.1 ? 10 : 0;
        w->savepoint = size >= 4 ? 1800 * SECOND : 0;
        h->min = size > on_host ? size / on_host : 1;
        h->max = h->min;
        size = MIN(size, on_host);
        h->gpus = host->gpus ? size : 0;
        h->cpu_milli = host->cpu_milli / on_host * size;
        h->memory = host->memory / on_host / 4 * size;
        h->per_node = 0;
        return 0;
}

static int compare_submits(const void *a, const void *b) {
        const struct trace_job *x = a, *y = b;

        return (x->job.submitted > y->job.submitted) - (x->job.submitted < y->job.submitted);
}

int trace_generate(struct trace *t, size_t n, double load, uint64_t seed) {
        double work = 0, units = 0, length;

        if (t->n_hosts == 0 || n == 0 || n > TRACE_JOBS_MAX || !(load > 0)) {
                snprintf(t->error, sizeof(t->error),
                         "for a made-up trace, hosts, 1 to %u jobs and a load above 0 are needed",
                         TRACE_JOBS_MAX);
                return -EINVAL;
        }
        free(t->jobs);
        t->jobs = calloc(n, sizeof(*t->jobs));
        t->users = calloc(USERS, sizeof(*t->users));
        t->n_jobs = t->n_users = 0;
        if (!t->jobs || !t->users)
                return -ENOMEM;
        t->jobs_allocated = n;
        t->n_users = t->users_allocated = USERS;
        for (size_t i = 0; i < USERS; i++)
                snprintf(t->users[i], sizeof(*t->users), "u%zu", i + 1);
        for (size_t i = 0; i < n; i++) {
                const struct sched_shape *h = t->jobs[i].job.shapes;
                (void)make_job(t, t->jobs + i, &seed);
                work += (double)h->min * (h->gpus ?: h->cpu_milli / 1e3) * (double)t->jobs[i].job.runtime /
                        1e6;
        }
        t->n_jobs = n;
        for (size_t i = 0; i < t->n_hosts; i++)
                units += t->hosts[0].gpus ? t->hosts[i].gpus : t->hosts[i].cpu_milli / 1e3;
        length = MAX(work / (units * load), 60.0);
        for (size_t i = 0; i < n; i++) { /* rejected where the day has fewer of them */
                double at;
                do
                        at = random_unit(&seed) * length;
                while (random_unit(&seed) > 0.6 + 0.4 * sin(2 * M_PI * (at / DAY - 0.375)));
                t->jobs[i].job.submitted = (uint64_t)at * SECOND;
        }
        qsort(t->jobs, n, sizeof(*t->jobs), compare_submits);
        for (size_t i = 0; i < n; i++)
                snprintf(t->jobs[i].name, sizeof(t->jobs[i].name), "j%zu", i + 1);
        return 0;
}
