/* SPDX-License-Identifier: Apache-2.0 */
/* How a job came to its end, from what masterd has kept of it: its executors' attempts, its events, its
 * configuration. Works for a job of any age. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/text.h"
#include "tools/primusctl/commands/why.h"
#include "tools/primusctl/view/story.h"
#include "tools/primusctl/view/users.h"

#define EVENTS_MAX 10000u /* of one answer */
#define CAUSES_MAX 30u    /* lines */

struct ended {
        struct job_properties p;
        struct job_status s;
        struct executor *attempts;
        size_t n_attempts;
        json_t *rows; /* of ListEvents; the texts of events are in them */
        struct story_event *events;
        size_t n_events;
        json_t *config;
};

static void ended_done(struct ended *e) {
        job_status_done(&e->s);
        executors_free(e->attempts, e->n_attempts);
        free(e->events);
        json_decref(e->rows);
        json_decref(e->config);
}

/* ---- asking ---- */

static int ask_events(struct cli *c, const struct job_ref *job, struct ended *e) {
        size_t n;

        e->rows = json_array();
        do {
                _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
                _cleanup_(json_decref_p) json_t *more = NULL;
                const json_t *last = json_array_get(e->rows, json_array_size(e->rows) - 1);
                int r = cli_job_call(c, job, "ListEvents", &m);

                if (!r && sd_bus_message_append(m, "t", json_get_number(last, "sequence")) < 0)
                        r = cli_oom(c);
                if (!r)
                        r = ask_list(c, m, job, &json_event, &more);
                if (r)
                        return r;
                n = json_array_size(more);
                if (json_array_extend(e->rows, more) < 0)
                        return cli_oom(c);
        } while (n == EVENTS_MAX);
        e->n_events = json_array_size(e->rows);
        e->events = story_events(e->rows, 0);
        return e->events ? 0 : cli_oom(c);
}

static int ask(struct cli *c, const struct job_ref *job, struct ended *e) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *config = NULL, *reply = NULL;
        const void *text;
        size_t size;
        int r = ask_status(c, job, &e->s);

        if (!r)
                r = ask_executors(c, job, true, &e->attempts, &e->n_attempts);
        if (!r)
                r = cli_job_call(c, job, "GetConfig", &config);
        if (!r)
                r = cli_call(c, config, job, &reply);
        if (!r && sd_bus_message_read_array(reply, 'y', &text, &size) >= 0)
                e->config = json_loadb(text, size, 0, NULL);
        return r ? r : ask_events(c, job, e);
}

/* ---- the executor that it came from ---- */

static bool bad(const struct executor *a) {
        return strcmp(a->state, "FAILED") == 0 || strcmp(a->state, "LOST") == 0;
}

/* "worker/3 on" in the reason: masterd names the one that decided. Else the one that failed first. */
static const struct executor *decisive(const struct ended *e) {
        const struct executor *named = NULL, *first = NULL;
        char text[128];

        for (size_t i = 0; i < e->n_attempts; i++) {
                const struct executor *a = e->attempts + i;
                if (!bad(a))
                        continue;
                snprintf(text, sizeof(text), "%s/%" PRIu32 " on ", a->role, a->index);
                if (e->s.reason && strstr(e->s.reason, text) && (!named || a->ended >= named->ended))
                        named = a; /* its last attempt */
                if (!first || a->ended < first->ended)
                        first = a;
        }
        return named ? named : e->s.reason && strstr(e->s.reason, " of ") ? first : NULL;
}

static size_t attempts_before(const struct ended *e, const struct executor *a) {
        size_t n = 0;

        for (size_t i = 0; i < e->n_attempts; i++)
                n += strcmp(e->attempts[i].role, a->role) == 0 && e->attempts[i].index == a->index &&
                     e->attempts[i].attempt < a->attempt && e->attempts[i].started > 0;
        return n;
}

/* A key somewhere in the failover of the executor's role, or NULL. */
static json_t *failover_key(const struct ended *e, const char *role, const char *key) {
        json_t *roles = json_object_get(e->config, "role"), *r, *form;
        const char *name;
        size_t i;

        json_array_foreach (roles, i, r) {
                const char *own = json_string_value(json_object_get(r, "roleName"));
                if (!own || strcmp(own, role) != 0)
                        continue;
                json_object_foreach (json_object_get(r, "failover"), name, form) {
                        json_t *v = json_object_get(form, key),
                               *inner = json_object_get(json_object_get(form, "commonFailover"), key);
                        if (v || inner)
                                return v ? v : inner;
                }
        }
        return NULL;
}

static const char *clock_of(uint64_t time, char *buf, size_t size) {
        return text_time(time, now_real(), buf, size);
}

/* "worker/3 on n2 was killed for memory (limit 2G, peak 2G) at 14:02:11 after 3 restarts; its role allowed 4
 * failures; then the job failed (maxFailurePolicy FAIL_APP)" */
