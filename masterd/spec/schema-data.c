/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of a job's data: inputManager and input. What is written of these two is also what executors are
 * told (spec_input_json), so a key that a reader of data needs is a live row here and read by input_read().
 */
#include "lib/wire/input.h"
#include "masterd/spec/names.h"
#include "masterd/spec/schema-rows.h"
#include "masterd/spec/spec.h"
#include "masterd/spec/valid.h"

/* ---- formats ---- */
static const struct key raw_input_keys[] = {
        { "blockSize", KEY_SIZE, AT(input_spec, block_size), RANGE(1, INPUT_RECORD_MAX), .preset = 1 << 20 },
};
static const struct schema raw_input_schema = SCHEMA(raw_input_keys);
static const struct key fixed_input_keys[] = {
        { "recordSize", KEY_SIZE, AT(input_spec, record_size), RANGE(1, INPUT_RECORD_MAX), .required = true,
          .hint = "the bytes of one record" },
};
static const struct schema fixed_input_schema = SCHEMA(fixed_input_keys);
static const struct key csv_input_keys[] = {
        { "multiline", KEY_BOOL, AT(input_spec, multiline) },
};
static const struct schema csv_input_schema = SCHEMA(csv_input_keys);

/* ---- fileConfig ---- */
static const struct key command_input_keys[] = {
        { "command", KEY_TEXT, AT(input_spec, command), RANGE(1, SPEC_STRING_MAX), .required = true,
          .hint = "its standard output is the data" },
};
static const struct schema command_input_schema = SCHEMA(command_input_keys);

/* It becomes a commandInput. */
static bool never_written(const void *target) {
        return false;
}

static const struct key customized_input_keys[] = {
        { "className", KEY_TEXT, AT(input_spec, reader), RANGE(1, 255), .required = true,
          .hint = "the Python class that reads the data, as module:Class", .valid = valid_reader_class },
        { "params", KEY_MAP, LIST_AT(input_spec, reader_params, n_reader_params), RANGE(0, 64),
          .valid = valid_env_name },
};
static const struct schema customized_input_schema = SCHEMA(customized_input_keys);

static const struct key s3_keys[] = {
        { "endpoint", KEY_TEXT, AT(input_spec, s3_endpoint), RANGE(1, SPEC_PATH_MAX),
          .valid = valid_endpoint },
        { "region", KEY_TEXT, AT(input_spec, s3_region), RANGE(1, 64), .valid = valid_label },
};
static const struct schema s3_schema = SCHEMA(s3_keys);

static const struct key hdfs_source_keys[] = {
        { "endpoint", KEY_TEXT, AT(input_spec, hdfs_endpoint), RANGE(1, SPEC_PATH_MAX),
          .valid = valid_endpoints },
        { "user", KEY_TEXT, AT(input_spec, hdfs_user), RANGE(1, 64), .valid = valid_label },
};
static const struct schema hdfs_source_schema = SCHEMA(hdfs_source_keys);

static const struct key time_range_keys[] = {
        { "from", KEY_TIME, AT(input_spec, from), .required = true,
          .hint = "the first day or hour, such as \"2026-01-31\" or \"2026-01-31T05\"" },
        { "to", KEY_TIME, AT(input_spec, to), .required = true,
          .hint = "the last day or hour, or \"now\" to follow the clock" },
};
static const struct schema time_range_schema = SCHEMA(time_range_keys);

static bool input_has_range(const void *target) {
        const struct input_spec *i = target;
        return i->from.given;
}

static bool input_has_command(const void *target) {
        const struct input_spec *i = target;
        return i->command;
}

