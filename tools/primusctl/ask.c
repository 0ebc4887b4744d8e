/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to masterd about a job. */
#include "tools/primusctl/ask.h"

int ask_properties_call(struct cli *c, const struct job_ref *job, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;

        if (sd_bus_message_new_method_call(c->bus, &m, MASTER_NAME, job->path,
                                           "org.freedesktop.DBus.Properties", "GetAll") < 0 ||
            sd_bus_message_append(m, "s", MASTER_JOB) < 0)
                return cli_oom(c);
        *ret = TAKE_PTR(m);
        return 0;
}

int ask_properties(struct cli *c, const struct job_ref *job, struct job_properties *ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = ask_properties_call(c, job, &m);

        if (!r)
                r = cli_call(c, m, job, &reply);
        if (!r && job_properties_read(reply, ret) < 0)
                r = cli_bad_reply(c, -EBADMSG);
        if (!r && (!ret->state || !ret->name))
                r = cli_bad_reply(c, -ENODATA);
        return r;
}

int ask_status(struct cli *c, const struct job_ref *job, struct job_status *ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = cli_job_call(c, job, "GetStatus", &m);

        if (!r)
                r = cli_call(c, m, job, &reply);
        if (!r && job_status_read(reply, ret) < 0)
                r = cli_bad_reply(c, -EBADMSG);
        return r;
}

int ask_executors(struct cli *c, const struct job_ref *job, bool all, struct executor **ret, size_t *ret_n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = cli_job_call(c, job, "ListExecutors", &m);

        if (!r && sd_bus_message_append(m, "b", all) < 0)
                r = cli_oom(c);
        if (!r)
                r = cli_call(c, m, job, &reply);
        if (!r && executors_read(reply, ret, ret_n) < 0)
                r = cli_bad_reply(c, -EBADMSG);
        return r;
}
