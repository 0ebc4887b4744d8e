/* SPDX-License-Identifier: Apache-2.0 */
/* librdkafka's mock cluster, which speaks the real protocol on the loopback interface. */
#pragma once

#include <stdint.h>

struct kafka_mock;

/* NULL: it cannot start. */
struct kafka_mock *kafka_mock_new(void);
void kafka_mock_free(struct kafka_mock *m);
const char *kafka_mock_servers(const struct kafka_mock *m); /* bootstrap.servers */
int kafka_mock_topic(struct kafka_mock *m, const char *topic, int partitions);
/* "TOPIC/PARTITION message N\n" without the newline, N from first on; with key "key-N" where N is even. */
int kafka_mock_produce(struct kafka_mock *m, const char *topic, int32_t partition, unsigned first,
                       unsigned n);
/* One message of so many bytes 'x'. */
int kafka_mock_produce_large(struct kafka_mock *m, const char *topic, int32_t partition, unsigned size);
/* What a group has committed; -1: nothing. */
int64_t kafka_mock_committed(struct kafka_mock *m, const char *group, const char *topic, int32_t partition);