static const struct key file_source_keys[] = {
        { "pathPattern", KEY_TEXT, AT(input_spec, path_pattern), RANGE(1, SPEC_PATH_MAX),
          .valid = valid_data_path },
        { "namePattern", KEY_TEXT, AT(input_spec, name_pattern), RANGE(1, 255), .preset_text = "*",
          .valid = valid_name_pattern },
        { "textInput", KEY_MESSAGE, .offset = 0, .message = &empty_schema,
          CHOOSES(1, input_spec, format, FORMAT_TEXT) },
        { "rawInput", KEY_MESSAGE, .offset = 0, .message = &raw_input_schema,
          CHOOSES(1, input_spec, format, FORMAT_RAW) },
        { "fixedInput", KEY_MESSAGE, .offset = 0, .message = &fixed_input_schema,
          CHOOSES(1, input_spec, format, FORMAT_FIXED) },
        { "tfrecordInput", KEY_MESSAGE, .offset = 0, .message = &empty_schema,
          CHOOSES(1, input_spec, format, FORMAT_TFRECORD) },
        { "tarInput", KEY_MESSAGE, .offset = 0, .message = &empty_schema,
          CHOOSES(1, input_spec, format, FORMAT_TAR) },
        { "csvInput", KEY_MESSAGE, .offset = 0, .message = &csv_input_schema,
          CHOOSES(1, input_spec, format, FORMAT_CSV) },
        { "customizedInput", KEY_MESSAGE, .offset = 0, .message = &customized_input_schema,
          .written = never_written },
        { "commandInput", KEY_MESSAGE, .offset = 0, .message = &command_input_schema,
          .written = input_has_command },
        { "successMarkerPatterns", KEY_TEXTS, LIST_AT(input_spec, success_markers, n_success_markers),
          RANGE(0, SPEC_MARKERS_MAX), .valid = valid_marker },
        { "timeRange", KEY_MESSAGE, .offset = 0, .message = &time_range_schema, .written = input_has_range },
        { "rewindSkipNum", KEY_U32, AT(input_spec, rewind_skip), RANGE(0, INT32_MAX) },
        { "compression", KEY_ENUM, AT(input_spec, compression), WORDS(compression_names) },
        { "split", KEY_SIZE, AT(input_spec, split), RANGE(0, SPEC_SPLIT_MAX), .preset = UINT64_MAX },
        { "weight", KEY_U32, AT(input_spec, weight), RANGE(0, INPUT_WEIGHT_MAX) },
        { "s3", KEY_MESSAGE, .offset = 0, .message = &s3_schema },
        { "hdfs", KEY_MESSAGE, .offset = 0, .message = &hdfs_source_schema },
};
static const struct schema file_source_schema = SCHEMA(file_source_keys);

static const struct key input_keys[] = {
        { "name", KEY_TEXT, AT(input_spec, name), RANGE(1, SPEC_NAME_MAX), .valid = valid_label },
        { "spec", KEY_MESSAGE, .offset = 0, .message = &file_source_schema, .required = true },
};
static const struct schema input_schema = SCHEMA(input_keys);

static const struct key stop_policy_keys[] = {
        { "taskSuccessPercent", KEY_MILLI, AT(job_spec, task_success_milli), RANGE(0, 100) },
        { "taskFailedPercent", KEY_MILLI, AT(job_spec, task_failed_milli), RANGE(0, 100), .preset = 50000,
          .zero_is_preset = true },
};
static const struct schema stop_policy_schema = SCHEMA(stop_policy_keys);

static const struct key file_config_keys[] = {
        { "inputs", KEY_LIST, LIST_AT(job_spec, inputs, n_inputs), RANGE(1, SPEC_INPUTS_MAX),
          .required = true, .message = &input_schema, .item_size = sizeof(struct input_spec) },
        { "stopPolicy", KEY_MESSAGE, .offset = 0, .message = &stop_policy_schema },
        { "sampleRate", KEY_MILLI, AT(job_spec, sample_ppm), RANGE(0, 1), .scale = 1000000, .preset = 1000000,
          .zero_is_preset = true },
};
static const struct schema file_config_schema = SCHEMA(file_config_keys);

/* ---- kafkaConfig ---- */
static const struct key topic_keys[] = {
        { "topic", KEY_TEXT, AT(topic_spec, topic), RANGE(1, 249), .required = true, .valid = valid_topic },
        { "consumerGroup", KEY_TEXT, AT(topic_spec, group), RANGE(1, 249), .required = true,
          .hint = "the group whose offsets tell what was read", .valid = valid_label },
        { "config", KEY_MAP, LIST_AT(topic_spec, config, n_config), RANGE(1, SPEC_PROPERTIES_MAX),
          .required = true, .hint = "at least {\"bootstrap.servers\": \"HOST:PORT\"}",
          .valid = valid_property },
        { "kafkaStartUpMode", KEY_ENUM, AT(topic_spec, start), WORDS(kafka_start_names) },
        { "startUpTimestamp", KEY_SCALED, AT(topic_spec, start_timestamp), RANGE(0, INT64_MAX), .scale = 1 },
        { "weight", KEY_U32, AT(topic_spec, weight), RANGE(0, INPUT_WEIGHT_MAX) },
};
static const struct schema topic_schema = SCHEMA(topic_keys);

static const struct key kafka_config_keys[] = {
        { "topics", KEY_LIST, LIST_AT(job_spec, topics, n_topics), RANGE(1, SPEC_INPUTS_MAX),
          .required = true, .message = &topic_schema, .item_size = sizeof(struct topic_spec) },
        { "kafkaMessageType", KEY_ENUM, AT(job_spec, message_type), WORDS(kafka_message_type_names) },
};
static const struct schema kafka_config_schema = SCHEMA(kafka_config_keys);

/* ---- inputManager ---- */
static bool job_is_kept(const void *target) {
        const struct job_spec *s = target;
        return s->staging_dir;
}

