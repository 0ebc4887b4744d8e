/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts. Invariant: nothing of a script or of its arguments becomes part of a command line that a shell
 * reads. */
#include "tools/primusctl/commands/script.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/primusctl/bus/pack.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/run.h"

#define WORDS_MAX 256u
#define MARK "#PRIMUS"
#define SLURM "#SBATCH"

bool script_is(const char *text, size_t size) {
        return size >= 2 && text[0] == '#' && text[1] == '!';
}

int script_words(char *line, char **words, size_t max, size_t *n) {
        char *to = line;

        for (char *from = line; *from;) {
                char quote = 0;

                from += strspn(from, " \t");
                if (!*from)
                        break;
                if (*n >= max)
                        return -E2BIG;
                words[(*n)++] = to;
                for (; *from && (quote || (*from != ' ' && *from != '\t')); from++)
                        if (quote && *from == quote)
                                quote = 0;
                        else if (!quote && (*from == '\'' || *from == '"'))
                                quote = *from;
                        else
                                *to++ = *from;
                if (quote)
                        return -EINVAL;
                from += *from != 0; /* the blank, whose place the end of the word may need */
                *to++ = 0;
        }
        return 0;
}

static bool begins(const char *line, const char *mark) {
        size_t n = strlen(mark);

        return strncmp(line, mark, n) == 0 && (line[n] == ' ' || line[n] == '\t' || !line[n]);
}

/* The words of all "#PRIMUS" lines, up to the first line that is neither blank nor a comment. */
static int read_head(const struct cli *c, const char *path, char *text, char **words, size_t *ret_n) {
        unsigned number = 0, slurm = 0, marks = 0;
        char *line;
        size_t n = 0;

        while ((line = strsep(&text, "\n"))) {
                size_t end = strlen(line);
                int r;

                number++;
                if (end > 0 && line[end - 1] == '\r')
                        line[end - 1] = 0;
                if (line[strspn(line, " \t")] && *line != '#')
                        break;
                slurm = begins(line, SLURM) && slurm == 0 ? number : slurm;
                if (!begins(line, MARK))
                        continue;
                marks++;
                r = script_words(line + strlen(MARK), words, WORDS_MAX, &n);
                if (r < 0)
                        return cli_complain("%s:%u: %s", path, number,
                                            r == -E2BIG ? "too many options" : "a quote has no end");
        }
        if (slurm > 0 && marks == 0)
                return cli_complain(
                        "%s:%u: #SBATCH lines are not read here; options of 'primusctl run' stand in "
                        "lines such as '#PRIMUS --ntasks=4 --time=1h'",
                        path, slurm);
        *ret_n = n;
        return 0;
}

static int read_options(const struct cli *c, const char *path, char *text, struct run_options *ret) {
        char *words[WORDS_MAX], *left[WORDS_MAX + 1];
        struct global_options global = { 0 };
        size_t n = 0, n_left = 0;
        int r = read_head(c, path, text, words, &n);

        if (!r)
                r = options_parse(c, (int)n, words, false, run_command.options, ret, &global, left, &n_left);
        if (r)
                return r;
        if (n_left > 0)
                return cli_complain("%s: %s: not an option; the command is the script itself", path, left[0]);
        if (ret->detach || ret->parsable || global.json || global.host || global.help || global.version)
                return cli_complain(
                        "%s: --detach, --parsable, --json, --host and their like are for the command "
                        "line, not for a script",
                        path);
        return 0;
}

/* sh finds the script in the job's work directory; its name and the arguments are arguments of sh. */
static char **command_of(const char *name, char *const *arguments) {
        static const char *const head[] = { "/bin/sh", "-c", "exec \"$PRIMUS_WORK/$0\" \"$@\"" };
        size_t n = 0, k = 0;
        char **command;

        while (arguments[n])
                n++;
        command = calloc(ELEMENTSOF(head) + 1 + n + 1, sizeof(*command));
        if (!command)
                return NULL;
        for (; k < ELEMENTSOF(head); k++)
                command[k] = (char *)head[k];
        command[k++] = (char *)name;
        memcpy(command + k, arguments, n * sizeof(*command));
        return command;
}

