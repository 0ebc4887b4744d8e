/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a stream (Kafka) in slots and blocks: a header, key, value, padding to 8 bytes. */
#include <errno.h>
#include <string.h>

#include "lib/record/formats.h"

int message_next(const uint8_t *buf, size_t size, bool last, struct record *ret, const char **ret_why) {
        struct record_message_header h;
        uint64_t key, total;

        if (size < sizeof h)
                goto incomplete;
        memcpy(&h, buf, sizeof h);
        key = h.key_size == UINT32_MAX ? 0 : h.key_size;
        if (key + h.value_size > RECORD_LENGTH_MAX) {
                *ret_why = "a message says that it is longer than 1 GiB";
                return -EBADMSG;
        }
        total = (sizeof h + key + h.value_size + 7) & ~UINT64_C(7);
        if (size < total)
                goto incomplete;
        *ret = (struct record){
                .data = buf + sizeof h + key,
                .size = h.value_size,
                .total = (size_t)total,
                .key = h.key_size == UINT32_MAX ? NULL : buf + sizeof h,
                .key_size = (size_t)key,
                .offset = h.offset,
                .timestamp_msec = h.timestamp_msec,
        };
        return 1;
incomplete:
        if (!last)
                return 0;
        *ret_why = "the data ends within a message";
        return -EBADMSG;
}
