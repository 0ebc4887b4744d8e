/* SPDX-License-Identifier: Apache-2.0 */
/* What people type who come from Slurm, Kubernetes, docker or ps. Suggested, never taken: a letter may mean
 * another thing there. */
#include <string.h>

#include "tools/primusctl/cli/options.h"

/* One row for each option that could be meant; the first that the command has is. */
static const struct {
        const char *word, *option;
} options[] = {
        { "-A", "queue" },
        { "-G", "gpus" },
        { "-J", "name" },
        { "-N", "hosts" },
        { "-a", "array" },
        { "-c", "cpus" },
        { "-d", "after" },
        { "-e", "env" },
        { "-f", "follow" },
        { "-m", "mem" },
        { "-w", "hosts" },
        { "--account", "queue" },
        { "--cores", "cpus" },
        { "--cpu", "cpus" },
        { "--cpus-per-task", "cpus" },
        { "--dependency", "after" },
        { "--environment", "env" },
        { "--export", "env" },
        { "--gpu", "gpus" },
        { "--gpus-per-node", "gpus" },
        { "--gpus-per-task", "gpus" },
        { "--gres", "gpus" },
        { "--host-list", "hosts" },
        { "--job-name", "name" },
        { "--lines", "tail" },
        { "--memory", "mem" },
        { "--nnodes", "hosts" },
        { "--nodelist", "hosts" },
        { "--nodes", "hosts" },
        { "--np", "ntasks" },
        { "--nproc", "ntasks" },
        { "--nproc-per-node", "per-host" },
        { "--nproc_per_node", "per-host" },
        { "--ntasks-per-node", "per-host" },
        { "--num", "ntasks" },
        { "--out", "output" },
        { "--partition", "queue" },
        { "--pool", "queue" },
        { "--processes", "ntasks" },
        { "--replicas", "ntasks" },
        { "--start", "begin" },
        { "--tasks", "ntasks" },
        { "--timeout", "time" },
        { "--walltime", "time" },
        { "--workers", "ntasks" },
};

static const struct {
        const char *word, *command;
} commands[] = {
        { "abort", "kill" },
        { "bash", "shell" },
        { "cancel", "kill" },
        { "cat", "config" },
        { "check", "validate" },
        { "continue", "resume" },
        { "cordon", "node" },
        { "describe", "status" },
        { "drain", "node" },
        { "explain", "why" },
        { "get", "list" },
        { "history", "list" },
        { "hold", "suspend" },
        { "hosts", "nodes" },
        { "info", "status" },
        { "jobs", "list" },
        { "launch", "run" },
        { "lint", "validate" },
        { "log", "logs" },
        { "ls", "list" },
        { "partitions", "pools" },
        { "pause", "suspend" },
        { "port-forward", "forward" },
        { "ps", "list" },
        { "pstack", "stacks" },
        { "py-spy", "stacks" },
        { "queues", "pools" },
        { "release", "resume" },
        { "remove", "delete" },
        { "rm", "delete" },
        { "sacct", "usage" },
        { "sbatch", "submit" },
        { "scancel", "kill" },
        { "scontrol", "update" },
        { "sh", "shell" },
        { "show", "status" },
        { "signal", "kill" },
        { "sinfo", "nodes" },
        { "squeue", "queue" },
        { "srun", "run" },
        { "ssh", "shell" },
        { "start", "submit" },
        { "stop", "kill" },
        { "strace", "trace" },
        { "tail", "logs" },
        { "terminate", "kill" },
};

const char *option_known_as(const struct cli_option *table, const char *arg) {
        size_t n = strcspn(arg, "=");

        for (size_t i = 0; i < ELEMENTSOF(options); i++)
                if (strlen(options[i].word) == n && strncmp(options[i].word, arg, n) == 0)
                        for (const struct cli_option *o = table; o && o->name; o++)
                                if (strcmp(o->name, options[i].option) == 0)
                                        return o->name;
        return NULL;
}

const char *command_known_as(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                if (strcmp(commands[i].word, name) == 0)
                        return commands[i].command;
        return NULL;
}
