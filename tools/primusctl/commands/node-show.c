/* SPDX-License-Identifier: Apache-2.0 */
/* What masterd says of one host, read once into JSON, which is printed as it is or as text. */
#include "tools/primusctl/commands/node-show.h"

#include <inttypes.h>
#include <jansson.h>
#include <pwd.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/base/when.h"
#include "tools/primusctl/cli/text.h"
#include "tools/primusctl/view/table.h"

static void json_decref_p(json_t **j) {
        json_decref(*j);
}

/* ---- the message ---- */

static json_t *text_of(const char *s) {
        return json_string(s);
}

static int read_holds(sd_bus_message *m, json_t *list) {
        const char *cause, *reason, *then;
        uint64_t since, deadline, grace;
        uint32_t uid;
        int drain, r;

        while ((r = sd_bus_message_read(m, "(sbsuttts)", &cause, &drain, &reason, &uid, &since, &deadline,
                                        &grace, &then)) > 0) {
                json_t *h =
                        json_pack("{s:s, s:b, s:s, s:I, s:I, s:s}", "cause", cause, "drain", drain, "reason",
                                  reason, "uid", (json_int_t)uid, "since", (json_int_t)since, "then", then);
                /* The largest number is "when they end", which no JSON integer is. */
                if (drain)
                        (void)json_object_set_new(h, "deadline",
                                                  deadline == UINT64_MAX
                                                          ? text_of("infinity")
                                                          : json_integer((json_int_t)deadline));
                if (grace != UINT64_MAX)
                        (void)json_object_set_new(h, "grace", json_integer((json_int_t)grace));
                (void)json_array_append_new(list, h);
        }
        return r;
}

static int read_windows(sd_bus_message *m, json_t *list) {
        const char *reason;
        uint64_t from, to;
        uint32_t uid;
        int r;

        while ((r = sd_bus_message_read(m, "(ttsu)", &from, &to, &reason, &uid)) > 0)
                (void)json_array_append_new(list, json_pack("{s:I, s:I, s:s, s:I}", "from", (json_int_t)from,
                                                            "to", (json_int_t)to, "reason", reason, "uid",
                                                            (json_int_t)uid));
        return r;
}

static int read_conditions(sd_bus_message *m, json_t *list) {
        const char *kind, *subject, *severity, *text;
        uint64_t since;
        int r;

        while ((r = sd_bus_message_read(m, "(sssst)", &kind, &subject, &severity, &text, &since)) > 0)
                (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:I}", "kind", kind,
                                                            "subject", subject, "severity", severity, "text",
                                                            text, "since", (json_int_t)since));
        return r;
}

static int read_executors(sd_bus_message *m, json_t *list) {
        const char *role, *state;
        uint32_t job, index, attempt, owner;
        uint64_t started;
        int r;

        while ((r = sd_bus_message_read(m, "(usuusut)", &job, &role, &index, &attempt, &state, &owner,
                                        &started)) > 0)
                (void)json_array_append_new(list, json_pack("{s:I, s:s, s:I, s:I, s:s, s:I, s:I}", "job",
                                                            (json_int_t)job, "role", role, "index",
                                                            (json_int_t)index, "attempt", (json_int_t)attempt,
                                                            "state", state, "owner", (json_int_t)owner,
                                                            "startedAt", (json_int_t)started));
        return r;
}

static int read_gpus(sd_bus_message *m, json_t *list) {
        const char *uuid, *model, *mig;
        uint64_t memory;
        int r, taken;

        while ((r = sd_bus_message_read(m, "(sstsb)", &uuid, &model, &memory, &mig, &taken)) > 0)
                (void)json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:s, s:b}", "uuid", uuid,
                                                            "model", model, "memory", (json_int_t)memory,
                                                            "mig", mig, "taken", taken));
        return r;
}

static int read_avoided(sd_bus_message *m, json_t *list) {
        uint64_t until;
        uint32_t uid;
        int r;

        while ((r = sd_bus_message_read(m, "(ut)", &uid, &until)) > 0)
                (void)json_array_append_new(
                        list, json_pack("{s:I, s:I}", "uid", (json_int_t)uid, "until", (json_int_t)until));
        return r;
}

static int read_labels(sd_bus_message *m, json_t *list) {
        const char *label;
        int r;

        while ((r = sd_bus_message_read_basic(m, 's', &label)) > 0)
                (void)json_array_append_new(list, text_of(label));
        return r;
}

static const struct {
        const char *contents, *item;
        int (*read)(sd_bus_message *m, json_t *list);
} lists[] = {
        { "a(sbsuttts)", "(sbsuttts)", read_holds }, { "a(ttsu)", "(ttsu)", read_windows },
        { "a(sssst)", "(sssst)", read_conditions },  { "a(usuusut)", "(usuusut)", read_executors },
        { "a(sstsb)", "(sstsb)", read_gpus },        { "as", "s", read_labels },
        { "a(ut)", "(ut)", read_avoided },
};