static char *tell_executor(const struct ended *e, const struct executor *a) {
        json_t *times = failover_key(e, a->role, "maxFailureTimes"),
               *policy = failover_key(e, a->role, "maxFailurePolicy");
        size_t before = attempts_before(e, a), size;
        char when[TEXT_TIME_MAX], result[200], *text = NULL;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        fprintf(f, "%s/%" PRIu32 " on %s: %s at %s", a->role, a->index, *a->node ? a->node : "no host",
                a->reason && *a->reason ? a->reason : executor_result(a, result, sizeof(result)),
                clock_of(a->ended, when, sizeof(when)));
        if (before > 0)
                fprintf(f, " after %zu restart%s", before, before == 1 ? "" : "s");
        if (json_is_integer(times) && strcmp(a->state, "FAILED") == 0)
                fprintf(f, "; its role takes %" JSON_INTEGER_FORMAT " failure%s of an executor",
                        json_integer_value(times), json_integer_value(times) == 1 ? "" : "s");
        if (json_is_string(policy))
                fprintf(f, "; then %s (maxFailurePolicy %s)",
                        strcmp(json_string_value(policy), "FAIL_APP") == 0 ? "the job fails"
                        : strcmp(json_string_value(policy), "FAIL_ATTEMPT") == 0
                                ? "this attempt of the job fails"
                                : "it stays as it is, and the job goes on without it",
                        json_string_value(policy));
        if (fclose(f) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

/* ---- blame ---- */

static bool begins(const char *text, const char *what) {
        return text && strncmp(text, what, strlen(what)) == 0;
}

static bool has_event(const struct ended *e, const char *kind) {
        for (size_t i = 0; i < e->n_events; i++)
                if (strcmp(e->events[i].kind, kind) == 0)
                        return true;
        return false;
}

/* What was missing before the program began, as agentd's sentence about the end has it; NULL: it had begun,
 * as far as that can be told. */
static const char *missing_on_host(const struct executor *a) {
        static const struct {
                int32_t status;
                const char *begins, *words;
        } missing[] = {
                { 200, "directory ", "has not got the job's directory, or does not let its user in" },
                { 203, "command not found ", "has not got the command, or cannot execute it" },
                { 217, "no user ", "does not know the job's user" },
        };
        const char *words = a->reason;
        char prefix[32];

        if (!a->has_status || a->status < 200 || !words)
                return NULL;
        snprintf(prefix, sizeof(prefix), "exit status %" PRId32 ": ", a->status); /* masterd's */
        words += begins(words, prefix) ? strlen(prefix) : 0;
        for (size_t i = 0; i < ELEMENTSOF(missing); i++)
                if (a->status == missing[i].status && begins(words, missing[i].begins))
                        return missing[i].words;
        return begins(words, "systemd could not ") ? "could not set the executor up" : NULL;
}

static char *blame(const struct ended *e, const struct executor *a) {
        const char *reason = e->s.reason ? e->s.reason : "";
        char *text = NULL;
        int r;

        if (begins(reason, "killed by uid"))
                r = asprintf(&text, "a person");
        else if (begins(reason, "job ") && strstr(reason, "this one was to run after"))
                r = asprintf(&text, "another job: primusctl why %.*s", (int)strspn(reason + 4, "0123456789"),
                             reason + 4);
        else if (e->s.array.of > 0 && begins(reason, "array "))
                r = asprintf(&text, "its array: primusctl why %" PRIu32, e->s.array.of);
        else if (e->s.array.size > 0)
                r = asprintf(&text, "elements of it: primusctl list --all --array %" PRIu32 " --state FAILED",
                             e->p.number);
        else if (strstr(reason, "time limit"))
                r = asprintf(&text, "its time limit");
        else if (a && strcmp(a->state, "LOST") == 0)
                r = asprintf(&text, "the host %s", *a->node ? a->node : "that it was on");
        else if (a && a->result && strcmp(a->result, "oom-kill") == 0)
                r = asprintf(&text, "the memory of %s/%" PRIu32 ": more than memoryMb allows", a->role,
                             a->index);
        else if (a && missing_on_host(a))
                r = asprintf(&text, "the host %s, which %s", *a->node ? a->node : "that it was on",
                             missing_on_host(a));
        else if (a)
                r = asprintf(&text, "the program of %s/%" PRIu32, a->role, a->index);
        else if (strstr(reason, "tasks") || has_event(e, "scan-failed"))
                r = asprintf(&text, "its data: primusctl data --failed %" PRIu32, e->p.number);
        else
                r = asprintf(&text, "not known");
        return r < 0 ? NULL : text;
}

/* ---- in order ---- */

/* What led to the end, and what was done about it; not what a job does in any case. */
static bool is_cause(const struct story_event *e) {
        static const char *const plain[] = { "submitted",          "submitted-from", "placed",
                                             "executor-succeeded", "scanned",        "first-error",
                                             "executor-stopped",   "array" };

        for (size_t i = 0; i < ELEMENTSOF(plain); i++)
                if (strcmp(e->kind, plain[i]) == 0)
                        return false;
        return true;
}

static int causes(const struct ended *e, struct story_line **ret, size_t *ret_n) {
        struct story_event *chosen = calloc(e->n_events + 1, sizeof(*chosen));
        size_t n = 0;
        int r;

        if (!chosen)
                return -ENOMEM;
        for (size_t i = 0; i < e->n_events; i++)
                if (is_cause(e->events + i))
                        chosen[n++] = e->events[i];
        r = story_tell(chosen, n, ret, ret_n);
        free(chosen); /* the texts are e's */
        return r;
}

static void put_clean(const char *text) {
        _cleanup_free_ char *clean = strdup(text);

        if (clean) {
                text_clean(clean);
                fputs(clean, stdout);
        }
}

/* With the names of users, as masterd's own sentences name them. */
static void put_named(const char *text) {
        _cleanup_free_ char *named = users_named(text, user_lookup_here);

        put_clean(named ? named : text);
}

static void print_field(const struct cli *c, const char *name, const char *text) {
        printf("%s%-14s%s", c->color ? color_sequence(COLOR_BOLD) : "", name, c->color ? COLOR_RESET : "");
        put_clean(text);
        putchar('\n');
}

static void print_causes(const struct ended *e, const struct story_line *lines, size_t n) {
        char after[STORY_AFTER_MAX];

        puts("\nIn order:");
        for (size_t i = 0; i < n; i++) {
                if (n > CAUSES_MAX && i == CAUSES_MAX / 2) { /* how it began, and how it ended */
                        printf("          ... %zu more (primusctl events %" PRIu32 ")\n", n - CAUSES_MAX,
                               e->p.number);
                        i += n - CAUSES_MAX;
                }
                printf("%10s  ", story_after(e->p.submitted, lines[i].time, after, sizeof(after)));
                if (*lines[i].who)
                        printf("%s  ", lines[i].who);
                put_named(lines[i].text);
                putchar('\n');
        }
}

static int print_text(const struct cli *c, const struct ended *e, const char *cause, const char *blamed,
                      const struct story_line *lines, size_t n) {
        _cleanup_free_ char *reason =
                e->s.reason && *e->s.reason ? users_named(e->s.reason, user_lookup_here) : NULL;
        char when[TEXT_TIME_MAX], first[512];

        printf("Job %" PRIu32 " (", e->p.number);
        put_clean(e->p.name);
        printf(") %s%s%s at %s\n", c->color ? color_sequence(color_of_state(e->p.state)) : "", e->p.state,
               c->color ? COLOR_RESET : "", clock_of(e->p.ended, when, sizeof(when)));
        print_field(c, "reason", reason ? reason : "-");
        if (cause)
                print_field(c, "first cause", cause);
        if (strcmp(e->p.state, "SUCCEEDED") != 0)
                print_field(c, "blame", blamed);
        if (e->s.first_error && *e->s.first_error) {
                snprintf(first, sizeof(first), "%.*s",
                         (int)MIN(strcspn(e->s.first_error, "\n"), sizeof(first) - 1), e->s.first_error);
                print_field(c, "first error", first);
        }
        if (e->p.attempt > 1) {
                snprintf(first, sizeof(first), "%" PRIu32, e->p.attempt);
                print_field(c, "attempts", first);
        }
        print_causes(e, lines, n);
        return fflush(stdout) == EOF ? cli_fail(c, "cannot write to standard output: %s", strerror(errno))
                                     : 0;
}

static int print_json(const struct cli *c, const struct ended *e, const char *cause, const char *blamed,
                      const struct story_line *lines, size_t n) {
        json_t *o, *list = json_array();

        for (size_t i = 0; i < n; i++)
                (void)json_array_append_new(list, json_pack("{s:I, s:s, s:s, s:s, s:I}", "time",
                                                            (json_int_t)lines[i].time, "kind", lines[i].kind,
                                                            "who", lines[i].who, "text", lines[i].text,
                                                            "events", (json_int_t)lines[i].n));
        o = json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:I, s:o}", "job", (json_int_t)e->p.number, "state",
                      e->p.state, "reason", e->s.reason ? e->s.reason : "", "firstCause", cause ? cause : "",
                      "blame", blamed, "firstError", e->s.first_error ? e->s.first_error : "", "attempt",
                      (json_int_t)e->p.attempt, "causes", list);
        return cli_print_json(c, o);
}

int why_ended(struct cli *c, const struct job_ref *job, const struct job_properties *p) {
        _cleanup_(ended_done) struct ended e = { .p = *p }; /* borrows its strings */
        _cleanup_free_ char *cause = NULL, *blamed = NULL;
        const struct executor *a;
        struct story_line *lines = NULL;
        size_t n = 0;
        int r = ask(c, job, &e);

        if (r)
                return r;
        a = strcmp(p->state, "FAILED") == 0 ? decisive(&e) : NULL;
        if (a && !(cause = tell_executor(&e, a)))
                return cli_oom(c);
        blamed = blame(&e, a);
        if (!blamed || causes(&e, &lines, &n) < 0)
                return cli_oom(c);
        r = c->json ? print_json(c, &e, cause, blamed, lines, n) : print_text(c, &e, cause, blamed, lines, n);
        story_lines_free(lines, n);
        return r;
}
