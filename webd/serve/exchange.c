/* SPDX-License-Identifier: Apache-2.0 */
/* A request below /v1. Invariant: nothing of its body is kept that the guard did not let through, and no more
 * than SERVE_BODY_MAX; and while masterd is asked its connection is suspended. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "lib/json/get.h"
#include "lib/wire/errors.h"
#include "webd/route/guard.h"
#include "webd/route/openapi.h"
#include "webd/route/problem.h"
#include "webd/serve/serve-parts.h"

#define CALL_SEC 25u
#define QUERY_MAX 64u
#define FETCHES_MAX 3u /* it may have left again, or masterd may have been started anew */

struct exchange {
        struct exchange *next, *previous; /* of those that wait */
        struct serve *serve;
        struct MHD_Connection *connection;
        const struct route *route;
        struct route_values values;
        char *body;
        size_t size;
        json_t *query, *given;
        bool session, bad_query, too_large, waits, if_match;
        sd_bus_slot *slots[ROUTE_CALLS_MAX];
        json_t *results[ROUTE_CALLS_MAX];
        unsigned n_waiting;
        unsigned n_fetches; /* of the job into masterd's memory */
        struct MHD_Response *response;
        unsigned status;
};

/* ---- answers ---- */

static void stop_calls(struct exchange *e) {
        e->serve->n_calls -= e->n_waiting;
        e->n_waiting = 0;
        for (unsigned i = 0; i < ROUTE_CALLS_MAX; i++)
                e->slots[i] = sd_bus_slot_unref(e->slots[i]);
}

static void drop_results(struct exchange *e) {
        for (unsigned i = 0; i < ROUTE_CALLS_MAX; i++) {
                json_decref(e->results[i]);
                e->results[i] = NULL;
        }
}

/* The connection goes on, and the answer is queued when the library asks next. */
static void exchange_finish(struct exchange *e, unsigned status, struct MHD_Response *response) {
        stop_calls(e);
        e->status = status;
        e->response = response;
        if (!e->waits)
                return;
        e->waits = false;
        if (e->previous)
                e->previous->next = e->next;
        else
                e->serve->exchanges = e->next;
        if (e->next)
                e->next->previous = e->previous;
        MHD_resume_connection(e->connection);
        http_server_wake(e->serve->http);
}

static void exchange_refuse(struct exchange *e, unsigned status, const char *why) {
        exchange_finish(e, status, answer_problem(status, why));
}

static void exchange_fail(struct exchange *e, const sd_bus_error *error) {
        unsigned status = 500;
        json_t *problem = problem_of_error(error->name, error->message ?: "", e->if_match, &status);
        struct MHD_Response *response = answer_json(problem, PROBLEM_TYPE);

        if (response && status == 503)
                (void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
        exchange_finish(e, status, response);
}

static void exchange_suspend(struct exchange *e) {
        struct serve *s = e->serve;

        MHD_suspend_connection(e->connection);
        http_server_unhurried(s->http, e->connection);
        e->waits = true;
        e->previous = NULL;
        e->next = s->exchanges;
        if (e->next)
                e->next->previous = e;
        s->exchanges = e;
}

void exchanges_end(struct serve *s, unsigned status, const char *why) {
        while (s->exchanges)
                exchange_refuse(s->exchanges, status, why);
}

void exchange_completed(struct exchange *e) {
        if (!e)
                return;
        stop_calls(e);
        drop_results(e);
        if (e->response)
                MHD_destroy_response(e->response);
        json_decref(e->query);
        json_decref(e->given);
        free(e->body);
        free(e);
}

/* ---- what masterd says ---- */

static void add_version(struct MHD_Response *response, const json_t *answer) {
        const json_t *version = json_object_get(answer, "version");
        char tag[32];

        if (!response || !json_is_integer(version))
                return;
        snprintf(tag, sizeof(tag), "\"%" JSON_INTEGER_FORMAT "\"", json_integer_value(version));
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, tag);
}

static struct MHD_Response *empty_answer(void) {
        return answer_text(strdup(""), 0, JSON_TYPE);
}

