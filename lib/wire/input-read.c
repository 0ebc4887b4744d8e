/* SPDX-License-Identifier: Apache-2.0 */
/* The description of an input, read from its JSON. Invariant: what comes out keeps every bound that input.h
 * and the rest of the program rely on, whoever wrote the text; the first thing that is wrong is named. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/wire/input.h"

#define PATH_BYTES_MAX 4095u
#define NAME_BYTES_MAX 255u
#define COMMAND_BYTES_MAX (64u << 10)
#define MARKERS_MAX 64u
#define PROPERTIES_MAX 256u
#define PROPERTY_BYTES_MAX (64u << 10)
#define SLOTS_MAX 4096u
#define SLOT_MIN (64u << 10)
#define SLOT_MAX (64u << 20)
#define RING_MAX (UINT64_C(1) << 30)
#define SPLIT_MAX (UINT64_C(1) << 50)
#define BLOCK_DEFAULT (UINT64_C(1) << 20)
#define POLL_MIN (100 * USEC_PER_MSEC)

struct reader {
        char where[64]; /* "inputs[3]" */
        int result;     /* 0, or the first error: then nothing more is read */
        char *error;
};

static void json_unref_p(json_t **v) {
        json_decref(*v);
}

static void _printf_(3, 4) fail(struct reader *r, const char *key, const char *format, ...) {
        _cleanup_free_ char *why = NULL;
        va_list ap;
        int n;

        if (r->result < 0)
                return;
        va_start(ap, format);
        n = vasprintf(&why, format, ap);
        va_end(ap);
        if (n < 0) {
                why = NULL;
                r->result = -ENOMEM;
                return;
        }
        if (asprintf(&r->error, "%s%s%s: %s", r->where, *key ? "." : "", key, why) < 0) {
                r->error = NULL;
                r->result = -ENOMEM;
                return;
        }
        r->result = -EBADMSG;
}

static void at(struct reader *r, const char *list, size_t index) {
        snprintf(r->where, sizeof(r->where), "%.40s[%zu]", list, index);
}

/* The member, or NULL where it is missing or nothing is to be read any more. */
static json_t *member(struct reader *r, json_t *object, const char *key) {
        json_t *v = r->result < 0 ? NULL : json_object_get(object, key);

        return json_is_null(v) ? NULL : v;
}

static json_t *take_object(struct reader *r, json_t *object, const char *key) {
        json_t *v = member(r, object, key);

        if (v && !json_is_object(v)) {
                fail(r, key, "must be an object");
                return NULL;
        }
        return v;
}

static json_t *take_list(struct reader *r, json_t *object, const char *key, size_t max) {
        json_t *v = member(r, object, key);

        if (v && !json_is_array(v))
                fail(r, key, "must be an array");
        else if (json_array_size(v) > max)
                fail(r, key, "has %zu entries; at most %zu are taken", json_array_size(v), max);
        return r->result < 0 ? NULL : v;
}

static bool take_u64(struct reader *r, json_t *object, const char *key, uint64_t min, uint64_t max,
                     uint64_t *ret) {
        json_t *v = member(r, object, key);
        json_int_t n = json_integer_value(v);

        if (!v)
                return false;
        if (!json_is_integer(v) || n < 0 || (uint64_t)n < min || (uint64_t)n > max) {
                fail(r, key, "must be a whole number from %llu to %llu", (unsigned long long)min,
                     (unsigned long long)max);
                return false;
        }
        *ret = (uint64_t)n;
        return true;
}

static void take_u32(struct reader *r, json_t *object, const char *key, uint32_t min, uint32_t max,
                     uint32_t *ret) {
        uint64_t n;

        if (take_u64(r, object, key, min, max, &n))
                *ret = (uint32_t)n;
}

static void take_bool(struct reader *r, json_t *object, const char *key, bool *ret) {
        json_t *v = member(r, object, key);

        if (v && !json_is_boolean(v))
                fail(r, key, "must be true or false");
        else if (v)
                *ret = json_is_true(v);
}