static int read_list(sd_bus_message *m, const char *contents, json_t **ret) {
        _cleanup_(json_decref_p) json_t *list = json_array();
        int r;

        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                if (strcmp(lists[i].contents, contents) != 0)
                        continue;
                r = sd_bus_message_enter_container(m, 'v', contents);
                if (r >= 0)
                        r = sd_bus_message_enter_container(m, 'a', lists[i].item);
                if (r >= 0)
                        r = lists[i].read(m, list);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r >= 0)
                        *ret = TAKE_PTR(list);
                return r;
        }
        *ret = NULL;
        return sd_bus_message_skip(m, "v");
}

static int read_value(sd_bus_message *m, json_t **ret) {
        const char *contents, *s;
        uint64_t t;
        uint32_t u;
        double d;
        int r, b;

        r = sd_bus_message_peek_type(m, NULL, &contents);
        if (r < 0)
                return r;
        *ret = NULL;
        switch (contents[1] ? 0 : contents[0]) {
        case 's':
                if ((r = sd_bus_message_read(m, "v", "s", &s)) >= 0)
                        *ret = text_of(s);
                return r;
        case 't':
                if ((r = sd_bus_message_read(m, "v", "t", &t)) >= 0)
                        *ret = json_integer((json_int_t)t);
                return r;
        case 'u':
                if ((r = sd_bus_message_read(m, "v", "u", &u)) >= 0)
                        *ret = json_integer(u);
                return r;
        case 'd':
                if ((r = sd_bus_message_read(m, "v", "d", &d)) >= 0)
                        *ret = json_real(d);
                return r;
        case 'b':
                if ((r = sd_bus_message_read(m, "v", "b", &b)) >= 0)
                        *ret = json_boolean(b);
                return r;
        default:
                return read_list(m, contents, ret);
        }
}

static int describe(struct cli *c, const char *node, json_t **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(json_decref_p) json_t *all = json_object();
        int r = node_call_new(c, node, "Describe", &m);

        if (!r)
                r = node_call(c, node, m, &reply);
        if (r)
                return r;
        r = sd_bus_message_enter_container(reply, 'a', "{sv}");
        while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
                const char *key;
                json_t *value;
                r = sd_bus_message_read_basic(reply, 's', &key);
                if (r >= 0)
                        r = read_value(reply, &value);
                if (r >= 0 && value)
                        (void)json_object_set_new(all, key, value);
                if (r >= 0)
                        r = sd_bus_message_exit_container(reply);
        }
        if (r < 0)
                return cli_bad_reply(c, r);
        *ret = TAKE_PTR(all);
        return 0;
}

/* ---- as text ---- */

static const char *string(json_t *o, const char *key) {
        const char *s = json_string_value(json_object_get(o, key));

        return s ? s : "";
}

static uint64_t number(json_t *o, const char *key) {
        return (uint64_t)json_integer_value(json_object_get(o, key));
}

static const char *user_name(uint32_t uid, char buf[static 32]) {
        const struct passwd *pw = getpwuid(uid);

        if (pw)
                snprintf(buf, 32, "%s", pw->pw_name);
        else
                snprintf(buf, 32, "uid %" PRIu32, uid);
        return buf;
}

/* In the zone of whoever looks. */
static const char *local_time(uint64_t real_usec, char buf[static 32]) {
        time_t t = (time_t)(real_usec / USEC_PER_SEC);
        struct tm tm;

        if (!localtime_r(&t, &tm) || strftime(buf, 32, "%Y-%m-%d %H:%M:%S", &tm) == 0)
                strcpy(buf, "?");
        return buf;
}

static void print_holds(json_t *holds) {
        char user[32], when[32], duration[FORMAT_DURATION_MAX];
        json_t *h, *deadline;
        size_t i;

        json_array_foreach (holds, i, h) {
                const char *reason = string(h, "reason"), *then = string(h, "then");
                printf("%s %s%s%s, since %s", i == 0 ? "Held:      " : "           ", string(h, "cause"),
                       *reason ? ": " : "", reason, local_time(number(h, "since"), when));
                if (strcmp(string(h, "cause"), "admin") == 0 ||
                    strcmp(string(h, "cause"), "maintenance") == 0)
                        printf(", by %s", user_name((uint32_t)number(h, "uid"), user));
                deadline = json_object_get(h, "deadline");
                if (!deadline)
                        printf("; takes nothing new");
                else if (json_is_string(deadline))
                        printf("; drains as executors end");
                else if (json_integer_value(deadline) == 0)
                        printf("; drains");
                else
                        printf("; drains until %s", local_time(number(h, "deadline"), when));
                if (json_object_get(h, "grace"))
                        printf(", grace %s", format_duration(number(h, "grace"), duration, sizeof(duration)));
                printf("%s%s\n", strcmp(then, "none") == 0 ? "" : ", then ",
                       strcmp(then, "none") == 0 ? "" : then);
        }
}

