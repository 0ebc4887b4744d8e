/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: what the threads of an executor are doing. */
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/link/orders.h"

int api_asking_new(sd_bus_message *call, const struct executor *e, struct api_asking **ret) {
        struct api_asking *a = calloc(1, sizeof(*a));

        if (!a)
                return -ENOMEM;
        a->call = sd_bus_message_ref(call);
        snprintf(a->node, sizeof(a->node), "%s", e->node->name);
        *ret = a;
        return 0;
}

void api_asking_free(struct api_asking *a) {
        sd_bus_message_unref(a->call);
        free(a);
}

int api_asking_failed(struct api_asking *a, int r, sd_bus_error *error) {
        if (r == -ENOTCONN)
                r = sd_bus_error_setf(error, ERROR_NOT_FOUND, "%s is not connected at the moment", a->node);
        api_asking_free(a);
        return r;
}

/* Passes the agent's own words on; what the bus says, with the name of the host. */
void api_asking_refused(const struct api_asking *a, const sd_bus_error *e) {
        const char *text = e->message ?: e->name;
        char clean[512];

        utf8_clean(text, strlen(text), clean, sizeof(clean));
        if (error_is_primus(e->name))
                (void)reply_errorf(a->call, e->name, "%s", clean);
        else
                (void)reply_errorf(a->call, ERROR_NOT_FOUND, "%s does not answer: %s", a->node, clean);
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

static void on_captured(struct manager *m, const struct capture *c, const sd_bus_error *error,
                        void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct api_asking *a = userdata;
        int r;

        if (error)
                api_asking_refused(a, error);
        else if ((r = sd_bus_message_new_method_return(a->call, &reply)) >= 0 &&
                 (r = capture_append(reply, c)) >= 0)
                (void)reply_send(reply);
        api_asking_free(a);
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
        struct api_asking *a;
        int r;

        if (!e)
                return -ENOENT;
        if ((r = options_read(call, "Capture", "option", capture_options, &o, error)) < 0 ||
            (r = api_asking_new(call, e, &a)) < 0)
                return r;
        r = orders_capture_all(m, e, o.quiet ? 0 : CAPTURE_PYTHON, on_captured, a);
        return r < 0 ? api_asking_failed(a, r, error) : 1;
}
