/* SPDX-License-Identifier: Apache-2.0 */
/* TFRecord: u64 length, u32 masked CRC-32C of it, the payload, u32 masked CRC-32C of the payload; little
 * endian. Invariant: nothing is handed out whose two checksums are not right. */
#include <errno.h>

#include "lib/record/formats.h"

#define HEADER 12u
#define FOOTER 4u

/* TensorFlow's mask: a checksum of data that holds checksums is a weak one. */
uint32_t tfrecord_checksum(const void *data, size_t size) {
        uint32_t crc = crc32c(0, data, size);

        return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static bool header_valid(const uint8_t *p, uint64_t *ret_length) {
        *ret_length = load_le64(p);
        return *ret_length <= RECORD_LENGTH_MAX && tfrecord_checksum(p, 8) == load_le32(p + 8);
}

int tfrecord_next(const uint8_t *buf, size_t size, bool last, struct record *ret, const char **ret_why) {
        uint64_t length;

        if (size < HEADER) {
                if (!last)
                        return 0;
                *ret_why = "truncated: the data ends within the header of a TFRecord";
                return -EBADMSG;
        }
        if (tfrecord_checksum(buf, 8) != load_le32(buf + 8)) {
                *ret_why = "corrupt TFRecord: the checksum of its length is wrong";
                return -EBADMSG;
        }
        length = load_le64(buf);
        if (length > RECORD_LENGTH_MAX) {
                *ret_why = "a TFRecord says that it is longer than 1 GiB";
                return -EBADMSG;
        }
        if (size - HEADER < length + FOOTER) {
                if (!last)
                        return 0;
                *ret_why = "truncated: the data ends within a TFRecord";
                return -EBADMSG;
        }
        if (tfrecord_checksum(buf + HEADER, (size_t)length) != load_le32(buf + HEADER + length)) {
                *ret_why = "corrupt TFRecord: the checksum of its data is wrong";
                return -EBADMSG;
        }
        *ret = (struct record){ .data = buf + HEADER,
                                .size = (size_t)length,
                                .total = (size_t)length + HEADER + FOOTER };
        return 1;
}

/* Whether a record begins at buf: 1, 0: no, -EAGAIN: more has to be seen. */
static int begins_record(const uint8_t *buf, size_t size, bool last) {
        uint64_t length, next;
        size_t rest;

        if (size < HEADER)
                return last ? 0 : -EAGAIN;
        if (!header_valid(buf, &length))
                return 0;
        rest = size - HEADER;
        if (rest < length + FOOTER)
                return last ? 0 : -EAGAIN;
        if (tfrecord_checksum(buf + HEADER, (size_t)length) != load_le32(buf + HEADER + length))
                return 0;
        rest -= (size_t)length + FOOTER;
        if (last && rest == 0)
                return 1;
        if (rest < HEADER)
                return last ? 0 : -EAGAIN;
        return header_valid(buf + HEADER + length + FOOTER, &next);
}

int tfrecord_sync(const uint8_t *buf, size_t size, bool last, size_t *ret) {
        for (size_t at = 0; at < size; at++) {
                int r = begins_record(buf + at, size - at, last);

                if (r == -EAGAIN)
                        return 0;
                if (r > 0) {
                        *ret = at;
                        return 1;
                }
        }
        if (!last)
                return 0;
        *ret = size;
        return 1;
}
