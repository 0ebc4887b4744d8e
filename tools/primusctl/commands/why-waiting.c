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

static void print_place(const json_t *why) {
        printf(" in pool %s at priority %" PRId64, text_or(why, "pool", "?"),
               (int64_t)json_get_number(why, "priority"));
        if (json_get_number(why, "position"))
                printf(", number %" PRIu64 " in the queue", json_get_number(why, "position"));
}

/* Which hosts lack what, when it starts at the latest, and what would help. fails_at: 0 it does not. */
static void print_hosts(const json_t *why, uint64_t fails_at) {
        const json_t *hosts = json_object_get(why, "hosts"), *x;
        uint64_t starts_by = json_get_number(why, "startsBy");
        char when[TEXT_TIME_MAX];
        size_t i;

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
}

static int print_waiting(const struct job_ref *job, const json_t *why, const json_t *status) {
        uint64_t requeues = json_get_number(why, "requeues");

        printf("Job %" PRIu32 " is %s", job->number, text_or(why, "state", "?"));
        print_who_waits(why, status);
        print_place(why);
        put_text("\n  ", text_or(why, "summary", json_get_text(why, "reason")), "\n");
        if (*json_get_text(why, "comes"))
                put_text("  ", json_get_text(why, "comes"), "\n");
        print_hosts(why, json_get_number(status, "failsAt"));
        if (requeues)
                printf("  has been put back into the queue %" PRIu64 " time%s (primusctl events %" PRIu32
                       ")\n",
                       requeues, requeues == 1 ? "" : "s", job->number);
        return CLI_OK;
}

void trial_print(const json_t *trial) {
        uint64_t executors = json_get_number(trial, "executors"),
                 elements = json_get_number(trial, "elements"), victims = json_get_number(trial, "victims");
        const char *reason = json_get_text(trial, "reason"), *savepoint = json_get_text(trial, "savepoint"),
                   *plural = executors == 1 ? "" : "s";
        bool waits = *reason || executors == 0;

        if (json_is_true(json_object_get(trial, "ends"))) {
                put_text("Nothing was submitted. It would end at once: ", reason, "\n");
                return;
        }
        printf("Nothing was submitted. %s would %s", elements ? "The first element" : "It",
               waits ? "wait" : "start now");
        print_place(trial);
        if (!waits)
                printf(": %" PRIu64 " executor%s", executors, plural);
        putchar('\n');
        if (*reason) {
                put_text("  ", reason, "\n");
                if (executors > 0)
                        printf("  then, as things are now, it would start: %" PRIu64 " executor%s\n",
                               executors, plural);
        }
        if (executors == 0) {
                put_text(*reason ? "  then, as things are now: " : "  ", json_get_text(trial, "summary"),
                         "\n");
                if (victims)
                        printf("  %" PRIu64 " job%s would be stopped for it\n", victims,
                               victims == 1 ? "" : "s");
                print_hosts(trial, 0);
        }
        if (elements)
                printf("  an array of %" PRIu64 " element%s\n", elements, elements == 1 ? "" : "s");
        if (*savepoint)
                put_text("  goes on from savepoint ", savepoint,
                         ", which is looked at when it is submitted\n");
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
