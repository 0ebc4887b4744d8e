/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl nodes. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"
#include "tools/primusctl/view/users.h"

/* So long 'nodes' says that a name has gone to another host; 'node show' always does. */
#define TAKEN_OVER_SHOWN (UINT64_C(7) * 86400 * USEC_PER_SEC)

struct node_row {
        const char *name, *state, *address; /* in the message */
        double cpus, cpus_free;
        uint64_t memory, memory_free, heartbeat;
        uint32_t gpus, gpus_free, executors;
        const char *kernel, *os, *version, *reason, *conditions;
        uint64_t taken_over; /* when the name was given to another host; 0: never */
        char **labels;       /* into the message; or NULL */
        bool limits;
};

struct nodes_options {
        bool labels;
};

static void row_done(struct node_row *row) {
        free(row->labels);
        row->labels = NULL;
}

/* The texts stay the message's. */
static int read_labels(sd_bus_message *m, struct node_row *row) {
        const char *label;
        size_t n = 0;
        int r = sd_bus_message_enter_container(m, 'v', "as");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "s");
        row_done(row);
        while (r >= 0 && (r = sd_bus_message_read_basic(m, 's', &label)) > 0) {
                char **bigger = reallocarray(row->labels, n + 2, sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                row->labels = bigger;
                row->labels[n++] = (char *)label;
                row->labels[n] = NULL;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_extra(sd_bus_message *m, struct node_row *row) {
        const struct {
                const char *key;
                const char **target;
        } strings[] = { { "kernel", &row->kernel },
                        { "os", &row->os },
                        { "version", &row->version },
                        { "reason", &row->reason },
                        { "conditions", &row->conditions } };
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const char *key, *contents;
                const char **target = NULL;
                int b;

                r = sd_bus_message_read(m, "s", &key);
                if (r >= 0)
                        r = sd_bus_message_peek_type(m, NULL, &contents);
                if (r < 0)
                        return r;
                for (size_t i = 0; i < ELEMENTSOF(strings); i++)
                        if (strcmp(strings[i].key, key) == 0 && strcmp(contents, "s") == 0)
                                target = strings[i].target;
                if (target)
                        r = sd_bus_message_read(m, "v", "s", target);
                else if (strcmp(key, "limits") == 0 && strcmp(contents, "b") == 0) {
                        r = sd_bus_message_read(m, "v", "b", &b);
                        row->limits = r >= 0 && b;
                } else if (strcmp(key, "takenOver") == 0 && strcmp(contents, "t") == 0)
                        r = sd_bus_message_read(m, "v", "t", &row->taken_over);
                else if (strcmp(key, "labels") == 0 && strcmp(contents, "as") == 0)
                        r = read_labels(m, row);
                else
                        r = sd_bus_message_skip(m, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int next_row(sd_bus_message *m, struct node_row *row) {
        int r = sd_bus_message_enter_container(m, 'r', "sssddttuuuta{sv}");

        row_done(row);
        if (r <= 0)
                return r;
        *row = (struct node_row){ .kernel = "", .os = "", .version = "", .reason = "", .conditions = "" };
        r = sd_bus_message_read(m, "sssddttuuut", &row->name, &row->state, &row->address, &row->cpus,
                                &row->cpus_free, &row->memory, &row->memory_free, &row->gpus, &row->gpus_free,
                                &row->executors, &row->heartbeat);
        if (r >= 0)
                r = read_extra(m, row);
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : 1;
}

static json_t *labels_json(const struct node_row *n) {
        json_t *list = json_array();

        for (char **p = n->labels; p && *p; p++)
                (void)json_array_append_new(list, json_string(*p));
        return list;
}

static int print_json(const struct cli *c, sd_bus_message *m) {
        json_t *array = json_array();
        _cleanup_(row_done) struct node_row n = {};
        int r;

        while ((r = next_row(m, &n)) > 0)
                (void)json_array_append_new(
                        array,
                        json_pack("{s:s, s:s, s:s, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, "
                                  "s:b, s:s, s:s, s:I, s:o}",
                                  "name", n.name, "state", n.state, "address", n.address, "cpus", n.cpus,
                                  "cpusFree", n.cpus_free, "memory", (json_int_t)n.memory, "memoryFree",
                                  (json_int_t)n.memory_free, "gpus", (json_int_t)n.gpus, "gpusFree",
                                  (json_int_t)n.gpus_free, "executors", (json_int_t)n.executors, "heartbeat",
                                  (json_int_t)n.heartbeat, "kernel", n.kernel, "os", n.os, "version",
                                  n.version, "limits", (int)n.limits, "reason", n.reason, "conditions",
                                  n.conditions, "takenOver", (json_int_t)n.taken_over, "labels",
                                  labels_json(&n)));
        if (r < 0) {
                json_decref(array);
                return cli_bad_reply(c, r);
        }
        return cli_print_json(c, array);
}

/* The parts that are not empty, all of them. Allocated; NULL: out of memory. */
static char *joined(const char *const *parts, size_t n, const char *between) {
        size_t size = 1;
        char *text, *end;

        for (size_t i = 0; i < n; i++)
                size += strlen(parts[i]) + strlen(between);
        end = text = malloc(size);
        if (!text)
                return NULL;
        *text = 0;
        for (size_t i = 0; i < n; i++)
                if (*parts[i])
                        end = stpcpy(stpcpy(end, end > text ? between : ""), parts[i]);
        return text;
}

static void set_labels(struct table *t, int column, const struct node_row *n) {
        _cleanup_free_ char *text = NULL;
        size_t count = 0;

        while (n->labels && n->labels[count])
                count++;
        text = joined((const char *const *)n->labels, count, " ");
        table_set(t, column, COLOR_NONE, "%s", text ?: "out of memory");
}

/* Whatever a person should know of the host. */
static void set_reason(struct table *t, int column, const struct node_row *n, uint64_t now) {
        char taken[FORMAT_DURATION_MAX + 64] = "", ago[FORMAT_DURATION_MAX];
        uint64_t age = usec_sub(now, n->taken_over);
        _cleanup_free_ char *reason = users_named(n->reason, user_lookup_here);
        const char *const parts[] = { reason ? reason : n->reason, n->conditions, taken,
                                      n->limits ? "" : "limits are not enforced (no cgroup v2 controllers)" };
        _cleanup_free_ char *text = NULL;

        if (n->taken_over && age < TAKEN_OVER_SHOWN)
                snprintf(taken, sizeof(taken), "taken over by a host that joined %s ago",
                         format_duration(age / USEC_PER_SEC * USEC_PER_SEC, ago, sizeof(ago)));
        text = joined(parts, ELEMENTSOF(parts), "; ");
        table_set(t, column, COLOR_NONE, "%s", text ?: "out of memory");
}

static int print_table(const struct cli *c, sd_bus_message *m, bool labels) {
        const struct table_column columns[] = {
                { "NODE" },
                { "STATE" },
                { "ADDRESS" },
                { "CPUS", .right = true },
                { "MEMORY", .right = true },
                { "GPUS", .right = true },
                { "EXECUTORS", .right = true },
                { "SEEN", .right = true },
                { "AGENT" },
                { labels ? "LABELS" : "REASON", .fills = true },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        char a[FORMAT_SIZE_MAX], b[FORMAT_SIZE_MAX], seen[FORMAT_DURATION_MAX];
        uint64_t now = now_real();
        _cleanup_(row_done) struct node_row n = {};
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        while ((r = next_row(m, &n)) > 0 && table_row(t) >= 0) {
                table_set(t, 0, COLOR_BOLD, "%s", n.name);
                table_set(t, 1, color_of_state(n.state), "%s", n.state);
                table_set(t, 2, COLOR_NONE, "%s", n.address);
                table_set(t, 3, COLOR_NONE, "%g/%g free", n.cpus_free, n.cpus);
                table_set(t, 4, COLOR_NONE, "%s/%s free", format_size(n.memory_free, a, sizeof(a)),
                          format_size(n.memory, b, sizeof(b)));
                if (n.gpus)
                        table_set(t, 5, COLOR_NONE, "%" PRIu32 "/%" PRIu32 " free", n.gpus_free, n.gpus);
                else
                        table_set(t, 5, COLOR_DIM, "-");
                table_set(t, 6, COLOR_NONE, "%" PRIu32, n.executors);
                if (n.heartbeat == 0)
                        table_set(t, 7, COLOR_DIM, "-");
                else if (usec_sub(now, n.heartbeat) < 5 * USEC_PER_SEC)
                        table_set(t, 7, COLOR_NONE, "now");
                else
                        table_set(t, 7, COLOR_NONE, "%s ago",
                                  format_duration(usec_sub(now, n.heartbeat) / USEC_PER_SEC * USEC_PER_SEC,
                                                  seen, sizeof(seen)));
                table_set(t, 8, COLOR_NONE, "%s", n.version);
                if (labels)
                        set_labels(t, 9, &n);
                else
                        set_reason(t, 9, &n, now);
        }
        return r < 0 ? cli_bad_reply(c, r)
                     : table_print_or(
                               c, t,
                               "No host has joined; 'primusctl token create' makes what one joins with");
}

static int nodes_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        const struct nodes_options *o = options;
        int r = cli_manager_call(c, "ListNodes", &m);

        (void)args;
        (void)n;
        if (!r)
                r = cli_call(c, m, NULL, &reply);
        if (r)
                return r;
        r = sd_bus_message_enter_container(reply, 'a', "(sssddttuuuta{sv})");
        if (r < 0)
                return cli_bad_reply(c, r);
        return c->json ? print_json(c, reply) : print_table(c, reply, o->labels);
}

static const struct cli_option nodes_options[] = {
        { "labels", 0, NULL, NULL, offsetof(struct nodes_options, labels),
          "show the labels instead of why hosts are held" },
        { 0 },
};

const struct command nodes_command = {
        .name = "nodes",
        .arguments = "[OPTIONS]",
        .help = "List the hosts of the cluster and what is free on them",
        .options = nodes_options,
        .options_size = sizeof(struct nodes_options),
        .run = nodes_run,
};
