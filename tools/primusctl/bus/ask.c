/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to masterd. */
#include "tools/primusctl/bus/ask.h"

#include <inttypes.h>

static int ask_json(struct cli *c, sd_bus_message *m, const struct job_ref *job, const struct json_shape *s,
                    int (*read)(sd_bus_message *m, const struct json_shape *s, bool hidden, json_t **ret),
                    json_t **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *reply = NULL;
        int r = cli_call(c, m, job, &reply);

        if (r)
                return r;
        r = read(reply, s, !c->json, ret);
        return r == -ENOMEM ? cli_oom(c) : r < 0 ? cli_bad_reply(c, r) : 0;
}

int ask_object(struct cli *c, sd_bus_message *m, const struct job_ref *job, const struct json_shape *s,
               json_t **ret) {
        return ask_json(c, m, job, s, json_read_object, ret);
}

int ask_list(struct cli *c, sd_bus_message *m, const struct job_ref *job, const struct json_shape *s,
             json_t **ret) {
        return ask_json(c, m, job, s, json_read_list, ret);
}

int ask_manager_list(struct cli *c, const char *method, const struct json_shape *s, json_t **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r = cli_manager_call(c, method, &m);

        return r ? r : ask_list(c, m, NULL, s, ret);
}

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

int ask_no_array(struct cli *c, const struct job_ref *job) {
        _cleanup_(job_status_done) struct job_status s = { 0 };
        int r = ask_status(c, job, &s);

        if (r || s.array.size == 0)
                return r;
        return cli_fail(c,
                        "job %" PRIu32 " is an array: name one of its elements, %" PRIu32
                        "[INDEX]; 'primusctl "
                        "list --array %" PRIu32 "' shows them",
                        job->number, job->number, job->number);
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

int ask_status_json(struct cli *c, const struct job_ref *job, json_t **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r = cli_job_call(c, job, "GetStatus", &m);

        return r ? r : ask_object(c, m, job, &json_status, ret);
}
