/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl top. */
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/job.h"
#include "tools/primusctl/bus/targets.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"
#include "tools/primusctl/view/top-screen.h"
#include "tools/primusctl/view/top-view.h"

#define INTERVAL_MIN (200 * USEC_PER_MSEC)
#define INTERVAL_DEFAULT (2 * USEC_PER_SEC)

struct top_options {
        bool once;
        uint64_t interval;
        const char *sort;
};

/* ---- which ---- */

static bool is_named(const struct targets *of, const char *role, uint32_t index, bool has_index) {
        for (size_t i = 0; i < of->n; i++)
                if (strcmp(of->list[i].role, role) == 0 && (!has_index || of->list[i].index == index))
                        return true;
        return false;
}

/* Leaves the executors that were named, and their roles. */
static void keep_named(const struct targets *of, struct top_model *t) {
        if (of->n == 0)
                return;
        for (size_t i = t->n_executors; i-- > 0;)
                if (!is_named(of, t->executors[i].role, t->executors[i].index, true))
                        top_model_drop_executor(t, i);
        for (size_t i = t->n_roles; i-- > 0;)
                if (!is_named(of, t->roles[i].name, 0, false))
                        top_model_drop_role(t, i);
}

/* ---- asking ---- */

/* A call for what the page shows; job NULL: the overview. */
static int make_call(struct cli *c, const struct job_ref *job, bool values, bool coarse,
                     sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r = job ? cli_job_call(c, job, "Telemetry", &m) : cli_manager_call(c, "ListTelemetry", &m), k;

        if (r)
                return r;
        k = sd_bus_message_open_container(m, 'a', "{sv}");
        if (k >= 0 && job && !values)
                k = sd_bus_message_append(m, "{sv}", "noValues", "b", 1);
        if (k >= 0 && job && coarse)
                k = sd_bus_message_append(m, "{sv}", "history", "s", "4h");
        if (k >= 0)
                k = sd_bus_message_close_container(m);
        if (k < 0)
                return cli_oom(c);
        *ret = TAKE_PTR(m);
        return 0;
}

static int take_properties(sd_bus_message *m, struct top_model *t) {
        _cleanup_(job_properties_done) struct job_properties p = { 0 };
        int r = job_properties_read(m, &p);

        if (r < 0)
                return r;
        if (!p.name || !p.state)
                return -ENODATA;
        top_job_done(&t->job);
        t->job = (struct top_job){ .number = p.number,
                                   .owner = p.owner,
                                   .name = TAKE_PTR(p.name),
                                   .state = TAKE_PTR(p.state),
                                   .since = p.started ? p.started : p.submitted };
        return 0;
}

/* ---- once ---- */

static const struct table_column number_columns[_TOP_NUMBER_MAX] = {
        [TOP_CPU] = { "CPU", .right = true },        [TOP_CPU_SHARE] = { "CPU%", .right = true },
        [TOP_MEMORY] = { "MEMORY", .right = true },  [TOP_MEMORY_SHARE] = { "MEM%", .right = true },
        [TOP_READ] = { "READ/s", .right = true },    [TOP_WRITE] = { "WRITE/s", .right = true },
        [TOP_NET_RX] = { "IN/s", .right = true },    [TOP_NET_TX] = { "OUT/s", .right = true },
        [TOP_GPU] = { "GPU", .right = true },        [TOP_GPU_MEMORY] = { "GPU MEM", .right = true },
        [TOP_DATA_WAIT] = { "WAIT", .right = true }, [TOP_PRESSURE] = { "PRESS", .right = true },
        [TOP_STEPS] = { "STEPS/s", .right = true },
};

/* A table of which the numbers come behind the first columns, those of which anything is known. */
struct sheet {
        struct table *table;
        struct table_column columns[4 + _TOP_NUMBER_MAX];
        size_t n, first;
        bool known[_TOP_NUMBER_MAX];
};

static void sheet_done(struct sheet *s) {
        table_free(s->table);
}