static char *copy_text(struct reader *r, const char *key, json_t *v, size_t max) {
        char *copy;

        if (!json_is_string(v))
                fail(r, key, "must be text");
        else if (json_string_length(v) > max)
                fail(r, key, "has %zu bytes; at most %zu are taken", json_string_length(v), max);
        else if (strlen(json_string_value(v)) != json_string_length(v))
                fail(r, key, "has a NUL byte");
        else if (!(copy = strdup(json_string_value(v))))
                r->result = -ENOMEM;
        else
                return copy;
        return NULL;
}

static void take_text(struct reader *r, json_t *object, const char *key, size_t max, char **ret) {
        json_t *v = member(r, object, key);

        if (v)
                *ret = copy_text(r, key, v, max);
}

static void take_texts(struct reader *r, json_t *object, const char *key, size_t max, size_t bytes_max,
                       char ***ret) {
        json_t *list = take_list(r, object, key, max), *item;
        size_t i;

        *ret = r->result < 0 ? NULL : calloc(json_array_size(list) + 1, sizeof(char *));
        if (!*ret) {
                r->result = r->result ?: -ENOMEM;
                return;
        }
        json_array_foreach (list, i, item)
                if (!((*ret)[i] = copy_text(r, key, item, bytes_max)))
                        return;
}

static void take_map(struct reader *r, json_t *object, const char *key, size_t max, char ***ret) {
        json_t *map = take_object(r, object, key), *item;
        const char *name;
        size_t n = 0;

        if (json_object_size(map) > max)
                fail(r, key, "has %zu entries; at most %zu are taken", json_object_size(map), max);
        *ret = r->result < 0 ? NULL : calloc(json_object_size(map) + 1, sizeof(char *));
        if (!*ret) {
                r->result = r->result ?: -ENOMEM;
                return;
        }
        json_object_foreach (map, name, item) {
                _cleanup_free_ char *value = NULL;

                if (!*name || strchr(name, '=') || strlen(name) > NAME_BYTES_MAX)
                        fail(r, key, "has a name that cannot be one");
                else
                        value = copy_text(r, key, item, PROPERTY_BYTES_MAX);
                if (value && asprintf(&(*ret)[n], "%s=%s", name, value) < 0) {
                        (*ret)[n] = NULL;
                        r->result = -ENOMEM;
                }
                if (r->result < 0)
                        return;
                n++;
        }
}

/* The index of the word in its table, or fallback. */
static int take_word(struct reader *r, json_t *object, const char *key, const char *const *names, int n,
                     int fallback) {
        json_t *v = member(r, object, key);

        if (!v)
                return fallback;
        for (int i = 0; json_is_string(v) && i < n; i++)
                if (strcmp(json_string_value(v), names[i]) == 0)
                        return i;
        fail(r, key, "is not one of the words that it can be");
        return fallback;
}

/* A number of seconds, or text as the configuration has it. */
static void take_duration(struct reader *r, json_t *object, const char *key, uint64_t min, uint64_t max,
                          uint64_t *ret) {
        json_t *v = member(r, object, key);
        uint64_t usec = 0;
        double d;

        if (!v)
                return;
        if (json_is_number(v)) {
                d = json_number_value(v) * (double)USEC_PER_SEC;
                usec = d >= (double)min && d <= (double)max ? (uint64_t)llround(d) : 0;
        } else if (!json_is_string(v) || parse_duration(json_string_value(v), &usec) < 0)
                usec = 0;
        if (usec < min || usec > max) {
                fail(r, key, "must be a duration of %llu to %llu us", (unsigned long long)min,
                     (unsigned long long)max);
                return;
        }
        *ret = usec;
}

/* ---- sources ---- */

static void read_range(struct reader *r, json_t *spec, struct input_source *s) {
        json_t *range = take_object(r, spec, "timeRange");
        const char *from = json_string_value(json_object_get(range, "from")),
                   *to = json_string_value(json_object_get(range, "to"));

        if (!range)
                return;
        s->has_range = true;
        s->to_now = to && strcmp(to, "now") == 0;
        if (!from || time_point_parse(from, &s->from) < 0)
                fail(r, "timeRange.from", "must be a day (\"2026-01-31\") or an hour (\"2026-01-31T05\")");
        else if (!s->to_now && (!to || time_point_parse(to, &s->to) < 0))
                fail(r, "timeRange.to", "must be a day, an hour, or \"now\"");
        else if (!s->to_now && time_point_compare(&s->from, &s->to) > 0)
                fail(r, "timeRange", "ends before it begins");
}

