/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl node and replace: the life of hosts. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/names.h"
#include "lib/base/parse.h"
#include "lib/base/when.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/node-show.h"

struct node_options {
        const char *reason, *grace, *deadline, *then, *from, *to;
        bool wait;
};

/* ---- calls ---- */

int node_call_new(struct cli *c, const char *node, const char *method, sd_bus_message **ret) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (!node_name_valid(node))
                return cli_usage(c, "not a node's name: %s", node);
        if (sd_bus_path_encode(MASTER_PATH "/node", node, &path) < 0)
                return cli_oom(c);
        r = cli_connect(c);
        if (r)
                return r;
        if (sd_bus_message_new_method_call(c->bus, ret, MASTER_NAME, path, MASTER_NODE, method) < 0)
                return cli_oom(c);
        (void)sd_bus_message_set_allow_interactive_authorization(*ret, true);
        return 0;
}

int node_call(struct cli *c, const char *node, sd_bus_message *m, sd_bus_message **ret_reply) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = cli_send(c, m, &error, ret_reply);

        if (r < 0 && (sd_bus_error_has_name(&error, MASTER_ERROR_NO_SUCH_NODE) ||
                      sd_bus_error_has_name(&error, SD_BUS_ERROR_UNKNOWN_OBJECT)))
                return cli_fail(c, "there is no node %s; 'primusctl nodes' lists them", node);
        return r < 0 ? cli_call_failed(c, &error, r, NULL, NULL) : 0;
}

/* The worst of the results; an unreachable master ends the round. */
static int worse(int worst, int r) {
        return r ? r : worst;
}

/* gpu, reason: NULL where the method takes none. */
static int simple(struct cli *c, const char *node, const char *method, const char *gpu, const char *reason) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = node_call_new(c, node, method, &m);

        if (!r && gpu && sd_bus_message_append(m, "s", gpu) < 0)
                r = cli_usage(c, "gpu: not valid UTF-8");
        if (!r && reason && sd_bus_message_append(m, "s", reason) < 0)
                r = cli_fail(c, "--reason: not valid UTF-8");
        return r ? r : node_call(c, node, m, &reply);
}

/* ---- remove, declare-dead ---- */

static int node_remove(struct cli *c, const struct node_options *o, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r;

        if (!node_name_valid(args[0]))
                return cli_usage(c, "not a node's name: %s", args[0]);
        r = cli_manager_call(c, "RemoveNode", &m);
        if (!r && sd_bus_message_append(m, "s", args[0]) < 0)
                r = cli_oom(c);
        if (!r)
                r = cli_call(c, m, NULL, &reply);
        if (!r)
                printf("Node %s is no longer of the cluster; its certificate is revoked\n", args[0]);
        return r;
}

static int node_declare_dead(struct cli *c, const struct node_options *o, char **args, size_t n) {
        int r = simple(c, args[0], "DeclareDead", NULL, NULL);

        if (!r)
                printf("Node %s counts as dead; what ran there is lost\n", args[0]);
        return r;
}

/* ---- cordon, uncordon ---- */

static int node_cordon(struct cli *c, const struct node_options *o, char **args, size_t n) {
        int worst = CLI_OK;

        for (size_t i = 0; i < n && worst != CLI_UNREACHABLE; i++) {
                int r = simple(c, args[i], "Cordon", NULL, o->reason ? o->reason : "");
                worst = worse(worst, r);
                if (!r && !c->json)
                        printf("Node %s takes nothing new; what runs there goes on\n", args[i]);
        }
        return worst;
}

