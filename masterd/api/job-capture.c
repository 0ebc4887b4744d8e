/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: what the threads of an executor are doing. */
#include <string.h>

#include "lib/base/parse.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/manager.h"
#include "masterd/orders.h"

/* Passes the agent's own words on; what the bus says, with the name of the host. */
void api_answer_agent_error(sd_bus_message *call, const char *node, const sd_bus_error *e) {
        const char *text = e->message ?: e->name;
        char clean[512];

        utf8_clean(text, strlen(text), clean, sizeof(clean));
        if (strncmp(e->name, "org.primus.Error.", 17) == 0)
                (void)sd_bus_reply_method_errorf(call, e->name, "%s", clean);
        else
                (void)sd_bus_reply_method_errorf(call, ERROR_NOT_FOUND, "%s does not answer: %s", node,
                                                 clean);
}

struct executor *api_running_executor(struct manager *m, sd_bus_message *call, sd_bus_error *error) {
        struct job *j = api_job_or_error(m, call, error);
        struct executor *e;
        const char *role;
        uint32_t index;

        if (!j)
                return NULL;
        if (sd_bus_message_read(call, "su", &role, &index) < 0) {
                (void)sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "a role and an index are expected");
                return NULL;
        }
        e = job_executor(j, role, index);
        if (!e)
                (void)sd_bus_error_setf(error, ERROR_NOT_FOUND, "Job %u has no executor %.*s/%u", j->number,
                                        utf8_fit(role, 33), role, index);
        else if ((e->state != EXECUTOR_RUNNING && e->state != EXECUTOR_STOPPING) || !e->node)
                (void)sd_bus_error_setf(error, ERROR_NOT_FOUND,
                                        "%s/%u of job %u is %s: only one that runs can be looked at", role,
                                        index, j->number, executor_state_to_string(e->state));
        else
                return e;
        return NULL;
}

struct asking {
        sd_bus_message *call;
        char node[65];
};

static void on_captured(struct manager *m, const struct capture *c, const sd_bus_error *error,
                        void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct asking *a = userdata;
        int r;

        if (error)
                api_answer_agent_error(a->call, a->node, error);
        else if ((r = sd_bus_message_new_method_return(a->call, &reply)) >= 0 &&
                 (r = capture_append(reply, c)) >= 0)
                (void)sd_bus_send(NULL, reply, NULL);
        sd_bus_message_unref(a->call);
        free(a);
}

struct options {
        bool quiet;
};

static const struct call_option capture_options[] = {
        { "quiet", 'b', offsetof(struct options, quiet), NULL },
        { NULL },
};

int api_capture(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct executor *e = api_running_executor(m, call, error);
        struct options o = {};
        struct asking *a;
        int r;

        if (!e)
                return -ENOENT;
        r = options_read(call, "Capture", "option", capture_options, &o, error);
        if (r < 0)
                return r;
        a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        a->call = sd_bus_message_ref(call);
        snprintf(a->node, sizeof(a->node), "%s", e->node->name);
        r = orders_capture_all(m, e, o.quiet ? 0 : CAPTURE_PYTHON, on_captured, a);
        if (r >= 0)
                return 1;
        sd_bus_message_unref(a->call);
        free(a);
        return r == -ENOTCONN ? sd_bus_error_setf(error, ERROR_NOT_FOUND, "%s is not connected at the moment",
                                                  e->node->name)
                              : r;
}
