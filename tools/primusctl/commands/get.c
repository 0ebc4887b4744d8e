/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl get: what a job has put into $PRIMUS_ARTIFACTS, from the hosts where it has been. Invariant: a
 * host that does not answer is named, and keeps nobody else's files from coming. */
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/format.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/interrupt.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/get-host.h"

#define HOSTS_MAX 4096u

struct get_options {
        bool list, force;
        const char *directory;
};

struct hosts {
        char **names; /* in the executors */
        size_t n;
};

static int add_host(struct hosts *h, char *name) {
        char **more;

        if (!name || !*name)
                return 0;
        for (size_t i = 0; i < h->n; i++)
                if (strcmp(h->names[i], name) == 0)
                        return 0;
        if (h->n == HOSTS_MAX)
                return -E2BIG;
        more = reallocarray(h->names, h->n + 1, sizeof(*more));
        if (!more)
                return -ENOMEM;
        h->names = more;
        h->names[h->n++] = name;
        return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *i, void *userdata) {
        struct get *g = userdata;

        g->interrupted = true;
        return 0;
}

/* First all lists, so that it is said what comes; then the files. */
static int get_from(struct get *g, const struct hosts *h) {
        FILE **wants = calloc(h->n + 1, sizeof(*wants));
        char size[FORMAT_SIZE_MAX];

        if (!wants)
                return cli_oom(g->cli);
        for (size_t i = 0; i < h->n && !g->interrupted; i++) {
                if (!g->list && !(wants[i] = tmpfile())) {
                        g->failures++;
                        cli_fail(g->cli, "cannot make a temporary file: %s", strerror(errno));
                        continue;
                }
                get_host_list(g, h->names[i], wants[i]);
        }
        if (!g->list && !g->cli->json && g->files > 0)
                printf("Job %" PRIu32 ": %" PRIu64 " file%s, %s\n", g->job.number, g->files,
                       g->files == 1 ? "" : "s", format_size(g->bytes, size, sizeof(size)));
        (void)fflush(stdout);
        for (size_t i = 0; i < h->n && !g->list && !g->interrupted; i++)
                if (wants[i] && ftell(wants[i]) > 0)
                        get_host_fetch(g, h->names[i], wants[i]);
        for (size_t i = 0; i < h->n; i++)
                if (wants[i])
                        (void)fclose(wants[i]);
        free(wants);
        return 0;
}

/* One job that is no array. */
static int get_job(struct get *g, uint64_t *files, uint64_t *bytes) {
        struct executor *all = NULL;
        struct hosts h = {};
        size_t n = 0;
        int r = ask_executors(g->cli, &g->job, false, &g->executors, &g->n_executors);

        if (!r)
                r = ask_executors(g->cli, &g->job, true, &all, &n);
        for (size_t i = 0; i < g->n_executors && !r; i++)
                r = add_host(&h, g->executors[i].node) < 0 ? cli_oom(g->cli) : 0;
        for (size_t i = 0; i < n && !r; i++)
                r = add_host(&h, all[i].node) < 0 ? cli_oom(g->cli) : 0;
        g->files = g->bytes = g->got = 0;
        if (!r)
                r = get_from(g, &h);
        *files += g->files;
        *bytes += g->bytes;
        free(h.names);
        executors_free(all, n);
        executors_free(g->executors, g->n_executors);
        g->executors = NULL;
        g->n_executors = 0;
        return r;
}

static int get_array(struct get *g, const char *array, const struct array_status *a, uint64_t *files,
                     uint64_t *bytes) {
        int r = 0;

        for (uint32_t i = 0, left = a->size; left > 0 && !r && !g->interrupted; i++, left--) {
                char name[32], prefix[16];

                snprintf(name, sizeof(name), "%s[%u]", array, i);
                snprintf(prefix, sizeof(prefix), "%u/", i);
                g->prefix = prefix;
                r = cli_job(g->cli, name, &g->job);
                if (r == CLI_FAILED) { /* said: it has not been made yet */
                        g->failures++;
                        r = 0;
                        continue;
                }
                if (!r)
                        r = get_job(g, files, bytes);
        }
        return r;
}

