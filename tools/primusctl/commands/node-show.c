/* SPDX-License-Identifier: Apache-2.0 */
/* What masterd says of one host, read once into JSON, which is printed as it is or as text. */
#include "tools/primusctl/commands/node-show.h"

#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/when.h"
#include "lib/json/get.h"
#include "lib/json/replies.h"
#include "tools/primusctl/cli/text.h"
#include "tools/primusctl/view/table.h"
#include "tools/primusctl/view/users.h"

static int describe(struct cli *c, const char *node, json_t **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = node_call_new(c, node, "Describe", &m);

        if (!r)
                r = node_call(c, node, m, &reply);
        if (r)
                return r;
        r = json_read_object(reply, &json_node, !c->json, ret);
        return r == -ENOMEM ? cli_oom(c) : r < 0 ? cli_bad_reply(c, r) : 0;
}

/* ---- as text ---- */

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
                const char *reason = json_get_text(h, "reason"), *then = json_get_text(h, "then");
                printf("%s %s%s%s, since %s", i == 0 ? "Held:      " : "           ",
                       json_get_text(h, "cause"), *reason ? ": " : "", reason,
                       local_time(json_get_number(h, "since"), when));
                if (strcmp(json_get_text(h, "cause"), "admin") == 0 ||
                    strcmp(json_get_text(h, "cause"), "maintenance") == 0)
                        printf(", by %s", user_name((uint32_t)json_get_number(h, "uid"), user));
                deadline = json_object_get(h, "deadline");
                if (!deadline)
                        printf("; takes nothing new");
                else if (json_is_string(deadline))
                        printf("; drains as executors end");
                else if (json_integer_value(deadline) == 0)
                        printf("; drains");
                else
                        printf("; drains until %s", local_time(json_get_number(h, "deadline"), when));
                if (json_object_get(h, "grace"))
                        printf(", grace %s",
                               format_duration(json_get_number(h, "grace"), duration, sizeof(duration)));
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
                       json_get_text(x, "severity"), json_get_text(x, "kind"), json_get_text(x, "subject"),
                       json_get_text(x, "text"), local_time(json_get_number(x, "since"), since));
}

static void print_avoided(json_t *avoided) {
        char user[32], until[32];
        json_t *x;
        size_t i;

        json_array_foreach (avoided, i, x)
                printf("%s jobs of %s, of which too many failed there, until %s\n",
                       i == 0 ? "Kept from: " : "           ",
                       user_name((uint32_t)json_get_number(x, "uid"), user),
                       local_time(json_get_number(x, "until"), until));
}

static void print_windows(json_t *windows, const char *head) {
        char from[32], to[32];
        json_t *w;
        size_t i;

        json_array_foreach (windows, i, w)
                printf("%s %s to %s%s%s\n", i == 0 ? head : "           ",
                       local_time(json_get_number(w, "from"), from), local_time(json_get_number(w, "to"), to),
                       *json_get_text(w, "reason") ? ": " : "", json_get_text(w, "reason"));
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
                table_set(t, 0, COLOR_BOLD, "%" PRIu64, json_get_number(e, "job"));
                if (*json_get_text(e, "role"))
                        table_set(t, 1, COLOR_NONE, "%s/%" PRIu64, json_get_text(e, "role"),
                                  json_get_number(e, "index"));
                else
                        table_set(t, 1, COLOR_DIM, "-");
                table_set(t, 2, color_of_state(json_get_text(e, "state")), "%s", json_get_text(e, "state"));
                table_set(t, 3, COLOR_NONE, "%s", user_name((uint32_t)json_get_number(e, "owner"), user));
                table_set(t, 4, COLOR_NONE, "%s",
                          json_get_number(e, "startedAt") ? local_time(json_get_number(e, "startedAt"), since)
                                                          : "-");
        }
        return table_print_or(c, t, "No executor is there");
}

static bool same_gpu(json_t *a, json_t *b) {
        return strcmp(json_get_text(a, "model"), json_get_text(b, "model")) == 0 &&
               strcmp(json_get_text(a, "mig"), json_get_text(b, "mig")) == 0 &&
               json_get_number(a, "memory") == json_get_number(b, "memory");
}

/* "            4 x NVIDIA H100 80GB HBM3, 80 GiB": those that are alike in one line. */
static void print_gpus(json_t *list) {
        char size[FORMAT_SIZE_MAX];

        for (size_t i = 0, n; i < json_array_size(list); i += n) {
                json_t *g = json_array_get(list, i);

                for (n = 1; i + n < json_array_size(list) && same_gpu(g, json_array_get(list, i + n));)
                        n++;
                printf("            %zu x %s%s%s", n, json_get_text(g, "model"),
                       *json_get_text(g, "mig") ? ", part " : "", json_get_text(g, "mig"));
                if (json_get_number(g, "memory"))
                        printf(", %s", format_size(json_get_number(g, "memory"), size, sizeof(size)));
                putchar('\n');
        }
}

/* Its number in the list; or, of one that is not there any more, its uuid. */
static const char *gpu_name(json_t *list, const char *uuid, char buf[static 64]) {
        json_t *g;
        size_t i;

        json_array_foreach (list, i, g)
                if (strcmp(json_get_text(g, "uuid"), uuid) == 0) {
                        snprintf(buf, 64, "GPU %zu%s", i,
                                 json_is_true(json_object_get(g, "taken")) ? ", which is still in use," : "");
                        return buf;
                }
        return uuid;
}

