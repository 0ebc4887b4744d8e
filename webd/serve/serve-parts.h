/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#pragma once

#include <jansson.h>
#include <systemd/sd-bus.h>

#include "lib/http/server.h"
#include "lib/wire/master-bus.h"
#include "webd/route/route.h"
#include "webd/route/session.h"
#include "webd/serve/serve.h"

#define MASTER_PATH "/org/primus/Master1"
#define MASTER_MANAGER MASTER_NAME ".Manager"

#define API "/v1/"
#define EVENTS "/v1/events"
#define OPENAPI "/v1/openapi.json"
#define SESSION "/v1/session"
#define ME "/v1/me"

struct exchange;
struct stream;
struct events;

struct serve {
        struct serve_options options;
        sd_event *event;
        sd_event_source *idle;
        struct http_server *http;
        sd_bus *bus; /* NULL: not open */
        int page_fd;
        struct session session;
        struct exchange *exchanges; /* that wait for masterd */
        unsigned n_calls;
        struct events *events;
        unsigned streams_max;
};

/* ---- bus.c ---- */

/* The bus, opened when it is not. */
int serve_bus(struct serve *s, sd_bus **ret);
void serve_bus_close(struct serve *s);

/* ---- answers.c ---- */

/* Of all answers from now on: whose pages may show them in a frame. -EINVAL: it is no origin. */
int answer_embed(const char *origin);
/* With the headers that every answer has; body is taken over (free()). NULL: no memory. */
struct MHD_Response *answer_text(char *body, size_t size, const char *type);
/* value is taken over; NULL is no memory, too. */
struct MHD_Response *answer_json(json_t *value, const char *type);
struct MHD_Response *answer_problem(unsigned status, const char *detail);
void answer_headers(struct MHD_Response *response);
/* Queues it, and lets go of it. NULL: the connection ends. */
enum MHD_Result answer_queue(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response);

#define JSON_TYPE "application/json"
#define PROBLEM_TYPE "application/problem+json"

/* ---- exchange.c ---- */

/* body: NULL where it lacks. */
enum MHD_Result exchange_request(struct serve *s, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *upload, size_t *upload_size, void **request);
void exchange_completed(struct exchange *e);
/* Those that wait are answered with that. */
void exchanges_end(struct serve *s, unsigned status, const char *why);

/* ---- files.c ---- */

enum MHD_Result files_answer(struct serve *s, struct MHD_Connection *connection, const char *url);

/* ---- events.c ---- */

int events_new(struct serve *s, struct events **ret);
/* The bus has gone, and what was asked over it will not be answered. */
void events_bus_gone(struct events *e);
/* Its streams go on to their end; events_free() is for when the server has let go of them. */
void events_end(struct events *e);
void events_free(struct events *e);
enum MHD_Result events_answer(struct events *e, struct MHD_Connection *connection);
