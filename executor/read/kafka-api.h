/* SPDX-License-Identifier: Apache-2.0 */
/* librdkafka, loaded when the first topic is opened: it brings TLS, SASL and compression libraries along. */
#pragma once

#include <librdkafka/rdkafka.h>

#include "executor/read/reader.h"

#define KAFKA_API_FUNCTIONS(X)                                                                               \
        X(conf_new, rd_kafka_conf_t *, (void))                                                               \
        X(conf_destroy, void, (rd_kafka_conf_t *))                                                           \
        X(conf_set, rd_kafka_conf_res_t, (rd_kafka_conf_t *, const char *, const char *, char *, size_t))    \
        X(conf_set_opaque, void, (rd_kafka_conf_t *, void *))                                                \
        X(conf_set_log_cb, void,                                                                             \
          (rd_kafka_conf_t *, void (*)(const rd_kafka_t *, int, const char *, const char *)))                \
        X(new, rd_kafka_t *, (rd_kafka_type_t, rd_kafka_conf_t *, char *, size_t))                           \
        X(destroy_flags, void, (rd_kafka_t *, int))                                                          \
        X(opaque, void *, (const rd_kafka_t *))                                                              \
        X(poll, int, (rd_kafka_t *, int))                                                                    \
        X(topic_new, rd_kafka_topic_t *, (rd_kafka_t *, const char *, rd_kafka_topic_conf_t *))              \
        X(topic_destroy, void, (rd_kafka_topic_t *))                                                         \
        X(metadata, rd_kafka_resp_err_t,                                                                     \
          (rd_kafka_t *, int, rd_kafka_topic_t *, const struct rd_kafka_metadata **, int))                   \
        X(metadata_destroy, void, (const struct rd_kafka_metadata *))                                        \
        X(query_watermark_offsets, rd_kafka_resp_err_t,                                                      \
          (rd_kafka_t *, const char *, int32_t, int64_t *, int64_t *, int))                                  \
        X(offsets_for_times, rd_kafka_resp_err_t, (rd_kafka_t *, rd_kafka_topic_partition_list_t *, int))    \
        X(committed, rd_kafka_resp_err_t, (rd_kafka_t *, rd_kafka_topic_partition_list_t *, int))            \
        X(commit_queue, rd_kafka_resp_err_t,                                                                 \
          (rd_kafka_t *, const rd_kafka_topic_partition_list_t *, rd_kafka_queue_t *,                        \
           void (*)(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *), void *))  \
        X(queue_new, rd_kafka_queue_t *, (rd_kafka_t *))                                                     \
        X(queue_destroy, void, (rd_kafka_queue_t *))                                                         \
        X(queue_poll, rd_kafka_event_t *, (rd_kafka_queue_t *, int))                                         \
        X(event_destroy, void, (rd_kafka_event_t *))                                                         \
        X(topic_partition_list_new, rd_kafka_topic_partition_list_t *, (int))                                \
        X(topic_partition_list_destroy, void, (rd_kafka_topic_partition_list_t *))                           \
        X(topic_partition_list_add, rd_kafka_topic_partition_t *,                                            \
          (rd_kafka_topic_partition_list_t *, const char *, int32_t))                                        \
        X(consume_start, int, (rd_kafka_topic_t *, int32_t, int64_t))                                        \
        X(consume_stop, int, (rd_kafka_topic_t *, int32_t))                                                  \
        X(consume_batch, ssize_t, (rd_kafka_topic_t *, int32_t, int, rd_kafka_message_t **, size_t))         \
        X(message_destroy, void, (rd_kafka_message_t *))                                                     \
        X(message_timestamp, int64_t, (const rd_kafka_message_t *, rd_kafka_timestamp_type_t *))             \
        X(last_error, rd_kafka_resp_err_t, (void))                                                           \
        X(err2str, const char *, (rd_kafka_resp_err_t))

struct kafka_api {
#define X(name, type, arguments) type(*name) arguments;
        KAFKA_API_FUNCTIONS(X)
#undef X
};

/* Loads it once. 0, or -ENOENT with a line in error that says what to install. Callable from any thread. */
int kafka_api_load(const struct kafka_api **ret, char error[static READ_ERROR_MAX]);
