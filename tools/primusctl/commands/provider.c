/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl provider: hosts that are made by demand. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"

static int ask_rows(struct cli *c, const char *method, const struct json_shape *shape, json_t **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r = cli_manager_call(c, method, &m);

        return r ? r : ask_list(c, m, NULL, shape, ret);
}

/* Millionths as "0.35". */
#define COST_TEXT_MAX 32u
static char *cost_text(uint64_t cost, char buf[static COST_TEXT_MAX]) {
        if (cost == 0)
                snprintf(buf, COST_TEXT_MAX, "-");
        else
                snprintf(buf, COST_TEXT_MAX, "%.2f", (double)cost / 1e6);
        return buf;
}

/* ---- list ---- */

static void put_shape(struct table *t, const json_t *p, const json_t *s) {
        char size[FORMAT_SIZE_MAX], cost[COST_TEXT_MAX];
        uint64_t max = MIN(json_get_number(s, "max"), json_get_number(p, "max"));
        const char *why = json_get_text(s, "why");

        table_set(t, 0, COLOR_BOLD, "%s", json_get_text(p, "name"));
        table_set(t, 1, COLOR_NONE, "%s", json_get_text(s, "shape"));
        table_set(t, 2, COLOR_NONE, "%" PRIu64, json_get_number(s, "cpus"));
        table_set(t, 3, COLOR_NONE, "%s", format_size(json_get_number(s, "memory"), size, sizeof(size)));
        table_set(t, 4, COLOR_NONE, "%" PRIu64, json_get_number(s, "gpus"));
        table_set(t, 5, COLOR_NONE, "%" PRIu64 "/%" PRIu64, json_get_number(s, "instances"), max);
        table_set(t, 6, COLOR_NONE, "%s", cost_text(json_get_number(s, "cost"), cost));
        table_set(t, 7, *why ? COLOR_YELLOW : COLOR_NONE, "%s",
                  json_is_true(json_object_get(p, "held")) ? "held" : why);
}

static void put_provider(struct table *t, const json_t *p) {
        const json_t *shapes = json_object_get(p, "shapes"), *s;
        size_t i;

        json_array_foreach (shapes, i, s)
                if (table_row(t) >= 0)
                        put_shape(t, p, s);
        if (json_array_size(shapes) == 0 && table_row(t) >= 0) {
                table_set(t, 0, COLOR_BOLD, "%s", json_get_text(p, "name"));
                table_set(t, 5, COLOR_NONE, "%" PRIu64, json_get_number(p, "instances"));
                table_set(t, 7, COLOR_RED, "%s", json_get_text(p, "error"));
        }
}

static void print_cost(const json_t *p) {
        char cost[COST_TEXT_MAX], most[COST_TEXT_MAX];
        uint64_t max = json_get_number(p, "maxCost");

        printf("%s costs %s an hour now%s%s\n", json_get_text(p, "name"),
               cost_text(json_get_number(p, "cost"), cost), max ? ", at most " : "",
               max ? cost_text(max, most) : "");
}

static int list_providers(struct cli *c, char **args) {
        static const struct table_column columns[] = {
                { "PROVIDER" },
                { "SHAPE" },
                { "CPUS", .right = true },
                { "MEMORY", .right = true },
                { "GPUS", .right = true },
                { "HOSTS", .right = true },
                { "COST/H", .right = true },
                { "STATE", .fills = true },
        };
        _cleanup_(json_decref_p) json_t *all = NULL;
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *x;
        size_t i;
        int r = ask_rows(c, "ListProviders", &json_provider, &all);

        (void)args;
        if (!r && c->json)
                return cli_print_json(c, TAKE_PTR(all));
        if (!r)
                r = table_new(c, columns, ELEMENTSOF(columns), &t);
        if (r)
                return r;
        json_array_foreach (all, i, x)
                put_provider(t, x);
        r = table_print_or(c, t, "There are no providers (primus-masterd(8), docs/providers.md)");
        json_array_foreach (all, i, x)
                if (!r && json_get_number(x, "cost") > 0)
                        print_cost(x);
        json_array_foreach (all, i, x)
                if (!r && json_array_size(json_object_get(x, "shapes")) > 0 && *json_get_text(x, "error"))
                        fprintf(stderr, "%s: %s; nothing follows from it\n", json_get_text(x, "name"),
                                json_get_text(x, "error"));
        return r;
}

/* ---- hosts, plan ---- */

static int list_hosts(struct cli *c, char **args) {
        static const struct table_column columns[] = {
                { "HOST" },
                { "PROVIDER" },
                { "SHAPE" },
                { "STATE" },
                { "SINCE", .right = true },
                { "JOB", .right = true },
                { "ID" },
                { "", .fills = true },
        };
        _cleanup_(json_decref_p) json_t *all = NULL;
        _cleanup_(table_free_p) struct table *t = NULL;
        char age[FORMAT_DURATION_MAX];
        const json_t *x;
        size_t i;
        int r = ask_rows(c, "ListInstances", &json_instance, &all);

        (void)args;
        if (!r && c->json)
                return cli_print_json(c, TAKE_PTR(all));
        if (!r)
                r = table_new(c, columns, ELEMENTSOF(columns), &t);
        if (r)
                return r;
        json_array_foreach (all, i, x) {
                if (table_row(t) < 0)
                        continue;
                table_set(t, 0, COLOR_BOLD, "%s", json_get_text(x, "node"));
                table_set(t, 1, COLOR_NONE, "%s", json_get_text(x, "provider"));
                table_set(t, 2, COLOR_NONE, "%s", json_get_text(x, "shape"));
                table_set(t, 3, COLOR_NONE, "%s", json_get_text(x, "state"));
                table_set(
                        t, 4, COLOR_NONE, "%s",
                        format_duration(usec_sub(now_real(), json_get_number(x, "since")), age, sizeof(age)));
                if (json_get_number(x, "job") > 0)
                        table_set(t, 5, COLOR_NONE, "%" PRIu64, json_get_number(x, "job"));
                table_set(t, 6, COLOR_NONE, "%s", json_get_text(x, "id"));
                table_set(t, 7, COLOR_NONE, "%s", json_get_text(x, "text"));
        }
        return table_print_or(c, t, "No provider has made a host");
}

