/* SPDX-License-Identifier: Apache-2.0 */
/* The routes as a table: of each its address, which methods of org.primus.Master1 answer it, what of the
 * request becomes their arguments, and what of their replies the answer is made of. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/json/shape.h"

/* Whose method it is. */
enum route_object {
        ROUTE_MANAGER,
        ROUTE_JOB,  /* {job} of the address */
        ROUTE_NODE, /* {node} of the address */
};

/* Where a value comes from. */
enum given_from {
        FROM_REQUEST,  /* the query of a GET, a member of any other's body */
        FROM_QUERY,    /* the query, whatever the method */
        FROM_BODY,     /* all of the body, as it came: type "ay" */
        FROM_IF_MATCH, /* the version in If-Match; without it what stands in otherwise */
        FROM_KEY,      /* Idempotency-Key, with or without quotes */
        FROM_TABLE,    /* what stands in otherwise */
        FROM_REST,     /* a{sv}: all members of the body that no other argument took */
};

/* An argument, or an entry of the a{sv} that stands last. */
struct given {
        const char *name;
        /* s, b, u, i, x, t, d; "as"; "a{sx}" (an object of numbers); "ay", of FROM_REQUEST as hexadecimal
         * digits; "path": a text, as ay; "json": any value, as a text */
        const char *type;
        const char *otherwise; /* without it, this; NULL: it has to be there, or (option) is left out */
        enum given_from from;
        bool option; /* it is an entry of the a{sv} at the end, with its name as key */
};

enum part_kind {
        PART_ANY,    /* as it is in the message */
        PART_ALL,    /* the same, and it is the answer */
        PART_OBJECT, /* of the shape */
        PART_LIST,   /* of objects of the shape */
        PART_TEXT,   /* ay, as a text: what is not UTF-8, and bytes of 0, are U+FFFD */
        PART_HEX,    /* ay, as hexadecimal digits */
        PART_RAW,    /* ay, which is JSON already, and is all of the answer */
        PART_SKIP,
};

/* A value of a reply. */
struct part {
        const char *name; /* a member of the answer; NULL, and not PART_ANY: it is the answer */
        enum part_kind kind;
        const struct json_shape *shape;
};

#define ROUTE_GIVEN_MAX 20u
#define ROUTE_PARTS_MAX 4u
#define ROUTE_CALLS_MAX 3u

struct call {
        enum route_object object;
        const char *interface; /* NULL: Primus's of that object */
        const char *member;    /* NULL: there is no such call */
        bool has_options;      /* an a{sv} stands last, if only an empty one */
        struct given given[ROUTE_GIVEN_MAX];
        struct part parts[ROUTE_PARTS_MAX]; /* in the order of the reply; what stands behind is passed over */
        unsigned wait_sec;                  /* masterd may take so long; 0: as long as calls do */
};

struct route {
        const char *method, *path;
        /* Several are asked at once. */
        struct call calls[ROUTE_CALLS_MAX];
        /* Makes the answer of the objects that came; NULL: there is one call. 0 or -ENOMEM. */
        int (*join)(json_t *const results[static ROUTE_CALLS_MAX], unsigned long job, json_t **ret);
        unsigned status; /* 0: 200, or 204 where there are no parts */
        const char *dry; /* with dryRun in the query this address is answered instead, of the same method */
};

extern const struct route routes[];
extern const size_t n_routes;

#define FOREACH_CALL(r, c)                                                                                   \
        for (const struct call *c = (r)->calls; c < (r)->calls + ROUTE_CALLS_MAX && c->member; c++)
#define FOREACH_GIVEN(c, g)                                                                                  \
        for (const struct given *g = (c)->given; g < (c)->given + ROUTE_GIVEN_MAX && g->name; g++)
#define FOREACH_PART(c, p)                                                                                   \
        for (const struct part *p = (c)->parts; p < (c)->parts + ROUTE_PARTS_MAX && (p->name || p->kind); p++)

/* get: of a GET's route. */
static inline bool given_in_query(const struct given *g, bool get) {
        return g->from == FROM_QUERY || (g->from == FROM_REQUEST && get);
}

/* It has no parts. */
static inline bool call_answers_nothing(const struct call *c) {
        return !c->parts[0].name && c->parts[0].kind == PART_ANY;
}

/* ---- match.c ---- */

#define ROUTE_NODE_MAX 64u

/* What stood in the address for {job} and {node}. */
struct route_values {
        unsigned long job;
        char node[ROUTE_NODE_MAX + 1];
};

/* NULL: there is none; *ret_others: the address has other methods. HEAD is GET. */
const struct route *route_match(const struct route *table, size_t n, const char *method, const char *path,
                                struct route_values *ret, bool *ret_others);

/* The route that is meant: r, or its .dry; what says so is taken out of the query. NULL: dryRun is neither
 * true nor false. */
const struct route *route_dry(const struct route *table, size_t n, const struct route *r, json_t *query);

/* ---- given.c ---- */

/* What a request brings. */
struct brought {
        const json_t *query; /* texts; of a name that stands there several times a list of them */
        const json_t *body;  /* an object, or NULL */
        const char *raw;     /* the body as it came */
        size_t raw_size;
        const char *if_match, *key;
        bool get;
};

/* Nothing is in the query or the body that the route does not know. false: *ret_why, allocated. */
bool given_known(const struct route *r, const struct brought *b, char **ret_why);

/* Appends the arguments of a call. 0; -EINVAL: *ret_why, allocated; other errors are of memory and the bus.
 */
int given_append(const struct call *c, const struct brought *b, sd_bus_message *m, char **ret_why);

/* ---- parts.c ---- */

/* The reply as the call has it. */
int parts_read(const struct call *c, sd_bus_message *reply, json_t **ret);
/* Of PART_RAW: the bytes, which are the reply's. */
int parts_raw(const struct call *c, sd_bus_message *reply, const char **ret, size_t *ret_size);
