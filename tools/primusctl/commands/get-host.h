/* SPDX-License-Identifier: Apache-2.0 */
/* What one host has of a job: its list, then the files that are wanted of it. */
#pragma once

#include <stdio.h>
#include <systemd/sd-event.h>

#include "tools/primusctl/bus/job.h"
#include "tools/primusctl/cli/cli.h"
#include "tools/primusctl/commands/get-place.h"

struct get {
        struct cli *cli;
        sd_event *event;
        struct job_ref job;
        struct executor *executors; /* the latest attempts: whose place is where */
        size_t n_executors;
        const char *prefix; /* of every path here: "" or "INDEX/" of an element */
        char **wanted;      /* paths and patterns, NULL-ended; none: everything */
        bool *found;        /* for each of them: something was */
        bool list;          /* and nothing else */
        bool *json_begun;
        struct place place;
        uint64_t files, bytes, there, got; /* wanted, their bytes, equal ones here already, bytes that came */
        unsigned failures;                 /* each was said */
        bool progress, interrupted;
};

/* Lists the host's files: prints them, or makes the directories and links and writes what is wanted to wants.
 */
void get_host_list(struct get *g, const char *node, FILE *wants);
/* Fetches these. */
void get_host_fetch(struct get *g, const char *node, FILE *wants);
