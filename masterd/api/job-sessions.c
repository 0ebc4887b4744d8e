/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: sessions in executors. Who opens one is asked who he is; the other calls are known
 * by their sender. */
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "lib/wire/skip.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/core/manager.h"
#include "masterd/relay/sessions.h"

#define VARIABLES_MAX 64u

struct options {
        struct session_request request;
        char *environment[VARIABLES_MAX + 1];
        size_t n_environment;
};

static void options_done(struct options *o) {
        for (size_t i = 0; i < o->n_environment; i++)
                free(o->environment[i]);
}

static int read_environment(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        struct options *o = target;
        const void *p;
        size_t size;
        int r = sd_bus_message_enter_container(call, 'v', "aay");

        if (r >= 0)
                r = sd_bus_message_enter_container(call, 'a', "ay");
        while (r >= 0 && (r = sd_bus_message_read_array(call, 'y', &p, &size)) > 0) {
                if (o->n_environment == VARIABLES_MAX || !memchr(p, '=', size) || memchr(p, 0, size))
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                                 "env: at most %u entries NAME=VALUE are expected",
                                                 VARIABLES_MAX);
                o->environment[o->n_environment] = strndup(p, size);
                if (!o->environment[o->n_environment])
                        return -ENOMEM;
                o->n_environment++;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(call);
        return r < 0 ? r : sd_bus_message_exit_container(call);
}

static int read_port(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        struct options *o = target;
        int r = sd_bus_message_read(call, "v", "q", &o->request.port);

        if (r >= 0 && o->request.port == 0)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "port: 0 is none");
        if (r >= 0)
                o->request.kind = "connect";
        return r;
}

static const struct call_option session_options[] = {
        { "pty", 'b', offsetof(struct options, request.pty), NULL },
        { "rows", 'q', offsetof(struct options, request.rows), NULL },
        { "columns", 'q', offsetof(struct options, request.columns), NULL },
        { "env", 0, 0, read_environment },
        { "port", 0, 0, read_port },
        { NULL },
};

static const struct call_option no_options[] = { { NULL } };

/* The message is read twice: the options stand behind the arguments, which are copied as they are. */
static int open_with(struct manager *m, struct executor *e, uint32_t uid, sd_bus_message *call,
                     sd_bus_error *error) {
        struct options o = { .request = { .kind = "command", .uid = uid } };
        int r = message_skip(call, "aay");

        if (r >= 0)
                r = options_read(call, "OpenSession", "option", session_options, &o, error);
        if (r >= 0)
                r = sd_bus_message_rewind(call, true);
        if (r >= 0)
                r = message_skip(call, "su");
        o.request.strings = call;
        o.request.environment = o.environment;
        if (r >= 0)
                r = sessions_open(m, e, &o.request, call, error);
        options_done(&o);
        return r;
}

int api_open_session(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        struct executor *e;
        const char *role;
        uint32_t index;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read(call, "su", &role, &index);
        if (r < 0)
                return r;
        e = job_executor(j, role, index);
        if (!e)
                return sd_bus_error_setf(error, ERROR_NOT_FOUND, "Job %u has no executor %.*s/%u", j->number,
                                         utf8_fit(role, 33), role, index);
        if (e->state != EXECUTOR_RUNNING || !e->node)
                return sd_bus_error_setf(error, ERROR_NOT_FOUND,
                                         "%s/%u of job %u is %s: only in one that is RUNNING "
                                         "a session can be opened",
                                         role, index, j->number, executor_state_to_string(e->state));
        return open_with(m, e, uid, call, error);
}

/* On a host that the caller names: it knows from ListExecutors where the job has been, and only hosts that
 * have something of this very job and user answer with anything. */
int api_open_artifacts(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct session_request q = { .kind = "artifacts", .uid = uid, .strings = call };
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        const struct node *node;
        const char *name;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read_basic(call, 's', &name);
        if (r >= 0)
                r = message_skip(call, "aay");
        if (r >= 0)
                r = options_read(call, "OpenArtifacts", "option", no_options, NULL, error);
        if (r >= 0)
                r = sd_bus_message_rewind(call, true);
        if (r >= 0)
                r = message_skip(call, "s");
        if (r < 0)
                return r;
        node = nodes_get(&m->nodes, name);
        if (!node)
                return sd_bus_error_setf(error, ERROR_NOT_FOUND, "There is no host %.*s", utf8_fit(name, 64),
                                         name);
        return sessions_open_artifacts(m, j, node, &q, call, error);
}

#define SESSION_CALL(name, work)                                                                             \
        int name(sd_bus_message *call, void *userdata, sd_bus_error *error) {                                \
                struct job *j = userdata;                                                                    \
                return work(j->manager, j, call, error);                                                     \
        }
SESSION_CALL(api_on_read_session, sessions_read)
SESSION_CALL(api_on_write_session, sessions_write)
SESSION_CALL(api_on_resize_session, sessions_resize)
SESSION_CALL(api_on_close_session, sessions_close)
