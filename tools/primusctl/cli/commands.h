/* SPDX-License-Identifier: Apache-2.0 */
/* Every command of primusctl. */
#pragma once

#include "tools/primusctl/cli/options.h"

extern const struct command submit_command, run_command, list_command, status_command, wait_command,
        logs_command, kill_command, succeed_command, delete_command, events_command, nodes_command,
        node_command, validate_command, config_command, token_command, join_command, data_command,
        savepoint_command, suspend_command, resume_command, rerun_command, top_command, usage_command,
        why_command, replace_command;
extern const struct command queue_command, pools_command, requeue_command;
extern const struct command stacks_command, trace_command, actors_command;
extern const struct command doctor_command;
extern const struct command backup_command, restore_command;
extern const struct command get_command;
extern const struct command web_command, banner_command, login_command;
extern const struct command search_command, metrics_command, checkpoints_command, model_command;
extern const struct command provider_command;
extern const struct command exec_command, shell_command, forward_command, notebook_command,
        tensorboard_command;
extern const struct command update_command, scale_command, role_command, restart_command;

/* primusctl data add: a source that stands in a file, at that version of the job (NULL: at any). */
int change_add_source(struct cli *c, const char *job, const char *file, const char *version);
int change_replace_sources(struct cli *c, const char *job, const char *file, const char *version);

/* primus-submit, compatible with upstream's: --primus_conf FILE [--wait_app_completion true] [--command
 * submit]. */
int primus_submit_main(struct cli *c, int argc, char **argv);