static void print_gpus_off(json_t *all) {
        char user[32], when[32], name[64];
        json_t *g;
        size_t i;

        json_array_foreach (json_object_get(all, "gpusOff"), i, g)
                printf("%s %s by %s, since %s%s%s\n", i == 0 ? "Out of use:" : "           ",
                       gpu_name(json_object_get(all, "gpuList"), json_get_text(g, "uuid"), name),
                       user_name((uint32_t)json_get_number(g, "uid"), user),
                       local_time(json_get_number(g, "since"), when), *json_get_text(g, "reason") ? ": " : "",
                       json_get_text(g, "reason"));
}

static void print_joined(json_t *all) {
        bool taken = json_is_true(json_object_get(all, "takenOver"));
        char when[32], user[32];

        if (json_get_number(all, "joined"))
                printf("Joined:     %s from %s, with a token of %s%s\n",
                       local_time(json_get_number(all, "joined"), when), json_get_text(all, "joinedFrom"),
                       user_name((uint32_t)json_get_number(all, "joinedBy"), user),
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
        printf("Node:       %s\n", json_get_text(all, "name"));
        printf("State:      %s", json_get_text(all, "state"));
        if (json_get_number(all, "heartbeat"))
                printf(", last heard %s", local_time(json_get_number(all, "heartbeat"), when));
        putchar('\n');
        print_joined(all);
        if (*json_get_text(all, "refused"))
                printf("Refused:    %s\n", json_get_text(all, "refused"));
        if (*json_get_text(all, "provider"))
                printf("Provider:   %s, shape %s; %s\n", json_get_text(all, "provider"),
                       json_get_text(all, "shape"), json_get_text(all, "kept"));
        print_holds(json_object_get(all, "holds"));
        print_conditions(json_object_get(all, "conditions"));
        print_avoided(json_object_get(all, "avoidedFor"));
        print_windows(json_object_get(all, "windows"), "Maintenance:");
        printf("Address:    %s\n", json_get_text(all, "address"));
        printf("CPUs:       %g of %" PRIu64 " free\n", json_number_value(json_object_get(all, "cpusFree")),
               json_get_number(all, "cpus"));
        printf("Memory:     %s of %s free%s\n", format_size(json_get_number(all, "memoryFree"), a, sizeof(a)),
               format_size(json_get_number(all, "memory"), b, sizeof(b)),
               json_is_true(json_object_get(all, "limits")) ? "" : "; limits are not enforced");
        if (json_get_number(all, "gpus"))
                printf("GPUs:       %" PRIu64 " of %" PRIu64 " free\n", json_get_number(all, "gpusFree"),
                       json_get_number(all, "gpus"));
        print_gpus(json_object_get(all, "gpuList"));
        print_gpus_off(all);
        if (json_array_size(json_object_get(all, "labels")) > 0) {
                printf("Labels:    ");
                json_array_foreach (json_object_get(all, "labels"), i, label)
                        printf(" %s", json_string_value(label));
                putchar('\n');
        }
        printf("System:     %s, %s\n", json_get_text(all, "os"), json_get_text(all, "kernel"));
        printf("Agent:      %s%s%s%s\n", json_get_text(all, "version"),
               *json_get_text(all, "link") ? " (link " : "", json_get_text(all, "link"),
               *json_get_text(all, "link") ? ")" : "");
        if (json_array_size(json_object_get(all, "executors")) == 0) {
                printf("Nothing runs there.\n");
                return CLI_OK;
        }
        putchar('\n');
        return print_executors(c, json_object_get(all, "executors"));
}

int node_events(struct cli *c, const char *node) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(json_decref_p) json_t *rows = NULL;
        json_t *row;
        size_t i;
        int r = node_call_new(c, node, "ListEvents", &m);

        if (!r && sd_bus_message_append(m, "t", UINT64_C(0)) < 0)
                r = cli_oom(c);
        if (!r)
                r = node_call(c, node, m, &reply);
        if (r)
                return r;
        r = json_read_list(reply, &json_node_event, !c->json, &rows);
        if (r < 0)
                return r == -ENOMEM ? cli_oom(c) : cli_bad_reply(c, r);
        if (c->json)
                return cli_print_json(c, TAKE_PTR(rows));
        json_array_foreach (rows, i, row) {
                _cleanup_free_ char *text = users_named(json_get_text(row, "text"), user_lookup_here);
                char when[32];
                if (!text)
                        return cli_oom(c);
                text_clean(text);
                printf("%s%s%s  %s\n", c->color ? color_sequence(COLOR_DIM) : "",
                       local_time(json_get_number(row, "time"), when), c->color ? COLOR_RESET : "", text);
        }
        if (i == 0)
                fprintf(stderr, "Nothing has happened to %s yet\n", node);
        return CLI_OK;
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
                if (!text || json_get_number(w, "from") / USEC_PER_SEC == when / USEC_PER_SEC) {
                        *ret_from = json_get_number(w, "from");
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
                l += (size_t)snprintf(
                        ret->text + l, sizeof(ret->text) - l, "%s%s%s%" PRIu64 " of job %" PRIu64 " %s",
                        i ? ", " : "", json_get_text(e, "role"), *json_get_text(e, "role") ? "/" : "#",
                        json_get_number(e, "index"), json_get_number(e, "job"), json_get_text(e, "state"));
                if (l >= sizeof(ret->text))
                        break;
        }
        if (ret->left > 4 && l + 6 < sizeof(ret->text))
                (void)snprintf(ret->text + l, sizeof(ret->text) - l, ", ...");
        return 0;
}
