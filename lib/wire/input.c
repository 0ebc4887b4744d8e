/* SPDX-License-Identifier: Apache-2.0 */
/* The words of an input and its sources, and what follows from them without reading data. input-read.c reads
 * the whole description. */
#include "lib/wire/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/strv.h"

const char *const source_kind_names[_SOURCE_KIND_MAX] = {
        [SOURCE_FILES] = "files",     [SOURCE_HTTP] = "http",   [SOURCE_S3] = "s3",
        [SOURCE_COMMAND] = "command", [SOURCE_KAFKA] = "kafka", [SOURCE_HDFS] = "hdfs",
};
const char *const record_format_names[_FORMAT_MAX] = {
        [FORMAT_TEXT] = "text",         [FORMAT_RAW] = "raw", [FORMAT_FIXED] = "fixed",
        [FORMAT_TFRECORD] = "tfrecord", [FORMAT_TAR] = "tar", [FORMAT_CSV] = "csv",
        [FORMAT_MESSAGE] = "message",
};
const char *const compression_names[_COMPRESSION_MAX] = {
        [COMPRESSION_AUTO] = "auto",
        [COMPRESSION_NONE] = "none",
        [COMPRESSION_GZIP] = "gzip",
        [COMPRESSION_ZSTD] = "zstd",
};
const char *const input_delivery_names[_DELIVERY_MAX] = {
        [DELIVERY_STDIN] = "stdin",
        [DELIVERY_RING] = "ring",
        [DELIVERY_DESCRIPTOR] = "descriptor",
};
const char *const ack_mode_names[_ACK_MODE_MAX] = {
        [ACK_LAG] = "lag",         [ACK_EXIT] = "exit",         [ACK_READ] = "read",
        [ACK_RELEASE] = "release", [ACK_EXPLICIT] = "explicit", [ACK_CHECKPOINT] = "checkpoint",
};
const char *const input_order_names[_ORDER_MAX] = {
        [ORDER_LISTED] = "listed",
        [ORDER_SHUFFLE] = "shuffle",
};
const char *const kafka_start_names[_KAFKA_START_MAX] = {
        [KAFKA_GROUP_OFFSETS] = "GROUP_OFFSETS",
        [KAFKA_EARLIEST] = "EARLIEST",
        [KAFKA_LATEST] = "LATEST",
        [KAFKA_TIMESTAMP] = "TIMESTAMP",
};
const char *const kafka_message_type_names[_KAFKA_MESSAGE_TYPE_MAX] = {
        [KAFKA_JSON] = "JSON",
        [KAFKA_PB] = "PB",
};

static int word_find(const char *const *names, size_t n, const char *s) {
        for (size_t i = 0; s && i < n; i++)
                if (strcmp(names[i], s) == 0)
                        return (int)i;
        return -EINVAL;
}

#define DEFINE_TO_STRING(type, table)                                                                        \
        const char *type##_to_string(enum type v) {                                                          \
                return (size_t)v < ELEMENTSOF(table) ? table[v] : NULL;                                      \
        }
#define DEFINE_WORDS(type, table)                                                                            \
        DEFINE_TO_STRING(type, table)                                                                        \
        enum type type##_from_string(const char *s) {                                                        \
                return (enum type)word_find(table, ELEMENTSOF(table), s);                                    \
        }

DEFINE_TO_STRING(source_kind, source_kind_names)
DEFINE_TO_STRING(record_format, record_format_names)
DEFINE_WORDS(compression, compression_names)
DEFINE_WORDS(input_delivery, input_delivery_names)
DEFINE_WORDS(ack_mode, ack_mode_names)
DEFINE_WORDS(input_order, input_order_names)
DEFINE_WORDS(kafka_start, kafka_start_names)
DEFINE_WORDS(kafka_message_type, kafka_message_type_names)

/* ---- times ---- */

static bool day_exists(int year, int month, int day) {
        static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return year >= 1970 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 &&
               day <= days[month - 1] + (month == 2 && leap);
}

/* n digits; -1 for anything else. */
static int digits(const char *s, size_t n) {
        int value = 0;

        for (size_t i = 0; i < n; i++) {
                if (s[i] < '0' || s[i] > '9')
                        return -1;
                value = value * 10 + (s[i] - '0');
        }
        return value;
}

int time_point_parse(const char *s, struct time_point *ret) {
        struct time_point t = { .hour = -1 };
        size_t n = strlen(s);

        if ((n != 10 && n != 13) || s[4] != '-' || s[7] != '-')
                return -EINVAL;
        t.year = digits(s, 4);
        t.month = digits(s + 5, 2);
        t.day = digits(s + 8, 2);
        if (!day_exists(t.year, t.month, t.day))
                return -EINVAL;
        if (n == 13) {
                t.hour = s[10] == 'T' ? digits(s + 11, 2) : -1;
                if (t.hour < 0 || t.hour > 23)
                        return -EINVAL;
        }
        *ret = t;
        return 0;
}