static int node_uncordon(struct cli *c, const struct node_options *o, char **args, size_t n) {
        int worst = CLI_OK;

        for (size_t i = 0; i < n && worst != CLI_UNREACHABLE; i++) {
                _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
                const char *left = "";
                int r = node_call_new(c, args[i], "Uncordon", &m);
                if (!r)
                        r = node_call(c, args[i], m, &reply);
                if (!r && sd_bus_message_read(reply, "s", &left) < 0)
                        r = cli_bad_reply(c, -EBADMSG);
                worst = worse(worst, r);
                if (!r && !c->json && *left)
                        printf("Node %s is still held: %s\n", args[i], left);
                else if (!r && !c->json)
                        printf("Node %s is in use\n", args[i]);
        }
        return worst;
}

/* ---- disable, enable: a GPU ---- */

/* "gpu:2" or "gpu:GPU-1234...": what is behind the colon. */
static const char *gpu_word(const char *word) {
        return strncmp(word, "gpu:", 4) == 0 && word[4] ? word + 4 : NULL;
}

static int node_gpus(struct cli *c, const struct node_options *o, char **args, size_t n, bool on) {
        int worst = CLI_OK;

        for (size_t i = 1; i < n; i++)
                if (!gpu_word(args[i]))
                        return cli_usage(
                                c,
                                "not a GPU: %s; expected gpu:NUMBER or gpu:UUID, as 'primusctl node show' has them",
                                args[i]);
        for (size_t i = 1; i < n && worst != CLI_UNREACHABLE; i++) {
                const char *gpu = gpu_word(args[i]);
                int r = on ? simple(c, args[0], "EnableGPU", gpu, NULL)
                           : simple(c, args[0], "DisableGPU", gpu, o->reason ? o->reason : "");
                worst = worse(worst, r);
                if (!r && !c->json)
                        printf(on ? "GPU %s of node %s is in use\n"
                                  : "GPU %s of node %s is given to nobody any more; what runs on it goes on\n",
                               gpu, args[0]);
        }
        return worst;
}

static int node_disable(struct cli *c, const struct node_options *o, char **args, size_t n) {
        return node_gpus(c, o, args, n, false);
}

static int node_enable(struct cli *c, const struct node_options *o, char **args, size_t n) {
        return node_gpus(c, o, args, n, true);
}

/* ---- drain ---- */

/* "2h": from now; or a point in time. */
static int read_deadline(const struct cli *c, const char *text, uint64_t *ret) {
        uint64_t now = now_real(), d;
        int r;

        if (strcmp(text, "infinity") == 0) {
                *ret = UINT64_MAX;
                return 0;
        }
        if (!strchr(text, ':') && !strchr(text, '-') && parse_duration(text, &d) >= 0) {
                *ret = usec_add(now, d);
                return 0;
        }
        r = when_parse(text, now, ret);
        if (r == -ERANGE)
                return cli_usage(c, "--deadline: there is no such date: %s", text);
        if (r < 0)
                return cli_usage(c,
                                 "--deadline: expected a duration like 2h, or a time like 18:30 or "
                                 "'2026-01-31 08:00', not '%s'",
                                 text);
        if (*ret <= now)
                return cli_usage(c, "--deadline: %s is over", text);
        return 0;
}

static int append_drain(struct cli *c, const struct node_options *o, sd_bus_message *m) {
        uint64_t grace, deadline;
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0 && o->reason && (r = sd_bus_message_append(m, "{sv}", "reason", "s", o->reason)) < 0)
                return cli_fail(c, "--reason: not valid UTF-8");
        if (r >= 0 && o->then)
                r = sd_bus_message_append(m, "{sv}", "then", "s", o->then);
        if (r >= 0 && o->grace) {
                if (parse_duration(o->grace, &grace) < 0)
                        return cli_usage(c, "--grace: expected a duration like 30s, not '%s'", o->grace);
                r = sd_bus_message_append(m, "{sv}", "grace", "t", grace);
        }
        if (r >= 0 && o->deadline) {
                int k = read_deadline(c, o->deadline, &deadline);
                if (k)
                        return k;
                r = sd_bus_message_append(m, "{sv}", "deadline", "t", deadline);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? cli_oom(c) : 0;
}

