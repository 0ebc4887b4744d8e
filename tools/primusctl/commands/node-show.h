/* SPDX-License-Identifier: Apache-2.0 */
/* One host, as people see it. Functions return exit statuses, see cli.h. */
#pragma once

#include "tools/primusctl/cli/cli.h"

/* A call of a node's method, and sending it. */
int node_call_new(struct cli *c, const char *node, const char *method, sd_bus_message **ret);
int node_call(struct cli *c, const char *node, sd_bus_message *m, sd_bus_message **ret_reply);

/* Everything about it, and what runs there. */
int node_show(struct cli *c, const char *node);
/* What has happened to it. */
int node_events(struct cli *c, const char *node);
/* Its maintenance windows. */
int node_show_windows(struct cli *c, const char *node);
/* When the window begins that text names: a time within the minute, or its only one (NULL). */
int node_find_window(struct cli *c, const char *node, const char *text, uint64_t *ret_from);

struct node_progress {
        bool drains;
        size_t left;    /* executors */
        char text[512]; /* "3 executors left: worker/0 of job 7 RUNNING, ..." */
};
int node_progress(struct cli *c, const char *node, struct node_progress *ret);