static int sheet_new(const struct cli *c, const struct top_model *m, const struct table_column *first,
                     size_t n, struct sheet *s) {
        for (size_t i = 0; i < n; i++)
                s->columns[s->n++] = first[i];
        s->first = n;
        for (enum top_number k = 0; k < _TOP_NUMBER_MAX; k++) {
                s->known[k] = top_list_knows(m, k);
                if (s->known[k])
                        s->columns[s->n++] = number_columns[k];
        }
        return table_new(c, s->columns, s->n, &s->table);
}

static void set_numbers(struct sheet *s, const double *numbers, const struct top_total *total) {
        size_t column = s->first;
        char text[32];

        for (enum top_number k = 0; k < _TOP_NUMBER_MAX; k++) {
                double value = total ? top_total_number(total, k) : numbers[k];
                if (s->known[k])
                        table_set(s->table, column++, isnan(value) || value == 0 ? COLOR_DIM : COLOR_NONE,
                                  "%s", top_number_text(k, value, text, sizeof(text)));
        }
}

static int print_roles(const struct cli *c, const struct top_model *m) {
        static const struct table_column first[] = { { "ROLE" }, { "RUNNING", .right = true } };
        _cleanup_(sheet_done) struct sheet s = {};
        int r = sheet_new(c, m, first, ELEMENTSOF(first), &s);

        for (size_t i = 0; !r && i < m->n_roles && table_row(s.table) >= 0; i++) {
                table_set(s.table, 0, COLOR_BOLD, "%s", m->roles[i].name);
                table_set(s.table, 1, COLOR_NONE, "%" PRIu32 "/%" PRIu32, m->roles[i].total.running,
                          m->roles[i].executors);
                set_numbers(&s, NULL, &m->roles[i].total);
        }
        return r ? r : table_print(c, s.table);
}

static int print_executors(const struct cli *c, const struct top_model *m) {
        static const struct table_column first[] = {
                { "EXECUTOR" }, { "HOST" }, { "STATE" }, { "VERDICTS" }
        };
        _cleanup_(sheet_done) struct sheet s = {};
        int r = sheet_new(c, m, first, ELEMENTSOF(first), &s);

        for (size_t i = 0; !r && i < m->n_executors && table_row(s.table) >= 0; i++) {
                const struct top_executor *e = m->executors + i;
                char name[TOP_NAME_MAX];
                table_set(s.table, 0, COLOR_BOLD, "%s", top_executor_name(e, name, sizeof(name)));
                table_set(s.table, 1, COLOR_NONE, "%s", *e->node ? e->node : "-");
                table_set(s.table, 2, color_of_state(e->state), "%s", e->state);
                table_set(s.table, 3, e->verdicts ? COLOR_RED : COLOR_DIM, "%s",
                          e->verdicts ? e->verdicts : "-");
                set_numbers(&s, e->rates, NULL);
        }
        return r ? r : table_print_or(c, s.table, "None of its executors runs");
}

static int print_jobs(const struct cli *c, const struct top_model *m) {
        static const struct table_column first[] = {
                { "JOB", .right = true }, { "NAME" }, { "STATE" }, { "RUNNING", .right = true }
        };
        _cleanup_(sheet_done) struct sheet s = {};
        int r = sheet_new(c, m, first, ELEMENTSOF(first), &s);

        for (size_t i = 0; !r && i < m->n_jobs && table_row(s.table) >= 0; i++) {
                const struct top_job *j = m->jobs + i;
                table_set(s.table, 0, COLOR_BOLD, "%" PRIu32, j->number);
                table_set(s.table, 1, COLOR_NONE, "%s", j->name);
                table_set(s.table, 2, color_of_state(j->state), "%s", j->state);
                table_set(s.table, 3, COLOR_NONE, "%" PRIu32 "/%" PRIu32, j->total.running, j->executors);
                set_numbers(&s, NULL, &j->total);
        }
        return r ? r : table_print_or(c, s.table, "No job runs or waits");
}

