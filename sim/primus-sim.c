/* SPDX-License-Identifier: Apache-2.0 */
/* primus-sim: replays a trace through the scheduler of primus-masterd, in a time of its own. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"
#include "sim/report.h"
#include "sim/trace.h"

enum {
        OPTION_GENERATE = 256,
        OPTION_LOAD,
        OPTION_SEED,
        OPTION_SVG,
        OPTION_JSON,
        OPTION_JOBS,
        OPTION_POOL,
        OPTION_PREEMPT,
        OPTION_FAILURES,
        OPTION_GRACE,
        OPTION_UNTIL,
        OPTION_HALF_LIFE,
        OPTION_AGING,
        OPTION_RESERVATIONS,
        OPTION_PATIENCE,
        OPTION_MIN_RUN,
        OPTION_VERSION,
};

static const struct option options[] = {
        { "hosts", required_argument, NULL, 'n' },
        { "generate", required_argument, NULL, OPTION_GENERATE },
        { "load", required_argument, NULL, OPTION_LOAD },
        { "seed", required_argument, NULL, OPTION_SEED },
        { "svg", required_argument, NULL, OPTION_SVG },
        { "json", no_argument, NULL, OPTION_JSON },
        { "jobs", no_argument, NULL, OPTION_JOBS },
        { "pool", required_argument, NULL, OPTION_POOL },
        { "preempt", no_argument, NULL, OPTION_PREEMPT },
        { "failures", required_argument, NULL, OPTION_FAILURES },
        { "grace", required_argument, NULL, OPTION_GRACE },
        { "until", required_argument, NULL, OPTION_UNTIL },
        { "half-life", required_argument, NULL, OPTION_HALF_LIFE },
        { "aging", required_argument, NULL, OPTION_AGING },
        { "reservations", required_argument, NULL, OPTION_RESERVATIONS },
        { "patience", required_argument, NULL, OPTION_PATIENCE },
        { "min-run", required_argument, NULL, OPTION_MIN_RUN },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, OPTION_VERSION },
        {},
};

static void help(void) {
        puts("primus-sim [OPTION...] TRACE.csv|TRACE.json\n"
             "primus-sim --hosts HOSTS --generate JOBS [--load L] [--seed N] > TRACE.csv\n"
             "\n"
             "Replays a trace through the scheduler of primus-masterd and says how it went.\n"
             "\n"
             "  --hosts NxCPUS/MEMORY[/GPUS],...  the cluster, such as 8x64/512G/8\n"
             "  --pool NAME:WEIGHT                a pool's weight (again for others)\n"
             "  --preempt                         jobs of all pools may preempt\n"
             "  --failures FILE                   CSV: host,from,to\n"
             "  --grace TIME                      for those that are preempted; default 30s\n"
             "  --until TIME                      stop then\n"
             "  --half-life TIME, --aging TIME, --reservations N, --patience TIME, --min-run TIME\n"
             "                                    settings of the policy\n"
             "  --svg FILE                        who was where when, as a picture\n"
             "  --jobs                            a line for each job, CSV\n"
             "  --json                            numbers as JSON\n"
             "  --generate JOBS                   write a made-up trace of so many jobs instead\n"
             "  --load L                          for --generate: part of the cluster it asks for; default "
             "0.9\n"
             "  --seed N                          for --generate; default 1\n"
             "  -h, --help, --version");
}

struct settings {
        struct policy_conf conf;
        uint64_t grace, until;
        size_t generate;
        double load;
        uint64_t seed;
        const char *svg, *failures, *trace;
        bool json, jobs, preempt;
};

/* An option that is a number or a time. */
static int set_value(int option, const char *text, struct settings *s) {
        uint64_t n;
        char *end;

        switch (option) {
        case OPTION_GENERATE:
                if (parse_u64(text, 1, TRACE_JOBS_MAX, &n) < 0)
                        return -EINVAL;
                s->generate = n;
                return 0;
        case OPTION_LOAD:
                s->load = strtod(text, &end);
                return *end || !(s->load > 0) || s->load > 100 ? -EINVAL : 0;
        case OPTION_SEED:
                return parse_u64(text, 0, UINT64_MAX, &s->seed);
        case OPTION_RESERVATIONS:
                return parse_u32(text, 0, 100000, &s->conf.reservations);
        case OPTION_GRACE:
                return parse_duration(text, &s->grace);
        case OPTION_UNTIL:
                return parse_duration(text, &s->until);
        case OPTION_HALF_LIFE:
                return parse_duration(text, &s->conf.half_life_usec);
        case OPTION_AGING:
                return parse_duration(text, &s->conf.aging_usec);
        case OPTION_PATIENCE:
                return parse_duration(text, &s->conf.patience_usec);
        case OPTION_MIN_RUN:
                return parse_duration(text, &s->conf.min_run_usec);
        default:
                return -EINVAL;
        }
}