static void answer_results(struct exchange *e) {
        json_t *answer = NULL;
        struct MHD_Response *response;
        int r = 0;

        if (e->route->join)
                r = e->route->join(e->results, e->values.job, &answer);
        else
                answer = json_incref(e->results[0]);
        if (r < 0)
                return exchange_refuse(e, 500, "Out of memory");
        if (!e->route->join && call_answers_nothing(&e->route->calls[0])) {
                json_decref(answer);
                return exchange_finish(e, 204, empty_answer());
        }
        response = answer_json(json_incref(answer), JSON_TYPE);
        if (e->route->calls[0].object == ROUTE_JOB)
                add_version(response, answer);
        json_decref(answer);
        exchange_finish(e, e->route->status ?: 200, response);
}

static void answer_raw(struct exchange *e, sd_bus_message *reply) {
        const char *bytes;
        char *copy;
        size_t n;

        if (parts_raw(&e->route->calls[0], reply, &bytes, &n) < 0)
                return exchange_refuse(e, 502, "masterd's answer cannot be read");
        copy = malloc(n + 1);
        if (copy)
                memcpy(copy, bytes, n);
        exchange_finish(e, 200, answer_text(copy, n, JSON_TYPE));
}

static void ask_master(struct exchange *e);

static int on_fetched(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        struct exchange *e = userdata;

        stop_calls(e);
        if (error)
                exchange_fail(e, error);
        else
                ask_master(e);
        return 0;
}

/* A job that has ended long ago, or before masterd was started, has no object until somebody asks for it.
 * Nothing was done then, so the request is made again behind that. False: it is answered as it is. */
static bool fetch_job(struct exchange *e, sd_bus *bus, const sd_bus_error *error) {
        if (e->route->calls[0].object != ROUTE_JOB || e->n_fetches == FETCHES_MAX ||
            e->values.job > UINT32_MAX ||
            (!sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT) &&
             !sd_bus_error_has_name(error, ERROR_NO_SUCH_JOB)))
                return false;
        stop_calls(e);
        drop_results(e);
        if (sd_bus_call_method_async(bus, &e->slots[0], MASTER_NAME, MASTER_PATH, MASTER_MANAGER, "GetJob",
                                     on_fetched, e, "u", (uint32_t)e->values.job) < 0)
                return false;
        e->n_fetches++;
        e->n_waiting = 1;
        e->serve->n_calls++;
        return true;
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        struct exchange *e = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        const sd_bus_slot *slot = sd_bus_get_current_slot(sd_bus_message_get_bus(reply));
        unsigned i = 0;

        while (i < ROUTE_CALLS_MAX - 1 && e->slots[i] != slot)
                i++;
        if (error) {
                if (!fetch_job(e, sd_bus_message_get_bus(reply), error))
                        exchange_fail(e, error);
                return 0;
        }
        e->serve->n_calls--;
        e->n_waiting--;
        if (e->route->calls[i].parts[0].kind == PART_RAW)
                answer_raw(e, reply);
        else if (parts_read(&e->route->calls[i], reply, &e->results[i]) < 0)
                exchange_refuse(
                        e, 502,
                        "masterd's answer cannot be read; are its version and primus-webd's the same?");
        else if (e->n_waiting == 0)
                answer_results(e);
        return 0;
}

/* ---- calls ---- */

static int call_path(const struct exchange *e, const struct call *c, char **ret) {
        switch (c->object) {
        case ROUTE_JOB:
                return asprintf(ret, MASTER_PATH "/job/%lu", e->values.job) < 0 ? -ENOMEM : 0;
        case ROUTE_NODE:
                return sd_bus_path_encode(MASTER_PATH "/node", e->values.node, ret);
        default:
                *ret = strdup(MASTER_PATH);
                return *ret ? 0 : -ENOMEM;
        }
}

static int call_message(struct exchange *e, sd_bus *bus, const struct call *c, const struct brought *b,
                        sd_bus_message **ret, char **ret_why) {
        static const char *const interfaces[] = { [ROUTE_MANAGER] = MASTER_MANAGER,
                                                  [ROUTE_JOB] = MASTER_NAME ".Job",
                                                  [ROUTE_NODE] = MASTER_NAME ".Node" };
        _cleanup_free_ char *path = NULL;

        TRY(call_path(e, c, &path));
        TRY(sd_bus_message_new_method_call(bus, ret, MASTER_NAME, path, c->interface ?: interfaces[c->object],
                                           c->member));
        return given_append(c, b, *ret, ret_why);
}