/* Until nothing is left there; says so whenever that changes. */
static int wait_drained(struct cli *c, const char *node) {
        char last[512] = "";

        for (;;) {
                struct node_progress p;
                int r = node_progress(c, node, &p);
                if (r)
                        return r;
                if (!p.drains) {
                        if (!c->json)
                                printf("Node %s does not drain any more\n", node);
                        return CLI_FAILED;
                }
                if (p.left == 0) {
                        if (!c->json)
                                printf("Node %s is drained\n", node);
                        return CLI_OK;
                }
                if (!c->json && strcmp(last, p.text) != 0) {
                        printf("Node %s: %s\n", node, p.text);
                        (void)fflush(stdout);
                        memcpy(last, p.text, sizeof(last));
                }
                (void)nanosleep(&(struct timespec){ .tv_nsec = 250 * 1000 * 1000 }, NULL);
        }
}

static int drain_one(struct cli *c, const struct node_options *o, const char *node) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        struct node_progress p;
        int r = node_call_new(c, node, "Drain", &m);

        if (!r)
                r = append_drain(c, o, m);
        if (!r)
                r = node_call(c, node, m, &reply);
        if (r || o->wait || c->json)
                return r;
        r = node_progress(c, node, &p);
        if (!r)
                printf("Node %s drains: %s\n", node, p.text);
        return r;
}

static int node_drain(struct cli *c, const struct node_options *o, char **args, size_t n) {
        int worst = CLI_OK;

        for (size_t i = 0; i < n && worst != CLI_UNREACHABLE; i++)
                worst = worse(worst, drain_one(c, o, args[i]));
        for (size_t i = 0; i < n && o->wait && !worst; i++)
                worst = wait_drained(c, args[i]);
        return worst;
}

/* ---- label ---- */

static int node_label(struct cli *c, const struct node_options *o, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = node_call_new(c, args[0], "SetLabels", &m);

        if (!r && sd_bus_message_append_strv(m, args + 1) < 0)
                r = cli_fail(c, "a label is not valid UTF-8");
        return r ? r : node_call(c, args[0], m, &reply);
}

/* ---- maintenance ---- */

static int read_time(const struct cli *c, const char *option, const char *text, uint64_t *ret) {
        int r = when_parse(text, now_real(), ret);

        if (r == -ERANGE)
                return cli_usage(c, "--%s: there is no such date: %s", option, text);
        return r < 0 ? cli_usage(c,
                                 "--%s: expected a time like 18:30, tomorrow 08:00, +2h or '2026-01-31 "
                                 "08:00', not '%s'",
                                 option, text)
                     : 0;
}

static int maintenance_set(struct cli *c, const struct node_options *o, const char *node) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        uint64_t from, to;
        int r = read_time(c, "from", o->from, &from);

        if (!r)
                r = read_time(c, "to", o->to, &to);
        if (!r && to <= from)
                r = cli_usage(c, "--to is before --from");
        if (!r)
                r = node_call_new(c, node, "SetMaintenance", &m);
        if (!r && sd_bus_message_append(m, "tts", from, to, o->reason ? o->reason : "") < 0)
                r = cli_fail(c, "--reason: not valid UTF-8");
        if (!r)
                r = node_call(c, node, m, &reply);
        return r ? r : node_show_windows(c, node);
}

static int maintenance_cancel(struct cli *c, const char *node, const char *from_text) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        uint64_t from;
        int r = node_find_window(c, node, from_text, &from);

        if (!r)
                r = node_call_new(c, node, "CancelMaintenance", &m);
        if (!r && sd_bus_message_append(m, "t", from) < 0)
                r = cli_oom(c);
        if (!r)
                r = node_call(c, node, m, &reply);
        if (!r && !c->json)
                printf("The maintenance window of node %s is cancelled\n", node);
        return r;
}

