/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka: partitions of topics, read as tasks whose positions are offsets of messages. librdkafka is loaded
 * when the first topic is opened. A source has one connection in the process, kept from slice to slice, and
 * its settings are the source's (config), but that nothing is committed unless kafka_commit() is called, and
 * that a position which the broker no longer has is an error where config does not say otherwise
 * (auto.offset.reset). All functions may be called from any thread; one reader of a partition at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "executor/read/reader.h"

#define KAFKA_SLICE 10000u /* messages after which a reader answers -EAGAIN */

/* "TOPIC/PARTITION". -EINVAL. */
int kafka_path_partition(const char *path, int32_t *ret);

/* How many partitions the topic has. Negative errno with a line in error. */
int kafka_partitions(const struct input_source *s, int32_t *ret, char error[static READ_ERROR_MAX]);
/* Where a partition begins for this source: as its start-up mode says, or, earliest, at the first message
 * that there is. */
int kafka_first(const struct input_source *s, int32_t partition, bool earliest, uint64_t *ret,
                char error[static READ_ERROR_MAX]);

/* The group has got what lies before position (a task's acked): told to the broker without waiting, at most
 * once a second for a partition; now: at once, since another executor may go on with it. Does nothing for a
 * source without a group, or one that nothing was read from here. What is not sent goes with the next call
 * for the source, the next slice of it, or kafka_done(). */
int kafka_commit(const struct input_source *s, const char *path, uint64_t position, bool now);

/* Commits what is left, waiting at most so long for the brokers, and closes all connections. No reader is
 * open any more. */
void kafka_done(uint64_t timeout_usec);
