/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what is described is what the tables say, for nothing is said here a second time. */
#include "webd/route/openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"

struct description {
        const struct route *table;
        json_t *schemas; /* by name */
};

static void add_to(json_t *o, const char *name, json_t *value) {
        /* Where memory lacks, something lacks here: it is a description. */
        (void)json_object_set_new(o, name, value);
}

/* ---- values ---- */

static json_t *type_schema(const char *type) {
        return json_pack("{s:s}", "type", type);
}

static json_t *list_schema(json_t *items) {
        return json_pack("{s:s, s:o}", "type", "array", "items", items);
}

static json_t *shape_reference(struct description *d, const struct json_shape *s);

/* What json_read_any() makes of a value of D-Bus's type. */
static const char *type_name(const char *type) {
        if (strcmp(type, "ay") == 0 || strchr("sog", *type))
                return "string";
        return strchr("ynqiuxt", *type) ? "integer"
               : *type == 'b'           ? "boolean"
               : *type == 'd'           ? "number"
               : *type == '('           ? "array"
                                        : "object";
}

/* parts: of what an array or a struct of that type is made. */
static json_t *schema_of_type(struct description *d, const char *type, const struct json_shape *parts) {
        bool list = *type == 'a' && type[1] != '{' && strcmp(type, "ay") != 0;

        if (list)
                return list_schema(parts ? shape_reference(d, parts) : schema_of_type(d, type + 1, NULL));
        return parts ? shape_reference(d, parts) : type_schema(type_name(type));
}

static json_t *member_schema(struct description *d, const struct json_member *m) {
        json_t *schema = schema_of_type(d, m->type, m->parts);

        if (json_object_get(schema, "$ref"))
                return schema; /* beside which nothing counts */
        if (m->absent == JSON_OR_NULL || m->absent == JSON_ZERO_NULL || m->absent == JSON_MOST_NULL ||
            m->make)
                add_to(schema, "nullable", json_true());
        return schema;
}

/* "node show: hold" is NodeShowHold. */
static void schema_name(const char *name, char buf[static 64]) {
        size_t n = 0;
        bool begins = true;

        for (; *name && n < 63; name++) {
                if (!isalnum((unsigned char)*name)) {
                        begins = true;
                        continue;
                }
                buf[n++] = (char)(begins ? toupper((unsigned char)*name) : *name);
                begins = false;
        }
        buf[n] = 0;
}

static bool always_there(const struct json_member *m) {
        return !m->make && m->absent != JSON_OR_NONE && m->absent != JSON_ZERO_NONE &&
               m->absent != JSON_MOST_NONE;
}

/* The schema of that name, with nothing in it yet where it is new. */
static json_t *schema_named(struct description *d, const char *name) {
        json_t *schema = json_object_get(d->schemas, name);

        if (schema)
                return schema;
        schema = json_pack("{s:s, s:{}, s:[]}", "type", "object", "properties", "required");
        add_to(d->schemas, name, schema);
        return schema;
}

/* Several shapes of one name are parts of one object. */
static json_t *shape_reference(struct description *d, const struct json_shape *s) {
        char name[64], reference[96];
        json_t *schema, *properties;

        schema_name(s->name, name);
        snprintf(reference, sizeof(reference), "#/components/schemas/%s", name);
        schema = schema_named(d, name);
        properties = json_object_get(schema, "properties");
        for (const struct json_member *m = s->members; m < s->members + s->n; m++) {
                if (m->hidden || json_object_get(properties, m->name))
                        continue;
                add_to(properties, m->name, member_schema(d, m));
                if (always_there(m))
                        (void)json_array_append_new(json_object_get(schema, "required"),
                                                    json_string(m->name));
        }
        return json_pack("{s:s}", "$ref", reference);
}

/* ---- requests ---- */

static json_t *given_schema(const struct given *g) {
        if (strcmp(g->type, "json") == 0 || strcmp(g->type, "a{sx}") == 0)
                return strcmp(g->type, "json") == 0 ? json_object() : type_schema("object");
        if (strcmp(g->type, "as") == 0)
                return list_schema(type_schema("string"));
        return type_schema(strcmp(g->type, "path") == 0 ? "string" : type_name(g->type));
}