/* 0: go on; 1: done. */
static int parse_options(int argc, char **argv, struct settings *s, struct trace *t) {
        int option, index, r = 0;

        while (r >= 0 && (option = getopt_long(argc, argv, "h", options, &index)) >= 0)
                switch (option) {
                case 'h':
                        help();
                        return 1;
                case OPTION_VERSION:
                        puts("primus-sim " PRIMUS_VERSION);
                        return 1;
                case 'n':
                        r = trace_add_hosts(t, optarg);
                        break;
                case OPTION_POOL:
                        r = trace_set_pool(t, optarg);
                        break;
                case OPTION_SVG:
                        s->svg = optarg;
                        break;
                case OPTION_FAILURES:
                        s->failures = optarg;
                        break;
                case OPTION_JSON:
                        s->json = true;
                        break;
                case OPTION_JOBS:
                        s->jobs = true;
                        break;
                case OPTION_PREEMPT:
                        s->preempt = true;
                        break;
                case '?':
                        return -EINVAL; /* getopt has said why */
                default:
                        r = set_value(option, optarg, s);
                        if (r < 0)
                                snprintf(t->error, sizeof(t->error), "\"%.80s\" is no value for --%s", optarg,
                                         options[index].name);
                }
        if (r >= 0 && (s->generate > 0) == (optind < argc)) {
                snprintf(t->error, sizeof(t->error), "one trace is needed, or --generate; see --help");
                return -EINVAL;
        }
        s->trace = optind < argc ? argv[optind] : NULL;
        return r;
}

static int build(struct world *w, struct trace *t, const struct settings *s, struct searches **ret) {
        int r = 0;

        if (t->n_hosts == 0) {
                snprintf(t->error, sizeof(t->error),
                         "there are no hosts: --hosts 8x64/512G/8, or \"hosts\" in the trace");
                return -EINVAL;
        }
        for (size_t i = 0; i < t->n_hosts && r >= 0; i++)
                r = world_add_host(w, t->hosts + i, NULL);
        for (size_t i = 0; i < t->n_pools && r >= 0; i++) {
                t->pools[i].preempts |= s->preempt;
                r = policy_pool_set(w->policy, t->pools + i, NULL);
        }
        for (size_t i = 0; i < t->n_jobs && r >= 0; i++) {
                t->jobs[i].job.origin = i;
                if (!trace_is_search(t->jobs + i))
                        r = world_add_job(w, &t->jobs[i].job, NULL);
        }
        for (size_t i = 0; i < t->n_failures && r >= 0; i++) {
                r = world_fail_host(w, t->failures[i].host, t->failures[i].from, t->failures[i].to);
                if (r < 0)
                        snprintf(t->error, sizeof(t->error),
                                 "host %u cannot fail: there are %zu, counted from 0", t->failures[i].host,
                                 t->n_hosts);
        }
        return r < 0 ? r : searches_begin(t, w, ret);
}

static int write_svg(const char *path, const struct trace *t, const struct world *w,
                     const struct recorder *rec) {
        _cleanup_fclose_ FILE *f = fopen(path, "we");

        return f ? report_svg(f, t, w, rec) : -errno;
}

static int replay(struct trace *t, const struct settings *s) {
        struct searches *searches = NULL;
        struct recorder rec = {};
        struct world w = {};
        int r = world_init(&w, &s->conf, s->grace);

        if (r >= 0)
                r = build(&w, t, s, &searches);
        rec.searches = searches;
        w.segment = recorder_segment;
        w.userdata = &rec;
        if (r >= 0)
                r = world_run(&w, s->until);
        r = r < 0 ? r : rec.error;
        if (r >= 0)
                world_cut(&w); /* those that still run, up to now */
        if (r >= 0)
                r = s->jobs ? report_jobs(stdout, t, &w)
                            : (s->json ? report_json : report_text)(stdout, t, &w, &rec);
        if (r >= 0 && s->svg) {
                r = write_svg(s->svg, t, &w, &rec);
                if (r < 0)
                        snprintf(t->error, sizeof(t->error), "%.200s: %s", s->svg, strerror(-r));
        }
        world_done(&w);
        searches_free(searches);
        free(rec.list);
        return r;
}

int main(int argc, char **argv) {
        struct settings s = { .grace = UINT64_C(30000000), .until = UINT64_MAX, .load = 0.9, .seed = 1 };
        struct trace t;
        int r = trace_init(&t);

        policy_conf_defaults(&s.conf);
        if (r >= 0)
                r = parse_options(argc, argv, &s, &t);
        if (r == 0 && s.generate > 0) {
                r = trace_generate(&t, s.generate, s.load, s.seed);
                r = r < 0 ? r : trace_write(&t, stdout);
        } else if (r == 0) {
                r = trace_load(&t, s.trace);
                if (r >= 0 && s.failures)
                        r = trace_load_failures(&t, s.failures);
                if (r >= 0)
                        r = replay(&t, &s);
        }
        if (r < 0 && (t.error[0] || r != -EINVAL))
                fprintf(stderr, "primus-sim: %s\n", t.error[0] ? t.error : strerror(-r));
        trace_done(&t);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
