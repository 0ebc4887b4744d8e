/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl queue, primusctl pools. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"
#include "tools/primusctl/view/users.h"

/* What one of the commands lists. */
struct listing {
        const char *method;
        const struct json_shape *shape;
        const struct table_column *columns;
        size_t n_columns;
        void (*show)(struct table *t, const json_t *row);
        const char *empty; /* said where there is none */
};

static int list(struct cli *c, const struct listing *l) {
        _cleanup_(json_decref_p) json_t *rows = NULL;
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *row;
        size_t i;
        int r = ask_manager_list(c, l->method, l->shape, &rows);

        if (!r && c->json)
                return cli_print_json(c, TAKE_PTR(rows));
        if (!r)
                r = table_new(c, l->columns, l->n_columns, &t);
        if (r)
                return r;
        json_array_foreach (rows, i, row)
                l->show(t, row);
        return table_print_or(c, t, l->empty);
}

/* ---- queue ---- */

static void waiting_row(struct table *t, const json_t *w) {
        uint64_t now = now_real(), starts_by = json_get_number(w, "startsBy");
        unsigned gpus = (unsigned)json_get_number(w, "gpus");
        _cleanup_free_ char *reason = users_named(json_get_text(w, "reason"), user_lookup_here);
        char user[JSON_USER_MAX], wait[FORMAT_DURATION_MAX], memory[FORMAT_SIZE_MAX], when[TEXT_TIME_MAX],
                needs[96];

        if (table_row(t) < 0)
                return;
        snprintf(needs, sizeof(needs), "%gC %s", json_get_real(w, "cpus"),
                 format_size(json_get_number(w, "memory"), memory, sizeof(memory)));
        if (gpus)
                snprintf(needs + strlen(needs), sizeof(needs) - strlen(needs), " %uG", gpus);
        if (json_get_number(w, "position"))
                table_set(t, 0, COLOR_NONE, "%" PRIu64, json_get_number(w, "position"));
        else
                table_set(t, 0, COLOR_DIM, "-");
        table_set(t, 1, COLOR_BOLD, "%" PRIu64, json_get_number(w, "job"));
        table_set(t, 2, COLOR_NONE, "%s", json_get_text(w, "name"));
        table_set(t, 3, COLOR_NONE, "%s", json_user_name((uint32_t)json_get_number(w, "owner"), user));
        table_set(t, 4, COLOR_NONE, "%s", json_get_text(w, "pool"));
        table_set(t, 5, COLOR_NONE, "%" PRId64, (int64_t)json_get_number(w, "priority"));
        table_set(t, 6, COLOR_NONE, "%s",
                  format_duration(usec_sub(now, json_get_number(w, "since")) / USEC_PER_SEC * USEC_PER_SEC,
                                  wait, sizeof(wait)));
        table_set(t, 7, COLOR_NONE, "%" PRIu64, json_get_number(w, "executors"));
        table_set(t, 8, COLOR_NONE, "%s", needs);
        table_set(t, 9, COLOR_NONE, "%s", starts_by ? text_time(starts_by, now, when, sizeof(when)) : "-");
        table_set(t, 10, COLOR_NONE, "%s", reason ?: "");
}

static int queue_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct table_column columns[] = {
                { "#", .right = true },
                { "JOB", .right = true },
                { "NAME", .fills = true },
                { "USER" },
                { "POOL" },
                { "PRIO", .right = true },
                { "WAITS", .right = true },
                { "EXECUTORS", .right = true },
                { "NEEDS", .right = true },
                { "STARTS BY" },
                { "REASON", .fills = true },
        };
        static const struct listing listing = { "ListQueue",         &json_waiting, columns,
                                                ELEMENTSOF(columns), waiting_row,   "No job waits" };

        (void)options;
        (void)args;
        (void)n;
        return list(c, &listing);
}

