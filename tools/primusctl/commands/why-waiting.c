/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl why, of a job that has not ended. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/strv.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/fields.h"
#include "tools/primusctl/bus/job.h"
#include "tools/primusctl/bus/verdicts.h"
#include "tools/primusctl/cli/text.h"
#include "tools/primusctl/commands/why.h"
#include "tools/primusctl/view/users.h"

struct group {
        uint32_t hosts;
        char *text;
};

struct why {
        char *state, *pool, *reason, *summary, *role;
        int32_t priority;
        uint64_t position, starts_by, ahead;
        uint32_t requeues, victims, wanted, fits;
        char **suggestions;
        struct group *groups;
        size_t n_groups;
};

static void why_done(struct why *w) {
        free(w->state);
        free(w->pool);
        free(w->reason);
        free(w->summary);
        free(w->role);
        strings_free(w->suggestions);
        for (size_t i = 0; i < w->n_groups; i++)
                free(w->groups[i].text);
        free(w->groups);
}

static int read_groups(sd_bus_message *m, void *target) {
        struct why *w = target;
        const char *text;
        uint32_t hosts;
        int r = sd_bus_message_enter_container(m, 'v', "a(us)");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "(us)");
        while (r >= 0 && (r = sd_bus_message_read(m, "(us)", &hosts, &text)) > 0) {
                struct group *bigger = reallocarray(w->groups, w->n_groups + 1, sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                w->groups = bigger;
                w->groups[w->n_groups].hosts = hosts;
                if (!(w->groups[w->n_groups++].text = strdup(text)))
                        return -ENOMEM;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int why_read(sd_bus_message *m, struct why *w) {
#define FIELD(key, type, member)                                                                             \
        { key, type, offsetof(struct why, member), NULL }
        static const struct field fields[] = {
                FIELD("state", "s", state),
                FIELD("pool", "s", pool),
                FIELD("reason", "s", reason),
                FIELD("summary", "s", summary),
                FIELD("role", "s", role),
                FIELD("priority", "i", priority),
                FIELD("position", "t", position),
                FIELD("startsBy", "t", starts_by),
                FIELD("ahead", "t", ahead),
                FIELD("requeues", "u", requeues),
                FIELD("victims", "u", victims),
                FIELD("wanted", "u", wanted),
                FIELD("fits", "u", fits),
                FIELD("suggestions", "as", suggestions),
                { "hosts", "a(us)", 0, read_groups },
        };
#undef FIELD
        return read_fields(m, fields, ELEMENTSOF(fields), w);
}

static int print_json(const struct cli *c, const struct job_ref *job, const struct why *w,
                      const struct job_status *status) {
        json_t *o = json_pack("{s:I, s:s, s:s, s:i, s:I, s:s, s:s, s:I, s:I, s:I, s:I}", "job",
                              (json_int_t)job->number, "state", w->state ?: "", "pool", w->pool ?: "",
                              "priority", w->priority, "requeues", (json_int_t)w->requeues, "reason",
                              w->reason ?: "", "summary", w->summary ?: "", "position",
                              (json_int_t)w->position, "startsBy", (json_int_t)w->starts_by, "ahead",
                              (json_int_t)w->ahead, "victims", (json_int_t)w->victims),
               *hosts = json_array(), *suggestions = json_array();

        for (size_t i = 0; i < w->n_groups; i++)
                (void)json_array_append_new(hosts,
                                            json_pack("{s:I, s:s}", "hosts", (json_int_t)w->groups[i].hosts,
                                                      "text", w->groups[i].text));
        for (char **s = w->suggestions; s && *s; s++)
                (void)json_array_append_new(suggestions, json_string(*s));
        (void)json_object_set_new(o, "hosts", hosts);
        (void)json_object_set_new(o, "suggestions", suggestions);
        (void)json_object_set_new(o, "verdicts", verdicts_json(&status->verdicts));
        return cli_print_json(c, o);
}

/* Prints what masterd says: without control characters, which a person's reason may have. */
static void put_text(const char *before, const char *text, const char *after) {
        _cleanup_free_ char *named = users_named(text, user_lookup_here);

        if (named)
                text_clean(named);
        printf("%s%s%s", before, named ?: "", after);
}

/* Of a job that runs some may wait for places: those that start again, or that it was scaled by. */
static void print_who_waits(const struct why *w, const struct job_status *status) {
        uint32_t pending = 0, wanted = 0;

        for (size_t i = 0; i < status->n_roles; i++) {
                pending += status->roles[i].pending;
                wanted += status->roles[i].wanted;
        }
        if (pending > 0 && w->state && strcmp(w->state, "QUEUED") != 0 && strcmp(w->state, "SUBMITTED") != 0)
                printf(", but %" PRIu32 " of its %" PRIu32 " executor%s wait%s for a place", pending, wanted,
                       wanted == 1 ? "" : "s", pending == 1 ? "s" : "");
}

static int print_waiting(const struct job_ref *job, const struct why *w, const struct job_status *status) {
        char when[TEXT_TIME_MAX];

        printf("Job %" PRIu32 " is %s", job->number, w->state ?: "?");
        print_who_waits(w, status);
        printf(" in pool %s at priority %" PRId32, w->pool ?: "?", w->priority);
        if (w->position)
                printf(", number %" PRIu64 " in the queue", w->position);
        put_text("\n  ", w->summary ?: w->reason ?: "", "\n");
        if (w->n_groups > 0) {
                printf("  hosts:");
                for (size_t i = 0; i < w->n_groups; i++) {
                        printf("%s %" PRIu32, i ? "," : "", w->groups[i].hosts);
                        put_text(" ", w->groups[i].text, "");
                }
                putchar('\n');
        }
        if (w->starts_by)
                printf("  starts by backfill at %s at the latest\n",
                       text_time(w->starts_by, now_real(), when, sizeof(when)));
        for (char **s = w->suggestions; s && *s; s++)
                put_text("  would start now with ", *s, "\n");
        if (w->requeues)
                printf("  has been put back into the queue %" PRIu32 " time%s (primusctl events %" PRIu32
                       ")\n",
                       w->requeues, w->requeues == 1 ? "" : "s", job->number);
        return CLI_OK;
}

/* What waits for nothing may still be slow: its executors' verdicts say why. */
static int print_running(const struct cli *c, const struct job_ref *job, const struct why *w,
                         const struct job_status *status) {
        bool well = status->verdicts.n == 0;

        printf("Job %" PRIu32 " is %s", job->number, w->state ?: "?");
        put_text(": ",
                 w->reason && *w->reason ? w->reason
                 : well                  ? "it waits for nothing, and nothing is seen that ails it"
                                         : "it waits for no place, but not all is well",
                 "\n");
        verdicts_print(c, &status->verdicts);
        return CLI_OK;
}

int why_waiting(struct cli *c, const struct job_ref *job) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(job_status_done) struct job_status status = { 0 };
        struct why w = { 0 };
        int r = cli_job_call(c, job, "Why", &m);

        if (!r)
                r = cli_call(c, m, job, &reply);
        if (!r)
                r = ask_status(c, job, &status);
        if (r)
                return r;
        r = why_read(reply, &w);
        if (r < 0)
                r = cli_bad_reply(c, r);
        else if (c->json)
                r = print_json(c, job, &w, &status);
        else if (w.summary || (w.state && strcmp(w.state, "QUEUED") == 0))
                r = print_waiting(job, &w, &status);
        else
                r = print_running(c, job, &w, &status);
        why_done(&w);
        return r;
}
