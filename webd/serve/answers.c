/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "webd/route/problem.h"
#include "webd/serve/serve-parts.h"

/* Scripts, styles and connections are the page's own; nothing is framed; nothing is guessed, kept or told to
 * others. */
#define POLICY                                                                                                \
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " \
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'; "     \
        "frame-ancestors "

static const struct {
        const char *name, *value;
} headers[] = {
        { "X-Content-Type-Options", "nosniff" },
        { "Referrer-Policy", "no-referrer" },
        { "Cross-Origin-Resource-Policy", "same-origin" },
        { "Cross-Origin-Opener-Policy", "same-origin" },
};

static char policy[sizeof(POLICY) + 256] = POLICY "'none'"; /* of this process, set before it serves */
static bool embedded;

int answer_embed(const char *origin) {
        const char *name = strstr(origin, "://");

        if (!name || (strncmp(origin, "https://", 8) != 0 && strncmp(origin, "http://", 7) != 0) ||
            !name[3] || strspn(name + 3, "abcdefghijklmnopqrstuvwxyz0123456789.-:") != strlen(name + 3) ||
            strlen(origin) > 255)
                return -EINVAL;
        snprintf(policy, sizeof(policy), POLICY "%s", origin);
        embedded = true;
        return 0;
}

void answer_headers(struct MHD_Response *response) {
        for (size_t i = 0; i < ELEMENTSOF(headers); i++)
                (void)MHD_add_response_header(response, headers[i].name, headers[i].value);
        (void)MHD_add_response_header(response, "Content-Security-Policy", policy);
        if (!embedded)
                (void)MHD_add_response_header(response, "X-Frame-Options", "DENY");
}

static void on_sent(void *data) {
        free(data);
}

struct MHD_Response *answer_text(char *body, size_t size, const char *type) {
        struct MHD_Response *response =
                body ? MHD_create_response_from_buffer_with_free_callback(size, body, on_sent) : NULL;

        if (!response) {
                free(body);
                return NULL;
        }
        answer_headers(response);
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        return response;
}

struct MHD_Response *answer_json(json_t *value, const char *type) {
        char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

        json_decref(value);
        return text ? answer_text(text, strlen(text), type) : NULL;
}

struct MHD_Response *answer_problem(unsigned status, const char *detail) {
        return answer_json(problem_new(status, detail), PROBLEM_TYPE);
}

enum MHD_Result answer_queue(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response) {
        enum MHD_Result r = response ? MHD_queue_response(connection, status, response) : MHD_NO;

        if (response)
                MHD_destroy_response(response);
        return r;
}
