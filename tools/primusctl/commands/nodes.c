/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl nodes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"
#include "tools/primusctl/view/users.h"

/* So long 'nodes' says that a name has gone to another host; 'node show' always does. */
#define TAKEN_OVER_SHOWN (UINT64_C(7) * 86400 * USEC_PER_SEC)

struct nodes_options {
        bool labels;
};

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

static void set_labels(struct table *t, int column, const json_t *n) {
        const json_t *labels = json_object_get(n, "labels");
        size_t count = json_array_size(labels);
        const char **parts = calloc(count + 1, sizeof(*parts));
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; parts && i < count; i++)
                parts[i] = json_string_value(json_array_get(labels, i));
        text = parts ? joined(parts, count, " ") : NULL;
        table_set(t, column, COLOR_NONE, "%s", text ?: "out of memory");
        free(parts);
}

/* Whatever a person should know of the host. */
static void set_reason(struct table *t, int column, const json_t *n, uint64_t now) {
        char taken[FORMAT_DURATION_MAX + 64] = "", ago[FORMAT_DURATION_MAX];
        uint64_t taken_over = json_get_number(n, "takenOver"), age = usec_sub(now, taken_over);
        _cleanup_free_ char *reason = users_named(json_get_text(n, "reason"), user_lookup_here);
        const char *const parts[] = { reason ?: "out of memory", json_get_text(n, "conditions"), taken,
                                      json_get_flag(n, "limits")
                                              ? ""
                                              : "limits are not enforced (no cgroup v2 controllers)" };
        _cleanup_free_ char *text = NULL;

        if (taken_over && age < TAKEN_OVER_SHOWN)
                snprintf(taken, sizeof(taken), "taken over by a host that joined %s ago",
                         format_duration(age / USEC_PER_SEC * USEC_PER_SEC, ago, sizeof(ago)));
        text = joined(parts, ELEMENTSOF(parts), "; ");
        table_set(t, column, COLOR_NONE, "%s", text ?: "out of memory");
}

static void set_seen(struct table *t, int column, uint64_t heartbeat, uint64_t now) {
        char seen[FORMAT_DURATION_MAX];

        if (heartbeat == 0)
                table_set(t, column, COLOR_DIM, "-");
        else if (usec_sub(now, heartbeat) < 5 * USEC_PER_SEC)
                table_set(t, column, COLOR_NONE, "now");
        else
                table_set(t, column, COLOR_NONE, "%s ago",
                          format_duration(usec_sub(now, heartbeat) / USEC_PER_SEC * USEC_PER_SEC, seen,
                                          sizeof(seen)));
}

static int print_table(const struct cli *c, const json_t *nodes, bool labels) {
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
        char a[FORMAT_SIZE_MAX], b[FORMAT_SIZE_MAX];
        uint64_t now = now_real();
        const json_t *n;
        size_t i;
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        json_array_foreach (nodes, i, n) {
                if (table_row(t) < 0)
                        break;
                table_set(t, 0, COLOR_BOLD, "%s", json_get_text(n, "name"));
                table_set(t, 1, color_of_state(json_get_text(n, "state")), "%s", json_get_text(n, "state"));
                table_set(t, 2, COLOR_NONE, "%s", json_get_text(n, "address"));
                table_set(t, 3, COLOR_NONE, "%g/%g free", json_get_real(n, "cpusFree"),
                          json_get_real(n, "cpus"));
                table_set(t, 4, COLOR_NONE, "%s/%s free",
                          format_size(json_get_number(n, "memoryFree"), a, sizeof(a)),
                          format_size(json_get_number(n, "memory"), b, sizeof(b)));
                if (json_get_number(n, "gpus"))
                        table_set(t, 5, COLOR_NONE, "%" PRIu64 "/%" PRIu64 " free",
                                  json_get_number(n, "gpusFree"), json_get_number(n, "gpus"));
                else
                        table_set(t, 5, COLOR_DIM, "-");
                table_set(t, 6, COLOR_NONE, "%" PRIu64, json_get_number(n, "executors"));
                set_seen(t, 7, json_get_number(n, "heartbeat"), now);
                table_set(t, 8, COLOR_NONE, "%s", json_get_text(n, "version"));
                if (labels)
                        set_labels(t, 9, n);
                else
                        set_reason(t, 9, n, now);
        }
        return table_print_or(c, t, "No host has joined; 'primusctl token create' makes what one joins with");
}

static int nodes_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(json_decref_p) json_t *nodes = NULL;
        const struct nodes_options *o = options;
        int r = ask_manager_list(c, "ListNodes", &json_node_row, &nodes);

        (void)args;
        (void)n;
        if (r)
                return r;
        return c->json ? cli_print_json(c, TAKE_PTR(nodes)) : print_table(c, nodes, o->labels);
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
