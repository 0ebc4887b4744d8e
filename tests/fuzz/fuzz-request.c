/* SPDX-License-Identifier: Apache-2.0 */
/* A request as primus-webd gets it from its library: lines of method, path, host, content type, origin,
 * Sec-Fetch-Site, marker, If-Match and cookie, then the body. Whatever they are, the guard, the table, the
 * cookie and the arguments of the call make something of it. */
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/message.h"
#include "webd/route/guard.h"
#include "webd/route/problem.h"
#include "webd/route/route.h"
#include "webd/route/session.h"

#define LINES 9u

static void try_route(const struct route *r, struct brought *b) {
        FOREACH_CALL (r, c) {
                sd_bus_message *m = fuzz_message_new();
                char *why = NULL;
                int k = given_append(c, b, m, &why);

                MUST((k == -EINVAL) == (why != NULL));
                free(why);
                sd_bus_message_unref(m);
        }
}

static void try_request(char *line[static LINES], const char *body, size_t size) {
        struct guard_request g = {
                line[0], strncmp(line[1], "/v1/", 4) == 0, line[2], line[3], line[4], line[5], line[6]
        };
        json_t *given = json_loadb(body, size, JSON_REJECT_DUPLICATES, NULL);
        struct session session;
        struct route_values v;
        const struct route *r;
        const char *why;
        unsigned status;
        bool others;

        (void)guard_check(&g, &why);
        session_begin(&session, "0000000000000000000000000000000000000000000000000000000000000000", 80);
        (void)session_open(&session, line[8]);
        (void)session_allows(&session, line[8]);
        json_decref(problem_of_error("org.primus.Error.BadConfig", line[7], false, &status));
        r = route_match(routes, n_routes, line[0], line[1], &v, &others);
        if (r && json_is_object(given))
                r = route_dry(routes, n_routes, r, given);
        if (r) {
                struct brought b = { .query = json_is_object(given) ? given : NULL,
                                     .body = json_is_object(given) ? given : NULL,
                                     .raw = body,
                                     .raw_size = size,
                                     .if_match = line[7],
                                     .key = line[7],
                                     .get = strcmp(r->method, "GET") == 0 };
                char *refusal = NULL;

                if (given_known(r, &b, &refusal))
                        try_route(r, &b);
                free(refusal);
        }
        json_decref(given);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *text = malloc(size + 1), *line[LINES], *at = text;

        if (!text)
                return 0;
        memcpy(text, data, size);
        text[size] = 0;
        for (size_t i = 0; i < LINES; i++) {
                char *end = memchr(at, '\n', (size_t)(text + size - at));

                line[i] = at;
                at = end ? end + 1 : text + size;
                if (end)
                        *end = 0;
        }
        try_request(line, at, (size_t)(text + size - at));
        free(text);
        return 0;
}
