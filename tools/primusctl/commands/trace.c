/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl trace. Invariant: the trace in the kernel lives from call to call, so nothing has to be undone,
 * however this ends. */
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "tools/primusctl/bus/fields.h"
#include "tools/primusctl/bus/targets.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/cli/text.h"
#include "tools/primusctl/view/histogram.h"

#define DURATION_MIN_USEC (100 * USEC_PER_MSEC)
#define DURATION_MAX_USEC (600 * USEC_PER_SEC)
#define ROUND_USEC USEC_PER_SEC
/* Longer than a round may be late. */
#define LEASE_USEC (3 * USEC_PER_SEC)
#define CALL_USEC (10 * USEC_PER_SEC)
#define CLASSES_MAX 8u
#define BAR_WIDTH 40u

struct trace_options {
        uint64_t io, runqueue; /* usec, 0: not asked for */
};

/* What one executor did, of one kind. */
struct taken {
        struct histogram before[CLASSES_MAX], now[CLASSES_MAX];
        size_t n;
        uint64_t age_usec; /* of the trace in the kernel, at the last answer; 0: there was none */
        char *error;       /* why there is no more */
        uint64_t missed;
};

struct kind {
        const char *name;
        uint64_t duration_usec;
        bool done;
        struct taken *taken; /* for each target */
};

struct trace {
        struct cli *cli;
        struct targets targets;
        struct kind kinds[2];
        struct kind *asking; /* in this call */
        uint64_t lease_usec, begun_boot, usec;
        unsigned alive; /* answered in this round */
};

/* ---- signals ---- */

static volatile int interrupted;

static void on_signal(int number) {
        interrupted = number;
}

static void catch_signals(void) {
        struct sigaction action = { .sa_handler = on_signal }; /* calls are to end of it */

        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
        (void)sigaction(SIGHUP, &action, NULL);
}

/* ---- asking ---- */

static int read_histogram(sd_bus_message *m, struct histogram *h) {
        const uint64_t *buckets;
        const char *name;
        size_t size;
        int r = sd_bus_message_enter_container(m, 'r', "stttat");

        if (r <= 0)
                return r;
        if ((r = sd_bus_message_read(m, "sttt", &name, &h->count, &h->sum_ns, &h->bytes)) < 0 ||
            (r = sd_bus_message_read_array(m, 't', (const void **)&buckets, &size)) < 0)
                return r;
        snprintf(h->name, sizeof(h->name), "%s", name);
        memcpy(h->buckets, buckets, MIN(size, sizeof(h->buckets)));
        r = sd_bus_message_exit_container(m);
        return r < 0 ? r : 1;
}

/* -ESTALE: what counts there now is another trace than the one before. */
static int read_answer(sd_bus_message *m, struct taken *t) {
        static const struct field fields[] = { { "missed", "t", offsetof(struct taken, missed), NULL } };
        struct histogram list[CLASSES_MAX] = {};
        bool begun = t->age_usec > 0;
        uint64_t age;
        size_t n = 0;
        int r;

        if ((r = sd_bus_message_read(m, "t", &age)) < 0 ||
            (r = sd_bus_message_enter_container(m, 'a', "(stttat)")) < 0)
                return r;
        while (n < CLASSES_MAX && (r = read_histogram(m, list + n)) > 0)
                n++;
        if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0 ||
            (r = read_fields(m, fields, ELEMENTSOF(fields), t)) < 0)
                return r;
        if (age < t->age_usec)
                return -ESTALE;
        if (!begun)
                memcpy(t->before, list, sizeof(list));
        memcpy(t->now, list, sizeof(list));
        t->n = n;
        t->age_usec = MAX(age, 1u);
        return 0;
}

static int append_call(sd_bus_message *m, size_t i, void *userdata) {
        const struct trace *t = userdata;

        if (t->asking->taken[i].error)
                return 1;
        return MIN(sd_bus_message_append(m, "sa{sv}", t->asking->name, 1, "lease", "t", t->lease_usec), 0);
}