static int send_call(struct exchange *e, sd_bus *bus, unsigned i, const struct brought *b, char **ret_why) {
        const struct call *c = &e->route->calls[i];
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(call_message(e, bus, c, b, &m, ret_why));
        TRY(sd_bus_call_async(bus, &e->slots[i], m, on_reply, e, (CALL_SEC + c->wait_sec) * USEC_PER_SEC));
        e->n_waiting++;
        e->serve->n_calls++;
        return 0;
}

/* All of a request's calls are under way, or it is answered. */
static void ask_master(struct exchange *e) {
        struct brought b = { .query = e->query,
                             .body = e->given,
                             .raw = e->body ?: "",
                             .raw_size = e->size,
                             .if_match = MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND,
                                                                     MHD_HTTP_HEADER_IF_MATCH),
                             .key = MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND,
                                                                "Idempotency-Key"),
                             .get = strcmp(e->route->method, "GET") == 0 };
        _cleanup_free_ char *why = NULL;
        sd_bus *bus;
        int r = 0;

        e->if_match = b.if_match;
        if (!given_known(e->route, &b, &why))
                return exchange_refuse(e, 400, why ?: "There is something that is not known here");
        if (e->serve->n_calls + ROUTE_CALLS_MAX > SERVE_CALLS)
                return exchange_refuse(e, 503, "Too many requests are under way; try again");
        r = serve_bus(e->serve, &bus);
        if (r < 0)
                return exchange_refuse(e, 502, "There is no bus to masterd");
        for (unsigned i = 0; r >= 0 && i < ROUTE_CALLS_MAX && e->route->calls[i].member; i++)
                r = send_call(e, bus, i, &b, &why);
        if (r == -EINVAL && why)
                exchange_refuse(e, 400, why);
        else if (r < 0)
                exchange_refuse(e, 502, "masterd cannot be asked");
}

/* ---- the request ---- */

static enum MHD_Result on_argument(void *userdata, enum MHD_ValueKind kind, const char *name,
                                   const char *value) {
        struct exchange *e = userdata;
        /* Of what stands there twice nothing is taken: a list, which no argument is. */
        bool twice = json_object_get(e->query, name), many = json_object_size(e->query) >= QUERY_MAX;

        e->bad_query = many || json_object_set_new(e->query, name,
                                                   twice ? json_array() : json_string(value ?: "")) < 0;
        return e->bad_query ? MHD_NO : MHD_YES;
}

static bool take_upload(struct exchange *e, const char *upload, size_t n) {
        char *more;

        if (e->too_large || n > SERVE_BODY_MAX - e->size) {
                e->too_large = true;
                return true;
        }
        more = realloc(e->body, e->size + n + 1);
        if (!more)
                return false;
        memcpy(more + e->size, upload, n);
        e->body = more;
        e->size += n;
        return true;
}

/* An object, or nothing; what a route takes as it came has to be JSON only for whoever reads it. */
static bool read_body(struct exchange *e, bool raw) {
        json_error_t error;

        if (e->size == 0 || raw)
                return true;
        e->given = json_loadb(e->body, e->size, JSON_REJECT_DUPLICATES, &error);
        if (!e->given || !json_is_object(e->given)) {
                exchange_refuse(e, 400, "The body has to be an object of JSON");
                return false;
        }
        return true;
}

/* {"token": "…"} for a cookie. */
static void open_session(struct exchange *e) {
        const char *token = json_string_value(json_object_get(e->given, "token"));
        struct session *s = &e->serve->session;
        struct MHD_Response *response;
        char cookie[256];

        if (!token || !session_open(s, token))
                return exchange_refuse(e, 403, "This address has been used already; ask for another");
        response = empty_answer();
        snprintf(cookie, sizeof(cookie), "%s=%s; HttpOnly; SameSite=Strict; Path=/", s->name, s->cookie);
        if (response)
                (void)MHD_add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
        exchange_finish(e, 204, response);
}

static void exchange_begin(struct exchange *e) {
        bool raw = e->route && e->route->calls[0].given[0].from == FROM_BODY;

        if (e->too_large)
                return exchange_refuse(e, 413, "The body is larger than 4 MiB");
        if (e->bad_query)
                return exchange_refuse(e, 400, "The query cannot be read");
        if (!read_body(e, raw))
                return;
        if (e->session)
                return open_session(e);
        e->route = route_dry(routes, n_routes, e->route, e->query);
        if (e->route)
                ask_master(e);
        else
                exchange_refuse(e, 400, "dryRun: expected true or false");
}