static void print_conditions(json_t *conditions) {
        char since[32];
        json_t *x;
        size_t i;

        json_array_foreach (conditions, i, x)
                printf("%s %s: %s %s: %s, since %s\n", i == 0 ? "Condition: " : "           ",
                       string(x, "severity"), string(x, "kind"), string(x, "subject"), string(x, "text"),
                       local_time(number(x, "since"), since));
}

static void print_avoided(json_t *avoided) {
        char user[32], until[32];
        json_t *x;
        size_t i;

        json_array_foreach (avoided, i, x)
                printf("%s jobs of %s, of which too many failed there, until %s\n",
                       i == 0 ? "Kept from: " : "           ", user_name((uint32_t)number(x, "uid"), user),
                       local_time(number(x, "until"), until));
}

static void print_windows(json_t *windows, const char *head) {
        char from[32], to[32];
        json_t *w;
        size_t i;

        json_array_foreach (windows, i, w)
                printf("%s %s to %s%s%s\n", i == 0 ? head : "           ",
                       local_time(number(w, "from"), from), local_time(number(w, "to"), to),
                       *string(w, "reason") ? ": " : "", string(w, "reason"));
}

static int print_executors(const struct cli *c, json_t *executors) {
        static const struct table_column columns[] = {
                { "JOB", .right = true }, { "EXECUTOR" }, { "STATE" }, { "USER" }, { "SINCE" },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        char user[32], since[32];
        json_t *e;
        size_t i;
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        json_array_foreach (executors, i, e) {
                if (table_row(t) < 0)
                        return cli_oom(c);
                table_set(t, 0, COLOR_BOLD, "%" PRIu64, number(e, "job"));
                if (*string(e, "role"))
                        table_set(t, 1, COLOR_NONE, "%s/%" PRIu64, string(e, "role"), number(e, "index"));
                else
                        table_set(t, 1, COLOR_DIM, "-");
                table_set(t, 2, color_of_state(string(e, "state")), "%s", string(e, "state"));
                table_set(t, 3, COLOR_NONE, "%s", user_name((uint32_t)number(e, "owner"), user));
                table_set(t, 4, COLOR_NONE, "%s",
                          number(e, "startedAt") ? local_time(number(e, "startedAt"), since) : "-");
        }
        return table_print_or(c, t, "No executor is there");
}

static bool same_gpu(json_t *a, json_t *b) {
        return strcmp(string(a, "model"), string(b, "model")) == 0 &&
               strcmp(string(a, "mig"), string(b, "mig")) == 0 && number(a, "memory") == number(b, "memory");
}

/* "            4 x NVIDIA H100 80GB HBM3, 80 GiB": those that are alike in one line. */
static void print_gpus(json_t *list) {
        char size[FORMAT_SIZE_MAX];

        for (size_t i = 0, n; i < json_array_size(list); i += n) {
                json_t *g = json_array_get(list, i);

                for (n = 1; i + n < json_array_size(list) && same_gpu(g, json_array_get(list, i + n));)
                        n++;
                printf("            %zu x %s%s%s", n, string(g, "model"), *string(g, "mig") ? ", part " : "",
                       string(g, "mig"));
                if (number(g, "memory"))
                        printf(", %s", format_size(number(g, "memory"), size, sizeof(size)));
                putchar('\n');
        }
}

static void print_joined(json_t *all) {
        bool taken = json_is_true(json_object_get(all, "takenOver"));
        char when[32], user[32];

        if (number(all, "joined"))
                printf("Joined:     %s from %s, with a token of %s%s\n",
                       local_time(number(all, "joined"), when), string(all, "joinedFrom"),
                       user_name((uint32_t)number(all, "joinedBy"), user),
                       taken ? "; took the name over from another, or the same before it was installed anew"
                             : "");
}

int node_show(struct cli *c, const char *node) {
        _cleanup_(json_decref_p) json_t *all = NULL;
        char a[FORMAT_SIZE_MAX], b[FORMAT_SIZE_MAX], when[32];
        json_t *label;
        size_t i;
        int r = describe(c, node, &all);

        if (r)
                return r;
        if (c->json)
                return cli_print_json(c, TAKE_PTR(all));
        printf("Node:       %s\n", string(all, "name"));
        printf("State:      %s", string(all, "state"));
        if (number(all, "heartbeat"))
                printf(", last heard %s", local_time(number(all, "heartbeat"), when));
        putchar('\n');
        print_joined(all);
        if (*string(all, "refused"))
                printf("Refused:    %s\n", string(all, "refused"));
        print_holds(json_object_get(all, "holds"));
        print_conditions(json_object_get(all, "conditions"));
        print_avoided(json_object_get(all, "avoidedFor"));
        print_windows(json_object_get(all, "windows"), "Maintenance:");
        printf("Address:    %s\n", string(all, "address"));
        printf("CPUs:       %g of %" PRIu64 " free\n", json_number_value(json_object_get(all, "cpusFree")),
               number(all, "cpus"));
        printf("Memory:     %s of %s free%s\n", format_size(number(all, "memoryFree"), a, sizeof(a)),
               format_size(number(all, "memory"), b, sizeof(b)),
               json_is_true(json_object_get(all, "limits")) ? "" : "; limits are not enforced");
        if (number(all, "gpus"))
                printf("GPUs:       %" PRIu64 " of %" PRIu64 " free\n", number(all, "gpusFree"),
                       number(all, "gpus"));
        print_gpus(json_object_get(all, "gpuList"));
        if (json_array_size(json_object_get(all, "labels")) > 0) {
                printf("Labels:    ");
                json_array_foreach (json_object_get(all, "labels"), i, label)
                        printf(" %s", json_string_value(label));
                putchar('\n');
        }
        printf("System:     %s, %s\n", string(all, "os"), string(all, "kernel"));
        printf("Agent:      %s%s%s%s\n", string(all, "version"), *string(all, "link") ? " (link " : "",
               string(all, "link"), *string(all, "link") ? ")" : "");
        if (json_array_size(json_object_get(all, "executors")) == 0) {
                printf("Nothing runs there.\n");
                return CLI_OK;
        }
        putchar('\n');
        return print_executors(c, json_object_get(all, "executors"));
}

int node_show_windows(struct cli *c, const char *node) {
        _cleanup_(json_decref_p) json_t *all = NULL;
        json_t *windows;
        int r = describe(c, node, &all);

        if (r)
                return r;
        windows = json_object_get(all, "windows");
        if (c->json)
                return cli_print_json(c, json_incref(windows));
        if (json_array_size(windows) == 0)
                printf("Node %s has no maintenance window\n", node);
        print_windows(windows, "Maintenance:");
        return CLI_OK;
}

int node_find_window(struct cli *c, const char *node, const char *text, uint64_t *ret_from) {
        _cleanup_(json_decref_p) json_t *all = NULL;
        json_t *windows, *w;
        uint64_t when = 0;
        size_t i;
        int r;

        /* As it was: a time that is over today is not tomorrow's. */
        if (text && when_parse(text, now_real(), &when) < 0)
                return cli_usage(c, "not a time: %s", text);
        r = describe(c, node, &all);
        if (r)
                return r;
        windows = json_object_get(all, "windows");
        if (!text && json_array_size(windows) > 1)
                return cli_usage(c, "node %s has %zu maintenance windows; say when the one begins", node,
                                 json_array_size(windows));
        json_array_foreach (windows, i, w)
                if (!text || number(w, "from") / USEC_PER_SEC == when / USEC_PER_SEC) {
                        *ret_from = number(w, "from");
                        return 0;
                }
        return text ? cli_fail(c, "node %s has no maintenance window that begins at %s", node, text)
                    : cli_fail(c, "node %s has no maintenance window", node);
}

int node_progress(struct cli *c, const char *node, struct node_progress *ret) {
        _cleanup_(json_decref_p) json_t *all = NULL;
        json_t *executors, *h, *e;
        size_t i, l;
        int r = describe(c, node, &all);

        if (r)
                return r;
        *ret = (struct node_progress){ 0 };
        json_array_foreach (json_object_get(all, "holds"), i, h)
                ret->drains |= json_is_true(json_object_get(h, "drain"));
        executors = json_object_get(all, "executors");
        ret->left = json_array_size(executors);
        if (ret->left == 0) {
                strcpy(ret->text, "nothing is left");
                return 0;
        }
        l = (size_t)snprintf(ret->text, sizeof(ret->text), "%zu executor%s left: ", ret->left,
                             ret->left == 1 ? "" : "s");
        json_array_foreach (executors, i, e) {
                if (i == 4)
                        break;
                l += (size_t)snprintf(ret->text + l, sizeof(ret->text) - l,
                                      "%s%s%s%" PRIu64 " of job %" PRIu64 " %s", i ? ", " : "",
                                      string(e, "role"), *string(e, "role") ? "/" : "#", number(e, "index"),
                                      number(e, "job"), string(e, "state"));
                if (l >= sizeof(ret->text))
                        break;
        }
        if (ret->left > 4 && l + 6 < sizeof(ret->text))
                (void)snprintf(ret->text + l, sizeof(ret->text) - l, ", ...");
        return 0;
}
