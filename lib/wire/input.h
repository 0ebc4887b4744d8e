/* SPDX-License-Identifier: Apache-2.0 */
/* A job's input as its executors are told: where data comes from and what its records are. masterd writes it
 * from the job's configuration (the same keys under the same names: {"inputManager": …, "input": …}, every
 * default written out), agentd delivers it as the private file input.json beside the unit ($PRIMUS_INPUT
 * names it; Kafka's configuration may hold passwords), and primus-executor reads it with input_read(), for
 * --scan and for --feed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INPUT_FILE "input.json" /* name of the secret that carries it */
#define INPUT_SOURCES_MAX 1024u
#define INPUT_TEXT_MAX (4u << 20)   /* bytes of the file */
#define INPUT_RECORD_MAX (1u << 30) /* upper bound of maxRecord */

enum source_kind {
        SOURCE_FILES,   /* pathPattern is a path or file:// */
        SOURCE_HTTP,    /* http:// or https:// */
        SOURCE_S3,      /* s3://bucket/key pattern */
        SOURCE_COMMAND, /* the standard output of a command: one task, or one for each file of pathPattern */
        SOURCE_KAFKA,
        _SOURCE_KIND_MAX,
        _SOURCE_KIND_INVALID = -22
};
enum record_format {
        FORMAT_TEXT,     /* lines, each ended by \n */
        FORMAT_RAW,      /* blocks of record_size bytes, the last one shorter */
        FORMAT_FIXED,    /* records of record_size bytes; a rest is an error */
        FORMAT_TFRECORD, /* framing with masked CRC-32C, both checked */
        FORMAT_TAR,      /* WebDataset: members that share a name up to its first dot are one record */
        FORMAT_CSV,      /* lines behind a header line, which every task begins with in stdin mode */
        FORMAT_MESSAGE,  /* Kafka: see lib/record/record.h */
        _FORMAT_MAX,
        _FORMAT_INVALID = -22
};
enum compression {
        COMPRESSION_AUTO, /* by the name's end: .gz, .tgz, .zst; else none */
        COMPRESSION_NONE,
        COMPRESSION_GZIP,
        COMPRESSION_ZSTD,
        _COMPRESSION_MAX,
        _COMPRESSION_INVALID = -22
};
enum input_delivery {        /* input.mode */
        DELIVERY_STDIN,      /* default: the trainer's standard input */
        DELIVERY_RING,       /* shared memory, read through libprimus */
        DELIVERY_DESCRIPTOR, /* ranges of files that the trainer reads itself, through libprimus */
        _DELIVERY_MAX,
        _DELIVERY_INVALID = -22
};
enum input_order {
        ORDER_LISTED,  /* by batch (hour), then source, then name; with weights: sources take turns */
        ORDER_SHUFFLE, /* a permutation of the tasks of each epoch, from seed */
        _ORDER_MAX,
        _ORDER_INVALID = -22
};
enum kafka_start {
        KAFKA_GROUP_OFFSETS,
        KAFKA_EARLIEST,
        KAFKA_LATEST,
        KAFKA_TIMESTAMP,
        _KAFKA_START_MAX,
        _KAFKA_START_INVALID = -22
};
enum kafka_message_type {
        KAFKA_JSON, /* to stdin: the message and \n */
        KAFKA_PB,   /* to stdin: the message alone */
        _KAFKA_MESSAGE_TYPE_MAX,
        _KAFKA_MESSAGE_TYPE_INVALID = -22
};

/* A day or an hour; hour -1: a day. from of a range is its first hour, to its last one, both included. */
struct time_point {
        int year, month, day, hour;
};

struct input_source {
        char *name;
        enum source_kind kind;
        enum record_format format;
        enum compression compression;
        /* files, http, s3, command with files */
        char *path_pattern; /* may hold {{YYYY}} {{MM}} {{DD}} {{HH}}; NULL: a command without files, Kafka */
        char *name_pattern;
        char **success_markers; /* NULL-ended; patterns that must exist before a directory is listed; never
                                   NULL */
        bool has_range;
        struct time_point from, to;
        bool to_now;          /* no end: follows the clock */
        uint32_t rewind_skip; /* records left out when a task that has failed is tried again */
        uint64_t record_size; /* RAW, FIXED */
        bool multiline;       /* CSV: quoted fields may hold newlines; such files are not split */
        uint64_t split;       /* target size of a task in bytes; 0: a file is one task */
        char *command; /* COMMAND: run by bash -c with PRIMUS_FILE (when there is a pattern) and PRIMUS_SEED
                        */
        char *s3_endpoint, *s3_region; /* NULL: AWS's own; keys come from the usual AWS_* variables */
        uint32_t weight;               /* > 0: takes turns with others in this proportion; 0: none */
        /* Kafka */
        char *topic, *group;
        char **config; /* NULL-ended NAME=VALUE of librdkafka, Java-only names left out; never NULL */
        enum kafka_start start;
        int64_t start_timestamp; /* milliseconds */
        enum kafka_message_type message_type;
};

struct input {
        struct input_source *sources;
        size_t n_sources;
        enum input_delivery mode;
        uint32_t ack; /* enum ack_mode of lib/wire/messages.h */
        uint64_t pipe_size;
        uint64_t max_record; /* bytes; a longer record fails its task */
        enum input_order order;
        uint64_t seed;
        uint32_t window;    /* records within which a task is shuffled; 0, 1: none */
        uint32_t slots;     /* ring: power of two */
        uint64_t slot_size; /* ring: bytes, a multiple of the page size */
        uint64_t poll_usec; /* how often a source that is waited for is looked at */
};

/* Reads the text. 0; -EBADMSG with one line in *ret_error (allocated); -ENOMEM. */
int input_read(const char *text, size_t size, struct input **ret, char **ret_error);
struct input *input_free(struct input *i);
static inline void input_free_p(struct input **i) {
        input_free(*i);
}

/* Whether a source's files can be cut at any place: the format can find the start of a record, nothing is
 * compressed (name decides for COMPRESSION_AUTO), and it is no command or stream. */
bool input_splittable(const struct input_source *s, const char *path);
/* What COMPRESSION_AUTO means for a file of that name. */
enum compression input_compression(const struct input_source *s, const char *path);

const char *source_kind_to_string(enum source_kind k);
const char *record_format_to_string(enum record_format f);
const char *compression_to_string(enum compression c);
const char *input_delivery_to_string(enum input_delivery d);
const char *input_order_to_string(enum input_order o);