static const char *request_header(struct MHD_Connection *connection, const char *name) {
        return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* 0, or the status of a refusal. */
static unsigned let_through(struct serve *s, struct MHD_Connection *connection, const char *url,
                            const char *method, const char **ret_why) {
        bool api = strncmp(url, API, strlen(API)) == 0;
        struct guard_request r = {
                .method = method,
                .api = api,
                .host = request_header(connection, MHD_HTTP_HEADER_HOST),
                .content_type = request_header(connection, MHD_HTTP_HEADER_CONTENT_TYPE),
                .origin = request_header(connection, MHD_HTTP_HEADER_ORIGIN),
                .fetch_site = request_header(connection, "Sec-Fetch-Site"),
                .marker = request_header(connection, GUARD_MARKER),
                .reads_only = s->options.reads_only,
                .names = s->options.names,
        };
        unsigned status = guard_check(&r, ret_why);

        if (status > 0 || !api || !s->options.token || strcmp(url, SESSION) == 0 ||
            session_allows(&s->session, request_header(connection, MHD_HTTP_HEADER_COOKIE)))
                return status;
        *ret_why = "Open the address that \"primusctl web\" printed";
        return 401;
}

/* The headers are there. */
static enum MHD_Result request_arrive(struct serve *s, struct MHD_Connection *connection, const char *url,
                                      const char *method, void **request) {
        struct exchange *e;
        const char *why;
        bool others;
        unsigned status = let_through(s, connection, url, method, &why);

        e = calloc(1, sizeof(*e));
        if (!e)
                return MHD_NO;
        *request = e;
        e->serve = s;
        e->connection = connection;
        e->query = json_object();
        if (status > 0) {
                exchange_refuse(e, status, why);
                return MHD_YES;
        }
        e->session = s->options.token && strcmp(url, SESSION) == 0 && strcmp(method, "POST") == 0;
        if (strncmp(url, API, strlen(API)) != 0 || e->session || strcmp(url, EVENTS) == 0 ||
            strcmp(url, OPENAPI) == 0 || strcmp(url, ME) == 0)
                return MHD_YES;
        e->route = route_match(routes, n_routes, method, url, &e->values, &others);
        if (!e->route)
                exchange_refuse(e, others ? 405 : 404,
                                others ? "There is no such method of it"
                                       : "There is no such address; see /v1/openapi.json");
        (void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, on_argument, e);
        return MHD_YES;
}

static enum MHD_Result answer_ready(struct exchange *e) {
        struct MHD_Response *response = TAKE_PTR(e->response);

        return answer_queue(e->connection, e->status, response);
}

/* As whom masterd is asked; where that is on another host, his name there is not known here. */
static json_t *describe_me(const struct serve *s) {
        char name[JSON_USER_MAX];

        if (s->options.host)
                return json_pack("{s:b}", "readOnly", (int)s->options.reads_only);
        return json_pack("{s:b, s:I, s:s}", "readOnly", (int)s->options.reads_only, "uid",
                         (json_int_t)geteuid(), "user", json_user_name(geteuid(), name));
}

/* What is no method of masterd's. */
static enum MHD_Result answer_other(struct exchange *e, const char *url, const char *method) {
        if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
                return answer_queue(e->connection, 405, answer_problem(405, "It can only be got"));
        if (strcmp(url, EVENTS) == 0)
                return events_answer(e->serve->events, e->connection);
        if (strcmp(url, ME) == 0)
                return answer_queue(e->connection, 200, answer_json(describe_me(e->serve), JSON_TYPE));
        if (strcmp(url, OPENAPI) == 0)
                return answer_queue(e->connection, 200,
                                    answer_json(openapi_new(routes, n_routes), JSON_TYPE));
        return files_answer(e->serve, e->connection, url);
}

enum MHD_Result exchange_request(struct serve *s, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *upload, size_t *upload_size,
                                 void **request) {
        struct exchange *e = *request;

        if (!e)
                return request_arrive(s, connection, url, method, request);
        if (*upload_size > 0) {
                /* What is refused already is passed over to its end, so that the answer is read. */
                bool fine = e->status > 0 || take_upload(e, upload, *upload_size);
                *upload_size = 0;
                return fine ? MHD_YES : MHD_NO;
        }
        if (e->status > 0)
                return answer_ready(e);
        if (!e->route && !e->session)
                return answer_other(e, url, method);
        exchange_begin(e);
        if (e->status > 0)
                return answer_ready(e);
        exchange_suspend(e);
        return MHD_YES;
}