static int run_once(struct cli *c, const struct job_ref *job, const struct targets *of, enum top_sort sort) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *q = NULL, *reply = NULL,
                                                         *properties = NULL;
        _cleanup_(top_model_done) struct top_model t = {};
        int r = make_call(c, job, c->json, false, &m), k;

        if (!r && job)
                r = ask_properties_call(c, job, &q);
        if (!r && job)
                r = cli_call(c, q, job, &properties);
        if (!r)
                r = cli_call(c, m, job, &reply);
        if (r)
                return r;
        k = job ? take_properties(properties, &t) : 0;
        if (k >= 0)
                k = job ? top_read_job(reply, &t) : top_read_jobs(reply, &t);
        if (k < 0)
                return cli_bad_reply(c, k);
        keep_named(of, &t);
        top_model_sort(&t, sort);
        if (c->json)
                return cli_print_json(c, top_json(&t));
        if (!job)
                return print_jobs(c, &t);
        r = print_roles(c, &t);
        if (!r && t.n_executors > 0) {
                putchar('\n');
                r = print_executors(c, &t);
        }
        return r;
}

/* ---- live ---- */

struct top {
        struct cli *cli;
        sd_event *event;
        const struct job_ref *job; /* NULL: the overview */
        const struct targets *of;  /* n 0: all of them */
        struct screen *screen;
        struct top_model model;
        struct top_view view;
        uint64_t interval;
        sd_event_source *timer, *keys;
        sd_bus_slot *asked, *asked_properties;
        bool coarse; /* the long history is asked for */
        bool away;   /* masterd, just now */
        char *last_words;
};

static void quit(struct top *t, int status) {
        (void)sd_event_exit(t->event, status);
}

static void draw(struct top *t) {
        size_t n = t->job ? t->model.n_executors : t->model.n_jobs, room;

        screen_size(&t->view.columns, &t->view.rows);
        t->view.now_real = now_real();
        t->view.message = t->away ? "masterd does not answer just now; what is shown is from before" : NULL;
        if (t->job && t->model.job.number == 0)
                return; /* nothing has come yet */
        room = top_list_room(&t->view, &t->model);
        t->view.offset = MIN(t->view.offset, n > room ? n - room : 0);
        fputs("\033[H", stdout);
        top_draw(&t->view, &t->model, stdout);
        fputs("\033[J", stdout);
        fflush(stdout);
}

/* A call that failed: masterd may be on its way back; anything else is for good. */
static void call_failed(struct top *t, const sd_bus_error *error, int r) {
        if (cli_error_busy(error))
                return; /* the next tick asks again */
        if (!sd_bus_error_has_name(error, SD_BUS_ERROR_DISCONNECTED) && cli_error_unreachable(error, r)) {
                t->away = true;
                draw(t);
                return;
        }
        screen_leave(TAKE_PTR(t->screen));
        quit(t, cli_call_failed(t->cli, error, r, NULL, t->job));
}

static void bad_reply(struct top *t, int r) {
        screen_leave(TAKE_PTR(t->screen));
        quit(t, cli_bad_reply(t->cli, r));
}

static int on_properties(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct top *t = userdata;
        int r;

        t->asked_properties = sd_bus_slot_unref(t->asked_properties);
        if (sd_bus_message_is_method_error(reply, NULL)) {
                call_failed(t, sd_bus_message_get_error(reply), -EIO);
                return 0;
        }
        r = take_properties(reply, &t->model);
        if (r < 0)
                bad_reply(t, r);
        else if (job_state_exit(t->model.job.state) >= 0) {
                if (asprintf(&t->last_words, "Job %" PRIu32 " (%s) is over: %s", t->model.job.number,
                             t->model.job.name, t->model.job.state) < 0)
                        t->last_words = NULL;
                quit(t, CLI_OK);
        }
        return 0;
}

static int on_telemetry(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct top *t = userdata;
        int r;

        t->asked = sd_bus_slot_unref(t->asked);
        if (sd_bus_message_is_method_error(reply, NULL)) {
                call_failed(t, sd_bus_message_get_error(reply), -EIO);
                return 0;
        }
        r = t->job ? top_read_job(reply, &t->model) : top_read_jobs(reply, &t->model);
        if (r < 0) {
                bad_reply(t, r);
                return 0;
        }
        t->away = false;
        keep_named(t->of, &t->model);
        top_model_sort(&t->model, t->view.sort);
        draw(t);
        return 0;
}

