/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl rerun. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "tools/primusctl/commands/rerun.h"
#include "tools/primusctl/commands/submit.h"

static int append_change(struct cli *c, sd_bus_message *m, const char *text) {
        char key[512];
        const char *value = cli_key_value(text, key, sizeof(key));

        if (!value)
                return cli_usage(c, "--set KEY=VALUE, such as search.maxTrials=50: %s", text);
        if (!utf8_valid(text, strlen(text)))
                return cli_usage(c, "'%s' is not valid UTF-8", text);
        return sd_bus_message_append(m, "(ss)", key, value) < 0 ? cli_oom(c) : CLI_OK;
}

static int append_changes(struct cli *c, sd_bus_message *m, const struct option_list *set) {
        if (set->n == 0)
                return CLI_OK;
        if (sd_bus_message_open_container(m, 'e', "sv") < 0 || sd_bus_message_append(m, "s", "set") < 0 ||
            sd_bus_message_open_container(m, 'v', "a(ss)") < 0 ||
            sd_bus_message_open_container(m, 'a', "(ss)") < 0)
                return cli_oom(c);
        for (size_t i = 0; i < set->n; i++) {
                int r = append_change(c, m, set->items[i]);

                if (r)
                        return r;
        }
        return sd_bus_message_close_container(m) < 0 || sd_bus_message_close_container(m) < 0 ||
                               sd_bus_message_close_container(m) < 0
                       ? cli_oom(c)
                       : CLI_OK;
}

static int build(struct cli *c, const struct job_ref *job, const struct rerun_options *o,
                 sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r = cli_job_call(c, job, "Rerun", &m);

        if (r)
                return r;
        if (sd_bus_message_open_container(m, 'a', "{sv}") < 0 ||
            (o->failed && sd_bus_message_append(m, "{sv}", "failed", "b", true) < 0) ||
            (o->goes_on && sd_bus_message_append(m, "{sv}", "continue", "u", o->trials) < 0))
                return cli_oom(c);
        r = append_changes(c, m, &o->set);
        if (!r)
                r = submission_append_private(c, m, &o->env, &o->secrets);
        if (r)
                return r;
        if (sd_bus_message_close_container(m) < 0)
                return cli_oom(c);
        (void)sd_bus_message_sensitive(m);
        *ret = TAKE_PTR(m);
        return 0;
}

int rerun_call(struct cli *c, const struct job_ref *job, const struct rerun_options *o, struct job_ref *ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = build(c, job, o, &m);

        if (!r)
                r = cli_call(c, m, job, &reply);
        return r ? r : submission_answer(c, reply, NULL, ret);
}

static int rerun_run(struct cli *c, void *options, char **args, size_t n) {
        struct rerun_options *o = options;
        struct job_ref job, made;
        int r = cli_job(c, args[0], &job);

        (void)n;
        if (!r)
                r = rerun_call(c, &job, o, &made);
        if (r)
                return r;
        if (!o->failed || c->json)
                return submit_announce(c, &made, "", false);
        printf("What failed of job %" PRIu32 " runs again\n", made.number);
        return CLI_OK;
}

static const struct cli_option rerun_options[] = {
        { "failed", 0, NULL, NULL, offsetof(struct rerun_options, failed),
          "of an array: the elements that did not succeed, under the same number" },
        { "set", 0, "KEY=VALUE", option_append, offsetof(struct rerun_options, set),
          "with another value of a key, such as search.maxTrials=50 or worker.vcores=4" },
        { "env", 0, "NAME[=VALUE]", option_append, offsetof(struct rerun_options, env),
          "a variable for every executor; those of the first time ended with the job" },
        { "secret", 0, "NAME=FILE", option_append, offsetof(struct rerun_options, secrets),
          "a private file $PRIMUS_SECRETS_DIR/NAME; likewise" },
        { 0 },
};

const struct command rerun_command = {
        .name = "rerun",
        .arguments = "[OPTIONS] JOB",
        .help = "Run a job that has ended again",
        .details = "The same configuration and files are submitted under a new number, as the same user; "
                   "what it "
                   "was to\n"
                   "wait for (after, begin) is not waited for again.",
        .options = rerun_options,
        .options_size = sizeof(struct rerun_options),
        .lists = { offsetof(struct rerun_options, env) + 1, offsetof(struct rerun_options, secrets) + 1,
                   offsetof(struct rerun_options, set) + 1 },
        .min = 1,
        .max = 1,
        .run = rerun_run,
};