static int report(struct get *g, const char *directory, uint64_t files, uint64_t bytes, char **wanted) {
        char size[FORMAT_SIZE_MAX];

        for (size_t i = 0; wanted[i] && !g->interrupted; i++)
                if (!g->found[i]) {
                        g->failures++;
                        cli_fail(g->cli, "nothing is called %s; 'primusctl get --list' shows what there is",
                                 wanted[i]);
                }
        if (g->list && g->cli->json)
                puts(*g->json_begun ? "\n]" : "[]");
        else if (g->cli->json)
                (void)cli_print_json(g->cli,
                                     json_pack("{s:s, s:I, s:I, s:I, s:I}", "directory", directory, "files",
                                               (json_int_t)files, "bytes", (json_int_t)bytes, "present",
                                               (json_int_t)g->there, "failures", (json_int_t)g->failures));
        else if (!g->list && files + g->there > 0)
                printf("%" PRIu64 " file%s in %s/: %s fetched, %" PRIu64 " of them there before\n",
                       files + g->there, files + g->there == 1 ? "" : "s", directory,
                       format_size(bytes, size, sizeof(size)), g->there);
        else if (files + g->there == 0 && g->failures == 0 && !*wanted)
                cli_note("Nothing is in the job's $PRIMUS_ARTIFACTS");
        if (g->interrupted)
                return CLI_DETACHED;
        return g->failures > 0 ? CLI_FAILED : CLI_OK;
}

/* ROLE/INDEX, as elsewhere, for ROLE-INDEX: no role has a '-', so it can be nothing else. */
static void name_directory(char *path) {
        size_t role = strcspn(path, "/-"),
               digits = path[role] == '/' ? strspn(path + role + 1, "0123456789") : 0;

        if (role > 0 && digits > 0 && (!path[role + 1 + digits] || path[role + 1 + digits] == '/'))
                path[role] = '-';
}

static int get_run(struct cli *c, void *options, char **args, size_t n) {
        const struct get_options *o = options;
        _cleanup_free_ bool *found = calloc(n + 1, sizeof(bool));
        uint64_t files = 0, bytes = 0;
        bool json_begun = false;
        struct get g = { .cli = c,
                         .prefix = "",
                         .wanted = args + 1,
                         .found = found,
                         .list = o->list,
                         .json_begun = &json_begun,
                         .place = PLACE_EMPTY };
        const char *directory = o->directory ?: args[0];
        struct job_status status = { 0 };
        int r, k;

        if (!found)
                return cli_oom(c);
        for (size_t i = 1; i < n; i++)
                name_directory(args[i]);
        g.place.force = o->force;
        g.progress = !c->json && isatty(STDERR_FILENO);
        r = cli_job(c, args[0], &g.job);
        if (!r)
                r = ask_status(c, &g.job, &status);
        if (r)
                return r;
        if (!o->list && (k = place_open(&g.place, directory)) < 0)
                r = cli_fail(c, "cannot make %s: %s", directory, strerror(-k));
        if (!r)
                r = watch_loop_new(c, &g.event);
        if (!r && (k = interrupt_catch(g.event, on_signal, &g)) < 0)
                r = cli_fail(c, "cannot wait for signals: %s", strerror(-k));
        if (!r)
                r = status.array.size > 0 ? get_array(&g, args[0], &status.array, &files, &bytes)
                                          : get_job(&g, &files, &bytes);
        if (!r)
                r = report(&g, directory, files, bytes, args + 1);
        place_done(&g.place);
        job_status_done(&status);
        (void)sd_bus_flush(c->bus);
        (void)sd_bus_detach_event(c->bus);
        sd_event_unref(g.event);
        return r;
}

static const struct cli_option get_options[] = {
        { "list", 'l', NULL, NULL, offsetof(struct get_options, list),
          "say what there is, and fetch nothing" },
        { "output", 'o', "DIR", option_string, offsetof(struct get_options, directory),
          "where to (default: a directory with the job's number)" },
        { "force", 'f', NULL, NULL, offsetof(struct get_options, force),
          "replace files that are here and differ" },
        { 0 },
};

const struct command get_command = {
        .name = "get",
        .arguments = "[OPTIONS] JOB [PATH...]",
        .help = "Fetch what a job has put into $PRIMUS_ARTIFACTS",
        .details = "From the hosts where it runs or has run, into DIR/ROLE-INDEX/. PATH is a file, a "
                   "directory or a "
                   "pattern\n"
                   "among these, such as worker-0/model.pt or 'worker-*/*.json'. Files that are here with "
                   "the same "
                   "size and\n"
                   "time are not fetched again. Exit status 1: something is missing, and it was said what.",
        .options = get_options,
        .options_size = sizeof(struct get_options),
        .min = 1,
        .max = SIZE_MAX,
        .run = get_run,
};
