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
#define INPUT_SOURCE_BYTES_MAX (48u << 10) /* of the text with one source that is added */
#define INPUT_WEIGHT_MAX 1000000u          /* of a source */
#define INPUT_TEXT_MAX (4u << 20)          /* bytes of the file */
#define INPUT_ENDPOINTS_MAX 8u             /* namenodes of hdfs.endpoint */
#define INPUT_RECORD_MAX (1u << 30)        /* upper bound of maxRecord */

enum source_kind {
        SOURCE_FILES,   /* pathPattern is a path or file:// */
        SOURCE_HTTP,    /* http:// or https:// */
        SOURCE_S3,      /* s3://bucket/key pattern */
        SOURCE_COMMAND, /* the standard output of a command: one task, or one for each file of pathPattern */
        SOURCE_KAFKA,
        SOURCE_HDFS, /* hdfs://host/path pattern, by WebHDFS */
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
enum ack_mode {         /* input.ack: when a record counts as processed */
        ACK_LAG,        /* stdin: what the trainer has read, less one pipe */
        ACK_EXIT,       /* all at the trainer's exit 0 */
        ACK_READ,       /* stdin: what the trainer has read */
        ACK_RELEASE,    /* libprimus: a record when the next one is asked for */
        ACK_EXPLICIT,   /* what the trainer says */
        ACK_CHECKPOINT, /* what the trainer's committed checkpoint covers; tasks stay with role and index */
        _ACK_MODE_MAX,
        _ACK_MODE_INVALID = -22
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

/* The configuration's words, by value. X_to_string(): NULL outside the enum; X_from_string(): -EINVAL for
 * another word or NULL. Kinds and formats are named for people: "files", "http", "s3", "hdfs", "command",
 * "kafka"; "text", "raw", ... */
extern const char *const source_kind_names[_SOURCE_KIND_MAX];
extern const char *const record_format_names[_FORMAT_MAX];
extern const char *const compression_names[_COMPRESSION_MAX];
extern const char *const input_delivery_names[_DELIVERY_MAX];
extern const char *const ack_mode_names[_ACK_MODE_MAX];
extern const char *const input_order_names[_ORDER_MAX];
extern const char *const kafka_start_names[_KAFKA_START_MAX];
extern const char *const kafka_message_type_names[_KAFKA_MESSAGE_TYPE_MAX];

const char *source_kind_to_string(enum source_kind k);
const char *record_format_to_string(enum record_format f);
const char *compression_to_string(enum compression c);
enum compression compression_from_string(const char *s);
const char *input_delivery_to_string(enum input_delivery d);
enum input_delivery input_delivery_from_string(const char *s);
const char *ack_mode_to_string(enum ack_mode a);
enum ack_mode ack_mode_from_string(const char *s);
const char *input_order_to_string(enum input_order o);
enum input_order input_order_from_string(const char *s);
const char *kafka_start_to_string(enum kafka_start k);
enum kafka_start kafka_start_from_string(const char *s);
const char *kafka_message_type_to_string(enum kafka_message_type t);
enum kafka_message_type kafka_message_type_from_string(const char *s);

/* A day or an hour; hour -1: a day. from of a range is its first hour, to its last one, both included. */
struct time_point {
        int year, month, day, hour;
};
/* "2026-01-31" or "2026-01-31T05", of a day that exists, years 1970 to 9999. -EINVAL. */
int time_point_parse(const char *s, struct time_point *ret);
/* Into buf; returns it. */
#define TIME_POINT_MAX 16
char *time_point_format(const struct time_point *t, char buf[static TIME_POINT_MAX]);
/* < 0, 0, > 0: whether the first hour of a is before, at or after the last one of b; so a range that begins
 * with a and ends with b is empty when it is > 0. */
int time_point_compare(const struct time_point *a, const struct time_point *b);

/* The batch of scan_entry: YYYYMMDDHH, which sorts as time does; HH of a day is 00. And back (the hour is
 * given: a day comes back as its hour 0): 0; -EINVAL. */
uint64_t time_point_batch(const struct time_point *t);
int time_point_from_batch(uint64_t batch, struct time_point *ret);

struct input_source {
        char *name;
        enum source_kind kind;
        enum record_format format;
        enum compression compression;
        /* files, http, s3, hdfs, command with files */
        char *path_pattern; /* may hold {{YYYY}} {{MM}} {{DD}} {{HH}}; of files an absolute path (file:// is
                             * taken off); NULL: a command without files, Kafka */
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
        char *hdfs_endpoint, *hdfs_user; /* NULL: see executor/read/hdfs.h */
        char *s3_endpoint, *s3_region;   /* NULL: AWS's own; keys come from the usual AWS_* variables */
        uint32_t weight;                 /* > 0: takes turns with others in this proportion; 0: none */
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
        enum ack_mode ack;
        uint64_t pipe_size;
        uint64_t max_record; /* bytes; a longer record fails its task */
        enum input_order order;
        uint64_t seed;
        uint32_t window;    /* records within which a task is shuffled; 0, 1: none */
        uint32_t slots;     /* ring: power of two */
        uint64_t slot_size; /* ring: bytes, a multiple of the page size */
        uint64_t poll_usec; /* how often a source that is waited for is looked at */
};

/* Where a pattern points, by how it begins. Of a command that has no pattern it is NULL. */
enum source_kind input_source_kind(const char *path_pattern, const char *command);

/* Reads the text; what it leaves out has the default of primus-job(5). 0; -EBADMSG with one line in
 * *ret_error (allocated); -ENOMEM. */
int input_read(const char *text, size_t size, struct input **ret, char **ret_error);
/* Room for INPUT_SOURCES_MAX, so that the sources that are there stay where they are when one is added. */
int input_reserve(struct input *i);
/* One more source of an input with room for it: of such a text that has it alone. 0; -EBADMSG, as
 * input_read(), also of another number; -ENOSPC; -ENOMEM. */
int input_append(struct input *i, const char *text, size_t size, char **ret_error);
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