static json_t *parameter_schema(const char *name, const char *in, bool required, json_t *schema) {
        return json_pack("{s:s, s:s, s:b, s:o}", "name", name, "in", in, "required", (int)required, "schema",
                         schema);
}

static json_t *body_of(json_t *schema) {
        return json_pack("{s:{s:{s:o}}}", "content", "application/json", "schema", schema);
}

/* An argument becomes a parameter, or a member of the body's schema. */
static void describe_given(const struct route *r, const struct given *g, json_t *parameters, json_t *members,
                           bool *open) {
        bool get = strcmp(r->method, "GET") == 0, needed = !g->option && !g->otherwise;

        switch (g->from) {
        case FROM_TABLE:
                return;
        case FROM_IF_MATCH:
                (void)json_array_append_new(
                        parameters, parameter_schema("If-Match", "header", false, type_schema("string")));
                return;
        case FROM_KEY:
                (void)json_array_append_new(parameters, parameter_schema("Idempotency-Key", "header", false,
                                                                         type_schema("string")));
                return;
        case FROM_BODY:
        case FROM_REST:
                *open = true;
                return;
        default:
                if (given_in_query(g, get))
                        (void)json_array_append_new(
                                parameters, parameter_schema(g->name, "query", needed, given_schema(g)));
                else
                        add_to(members, g->name, given_schema(g));
        }
}

static void describe_address(const struct route *r, json_t *parameters) {
        if (strstr(r->path, "{job}"))
                (void)json_array_append_new(parameters,
                                            parameter_schema("job", "path", true, type_schema("integer")));
        if (strstr(r->path, "{node}"))
                (void)json_array_append_new(parameters,
                                            parameter_schema("node", "path", true, type_schema("string")));
}

static void describe_request(const struct route *r, json_t *o) {
        json_t *parameters = json_array(), *members = json_object();
        bool open = false;

        describe_address(r, parameters);
        FOREACH_CALL (r, c)
                FOREACH_GIVEN (c, g)
                        describe_given(r, g, parameters, members, &open);
        if (r->dry)
                (void)json_array_append_new(
                        parameters, parameter_schema("dryRun", "query", false, type_schema("boolean")));
        if (strcmp(r->method, "GET") != 0)
                (void)json_array_append_new(parameters, parameter_schema("Primus-Request", "header", true,
                                                                         json_pack("{s:s, s:[s]}", "type",
                                                                                   "string", "enum", "1")));
        add_to(o, "parameters", parameters);
        if (open || json_object_size(members) > 0)
                add_to(o, "requestBody",
                       body_of(open ? type_schema("object")
                                    : json_pack("{s:s, s:O}", "type", "object", "properties", members)));
        json_decref(members);
}

/* ---- answers ---- */

static json_t *part_schema(struct description *d, const struct part *p) {
        switch (p->kind) {
        case PART_OBJECT:
                return shape_reference(d, p->shape);
        case PART_LIST:
                return list_schema(shape_reference(d, p->shape));
        case PART_TEXT:
        case PART_HEX:
                return type_schema("string");
        default:
                return json_object(); /* anything */
        }
}

static json_t *answer_schema(struct description *d, const struct call *c, bool joined) {
        json_t *properties = json_object();

        FOREACH_PART (c, p)
                if (joined && p->kind == PART_OBJECT) { /* what else there is is a member of it */
                        json_decref(properties);
                        return shape_reference(d, p->shape);
                }
        if (!c->parts[0].name && c->parts[0].kind != PART_SKIP) {
                json_decref(properties);
                return part_schema(d, &c->parts[0]);
        }
        FOREACH_PART (c, p)
                if (p->name)
                        add_to(properties, p->name, part_schema(d, p));
        return json_pack("{s:s, s:o}", "type", "object", "properties", properties);
}