const struct command queue_command = {
        .name = "queue",
        .arguments = "",
        .help = "Show the jobs that wait, in the order in which they are tried",
        .details = "NEEDS is what is still missing: CPUs, memory, GPUs. STARTS BY is the latest, as far as "
                   "time limits\n"
                   "tell. 'primusctl why JOB' says more.",
        .run = queue_run,
};

/* ---- pools ---- */

static char *amount_text(const json_t *amount, char *buf, size_t size) {
        double cpus = json_get_real(amount, "cpus");
        uint64_t bytes = json_get_number(amount, "memory"), gpus = json_get_number(amount, "gpus");
        char memory[FORMAT_SIZE_MAX];
        size_t n = 0;

        *buf = 0;
        if (cpus > 0)
                n += (size_t)snprintf(buf, size, "%gC", cpus);
        if (bytes && n < size)
                n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "",
                                      format_size(bytes, memory, sizeof(memory)));
        if (gpus && n < size)
                n += (size_t)snprintf(buf + n, size - n, "%s%" PRIu64 "G", n ? " " : "", gpus);
        if (n == 0)
                snprintf(buf, size, "-");
        return buf;
}

static void amount_cell(struct table *t, size_t column, const json_t *o, const char *name) {
        char text[64];

        table_set(t, column, COLOR_NONE, "%s", amount_text(json_object_get(o, name), text, sizeof(text)));
}

static void share_cells(struct table *t, const json_t *share) {
        table_set(t, 2, COLOR_NONE, "%" PRIu64, json_get_number(share, "running"));
        table_set(t, 3, COLOR_NONE, "%" PRIu64, json_get_number(share, "waiting"));
        amount_cell(t, 4, share, "held");
        table_set(t, 5, COLOR_NONE, "%.1f", json_get_real(share, "usage") / 3600);
}

static void pool_rows(struct table *t, const json_t *p) {
        const json_t *max_time = json_object_get(p, "maxTime"), *share;
        char text[FORMAT_DURATION_MAX], user[JSON_USER_MAX];
        size_t i;

        if (table_row(t) < 0)
                return;
        table_set(t, 0, COLOR_BOLD, "%s%s", json_get_text(p, "name"),
                  json_get_flag(p, "open") ? "" : " (closed)");
        share_cells(t, p);
        table_set(t, 6, COLOR_NONE, "%" PRIu64, json_get_number(p, "weight"));
        amount_cell(t, 7, p, "guarantee");
        amount_cell(t, 8, p, "limit");
        amount_cell(t, 9, p, "userLimit");
        table_set(t, 10, COLOR_NONE, "%s",
                  json_is_null(max_time)
                          ? "-"
                          : format_duration(json_get_number(p, "maxTime"), text, sizeof(text)));
        json_array_foreach (json_object_get(p, "users"), i, share) {
                if (table_row(t) < 0)
                        return;
                table_set(t, 1, COLOR_NONE, "%s",
                          json_user_name((uint32_t)json_get_number(share, "user"), user));
                share_cells(t, share);
        }
}

static int pools_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct table_column columns[] = {
                { "POOL" },
                { "USER" },
                { "RUNNING", .right = true },
                { "WAITING", .right = true },
                { "HELD", .right = true },
                { "USED", .right = true },
                { "WEIGHT", .right = true },
                { "GUARANTEE", .right = true },
                { "LIMIT", .right = true },
                { "USER LIMIT", .right = true },
                { "MAX TIME", .right = true },
        };
        static const struct listing listing = { "ListPools",         &json_pool, columns,
                                                ELEMENTSOF(columns), pool_rows,  "There is no pool" };

        (void)options;
        (void)args;
        (void)n;
        return list(c, &listing);
}

const struct command pools_command = {
        .name = "pools",
        .arguments = "",
        .help = "Show the pools: shares, limits, who uses them",
        .details = "USED is what counts for the fair share: hours of the whole cluster, older ones less.",
        .run = pools_run,
};