static int show_plan(struct cli *c, char **args) {
        static const struct table_column columns[] = {
                { "ACT" },  { "PROVIDER" },           { "SHAPE" },
                { "HOST" }, { "JOB", .right = true }, { "WHY", .fills = true },
        };
        _cleanup_(json_decref_p) json_t *all = NULL;
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *x;
        size_t i;
        int r = ask_rows(c, "PlanInstances", &json_act, &all);

        (void)args;
        if (!r && c->json)
                return cli_print_json(c, TAKE_PTR(all));
        if (!r)
                r = table_new(c, columns, ELEMENTSOF(columns), &t);
        if (r)
                return r;
        json_array_foreach (all, i, x) {
                if (table_row(t) < 0)
                        continue;
                table_set(t, 0, COLOR_BOLD, "%s", json_get_text(x, "act"));
                table_set(t, 1, COLOR_NONE, "%s", json_get_text(x, "provider"));
                table_set(t, 2, COLOR_NONE, "%s", json_get_text(x, "shape"));
                table_set(t, 3, COLOR_NONE, "%s", json_get_text(x, "node"));
                if (json_get_number(x, "job") > 0)
                        table_set(t, 4, COLOR_NONE, "%" PRIu64, json_get_number(x, "job"));
                table_set(t, 5, COLOR_NONE, "%s", json_get_text(x, "why"));
        }
        return table_print_or(c, t, "Nothing is to be done");
}

/* ---- what changes something ---- */

static int hold(struct cli *c, const char *name, bool held) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(json_decref_p) json_t *all = NULL;
        const json_t *x;
        size_t i;
        bool provider = false;
        int r = ask_rows(c, "ListProviders", &json_provider, &all);

        if (r)
                return r;
        json_array_foreach (all, i, x)
                provider |= strcmp(json_get_text(x, "name"), name) == 0;
        r = cli_manager_call(c, provider ? "HoldProvider" : "HoldInstance", &m);
        if (!r && sd_bus_message_append(m, "sb", name, (int)held) < 0)
                r = cli_fail(c, "not a name: it is not UTF-8");
        if (!r)
                r = cli_call(c, m, NULL, &reply);
        if (!r && !c->json)
                printf("%s %s\n", name,
                       provider ? held ? "makes no hosts and gives none back"
                                       : "makes and gives back hosts by demand"
                       : held   ? "is kept"
                                : "is given back when it has been idle for long enough");
        return r;
}

static int hold_it(struct cli *c, char **args) {
        return hold(c, args[0], true);
}

static int release_it(struct cli *c, char **args) {
        return hold(c, args[0], false);
}

static int start_one(struct cli *c, char **args) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = cli_manager_call(c, "StartInstance", &m);

        if (!r && sd_bus_message_append(m, "ss", args[0], args[1]) < 0)
                r = cli_fail(c, "not a name: it is not UTF-8");
        if (!r)
                r = cli_call(c, m, NULL, &reply);
        if (!r && !c->json)
                printf("A host of shape %s is asked for; 'primusctl provider hosts' shows it\n", args[1]);
        return r;
}

static int stop_one(struct cli *c, char **args) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = cli_manager_call(c, "StopInstance", &m);

        if (!r && sd_bus_message_append(m, "s", args[0]) < 0)
                r = cli_fail(c, "not a name: it is not UTF-8");
        if (!r)
                r = cli_call(c, m, NULL, &reply);
        if (!r && !c->json)
                printf("Host %s is given back when nothing runs there any more\n", args[0]);
        return r;
}

static int provider_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct {
                const char *verb, *arguments;
                size_t n;
                int (*run)(struct cli *c, char **args);
        } verbs[] = {
                { "list", "", 0, list_providers },
                { "hosts", "", 0, list_hosts },
                { "plan", "", 0, show_plan },
                { "hold", "PROVIDER|HOST", 1, hold_it },
                { "release", "PROVIDER|HOST", 1, release_it },
                { "up", "PROVIDER SHAPE", 2, start_one },
                { "down", "HOST", 1, stop_one },
        };

        (void)options;
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                if (strcmp(verbs[i].verb, args[0]) != 0)
                        continue;
                return n - 1 == verbs[i].n ? verbs[i].run(c, args + 1)
                                           : cli_usage(c, "usage: primusctl provider %s %s", verbs[i].verb,
                                                       verbs[i].arguments);
        }
        return cli_usage(c,
                         "there is no 'provider %s'; there are list, hosts, plan, hold, release, up and down",
                         args[0]);
}

const struct command provider_command = {
        .name = "provider",
        .arguments = "list | hosts | plan | hold NAME | release NAME | up PROVIDER SHAPE | down HOST",
        .help = "Hosts that are made by demand, and given back",
        .details =
                "list: providers and their shapes. hosts: those that were made. plan: what would be done now, and why no\n"
                "host comes for whom. hold, release: a provider makes none and gives none back; a host is kept.\n"
                "up: one more. down: it is drained and given back.",
        .min = 1,
        .max = SIZE_MAX,
        .run = provider_run,
};
