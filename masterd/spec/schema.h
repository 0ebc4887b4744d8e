/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of a configuration as tables: one table per message, one row per key. Reading (read.c),
 * defaults, freeing and writing (effective.c) all follow the tables, so a new key is a new row. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The type of a key's value and of its target. Where it says "number", protobuf's "3" in quotes is taken as
 * well. */
enum key_type {
        KEY_INDEX,    /* uint32_t, 0: none, else index + 1; a whole number, true (0) or false (none) */
        KEY_BOOL,     /* bool; true, false, "true", "false" */
        KEY_U32,      /* uint32_t; whole number */
        KEY_I32,      /* int32_t; whole number; min and max are int64_t as uint64_t */
        KEY_MILLI,    /* uint32_t, thousandths (or parts of scale); a number with as many decimals at most */
        KEY_SCALED,   /* uint64_t, value * scale; whole number */
        KEY_DURATION, /* uint64_t, microseconds; number of seconds, or text as parse_duration() takes it */
        KEY_SIZE,     /* uint64_t, bytes; number, or text as parse_size() takes it */
        KEY_TIME,     /* struct spec_time; a day, an hour or "now": text, or upstream's object */
        KEY_NUMBER,   /* no target; any number of the range of int64 or a fraction */
        KEY_ENUM,     /* uint32_t; a word of names, or its number */
        KEY_TEXT,     /* char * */
        KEY_JSON,     /* char *; an object or array, as compact JSON with sorted names, for others to read */
        KEY_TEXTS,    /* char **, NULL-ended, and its count (size_t) at count */
        KEY_NODES,    /* the same; an array of names, or a host list in one text */
        KEY_MAP,      /* the same, NAME=VALUE; an object of texts */
        KEY_MESSAGE,  /* a struct (or part of the same one: offset 0); an object */
        KEY_LIST, /* item_size structs in an allocated array, and its count at count; an array of objects */
};

enum key_status {
        STATUS_LIVE,
        STATUS_QUIET,   /* taken and checked; needs no action here (the hint says why, for the manual) */
        STATUS_WARN,    /* taken and checked, has no effect: a warning with the hint */
        STATUS_SLIP,    /* a mistake that circulates: taken, a warning with the hint */
        STATUS_UNBUILT, /* of the schema but not built: refused with the hint, unless it is null, 0, false or
                           empty */
};

#define NO_TARGET SIZE_MAX

struct schema;

struct key {
        const char *name;
        enum key_type type;
        enum key_status status;
        const char *hint; /* what to do; of a required key, when it is missing */
        size_t offset;    /* of the target in the message's struct, or NO_TARGET */
        size_t count;     /* offset of the count of a list */

        uint64_t min, max; /* of the value as written; of the number of elements; of a text: max bytes */
        uint64_t scale;    /* KEY_SCALED, KEY_MILLI; of a KEY_MAP not 0: values may be whole numbers */
        uint64_t preset;   /* the default, as it is stored in the target */
        const char *preset_text; /* KEY_TEXT */
        uint64_t plus;           /* KEY_U32: so much more is stored than is written */
        bool zero_is_preset;     /* 0 means "not given", as in protobuf */
        bool required;
        bool unwritten; /* not in the effective configuration: another key says the same */

        /* Keys of one message with the same group (not 0) exclude each other. The one that is given stores
         * choice at choice_at (uint32_t) in the message's struct; with choice set, it is written only when it
         * is the chosen one. */
        unsigned group;
        bool choosing;
        size_t choice_at;
        uint32_t choice;

        const char *const *names; /* KEY_ENUM; max is the number of names - 1 */
        const struct schema *message;
        size_t item_size;

        /* Further rules for a text, each text of a list, or each NAME of a map; says what is expected. */
        bool (*valid)(const char *text, const char **ret_why);
        /* Whether it is written to the effective configuration; target is the message's struct. */
        bool (*written)(const void *target);
};

struct schema {
        const struct key *keys;
        size_t n;
};

/* Its values may be secrets: a map of texts (env, a client's properties), but not of amounts. */
static inline bool schema_is_private(const struct key *k) {
        return k->type == KEY_MAP && k->scale == 0;
}

/* The whole configuration; its struct is struct job_spec. */
extern const struct schema job_schema;

/* A role; its struct is struct role_spec. */
extern const struct schema role_schema;

/* Of it, what is about data; the struct is struct job_spec too. */
extern const struct schema input_manager_schema, input_extension_schema;
bool job_has_data(const void *target);

/* Parts that are about failures. */
extern const char *const restart_scope_words[3];
extern const struct schema exit_rule_schema, ready_schema, elastic_schema, blacklist_schema;
bool role_has_watchdog(const void *target);
/* What a job says about changes while it runs; its struct is struct rendezvous_spec. */
extern const struct schema rendezvous_schema;

/* Parts that other rooms of the schema refer to: what only upstream's platforms (YARN, Kubernetes, Hadoop,
 * the JVM) use. */
extern const struct schema runtime_schema, yarn_scheduler_schema, attribute_schema, plugin_config_schema,
        network_config_schema, event_log_schema, status_event_log_schema, timeline_schema, api_server_schema,
        port_range_schema, empty_schema;

/* The target of a key in its message's struct. */
static inline void *key_target(const struct key *k, void *message) {
        return k->offset == NO_TARGET ? NULL : (char *)message + k->offset;
}

/* The key that is called so (also as snake_case), or NULL. */
const struct key *schema_find(const struct schema *s, const char *name);

/* Writes every default into the zeroed struct. -ENOMEM. */
int schema_preset(const struct schema *s, void *message);

/* Frees what the struct's targets hold; the struct itself is the caller's. */
void schema_done(const struct schema *s, void *message);

/* Bytes of memory that the struct's targets hold, the struct itself not counted. */
size_t schema_bytes(const struct schema *s, const void *message);