static void read_format(struct reader *r, json_t *spec, struct input_source *s) {
        static const struct {
                const char *key;
                enum record_format format;
        } formats[] = {
                { "textInput", FORMAT_TEXT },   { "rawInput", FORMAT_RAW },
                { "fixedInput", FORMAT_FIXED }, { "tfrecordInput", FORMAT_TFRECORD },
                { "tarInput", FORMAT_TAR },     { "csvInput", FORMAT_CSV },
        };
        size_t given = 0;

        for (size_t i = 0; i < ELEMENTSOF(formats); i++) {
                json_t *v = take_object(r, spec, formats[i].key);
                if (!v)
                        continue;
                if (given++ > 0)
                        fail(r, formats[i].key, "is a second format");
                s->format = formats[i].format;
                if (s->format == FORMAT_RAW) {
                        s->record_size = BLOCK_DEFAULT;
                        take_u64(r, v, "blockSize", 1, INPUT_RECORD_MAX, &s->record_size);
                } else if (s->format == FORMAT_FIXED &&
                           !take_u64(r, v, "recordSize", 1, INPUT_RECORD_MAX, &s->record_size))
                        fail(r, "fixedInput.recordSize", "is missing");
                else if (s->format == FORMAT_CSV)
                        take_bool(r, v, "multiline", &s->multiline);
        }
}

/* What a pattern has to be for its kind; of files, file:// is taken off. */
static void settle_pattern(struct reader *r, struct input_source *s) {
        static const char scheme[] = "file://";

        if (r->result < 0)
                return;
        if (!s->path_pattern) {
                if (!s->command)
                        fail(r, "pathPattern", "is missing");
                s->kind = SOURCE_COMMAND;
                return;
        }
        s->kind = input_source_kind(s->path_pattern, s->command);
        if (s->kind == SOURCE_HTTP || s->kind == SOURCE_S3 || s->kind == SOURCE_HDFS)
                return;
        if (strncmp(s->path_pattern, scheme, strlen(scheme)) == 0)
                memmove(s->path_pattern, s->path_pattern + strlen(scheme),
                        strlen(s->path_pattern + strlen(scheme)) + 1);
        if (*s->path_pattern != '/')
                fail(r, "pathPattern", "must be an absolute path or a URL");
}

static void read_file_source(struct reader *r, json_t *input, uint64_t split, struct input_source *s) {
        json_t *spec = take_object(r, input, "spec"), *s3, *hdfs, *command;

        take_text(r, input, "name", NAME_BYTES_MAX, &s->name);
        if (r->result == 0 && !spec)
                fail(r, "spec", "is missing");
        command = take_object(r, spec, "commandInput");
        if (command) {
                take_text(r, command, "command", COMMAND_BYTES_MAX, &s->command);
                if (r->result == 0 && (!s->command || !*s->command))
                        fail(r, "commandInput.command", "is missing");
        }
        take_text(r, spec, "pathPattern", PATH_BYTES_MAX, &s->path_pattern);
        take_text(r, spec, "namePattern", NAME_BYTES_MAX, &s->name_pattern);
        take_texts(r, spec, "successMarkerPatterns", MARKERS_MAX, PATH_BYTES_MAX, &s->success_markers);
        take_u32(r, spec, "rewindSkipNum", 0, INT32_MAX, &s->rewind_skip);
        s->split = split;
        take_u64(r, spec, "split", 0, SPLIT_MAX, &s->split);
        take_u32(r, spec, "weight", 0, INPUT_WEIGHT_MAX, &s->weight);
        s->compression = (enum compression)take_word(r, spec, "compression", compression_names,
                                                     _COMPRESSION_MAX, COMPRESSION_AUTO);
        s3 = take_object(r, spec, "s3");
        take_text(r, s3, "endpoint", PATH_BYTES_MAX, &s->s3_endpoint);
        take_text(r, s3, "region", NAME_BYTES_MAX, &s->s3_region);
        hdfs = take_object(r, spec, "hdfs");
        take_text(r, hdfs, "endpoint", PATH_BYTES_MAX, &s->hdfs_endpoint);
        take_text(r, hdfs, "user", NAME_BYTES_MAX, &s->hdfs_user);
        read_format(r, spec, s);
        read_range(r, spec, s);
        settle_pattern(r, s);
        if (r->result == 0 && !s->name_pattern && !(s->name_pattern = strdup("*")))
                r->result = -ENOMEM;
        if (r->result == 0 && !(s->config = calloc(1, sizeof(char *))))
                r->result = -ENOMEM;
}

