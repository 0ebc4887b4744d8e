/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl why, of a job that has not ended. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/verdicts.h"
#include "tools/primusctl/cli/text.h"
#include "tools/primusctl/commands/why.h"
#include "tools/primusctl/view/users.h"

/* Prints what masterd says: without control characters, which a person's reason may have. */
static void put_text(const char *before, const char *text, const char *after) {
        _cleanup_free_ char *named = users_named(text, user_lookup_here);

        if (named)
                text_clean(named);
        printf("%s%s%s", before, named ?: "", after);
}

/* Of a job that runs some may wait for places: those that start again, or that it was scaled by. */
static void print_who_waits(const json_t *why, const json_t *status) {
        const char *state = json_get_text(why, "state");
        uint64_t pending = 0, wanted = 0;
        const json_t *role;
        size_t i;

        json_array_foreach (json_object_get(status, "roles"), i, role) {
                pending += json_get_number(role, "pending");
                wanted += json_get_number(role, "wanted");
        }
        if (pending > 0 && *state && strcmp(state, "QUEUED") != 0 && strcmp(state, "SUBMITTED") != 0)
                printf(", but %" PRIu64 " of its %" PRIu64 " executor%s wait%s for a place", pending, wanted,
                       wanted == 1 ? "" : "s", pending == 1 ? "s" : "");
}

static const char *text_or(const json_t *o, const char *name, const char *otherwise) {
        const char *text = json_get_text(o, name);

        return *text ? text : otherwise;
}

static int print_waiting(const struct job_ref *job, const json_t *why, const json_t *status) {
        uint64_t starts_by = json_get_number(why, "startsBy"), requeues = json_get_number(why, "requeues"),
                 fails_at = json_get_number(status, "failsAt");
        const json_t *hosts = json_object_get(why, "hosts"), *x;
        char when[TEXT_TIME_MAX];
        size_t i;

        printf("Job %" PRIu32 " is %s", job->number, text_or(why, "state", "?"));
        print_who_waits(why, status);
        printf(" in pool %s at priority %" PRId64, text_or(why, "pool", "?"),
               (int64_t)json_get_number(why, "priority"));
        if (json_get_number(why, "position"))
                printf(", number %" PRIu64 " in the queue", json_get_number(why, "position"));
        put_text("\n  ", text_or(why, "summary", json_get_text(why, "reason")), "\n");
        json_array_foreach (hosts, i, x) {
                printf("%s %" PRIu64, i ? "," : "  hosts:", json_get_number(x, "hosts"));
                put_text(" ", json_get_text(x, "text"), "");
        }
        if (json_array_size(hosts) > 0)
                putchar('\n');
        if (starts_by)
                printf("  starts by backfill at %s at the latest\n",
                       text_time(starts_by, now_real(), when, sizeof(when)));
        if (fails_at)
                printf("  fails if it is not started by %s (startWithin)\n",
                       text_time(fails_at, now_real(), when, sizeof(when)));
        json_array_foreach (json_object_get(why, "suggestions"), i, x)
                put_text("  would start now with ", json_string_value(x), "\n");
        if (requeues)
                printf("  has been put back into the queue %" PRIu64 " time%s (primusctl events %" PRIu32
                       ")\n",
                       requeues, requeues == 1 ? "" : "s", job->number);
        return CLI_OK;
}

/* What waits for nothing may still be slow: its executors' verdicts say why. */
static int print_running(const struct cli *c, const struct job_ref *job, const json_t *why,
                         const json_t *status) {
        const json_t *verdicts = json_object_get(status, "verdicts");
        bool well = json_array_size(verdicts) == 0;

        printf("Job %" PRIu32 " is %s", job->number, text_or(why, "state", "?"));
        put_text(": ",
                 text_or(why, "reason",
                         well ? "it waits for nothing, and nothing is seen that ails it"
                              : "it waits for no place, but not all is well"),
                 "\n");
        verdicts_print(c, verdicts);
        return CLI_OK;
}

int why_waiting(struct cli *c, const struct job_ref *job) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        _cleanup_(json_decref_p) json_t *why = NULL, *status = NULL;
        int r = cli_job_call(c, job, "Why", &m);

        if (!r)
                r = ask_object(c, m, job, &json_why, &why);
        if (!r)
                r = ask_status_json(c, job, &status);
        if (r)
                return r;
        if (c->json) {
                (void)json_object_set_new(why, "job", json_integer(job->number));
                (void)json_object_set(why, "verdicts", json_object_get(status, "verdicts"));
                return cli_print_json(c, TAKE_PTR(why));
        }
        if (*json_get_text(why, "summary") || strcmp(json_get_text(why, "state"), "QUEUED") == 0)
                return print_waiting(job, why, status);
        return print_running(c, job, why, status);
}
