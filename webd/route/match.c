/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/base/names.h"
#include "lib/base/parse.h"
#include "webd/route/route.h"

static bool take_job(const char *text, size_t n, struct route_values *v) {
        char number[16];
        uint32_t job;

        if (n == 0 || n >= sizeof(number))
                return false;
        memcpy(number, text, n);
        number[n] = 0;
        if (parse_u32(number, 1, UINT32_MAX, &job) < 0)
                return false;
        v->job = job;
        return true;
}

static bool take_node(const char *text, size_t n, struct route_values *v) {
        if (n > ROUTE_NODE_MAX)
                return false;
        memcpy(v->node, text, n);
        v->node[n] = 0;
        return node_name_valid(v->node);
}

/* A step of the address against one of the pattern. */
static bool step_fits(const char *pattern, size_t n_pattern, const char *step, size_t n,
                      struct route_values *v) {
        if (n_pattern == 5 && memcmp(pattern, "{job}", 5) == 0)
                return take_job(step, n, v);
        if (n_pattern == 6 && memcmp(pattern, "{node}", 6) == 0)
                return take_node(step, n, v);
        return n == n_pattern && memcmp(pattern, step, n) == 0;
}

static bool path_fits(const char *pattern, const char *path, struct route_values *v) {
        while (*pattern == '/' && *path == '/') {
                size_t n_pattern = strcspn(++pattern, "/"), n = strcspn(++path, "/");

                if (!step_fits(pattern, n_pattern, path, n, v))
                        return false;
                pattern += n_pattern;
                path += n;
        }
        return !*pattern && !*path;
}

const struct route *route_match(const struct route *table, size_t n, const char *method, const char *path,
                                struct route_values *ret, bool *ret_others) {
        *ret_others = false;
        if (strcmp(method, "HEAD") == 0)
                method = "GET";
        for (size_t i = 0; i < n; i++) {
                struct route_values v = {};

                if (!path_fits(table[i].path, path, &v))
                        continue;
                if (strcmp(table[i].method, method) == 0) {
                        *ret = v;
                        return &table[i];
                }
                *ret_others = true;
        }
        return NULL;
}

const struct route *route_dry(const struct route *table, size_t n, const struct route *r, json_t *query) {
        const char *text = r->dry ? json_string_value(json_object_get(query, "dryRun")) : NULL;
        struct route_values v;
        bool dry, others;

        if (!text)
                return r;
        if (parse_bool(text, &dry) < 0)
                return NULL;
        (void)json_object_del(query, "dryRun");
        return dry ? route_match(table, n, r->method, r->dry, &v, &others) : r;
}
