/* SPDX-License-Identifier: Apache-2.0 */
/* What writers of records need, and is slow in Python. */
#include "lib/primus/primus.h"
#include "lib/record/formats.h"

uint32_t primus_tfrecord_checksum(const void *data, size_t size) {
        return tfrecord_checksum(data, size);
}
