/* SPDX-License-Identifier: Apache-2.0 */
/* A Kafka cluster for tests: librdkafka's mock of one, which speaks the real protocol.
 *
 *   kafka-broker TOPIC PARTITIONS MESSAGES      prints its address, and serves until its standard input ends
 *
 * Lines on standard input: "produce PARTITION FIRST N" and "committed GROUP PARTITION", each answered by a
 * line. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/kit/kafka-mock.h"

int main(int argc, char *argv[]) {
        struct kafka_mock *mock;
        char line[256];
        int partitions;

        if (argc != 4) {
                fputs("Usage: kafka-broker TOPIC PARTITIONS MESSAGES\n", stderr);
                return 2;
        }
        partitions = atoi(argv[2]);
        mock = kafka_mock_new();
        if (!mock || kafka_mock_topic(mock, argv[1], partitions) < 0)
                return 1;
        for (int i = 0; i < partitions; i++)
                if (kafka_mock_produce(mock, argv[1], i, 0, (unsigned)atoi(argv[3])) < 0)
                        return 1;
        printf("%s\n", kafka_mock_servers(mock));
        fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                unsigned first, n;
                char group[64];
                int partition;

                if (sscanf(line, "produce %d %u %u", &partition, &first, &n) == 3)
                        printf("%d\n", kafka_mock_produce(mock, argv[1], partition, first, n));
                else if (sscanf(line, "committed %63s %d", group, &partition) == 2)
                        printf("%lld\n", (long long)kafka_mock_committed(mock, group, argv[1], partition));
                else
                        printf("what?\n");
                fflush(stdout);
        }
        kafka_mock_free(mock);
        return 0;
}