static void read_topic(struct reader *r, json_t *topic, enum kafka_message_type type,
                       struct input_source *s) {
        uint64_t timestamp = 0;

        s->kind = SOURCE_KAFKA;
        s->format = FORMAT_MESSAGE;
        s->compression = COMPRESSION_NONE;
        s->message_type = type;
        take_text(r, topic, "topic", NAME_BYTES_MAX, &s->topic);
        take_text(r, topic, "consumerGroup", NAME_BYTES_MAX, &s->group);
        take_map(r, topic, "config", PROPERTIES_MAX, &s->config);
        take_u32(r, topic, "weight", 0, INPUT_WEIGHT_MAX, &s->weight);
        s->start = (enum kafka_start)take_word(r, topic, "kafkaStartUpMode", kafka_start_names,
                                               _KAFKA_START_MAX, KAFKA_GROUP_OFFSETS);
        take_u64(r, topic, "startUpTimestamp", 0, INT64_MAX, &timestamp);
        s->start_timestamp = (int64_t)timestamp;
        if (r->result < 0)
                return;
        if (!s->topic || !*s->topic || strchr(s->topic, '/'))
                fail(r, "topic", "is missing, or no topic's name");
        else if (!s->group || !*s->group)
                fail(r, "consumerGroup", "is missing");
        else if (!(s->name = strdup(s->topic)) || !(s->success_markers = calloc(1, sizeof(char *))))
                r->result = -ENOMEM;
}

static void read_sources(struct reader *r, json_t *manager, uint64_t split, struct input *i) {
        json_t *files = take_list(r, take_object(r, manager, "fileConfig"), "inputs", INPUT_SOURCES_MAX),
               *kafka = take_object(r, manager, "kafkaConfig"),
               *topics = take_list(r, kafka, "topics", INPUT_SOURCES_MAX), *item;
        enum kafka_message_type type = (enum kafka_message_type)take_word(
                r, kafka, "kafkaMessageType", kafka_message_type_names, _KAFKA_MESSAGE_TYPE_MAX, KAFKA_JSON);
        size_t n = json_array_size(files) + json_array_size(topics), k;

        if (r->result < 0)
                return;
        if (n == 0 || n > INPUT_SOURCES_MAX) {
                fail(r, "", "%zu sources; 1 to %u are taken", n, INPUT_SOURCES_MAX);
                return;
        }
        i->sources = calloc(n, sizeof(*i->sources));
        if (!i->sources) {
                r->result = -ENOMEM;
                return;
        }
        i->n_sources = n; /* zeroed ones may be freed */
        json_array_foreach (files, k, item) {
                at(r, "inputs", k);
                read_file_source(r, item, split, &i->sources[k]);
                if (r->result == 0 && !i->sources[k].name && asprintf(&i->sources[k].name, "%zu", k) < 0) {
                        i->sources[k].name = NULL;
                        r->result = -ENOMEM;
                }
        }
        json_array_foreach (topics, k, item) {
                at(r, "topics", k);
                read_topic(r, item, type, &i->sources[json_array_size(files) + k]);
        }
}

/* ---- the whole ---- */