static void on_answer(size_t i, sd_bus_message *reply, const sd_bus_error *error, void *userdata) {
        struct trace *t = userdata;
        struct taken *taken = t->asking->taken + i;
        int r = reply ? read_answer(reply, taken) : 0;

        if (reply && r >= 0)
                t->alive++;
        else if (r == -ESTALE)
                taken->error = strdup("the agent was started again meanwhile, and counts anew; this is what "
                                      "was counted until then");
        else if (!interrupted)
                taken->error = strdup(error ? error->message ?: error->name : "no usable answer");
}

static uint64_t left(const struct trace *t, const struct kind *k) {
        uint64_t gone = now_boot() - t->begun_boot;

        return gone < k->duration_usec ? k->duration_usec - gone : 0;
}

/* One call of each executor for each kind that is not over. */
static int ask_all(struct trace *t) {
        static const struct target_call call = {
                .method = "Trace",
                .timeout_usec = CALL_USEC,
                .append = append_call,
                .answered = on_answer,
                .stop = &interrupted,
        };
        int r = 0;

        t->alive = 0;
        for (size_t i = 0; i < ELEMENTSOF(t->kinds) && r == 0 && !interrupted; i++) {
                struct kind *k = t->kinds + i;

                if (k->duration_usec == 0 || k->done)
                        continue;
                k->done = t->begun_boot > 0 && t->usec >= k->duration_usec; /* this is its last one */
                t->asking = k;
                /* A little more than what is left, so that it does not outlive us by much. */
                t->lease_usec = t->begun_boot == 0
                                        ? LEASE_USEC
                                        : MIN(LEASE_USEC, left(t, k) ? left(t, k) + ROUND_USEC / 2 : 0);
                r = targets_call(t->cli, &t->targets, &call, t);
        }
        return r;
}

/* ---- the time in between ---- */

static void progress(const struct trace *t, uint64_t duration) {
        uint64_t n = 0;

        if (!isatty(STDERR_FILENO) || t->cli->json)
                return;
        for (size_t k = 0; k < ELEMENTSOF(t->kinds); k++)
                for (size_t i = 0; t->kinds[k].taken && i < t->targets.n; i++)
                        for (size_t c = 0; c < t->kinds[k].taken[i].n; c++)
                                n += t->kinds[k].taken[i].now[c].count -
                                     MIN(t->kinds[k].taken[i].now[c].count,
                                         t->kinds[k].taken[i].before[c].count);
        fprintf(stderr, "\r\033[KTracing %zu executor%s: %.0f of %.0f s, %" PRIu64 " seen; Ctrl-C ends it",
                t->targets.n, t->targets.n == 1 ? "" : "s", (double)t->usec / 1e6, (double)duration / 1e6, n);
}

static void progress_done(const struct trace *t) {
        if (isatty(STDERR_FILENO) && !t->cli->json)
                fputs("\r\033[K", stderr);
}

static void wait_usec(uint64_t usec) {
        const struct timespec t = { .tv_sec = (time_t)(usec / USEC_PER_SEC),
                                    .tv_nsec = (long)(usec % USEC_PER_SEC) * 1000 };

        if (!interrupted)
                (void)nanosleep(&t, NULL);
}

static int run(struct trace *t) {
        uint64_t duration = MAX(t->kinds[0].duration_usec, t->kinds[1].duration_usec);
        int r = ask_all(t);

        t->begun_boot = now_boot();
        while (r == 0 && !interrupted && t->alive > 0 && t->usec < duration) {
                progress(t, duration);
                wait_usec(MIN(ROUND_USEC, duration - t->usec));
                t->usec = now_boot() - t->begun_boot;
                r = ask_all(t);
        }
        progress_done(t);
        return r;
}

/* ---- what came of it ---- */

static void difference(const struct taken *t, size_t c, struct histogram *ret) {
        *ret = t->now[c];
        histogram_subtract(ret, &t->before[c]);
}

static json_t *json_histogram(const struct histogram *h) {
        json_t *buckets = json_array();

        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
                if (h->buckets[i] > 0)
                        (void)json_array_append_new(buckets,
                                                    json_pack("{s:I, s:I, s:I}", "from",
                                                              i == 0 ? (json_int_t)0 : (json_int_t)1 << i,
                                                              "to", (json_int_t)1 << MIN(i + 1, (size_t)62),
                                                              "count", (json_int_t)h->buckets[i]));
        return json_pack("{s:s, s:I, s:I, s:I, s:o}", "name", h->name, "count", (json_int_t)h->count, "nsec",
                         (json_int_t)h->sum_ns, "bytes", (json_int_t)h->bytes, "buckets", buckets);
}

