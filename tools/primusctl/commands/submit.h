/* SPDX-License-Identifier: Apache-2.0 */
/* Handing a job to the master; shared by submit, run and primus-submit. */
#pragma once

#include "masterd/spec/diagnostics.h"
#include "tools/primusctl/cli/cli.h"
#include "tools/primusctl/cli/options.h"
#include "tools/primusctl/commands/turn.h"

struct submission {
        const char *label; /* the configuration's name in messages; NULL: made by primusctl itself */
        const char *config;
        size_t config_size;
        const char *cwd;          /* or NULL */
        const char *name;         /* instead of the configuration's, or NULL */
        const char *bundle;       /* sha256, or NULL */
        const char *savepoint;    /* go on from that one, or NULL */
        struct option_list after; /* JOB[:ok|fail|any]; several in one with ',' between */
        const char *array;        /* or NULL */
        char *const *arguments;   /* of a script, NULL-ended; NULL: a script is not expected */
        const char *begin;        /* as when_parse(), or NULL */
        const char *key;          /* NULL: one that is made for this call */
        bool trial;               /* only say what would become of it */
        uint64_t send_max;        /* bytes of files, 0: BUNDLE_SEND_MAX */
        const struct diagnostics
                *diagnostics; /* what is wrong with the configuration as seen here; or NULL */
        struct turn_options turn;
        struct option_list env;     /* NAME=VALUE, or NAME: the caller's own */
        struct option_list secrets; /* NAME=FILE */
};

/* The env and secrets of a call that takes options as Submit does. */
int submission_append_private(struct cli *c, sd_bus_message *m, const struct option_list *env,
                              const struct option_list *secrets);

/* Reads Submit's answer; label as above. */
int submission_answer(struct cli *c, sd_bus_message *reply, const char *label, struct job_ref *ret);

/* Submits; warnings go to standard error. Of a trial the answer is printed, and *ret stays as it is. */
int submission_send(struct cli *c, const struct submission *s, struct job_ref *ret);

/* Reads FILE, packs and uploads its files[], submits. options: env, secrets, name. *ret_name (allocated) is
 * the job's name,
 * "" when it cannot be told. */
int submit_file(struct cli *c, const char *file, const struct submission *options, struct job_ref *ret,
                char **ret_name);

/* "Submitted job 418 (primus-hello)", or that as JSON; parsable: "418". */
int submit_announce(const struct cli *c, const struct job_ref *job, const char *name, bool parsable);