static void read_delivery(struct reader *r, json_t *object, struct input *i, uint64_t *ret_split) {
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

        snprintf(r->where, sizeof(r->where), "input");
        i->mode = (enum input_delivery)take_word(r, object, "mode", input_delivery_names, _DELIVERY_MAX,
                                                 DELIVERY_STDIN);
        i->ack = (enum ack_mode)take_word(r, object, "ack", ack_mode_names, _ACK_MODE_MAX,
                                          i->mode == DELIVERY_STDIN ? ACK_LAG : ACK_RELEASE);
        i->order =
                (enum input_order)take_word(r, object, "order", input_order_names, _ORDER_MAX, ORDER_LISTED);
        take_u64(r, object, "pipeSize", 4u << 10, 1u << 20, &i->pipe_size);
        take_u64(r, object, "maxRecord", 1, INPUT_RECORD_MAX, &i->max_record);
        take_u64(r, object, "seed", 0, INT64_MAX, &i->seed);
        take_u32(r, object, "window", 0, 1u << 20, &i->window);
        take_u64(r, object, "split", 0, SPLIT_MAX, ret_split);
        take_u32(r, object, "slots", 2, SLOTS_MAX, &i->slots);
        take_u64(r, object, "slotSize", SLOT_MIN, SLOT_MAX, &i->slot_size);
        take_duration(r, object, "poll", POLL_MIN, UINT64_C(86400) * USEC_PER_SEC, &i->poll_usec);
        if ((i->slots & (i->slots - 1)) != 0)
                fail(r, "slots", "must be a power of two");
        else if (i->slot_size % page != 0)
                fail(r, "slotSize", "must be a multiple of %llu", (unsigned long long)page);
        else if (i->slots * i->slot_size > RING_MAX)
                fail(r, "slots", "the ring must have at most %llu bytes", (unsigned long long)RING_MAX);
}

int input_read(const char *text, size_t size, struct input **ret, char **ret_error) {
        _cleanup_(json_unref_p) json_t *root = NULL;
        _cleanup_(input_free_p) struct input *i = calloc(1, sizeof(*i));
        _cleanup_free_ struct reader *r = calloc(1, sizeof(*r));
        uint64_t split = UINT64_C(64) << 20;
        json_error_t error = {};

        if (!i || !r)
                return -ENOMEM;
        snprintf(r->where, sizeof(r->where), INPUT_FILE);
        i->pipe_size = 1 << 20;
        i->max_record = UINT64_C(64) << 20;
        i->slots = 16;
        i->slot_size = 1 << 20;
        i->poll_usec = 60 * USEC_PER_SEC;
        if (size > INPUT_TEXT_MAX)
                fail(r, "", "has %zu bytes; at most %u are taken", size, INPUT_TEXT_MAX);
        else {
                root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
                if (!root && json_error_code(&error) == json_error_out_of_memory)
                        return -ENOMEM;
                if (!json_is_object(root))
                        fail(r, "", "is no JSON object: line %d: %s", MAX(error.line, 1),
                             root ? "it is something else" : error.text);
        }
        read_delivery(r, take_object(r, root, "input"), i, &split);
        snprintf(r->where, sizeof(r->where), "inputManager");
        read_sources(r, take_object(r, root, "inputManager"), split, i);
        if (r->result < 0) {
                if (r->result == -EBADMSG)
                        *ret_error = TAKE_PTR(r->error);
                else
                        free(r->error);
                return r->result;
        }
        *ret = TAKE_PTR(i);
        return 0;
}

int input_reserve(struct input *i) {
        struct input_source *bigger = calloc(INPUT_SOURCES_MAX, sizeof(*bigger));

        if (!bigger)
                return -ENOMEM;
        memcpy(bigger, i->sources, i->n_sources * sizeof(*bigger));
        free(i->sources);
        i->sources = bigger;
        return 0;
}

int input_append(struct input *i, const char *text, size_t size, char **ret_error) {
        _cleanup_(input_free_p) struct input *other = NULL;
        int r = input_read(text, size, &other, ret_error);

        if (r < 0)
                return r;
        if (i->n_sources == INPUT_SOURCES_MAX)
                return -ENOSPC;
        if (other->n_sources != 1) {
                *ret_error = strdup("one source is added at a time");
                return *ret_error ? -EBADMSG : -ENOMEM;
        }
        i->sources[i->n_sources++] = other->sources[0];
        other->n_sources = 0; /* it has been taken over */
        return 0;
}