char *time_point_format(const struct time_point *t, char buf[static TIME_POINT_MAX]) {
        /* bounded as time_point_parse() has it; the remainders are for the compiler */
        unsigned year = (unsigned)t->year % 10000, month = (unsigned)t->month % 100,
                 day = (unsigned)t->day % 100;

        if (t->hour < 0)
                snprintf(buf, TIME_POINT_MAX, "%04u-%02u-%02u", year, month, day);
        else
                snprintf(buf, TIME_POINT_MAX, "%04u-%02u-%02uT%02u", year, month, day,
                         (unsigned)t->hour % 100);
        return buf;
}

int time_point_compare(const struct time_point *a, const struct time_point *b) {
        const int x[] = { a->year, a->month, a->day, a->hour < 0 ? 0 : a->hour },
                  y[] = { b->year, b->month, b->day, b->hour < 0 ? 23 : b->hour };

        for (size_t i = 0; i < ELEMENTSOF(x); i++)
                if (x[i] != y[i])
                        return x[i] < y[i] ? -1 : 1;
        return 0;
}

uint64_t time_point_batch(const struct time_point *t) {
        return (uint64_t)t->year * 1000000 + (uint64_t)t->month * 10000 + (uint64_t)t->day * 100 +
               (uint64_t)(t->hour < 0 ? 0 : t->hour);
}

int time_point_from_batch(uint64_t batch, struct time_point *ret) {
        struct time_point t;

        if (batch > UINT64_C(9999123123))
                return -EINVAL;
        t = (struct time_point){ .year = (int)(batch / 1000000),
                                 .month = (int)(batch / 10000 % 100),
                                 .day = (int)(batch / 100 % 100),
                                 .hour = (int)(batch % 100) };
        if (!day_exists(t.year, t.month, t.day) || t.hour > 23)
                return -EINVAL;
        *ret = t;
        return 0;
}

/* ---- sources ---- */

static bool begins_with(const char *s, const char *with) {
        return strncmp(s, with, strlen(with)) == 0;
}

enum source_kind input_source_kind(const char *path_pattern, const char *command) {
        if (command)
                return SOURCE_COMMAND;
        if (begins_with(path_pattern, "http://") || begins_with(path_pattern, "https://"))
                return SOURCE_HTTP;
        return begins_with(path_pattern, "s3://")     ? SOURCE_S3
               : begins_with(path_pattern, "hdfs://") ? SOURCE_HDFS
                                                      : SOURCE_FILES;
}

static bool ends(const char *path, size_t n, const char *with) {
        size_t m = strlen(with);

        return n >= m && memcmp(path + n - m, with, m) == 0;
}

enum compression input_compression(const struct input_source *s, const char *path) {
        size_t n = strlen(path);

        if (s->compression != COMPRESSION_AUTO)
                return s->compression;
        /* What a command prints is not what its file is called, and messages are what they are. */
        if (s->kind == SOURCE_COMMAND || s->kind == SOURCE_KAFKA)
                return COMPRESSION_NONE;
        if (s->kind == SOURCE_HTTP)
                n = strcspn(path, "?#");
        if (ends(path, n, ".gz") || ends(path, n, ".tgz"))
                return COMPRESSION_GZIP;
        return ends(path, n, ".zst") ? COMPRESSION_ZSTD : COMPRESSION_NONE;
}

bool input_splittable(const struct input_source *s, const char *path) {
        if (s->kind == SOURCE_COMMAND || s->kind == SOURCE_KAFKA ||
            input_compression(s, path) != COMPRESSION_NONE)
                return false;
        switch (s->format) {
        case FORMAT_TEXT:
        case FORMAT_RAW:
        case FORMAT_FIXED:
        case FORMAT_TFRECORD:
                return true;
        case FORMAT_CSV:
                return !s->multiline;
        default: /* TAR: a member's header cannot be told from what is inside another member */
                return false;
        }
}

struct input *input_free(struct input *i) {
        for (size_t n = 0; i && n < i->n_sources; n++) {
                struct input_source *s = &i->sources[n];
                free(s->name);
                free(s->path_pattern);
                free(s->name_pattern);
                strings_free(s->success_markers);
                free(s->command);
                free(s->hdfs_endpoint);
                free(s->hdfs_user);
                free(s->s3_endpoint);
                free(s->s3_region);
                free(s->topic);
                free(s->group);
                strings_free(s->config);
        }
        if (i)
                free(i->sources);
        free(i);
        return NULL;
}