static void ask(struct top *t) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *q = NULL;
        int r = 0, k = 0;

        if (t->job && !t->asked_properties) {
                r = ask_properties_call(t->cli, t->job, &q);
                if (!r)
                        k = sd_bus_call_async(t->cli->bus, &t->asked_properties, q, on_properties, t, 0);
        }
        if (!r && k >= 0 && !t->asked) {
                r = make_call(t->cli, t->job, false, t->coarse, &m);
                if (!r)
                        k = sd_bus_call_async(t->cli->bus, &t->asked, m, on_telemetry, t, 0);
        }
        if (r || k < 0) {
                screen_leave(TAKE_PTR(t->screen));
                quit(t, r ? r : cli_call_failed(t->cli, NULL, k, NULL, t->job));
        }
}

static int on_tick(sd_event_source *s, uint64_t usec, void *userdata) {
        struct top *t = userdata;

        ask(t);
        (void)sd_event_source_set_time_relative(s, t->interval);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* The other history is asked for at once. */
static void turn_history(struct top *t) {
        t->coarse = !t->coarse;
        t->asked = sd_bus_slot_unref(t->asked);
        ask(t);
}

static void on_key(struct top *t, int key) {
        size_t n = t->job ? t->model.n_executors : t->model.n_jobs, room = top_list_room(&t->view, &t->model),
               page = MAX(room, (size_t)1);
        enum top_sort sort = key < 256 ? top_sort_of_key((char)key) : _TOP_SORT_MAX;

        if (sort < _TOP_SORT_MAX) {
                t->view.sort = sort;
                t->view.offset = 0;
                top_model_sort(&t->model, sort);
                return;
        }
        switch (key) {
        case 'q':
        case 'Q':
                quit(t, CLI_OK);
                break;
        case 't':
                if (t->job)
                        turn_history(t);
                break;
        case SCREEN_KEY_UP:
        case 'k':
                t->view.offset -= t->view.offset > 0;
                break;
        case SCREEN_KEY_DOWN:
        case 'j':
                t->view.offset++;
                break;
        case SCREEN_KEY_PAGE_UP:
                t->view.offset -= MIN(t->view.offset, page);
                break;
        case SCREEN_KEY_PAGE_DOWN:
        case ' ':
                t->view.offset += page;
                break;
        case SCREEN_KEY_HOME:
                t->view.offset = 0;
                break;
        case SCREEN_KEY_END:
                t->view.offset = n;
                break;
        default:
                break;
        }
}

static int on_input(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct top *t = userdata;
        char text[256];
        ssize_t n = read(fd, text, sizeof(text));
        size_t at = 0;
        int key;

        if (n <= 0) { /* the terminal is gone */
                quit(t, CLI_OK);
                return 0;
        }
        while ((key = screen_next_key(text, (size_t)n, &at)) > 0)
                on_key(t, key);
        draw(t);
        return 0;
}

static int on_resized(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        fputs("\033[2J", stdout);
        draw(userdata);
        return 0;
}

static int on_end(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        quit(userdata, CLI_OK);
        return 0;
}

static int watch_terminal(struct top *t) {
        static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
        sigset_t set;
        int r;

        sigemptyset(&set);
        sigaddset(&set, SIGWINCH);
        for (size_t i = 0; i < ELEMENTSOF(ends); i++)
                sigaddset(&set, ends[i]);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        r = sd_event_add_signal(t->event, NULL, SIGWINCH, on_resized, t);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(ends); i++)
                r = sd_event_add_signal(t->event, NULL, ends[i], on_end, t);
        if (r >= 0)
                r = sd_event_add_io(t->event, &t->keys, STDIN_FILENO, EPOLLIN, on_input, t);
        if (r >= 0)
                r = sd_event_add_time_relative(t->event, &t->timer, CLOCK_MONOTONIC, 0, 0, on_tick, t);
        return r;
}