static const struct key hdfs_preserve_keys[] = {
        { "stagingDir", KEY_TEXT, AT(job_spec, staging_dir), RANGE(1, SPEC_PATH_MAX), .valid = valid_line },
};
static const struct schema hdfs_preserve_schema = SCHEMA(hdfs_preserve_keys);
static const struct key work_preserve_keys[] = {
        WARNED("dumpIntervalSec", KEY_NUMBER,
               "has no effect: progress is recorded as it is made, not at intervals; remove it"),
        { "hdfsConfig", KEY_MESSAGE, .offset = 0, .message = &hdfs_preserve_schema, .written = job_is_kept },
        SLIP("dumpIntervalSecs", KEY_NUMBER, "upstream's key is dumpIntervalSec"),
};
static const struct schema work_preserve_schema = SCHEMA(work_preserve_keys);

static bool job_has_files(const void *target) {
        const struct job_spec *s = target;
        return s->n_inputs > 0;
}

static bool job_has_topics(const void *target) {
        const struct job_spec *s = target;
        return s->n_topics > 0;
}

bool job_has_data(const void *target) {
        return spec_n_sources(target) > 0;
}

#define FEED "has no effect: see input.pipeSize, input.slots and input.slotSize; remove it"
static const struct key input_manager_keys[] = {
        { "fileConfig", KEY_MESSAGE, .offset = 0, .message = &file_config_schema, .written = job_has_files },
        { "kafkaConfig", KEY_MESSAGE, .offset = 0, .message = &kafka_config_schema,
          .written = job_has_topics },
        { "workPreserve", KEY_MESSAGE, .offset = 0, .message = &work_preserve_schema,
          .written = job_is_kept },
        { "gracefulShutdown", KEY_BOOL, AT(job_spec, graceful_shutdown) },
        { "gracefulShutdownTimeWaitSec", KEY_SCALED, AT(job_spec, end_wait_usec), RANGE(0, 30 * 86400),
          .scale = 1000000 },
        WARNED("maxTaskNumPerWorker", KEY_NUMBER,
               "has no effect: an executor gets one task after another, ahead of its reading; remove it"),
        { "maxTaskAttempts", KEY_U32, AT(job_spec, max_task_attempts), RANGE(1, 1000), .preset = 2,
          .zero_is_preset = true },
        WARNED("messageBufferSize", KEY_NUMBER, FEED),
        WARNED("messageBufferForceFlush", KEY_BOOL, FEED),
        WARNED("socketSendBufferSize", KEY_NUMBER, FEED),
        WARNED("maxAllowedIoException", KEY_NUMBER,
               "has no effect: a read error fails the task; see maxTaskAttempts"),
        WARNED("numBuildTaskThreads", KEY_NUMBER,
               "has no effect: each source is listed by one process; remove it"),
        UNBUILT("maxNumWorkerFeederClients", KEY_NUMBER,
                "data over TCP is not supported; read it from stdin, or through libprimus"),
};
const struct schema input_manager_schema = SCHEMA(input_manager_keys);

/* ---- input ---- */
static bool has_lockstep(const void *target) {
        const struct job_spec *s = target;
        return s->lockstep != LOCKSTEP_OFF;
}

static const struct key input_extension_keys[] = {
        { "mode", KEY_ENUM, AT(job_spec, input_mode), WORDS(input_delivery_names) },
        /* completed by the mode: check-data.c */
        { "ack", KEY_ENUM, AT(job_spec, input_ack), WORDS(ack_mode_names), .preset = _ACK_MODE_MAX },
        { "pipeSize", KEY_SIZE, AT(job_spec, pipe_size), RANGE(SPEC_PIPE_MIN, SPEC_PIPE_MAX),
          .preset = 1 << 20 },
        { "order", KEY_ENUM, AT(job_spec, input_order), WORDS(input_order_names) },
        { "lockstep", KEY_ENUM, AT(job_spec, lockstep), WORDS(lockstep_names), .written = has_lockstep },
        { "seed", KEY_SCALED, AT(job_spec, input_seed), RANGE(0, INT64_MAX), .scale = 1 },
        { "epochs", KEY_U32, AT(job_spec, epochs), RANGE(1, SPEC_EPOCHS_MAX), .preset = 1 },
        { "window", KEY_U32, AT(job_spec, window), RANGE(0, SPEC_WINDOW_MAX) },
        { "split", KEY_SIZE, AT(job_spec, split), RANGE(0, SPEC_SPLIT_MAX), .preset = 64 << 20 },
        { "maxRecord", KEY_SIZE, AT(job_spec, max_record), RANGE(1, INPUT_RECORD_MAX), .preset = 64 << 20 },
        { "slots", KEY_U32, AT(job_spec, slots), RANGE(2, SPEC_SLOTS_MAX), .preset = 16 },
        { "slotSize", KEY_SIZE, AT(job_spec, slot_size), RANGE(SPEC_SLOT_MIN, SPEC_SLOT_MAX),
          .preset = 1 << 20 },
        { "poll", KEY_DURATION, AT(job_spec, poll_usec), RANGE(100000, UINT64_C(86400) * 1000000),
          .preset = 60000000 },
};
const struct schema input_extension_schema = SCHEMA(input_extension_keys);