static json_t *json_executor(const struct target *target, const struct taken *t) {
        json_t *list = json_array();
        json_t *o = json_pack("{s:s, s:I, s:s}", "role", target->role, "index", (json_int_t)target->index,
                              "node", target->node);

        for (size_t c = 0; c < t->n; c++) {
                struct histogram h;

                difference(t, c, &h);
                (void)json_array_append_new(list, json_histogram(&h));
        }
        (void)json_object_set_new(o, "histograms", list);
        if (t->error)
                (void)json_object_set_new(o, "error", json_string(t->error));
        if (t->missed > 0)
                (void)json_object_set_new(o, "missed", json_integer((json_int_t)t->missed));
        return o;
}

static int show_json(const struct trace *t) {
        json_t *all = json_array();

        for (size_t k = 0; k < ELEMENTSOF(t->kinds); k++) {
                json_t *list;

                if (t->kinds[k].duration_usec == 0)
                        continue;
                list = json_array();
                for (size_t i = 0; i < t->targets.n; i++)
                        (void)json_array_append_new(
                                list, json_executor(t->targets.list + i, t->kinds[k].taken + i));
                (void)json_array_append_new(all,
                                            json_pack("{s:s, s:f, s:o}", "trace", t->kinds[k].name, "seconds",
                                                      (double)MIN(t->usec, t->kinds[k].duration_usec) / 1e6,
                                                      "executors", list));
        }
        return cli_print_json(t->cli, all);
}

static void print_list(const struct trace *t, const struct kind *k, const struct histogram *list, size_t n) {
        uint64_t usec = MIN(t->usec, k->duration_usec);
        size_t shown = 0;

        for (size_t c = 0; c < n; c++)
                if (list[c].count > 0) {
                        histogram_print(stdout, list + c, usec, BAR_WIDTH, t->cli->color);
                        shown++;
                }
        if (shown == 0)
                printf("  nothing in this time\n");
}

/* All of a role together, where there are several. */
static void print_role(const struct trace *t, const struct kind *k, const char *role) {
        struct histogram sum[CLASSES_MAX] = {}, h;
        size_t n = 0, classes = 0;

        for (size_t i = 0; i < t->targets.n; i++) {
                const struct taken *taken = k->taken + i;

                if (strcmp(t->targets.list[i].role, role) != 0 || taken->age_usec == 0)
                        continue;
                n++;
                classes = taken->n;
                for (size_t c = 0; c < taken->n; c++) {
                        difference(taken, c, &h);
                        snprintf(sum[c].name, sizeof(sum[c].name), "%s", h.name);
                        histogram_add(sum + c, &h);
                }
        }
        if (n < 2)
                return;
        printf("\n%s, %zu executors\n", role, n);
        print_list(t, k, sum, classes);
}

static void print_executor(const struct trace *t, const struct kind *k, size_t i) {
        const struct target *target = t->targets.list + i;
        const struct taken *taken = k->taken + i;
        struct histogram list[CLASSES_MAX];

        printf("\n%s/%" PRIu32 " on %s\n", target->role, target->index, target->node);
        for (size_t c = 0; c < taken->n; c++)
                difference(taken, c, list + c);
        if (taken->age_usec > 0)
                print_list(t, k, list, taken->n);
        if (taken->error) {
                text_clean(taken->error);
                printf("  %s\n", taken->error);
        }
        if (taken->missed > 0)
                printf("  %" PRIu64 " on that host could not be counted: too many wait at once\n",
                       taken->missed);
}

static void show(const struct trace *t) {
        bool first = true;

        for (size_t k = 0; k < ELEMENTSOF(t->kinds); k++) {
                const struct kind *kind = t->kinds + k;

                if (kind->duration_usec == 0)
                        continue;
                printf("%s%s of job %" PRIu32 ", %.1f s%s\n", first ? "" : "\n", kind->name,
                       t->targets.job.number, (double)MIN(t->usec, kind->duration_usec) / 1e6,
                       interrupted ? " (interrupted)" : "");
                first = false;
                for (size_t i = 0; i < t->targets.n; i++) {
                        if (i == 0 || strcmp(t->targets.list[i].role, t->targets.list[i - 1].role) != 0)
                                print_role(t, kind, t->targets.list[i].role);
                        print_executor(t, kind, i);
                }
        }
}