/* The script, and with --send the folder; the larger bound of the two counts. */
static int send_all(struct cli *c, const char *path, const struct run_options *o,
                    const struct submission *options, struct bundle *ret) {
        const char *files[] = { path, o->send ? "." : NULL, NULL };
        int r = bundle_pack(c, path, o->send ?: "/", files, options->send_max ?: o->send_max, ret);

        return r || options->trial ? r : bundle_upload(c, ret);
}

static int add_all(const struct cli *c, const struct option_list *from, struct option_list *to) {
        const char *why = "";

        for (size_t i = 0; i < from->n; i++)
                if (option_append(from->items[i], to, &why) < 0)
                        return cli_oom(c);
        return 0;
}

static void take_turn(const struct turn_options *script, struct turn_options *turn) {
        turn->queue = turn->queue ?: script->queue;
        turn->signal = turn->signal ?: script->signal;
        turn->visible = turn->visible ?: script->visible;
        turn->priority = turn->priority ?: script->priority;
        turn->requeue |= script->requeue;
        turn->preemptible |= script->preemptible;
        turn->for_hosts |= script->for_hosts;
}

static int submit(struct cli *c, const char *path, char *const *arguments, const struct run_options *o,
                  const struct submission *options, struct job_ref *ret, char **ret_name) {
        _cleanup_free_ char *absolute = realpath(path, NULL), *cwd = o->send ? NULL : getcwd(NULL, 0),
                            *text = NULL;
        _cleanup_(bundle_done) struct bundle bundle = { .fd = -EBADF };
        _cleanup_free_ char **command = NULL;
        struct option_list env = { 0 }, secrets = { 0 }, after = { 0 };
        struct submission s = *options;
        struct run_options named = *o;
        uint32_t n;
        int r;

        if (!absolute || access(absolute, X_OK) < 0)
                return cli_complain("%s: cannot be executed: %s%s%s", path, strerror(errno),
                                    errno == EACCES ? "; chmod +x " : "", errno == EACCES ? path : "");
        if (!cwd && !o->send)
                return cli_fail(c, "the current directory: %s", strerror(errno));
        named.name = s.name ?: o->name ?: basename(absolute);
        command = command_of(basename(absolute), arguments);
        r = command ? run_configure(c, &named, command, basename(absolute), &text, &n) : cli_oom(c);
        if (!r)
                r = run_environment(c, o, &env);
        /* Behind those of the script, so that the command line's count. */
        r = r ?: add_all(c, &options->env, &env);
        r = r ?: add_all(c, &o->secrets, &secrets);
        r = r ?: add_all(c, &options->secrets, &secrets);
        r = r ?: add_all(c, options->after.n > 0 ? &options->after : &o->after, &after);
        r = r ?: send_all(c, absolute, o, options, &bundle);
        if (!r) {
                s.config = text;
                s.config_size = strlen(text);
                s.label = NULL;
                s.name = NULL; /* it is the configuration's */
                s.cwd = cwd;
                s.bundle = s.trial ? NULL : bundle.sha256;
                s.begin = s.begin ?: o->begin;
                s.env = env;
                s.secrets = secrets;
                s.after = after;
                take_turn(&o->turn, &s.turn);
                r = submission_send(c, &s, ret);
        }
        if (!r) {
                *ret_name = strdup(named.name);
                r = *ret_name ? 0 : cli_oom(c);
        }
        free(env.items);
        free(secrets.items);
        free(after.items);
        return r;
}

int script_submit(struct cli *c, const char *path, char *text, char *const *arguments,
                  const struct submission *options, struct job_ref *ret, char **ret_name) {
        struct run_options o = { 0 };
        int r;

        if (strcmp(path, "-") == 0)
                return cli_complain("a script is sent along, so it has to be a file, not standard input");
        r = read_options(c, path, text, &o);
        if (!r)
                r = submit(c, path, arguments, &o, options, ret, ret_name);
        run_options_done(&o);
        return r;
}