static int run_live(struct cli *c, const struct job_ref *job, const struct targets *of,
                    const struct top_options *o, enum top_sort sort) {
        struct top t = {
                .cli = c,
                .job = job,
                .of = of,
                .interval = MAX(o->interval ? o->interval : INTERVAL_DEFAULT, INTERVAL_MIN),
                .view = { .terminal = true, .color = c->color, .unicode = screen_is_unicode(), .sort = sort }
        };
        int r = watch_loop_new(c, &t.event);

        if (r)
                return r;
        r = watch_terminal(&t);
        if (r >= 0) {
                t.screen = screen_enter();
                r = t.screen ? sd_event_loop(t.event) : cli_fail(c, "cannot set up the terminal");
        } else
                r = cli_fail(c, "cannot watch the terminal: %s", strerror(-r));
        screen_leave(t.screen);
        if (t.last_words)
                puts(t.last_words);
        free(t.last_words);
        sd_bus_slot_unref(t.asked);
        sd_bus_slot_unref(t.asked_properties);
        sd_event_source_unref(t.timer);
        sd_event_source_unref(t.keys);
        top_model_done(&t.model);
        sd_event_unref(t.event);
        return r < 0 ? cli_fail(c, "the event loop failed: %s", strerror(-r)) : r;
}

/* ---- the command ---- */

static int find_sort(const struct cli *c, const char *word, enum top_sort *ret) {
        static const char *const words[_TOP_SORT_MAX] = {
                [TOP_BY_ORDER] = "executor", [TOP_BY_CPU] = "cpu",           [TOP_BY_MEMORY] = "memory",
                [TOP_BY_IO] = "io",          [TOP_BY_NETWORK] = "network",   [TOP_BY_GPU] = "gpu",
                [TOP_BY_DATA_WAIT] = "data", [TOP_BY_PRESSURE] = "pressure",
        };

        for (enum top_sort s = 0; word && s < _TOP_SORT_MAX; s++)
                if (strcmp(words[s], word) == 0) {
                        *ret = s;
                        return 0;
                }
        return word ? cli_usage(c,
                                "--sort: expected executor, cpu, memory, io, network, gpu, data or pressure, "
                                "not '%s'",
                                word)
                    : 0;
}

static int top_run(struct cli *c, void *options, char **args, size_t n) {
        struct top_options *o = options;
        enum top_sort sort = TOP_BY_ORDER;
        struct targets of = { 0 };
        const struct job_ref *job = n > 0 ? &of.job : NULL;
        int r = find_sort(c, o->sort, &sort);

        if (!r)
                r = n > 1   ? targets_find(c, args[0], args + 1, n - 1, &of)
                    : n > 0 ? cli_job(c, args[0], &of.job)
                            : cli_connect(c);
        if (!r)
                r = o->once || c->json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)
                            ? run_once(c, job, &of, sort)
                            : run_live(c, job, &of, o, sort);
        targets_done(&of);
        return r;
}

static const struct cli_option top_options[] = {
        { "once", '1', NULL, NULL, offsetof(struct top_options, once), "print it once, as a table" },
        { "interval", 'i', "TIME", option_duration, offsetof(struct top_options, interval),
          "look so often (2s)" },
        { "sort", 's', "WHAT", option_string, offsetof(struct top_options, sort),
          "most first: executor (as they are), cpu, memory, io, network, gpu, data, pressure" },
        { 0 },
};

const struct command top_command = {
        .name = "top",
        .arguments = "[OPTIONS] [JOB [RANK...]]",
        .help = "Show live what a job's executors do: CPU, memory, I/O, network, GPUs, waits",
        .details = "Without JOB: all jobs, one a line. RANK is a rank, ROLE or ROLE/INDEX; the numbers of a "
                   "role are of all of it.\n"
                   "Keys: c m i n g d p e sort, t turns between the last "
                   "10 minutes "
                   "and 4\nhours, arrows and PgUp, PgDn move along a long list, q quits. Not on a terminal, "
                   "and with\n"
                   "--once or --json: once. Rates are over the last seconds, as agents measure them.",
        .options = top_options,
        .options_size = sizeof(struct top_options),
        .max = SIZE_MAX,
        .run = top_run,
};
