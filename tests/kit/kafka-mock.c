/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/kafka-mock.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kafka_mock {
        rd_kafka_t *producer;
        rd_kafka_mock_cluster_t *cluster;
};

struct kafka_mock *kafka_mock_new(void) {
        struct kafka_mock *m = calloc(1, sizeof(*m));
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char why[256];

        if (!m || rd_kafka_conf_set(conf, "test.mock.num.brokers", "1", why, sizeof(why)) != RD_KAFKA_CONF_OK)
                abort();
        (void)rd_kafka_conf_set(conf, "log_level", "0", why, sizeof(why));
        m->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
        if (!m->producer)
                abort();
        m->cluster = rd_kafka_handle_mock_cluster(m->producer);
        return m;
}

void kafka_mock_free(struct kafka_mock *m) {
        rd_kafka_destroy(m->producer);
        free(m);
}

const char *kafka_mock_servers(const struct kafka_mock *m) {
        return rd_kafka_mock_cluster_bootstraps(m->cluster);
}

int kafka_mock_topic(struct kafka_mock *m, const char *topic, int partitions) {
        return rd_kafka_mock_topic_create(m->cluster, topic, partitions, 1) == RD_KAFKA_RESP_ERR_NO_ERROR
                       ? 0
                       : -1;
}

static int produce(struct kafka_mock *m, const char *topic, int32_t partition, const void *key,
                   size_t key_size, void *value, size_t size) {
        rd_kafka_resp_err_t e;

        do {
                e = rd_kafka_producev(m->producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                                      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_size),
                                      RD_KAFKA_V_VALUE(value, size), RD_KAFKA_V_END);
                if (e == RD_KAFKA_RESP_ERR__QUEUE_FULL)
                        (void)rd_kafka_poll(m->producer, 10);
        } while (e == RD_KAFKA_RESP_ERR__QUEUE_FULL);
        return e == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : -1;
}

int kafka_mock_produce(struct kafka_mock *m, const char *topic, int32_t partition, unsigned first,
                       unsigned n) {
        for (unsigned i = first; i < first + n; i++) {
                char value[320], key[32];

                snprintf(value, sizeof(value), "%s/%d message %u", topic, partition, i);
                snprintf(key, sizeof(key), "key-%u", i);
                if (produce(m, topic, partition, i % 2 ? NULL : key, i % 2 ? 0 : strlen(key), value,
                            strlen(value)) < 0)
                        return -1;
        }
        return rd_kafka_flush(m->producer, 30000) == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : -1;
}

int kafka_mock_produce_large(struct kafka_mock *m, const char *topic, int32_t partition, unsigned size) {
        char *value = malloc(size);
        int r;

        if (!value)
                abort();
        memset(value, 'x', size);
        r = produce(m, topic, partition, NULL, 0, value, size);
        free(value);
        return r < 0 ? r : rd_kafka_flush(m->producer, 30000) == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : -1;
}

int64_t kafka_mock_committed(struct kafka_mock *m, const char *group, const char *topic, int32_t partition) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        int64_t offset = -1;
        rd_kafka_t *rk;
        char why[256];

        (void)rd_kafka_conf_set(conf, "bootstrap.servers", kafka_mock_servers(m), why, sizeof(why));
        (void)rd_kafka_conf_set(conf, "group.id", group, why, sizeof(why));
        rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
        if (!rk)
                abort();
        rd_kafka_topic_partition_list_add(list, topic, partition);
        if (rd_kafka_committed(rk, list, 10000) == RD_KAFKA_RESP_ERR_NO_ERROR && list->elems[0].offset >= 0)
                offset = list->elems[0].offset;
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
        return offset;
}