static int node_maintenance(struct cli *c, const struct node_options *o, char **args, size_t n) {
        if (n > 1 && strcmp(args[1], "cancel") == 0)
                return maintenance_cancel(c, args[0], n > 2 ? args[2] : NULL);
        if (n > 1)
                return cli_usage(c,
                                 "after the node's name: --from TIME --to TIME, or cancel [TIME], not '%s'",
                                 args[1]);
        if (!o->from != !o->to)
                return cli_usage(c, "--from and --to go together");
        return o->from ? maintenance_set(c, o, args[0]) : node_show_windows(c, args[0]);
}

/* ---- the commands ---- */

static int show(struct cli *c, const struct node_options *o, char **args, size_t n) {
        return node_show(c, args[0]);
}

static int events(struct cli *c, const struct node_options *o, char **args, size_t n) {
        return node_events(c, args[0]);
}

enum {
        REASON = 1,
        DRAIN = 2,
        WINDOW = 4
};

static int node_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct {
                const char *verb, *arguments;
                size_t min, max;
                unsigned options;
                int (*run)(struct cli *c, const struct node_options *o, char **args, size_t n);
        } verbs[] = {
                { "show", "NAME", 1, 1, 0, show },
                { "events", "NAME", 1, 1, 0, events },
                { "cordon", "NAME... [--reason=TEXT]", 1, SIZE_MAX, REASON, node_cordon },
                { "uncordon", "NAME...", 1, SIZE_MAX, 0, node_uncordon },
                { "drain",
                  "NAME... [--reason=TEXT] [--grace=TIME] [--deadline=TIME] [--then=reboot|poweroff] "
                  "[--wait]",
                  1, SIZE_MAX, REASON | DRAIN, node_drain },
                { "disable", "NAME gpu:NUMBER|gpu:UUID... [--reason=TEXT]", 2, SIZE_MAX, REASON,
                  node_disable },
                { "enable", "NAME gpu:NUMBER|gpu:UUID...", 2, SIZE_MAX, 0, node_enable },
                { "label", "NAME KEY=VALUE|KEY-...", 2, SIZE_MAX, 0, node_label },
                { "maintenance", "NAME [--from=TIME --to=TIME [--reason=TEXT] | cancel [TIME]]", 1, 3,
                  REASON | WINDOW, node_maintenance },
                { "declare-dead", "NAME", 1, 1, 0, node_declare_dead },
                { "remove", "NAME", 1, 1, 0, node_remove },
        };
        const struct node_options *o = options;

        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                if (strcmp(verbs[i].verb, args[0]) != 0)
                        continue;
                if (n - 1 < verbs[i].min || n - 1 > verbs[i].max)
                        return cli_usage(c, "usage: primusctl node %s %s", verbs[i].verb, verbs[i].arguments);
                if (o->reason && !(verbs[i].options & REASON))
                        return cli_usage(c, "--reason goes with cordon, disable, drain and maintenance");
                if ((o->grace || o->deadline || o->then || o->wait) && !(verbs[i].options & DRAIN))
                        return cli_usage(c, "--grace, --deadline, --then and --wait go with drain");
                if ((o->from || o->to) && !(verbs[i].options & WINDOW))
                        return cli_usage(c, "--from and --to go with maintenance");
                return verbs[i].run(c, o, args + 1, n - 1);
        }
        return cli_usage(c,
                         "there is no 'node %s'; there are show, cordon, uncordon, drain, disable, enable, "
                         "label, maintenance, declare-dead and remove",
                         args[0]);
}