static void describe_answer(struct description *d, const struct route *r, json_t *o) {
        bool nothing = call_answers_nothing(&r->calls[0]);
        char status[16];
        json_t *answer = json_pack("{s:s}", "description", nothing ? "done" : "the answer");
        json_t *all = json_object(),
               *problem = json_pack("{s:s}", "description", "a problem, as RFC 9457 has it");

        /* What other calls of the route bring are members that the first one's shape has, too. */
        if (!nothing)
                add_to(answer, "content",
                       json_pack("{s:{s:o}}", "application/json", "schema",
                                 answer_schema(d, &r->calls[0], r->join)));
        snprintf(status, sizeof(status), "%u", r->status ?: nothing ? 204 : 200);
        add_to(all, status, answer);
        add_to(problem, "content",
               json_pack("{s:{s:{s:s}}}", "application/problem+json", "schema", "$ref",
                         "#/components/schemas/Problem"));
        add_to(all, "default", problem);
        add_to(o, "responses", all);
}

/* ---- all of it ---- */

/* A member that an object before has too is called by its own. */
static const char *id_prefix(const struct description *d, const struct route *r) {
        static const char *const objects[] = {
                [ROUTE_MANAGER] = "Manager", [ROUTE_JOB] = "Job", [ROUTE_NODE] = "Node"
        };

        if (r->calls[0].interface)
                return "Get";
        for (const struct route *o = d->table; o < r; o++)
                if (o->calls[0].object != r->calls[0].object && !o->calls[0].interface &&
                    strcmp(o->calls[0].member, r->calls[0].member) == 0)
                        return objects[r->calls[0].object];
        return "";
}

static json_t *describe_route(struct description *d, const struct route *r) {
        json_t *o = json_object();
        char id[96];

        snprintf(id, sizeof(id), "%s%s", id_prefix(d, r),
                 r->calls[0].interface ? r->path + strlen("/v1/") : r->calls[0].member);
        id[strcspn(id, "/")] = 0;
        add_to(o, "operationId", json_string(id));
        add_to(o, "summary", json_sprintf("%s of org.primus.Master1", r->calls[0].member));
        describe_request(r, o);
        describe_answer(d, r, o);
        return o;
}

static json_t *problem_schema(void) {
        return json_pack("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}}, s:[s,s,s]}", "type",
                         "object", "properties", "type", "type", "string", "title", "type", "string",
                         "status", "type", "integer", "detail", "type", "string", "line", "type", "integer",
                         "column", "type", "integer", "required", "type", "status", "detail");
}

/* A list of required members has one at least. */
static void drop_empty(json_t *all) {
        const char *name;
        json_t *schema;

        json_object_foreach (all, name, schema)
                if (json_array_size(json_object_get(schema, "required")) == 0)
                        (void)json_object_del(schema, "required");
}

/* Those that are no methods. */
static json_t *me_path(void) {
        return json_pack("{s:{s:s, s:s, s:{s:{s:s, s:{s:{s:{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}}}}}}}}}", "get",
                         "operationId", "Me", "summary", "As whom masterd is asked", "responses", "200",
                         "description", "the answer", "content", "application/json", "schema", "type",
                         "object", "properties", "readOnly", "type", "boolean", "uid", "type", "integer",
                         "user", "type", "string");
}

static json_t *events_path(void) {
        return json_pack("{s:{s:s, s:s, s:{s:{s:s, s:{s:{}}}}}}", "get", "operationId", "Events", "summary",
                         "Server-sent events: changes and reset", "responses", "200", "description",
                         "as long as the connection stands", "content", "text/event-stream");
}

json_t *openapi_new(const struct route *table, size_t n) {
        struct description d = { .table = table, .schemas = json_object() };
        json_t *paths = json_object();

        add_to(paths, "/v1/events", events_path());
        add_to(paths, "/v1/me", me_path());
        add_to(d.schemas, "Problem", problem_schema());
        for (const struct route *r = table; r < table + n; r++) {
                json_t *methods = json_object_get(paths, r->path), *o = describe_route(&d, r);
                char method[8] = "";

                for (size_t i = 0; i < sizeof(method) - 1 && r->method[i]; i++)
                        method[i] = (char)tolower((unsigned char)r->method[i]);
                if (!methods) {
                        methods = json_object();
                        add_to(paths, r->path, methods);
                }
                add_to(methods, method, o);
        }
        drop_empty(d.schemas);
        return json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:{s:o}}", "openapi", "3.0.3", "info", "title",
                         "Primus", "version", PRIMUS_VERSION, "description", "docs/rest.md", "paths", paths,
                         "components", "schemas", d.schemas);
}
