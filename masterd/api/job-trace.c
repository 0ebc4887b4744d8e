/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: latency on demand, passed on to the executor's host. Nothing is remembered here:
 * a trace ends when nobody calls any more. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "lib/wire/trace.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/link/orders.h"

#define LEASE_DEFAULT (3 * USEC_PER_SEC)
#define LEASE_MAX (10 * USEC_PER_SEC)

static int on_traced(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
        struct api_asking *a = userdata;

        if (failure)
                api_asking_refused(a, failure);
        else if (sd_bus_message_new_method_return(a->call, &answer) < 0 ||
                 trace_answer_pass(reply, answer) < 0)
                (void)reply_errorf(a->call, ERROR_NOT_FOUND, "the answer of %s is not usable", a->node);
        else
                (void)reply_send(answer);
        api_asking_free(a);
        return 0;
}

struct options {
        uint64_t lease;
};

static const struct call_option trace_options[] = {
        { "lease", 't', offsetof(struct options, lease), NULL },
        { NULL },
};

int api_trace(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct executor *e = api_running_executor(m, call, error);
        struct options o = { .lease = LEASE_DEFAULT };
        const char *kind;
        struct api_asking *a;
        int r;

        if (!e)
                return -ENOENT;
        if ((r = sd_bus_message_read_basic(call, 's', &kind)) < 0 ||
            (r = options_read(call, "Trace", "option", trace_options, &o, error)) < 0)
                return r;
        if (strcmp(kind, "io") != 0 && strcmp(kind, "runqueue") != 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "there is no trace '%.*s': io or runqueue is expected",
                                         utf8_fit(kind, 32), kind);
        if (o.lease > LEASE_MAX)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "lease: at most 10 s; ask again for more");
        r = api_asking_new(call, e, &a);
        if (r < 0)
                return r;
        r = orders_trace(m, e, kind, o.lease, on_traced, a);
        return r < 0 ? api_asking_failed(a, r, error) : 1;
}
