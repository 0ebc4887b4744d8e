/* SPDX-License-Identifier: Apache-2.0 */
/* A reply of D-Bus as JSON, along a table. The table says of each value what it is called in JSON, where it
 * stands in the message, its type, and what stands for it where it is missing: a value is decoded once, and
 * both --json and what people are shown are made of that object. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"

DEFINE_CLEANUP(json_t *, json_decref)

/* What JSON has in place of a value that says nothing. Empty is "", 0, false, a list or an object of nothing.
 */
enum json_absent {
        JSON_OR_EMPTY,  /* missing: empty */
        JSON_OR_NONE,   /* missing: no member */
        JSON_OR_NULL,   /* missing: null */
        JSON_ZERO_NULL, /* missing, 0 or "": null */
        JSON_ZERO_NONE, /* missing, 0 or "": no member */
        JSON_MOST_NULL, /* the largest of its type (t, u): null; missing: empty */
        JSON_MOST_NONE, /* the largest of its type: no member; missing: empty */
};

struct json_shape;

struct json_member {
        const char *name; /* in JSON */
        const char *type; /* of D-Bus; a key whose value has another one is passed over */
        unsigned at;      /* it is the n-th value of the struct, from 1; 0: it has a key */
        const char *key;  /* NULL: as its name */
        enum json_absent absent;
        const struct json_shape *parts; /* of an a{sv} or a struct, or of each of a list */
        /* It is made of the others, which are all there, the hidden ones too; NULL: no member. */
        json_t *(*make)(const json_t *o);
        bool hidden; /* for people and for what is made of it: no part of JSON */
        bool unseen; /* for JSON alone: people are not shown it, and nothing is made of it. Of a basic type:
                        to pass over others takes as long as to read them */
};

/* A shape without members is a list or an object as the message has it. */
struct json_shape {
        const char *name; /* the chapter of docs/json.md */
        const char *type; /* a{sv}, or a struct, whose last value may be an a{sv} */
        const struct json_member *members;
        size_t n;
        bool open; /* keys that the table lacks stand behind the others, where they are numbers, texts or
                      bools */
};

/* For .make: who asked knows it, or another reply. It keeps its place with null. */
json_t *json_comes_later(const json_t *o);

#define JSON_MEMBERS_MAX 48u

/* What stands next in the message. people: as they are shown it, with the hidden members and without the
 * unseen ones. Negative errno: what stands there is of another type, or broken. */
int json_read_object(sd_bus_message *m, const struct json_shape *s, bool people, json_t **ret);
int json_read_list(sd_bus_message *m, const struct json_shape *s, bool people, json_t **ret);

/* Whatever stands next, as it is: bytes are a text, in which '?' stands for what is not UTF-8; a struct is a
 * list; a number that JSON has not (NaN, infinity) is null. */
int json_read_any(sd_bus_message *m, json_t **ret);