static const struct cli_option node_options[] = {
        { "reason", 0, "TEXT", option_string, offsetof(struct node_options, reason),
          "why, for those who look at the host" },
        { "grace", 0, "TIME", option_string, offsetof(struct node_options, grace),
          "drain: between SIGTERM and SIGKILL, instead of each job's own" },
        { "deadline", 0, "TIME", option_string, offsetof(struct node_options, deadline),
          "drain: let executors end by themselves until then (2h, 18:30, infinity)" },
        { "then", 0, "ACTION", option_string, offsetof(struct node_options, then),
          "drain: reboot or poweroff when nothing is left" },
        { "wait", 0, NULL, NULL, offsetof(struct node_options, wait), "drain: until nothing is left there" },
        { "from", 0, "TIME", option_string, offsetof(struct node_options, from),
          "maintenance: when it begins (18:30, tomorrow 08:00, +2h, '2026-01-31 08:00')" },
        { "to", 0, "TIME", option_string, offsetof(struct node_options, to), "maintenance: when it ends" },
        { 0 },
};

const struct command node_command = {
        .name = "node",
        .arguments =
                "show|cordon|uncordon|drain|disable|enable|label|maintenance|declare-dead|remove NAME ...",
        .help = "Look at a host, take it out of use and back, vouch that it is dead",
        .details =
                "show: everything about the host, and what runs there.\n"
                "cordon: nothing new is placed there; uncordon ends that, and a drain.\n"
                "drain: what runs there is stopped and goes on elsewhere, which is neither a failure nor a "
                "success;\n"
                "what is not started again after a failure (restartType NEVER) is waited for. With "
                "--deadline,\n"
                "everything may end by itself until then. After --then=reboot the host comes back in use.\n"
                "disable gpu:2: nobody gets that GPU (its number or uuid) until it is enabled.\n"
                "label: KEY=VALUE sets a label, KEY- takes it away again.\n"
                "maintenance: before the window nothing starts that would run into it; in it the host is "
                "drained.\n"
                "declare-dead: for a host that is SUSPECT or LOST. Its executors are LOST at once and may be "
                "placed\n"
                "again, also where onPartition is wait. Be sure that it is off: two attempts must not run at "
                "once.\n"
                "remove: the host's certificate is revoked, it has to join again.",
        .options = node_options,
        .options_size = sizeof(struct node_options),
        .min = 2,
        .max = SIZE_MAX,
        .run = node_run,
};

struct replace_options {
        bool undo;
};

static int replace_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        const struct replace_options *o = options;
        struct job_ref job;
        uint32_t moved;
        int r;

        if (!node_name_valid(args[1]))
                return cli_usage(c, "not a node's name: %s", args[1]);
        r = cli_job(c, args[0], &job);
        if (!r)
                r = cli_job_call(c, &job, o->undo ? "AllowNode" : "Replace", &m);
        if (!r && sd_bus_message_append(m, "s", args[1]) < 0)
                r = cli_oom(c);
        if (!r)
                r = cli_call(c, m, &job, &reply);
        if (r)
                return r;
        if (o->undo) {
                if (!c->json)
                        printf("Job %" PRIu32 " may be placed on %s again\n", job.number, args[1]);
                return CLI_OK;
        }
        if (sd_bus_message_read(reply, "u", &moved) < 0)
                return cli_bad_reply(c, -EBADMSG);
        if (!c->json && moved > 0)
                printf("Job %" PRIu32 ": %" PRIu32 " executor%s leave%s %s, which it avoids from now on\n",
                       job.number, moved, moved == 1 ? "" : "s", moved == 1 ? "s" : "", args[1]);
        else if (!c->json)
                printf("Job %" PRIu32 " has nothing on %s, and avoids it from now on\n", job.number, args[1]);
        return CLI_OK;
}

static const struct cli_option replace_options[] = {
        { "undo", 0, NULL, NULL, offsetof(struct replace_options, undo),
          "the job may be placed there again, whatever has failed there" },
        { 0 },
};

const struct command replace_command = {
        .name = "replace",
        .arguments = "[--undo] JOB HOST",
        .help = "Move a job's executors off a host, which it avoids from then on",
        .details = "They are stopped with the job's grace and go on elsewhere, which is neither a failure "
                   "nor a success.",
        .options = replace_options,
        .options_size = sizeof(struct replace_options),
        .min = 2,
        .max = 2,
        .run = replace_run,
};
