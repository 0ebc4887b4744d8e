/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl backup and restore: the work is primus-state's, which links what they need. */
#include <string.h>
#include <unistd.h>

#include "tools/primusctl/cli/commands.h"

struct backup_options {
        bool bundles, plain, check, no_settings, with_hooks, without_mac;
        const char *key;
        uint32_t keep;
};

static int run_state(struct cli *c, const char *command, const struct backup_options *o, const char *file) {
        const char *argv[16] = { PRIMUS_LIBEXECDIR "/primus-state", command };
        char keep[16];
        size_t i = 2;

        if (c->host)
                return cli_usage(c, "%s works on the master's host; run it there: ssh %s primusctl %s %s",
                                 command, c->host, command,
                                 strcmp(command, "backup") == 0 ? "- > FILE" : "- < FILE");
        if (o->bundles)
                argv[i++] = "--bundles";
        if (o->plain)
                argv[i++] = "--plain";
        if (o->check)
                argv[i++] = "--check";
        if (o->no_settings)
                argv[i++] = "--no-settings";
        if (o->with_hooks)
                argv[i++] = "--with-hooks";
        if (o->without_mac)
                argv[i++] = "--without-mac";
        if (o->key) {
                argv[i++] = "--key";
                argv[i++] = o->key;
        }
        if (o->keep > 0) {
                snprintf(keep, sizeof(keep), "%u", o->keep);
                argv[i++] = "--keep";
                argv[i++] = keep;
        }
        argv[i++] = "--";
        argv[i++] = file;
        /* execv() promises not to change them. */
        execv(argv[0], (char *const *)argv);
        return cli_fail(c, "cannot run %s: %s; is the package primus-master installed?", argv[0],
                        strerror(errno));
}

static int backup_run(struct cli *c, void *options, char **args, size_t n) {
        (void)n;
        return run_state(c, "backup", options, args[0]);
}

static int restore_run(struct cli *c, void *options, char **args, size_t n) {
        (void)n;
        return run_state(c, "restore", options, args[0]);
}

static const struct cli_option backup_options[] = {
        { "bundles", 0, NULL, NULL, offsetof(struct backup_options, bundles),
          "with the files of jobs, which can be large" },
        { "plain", 0, NULL, NULL, offsetof(struct backup_options, plain), "not compressed" },
        { "keep", 0, "N", option_count, offsetof(struct backup_options, keep),
          "FILE is a directory: a new file there, and only the N latest stay" },
        { 0 },
};

const struct command backup_command = {
        .name = "backup",
        .arguments = "FILE|- [OPTIONS]",
        .help = "Write the master's state to a file, while it runs",
        .details = "On the master's host, as root. The file holds the cluster's key and secrets of jobs, and "
                   "is made\n"
                   "for its owner alone (mode 0600).",
        .options = backup_options,
        .options_size = sizeof(struct backup_options),
        .min = 1,
        .max = 1,
        .run = backup_run,
};

static const struct cli_option restore_options[] = {
        { "check", 0, NULL, NULL, offsetof(struct backup_options, check), "only look whether FILE is good" },
        { "no-settings", 0, NULL, NULL, offsetof(struct backup_options, no_settings),
          "leave the settings in /etc/primus as they are" },
        { "with-hooks", 0, NULL, NULL, offsetof(struct backup_options, with_hooks),
          "take the hooks too: programs that this host runs as root" },
        { "key", 0, "KEY", option_string, offsetof(struct backup_options, key),
          "check the backup's MAC with this copy of /etc/primus/backup.key" },
        { "without-mac", 0, NULL, NULL, offsetof(struct backup_options, without_mac),
          "take the state of a backup for which nobody vouches; no settings, no hooks" },
        { 0 },
};

const struct command restore_command = {
        .name = "restore",
        .arguments = "FILE|- [OPTIONS]",
        .help = "Put the state of a backup in place of the master's",
        .details = "On the master's host or on one that is to be it, as root, with primus-masterd stopped. "
                   "All of FILE is\n"
                   "checked before anything is changed, and the state that was there is kept.",
        .options = restore_options,
        .options_size = sizeof(struct backup_options),
        .min = 1,
        .max = 1,
        .run = restore_run,
};