/* ---- the command ---- */

static int outcome(const struct trace *t) {
        for (size_t k = 0; k < ELEMENTSOF(t->kinds); k++)
                for (size_t i = 0; t->kinds[k].taken && i < t->targets.n; i++)
                        if (t->kinds[k].taken[i].age_usec > 0)
                                return interrupted ? CLI_DETACHED : CLI_OK;
        for (size_t k = 0; k < ELEMENTSOF(t->kinds); k++)
                for (size_t i = 0; t->kinds[k].taken && i < t->targets.n; i++)
                        if (t->kinds[k].taken[i].error)
                                return cli_fail(t->cli, "%s/%" PRIu32 " on %s: %s", t->targets.list[i].role,
                                                t->targets.list[i].index, t->targets.list[i].node,
                                                t->kinds[k].taken[i].error);
        return interrupted ? CLI_DETACHED : CLI_FAILED;
}

static int check(struct cli *c, const struct trace_options *o) {
        if (o->io == 0 && o->runqueue == 0)
                return cli_usage(c, "trace: what? --io TIME or --runqueue TIME");
        if (MAX(o->io, o->runqueue) > DURATION_MAX_USEC || (o->io > 0 && o->io < DURATION_MIN_USEC) ||
            (o->runqueue > 0 && o->runqueue < DURATION_MIN_USEC))
                return cli_usage(c, "trace: a time from 100ms to 10min is expected");
        return 0;
}

static int trace_run(struct cli *c, void *options, char **args, size_t n) {
        const struct trace_options *o = options;
        struct trace t = { .cli = c,
                           .kinds = { { .name = "io", .duration_usec = o->io },
                                      { .name = "runqueue", .duration_usec = o->runqueue } } };
        int r = cli_job_text(c, args[0]);

        if (!r)
                r = check(c, o);
        if (!r)
                r = targets_find(c, args[0], args + 1, n - 1, &t.targets);
        if (r)
                return r;
        for (size_t k = 0; k < ELEMENTSOF(t.kinds); k++)
                if (t.kinds[k].duration_usec > 0 &&
                    !(t.kinds[k].taken = calloc(t.targets.n, sizeof(*t.kinds[k].taken))))
                        r = cli_oom(c);
        catch_signals();
        if (!r)
                r = run(&t);
        if (!r)
                r = outcome(&t);
        if (r == CLI_OK || r == CLI_DETACHED) {
                if (c->json) {
                        int printed = show_json(&t);
                        r = printed ?: r;
                } else
                        show(&t);
                if (r == CLI_OK && t.alive == 0)
                        r = CLI_FAILED; /* it broke off */
        }
        for (size_t k = 0; k < ELEMENTSOF(t.kinds); k++) {
                for (size_t i = 0; t.kinds[k].taken && i < t.targets.n; i++)
                        free(t.kinds[k].taken[i].error);
                free(t.kinds[k].taken);
        }
        targets_done(&t.targets);
        return r;
}

static const struct cli_option trace_options[] = {
        { "io", 0, "TIME", option_duration, offsetof(struct trace_options, io),
          "how long system calls take that move data" },
        { "runqueue", 0, "TIME", option_duration, offsetof(struct trace_options, runqueue),
          "how long what could run waits for a processor" },
        { 0 },
};

const struct command trace_command = {
        .name = "trace",
        .arguments = "JOB [RANK...] --io TIME|--runqueue TIME",
        .help = "Measure how long what executors do takes",
        .details =
                "For so long (at most 10min), on the hosts' kernels; nothing of it stays there. RANK is a "
                "rank, "
                "ROLE or\n"
                "ROLE/INDEX; without one, all that run. Histograms for each role and executor: how many took "
                "from a time\n"
                "up to its double. While --io runs, every system call of those hosts takes about 0.1 us "
                "longer.",
        .options = trace_options,
        .options_size = sizeof(struct trace_options),
        .min = 1,
        .max = SIZE_MAX,
        .run = trace_run,
};
