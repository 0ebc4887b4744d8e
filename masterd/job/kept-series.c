/* SPDX-License-Identifier: Apache-2.0 */
/* A version, then a block for each number that is known of a range: range, length of the name, whether the
 * highest are there, how many points (a byte each), the name, the means, the highest. Numbers are named,
 * since their order in the enum may change; a name that is not known is passed over. */
#include "masterd/job/kept-series.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/packed.h"

#define VERSION 1u
#define HEAD 4u
#define BLOCK_MAX (HEAD + 32 + 2 * SERIES_POINTS * sizeof(uint32_t))
#define SIZE_MOST (1 + _SERIES_RANGE_MAX * _SERIES_MAX * BLOCK_MAX)

static_assert(SERIES_POINTS <= UINT8_MAX, "a byte has their number");

static uint8_t *put_points(uint8_t *to, const float *points, size_t n) {
        for (size_t i = 0; i < n; i++) {
                uint32_t word;
                memcpy(&word, points + i, sizeof(word));
                to = packed_put_u32(to, word);
        }
        return to;
}

static const uint8_t *get_points(const uint8_t *from, float *points, size_t n) {
        for (size_t i = 0; i < n; i++, from += sizeof(uint32_t)) {
                uint32_t word = packed_u32(from);
                memcpy(points + i, &word, sizeof(word));
        }
        return from;
}

static uint8_t *put_block(uint8_t *to, struct series *s, enum series_range range, enum series_kind k,
                          uint64_t now) {
        float mean[SERIES_POINTS], max[SERIES_POINTS];
        size_t n = series_read(s, range, k, now, mean, max), length = strlen(series_name(k));
        bool known = false, apart = false;

        for (size_t i = 0; i < n; i++) {
                known = known || !isnan(mean[i]);
                apart = apart || (mean[i] != max[i] && !isnan(mean[i]));
        }
        if (!known)
                return to;
        *to++ = (uint8_t)range;
        *to++ = (uint8_t)length;
        *to++ = apart;
        *to++ = (uint8_t)n;
        to = put_points(mempcpy(to, series_name(k), length), mean, n);
        return apart ? put_points(to, max, n) : to;
}

int kept_series_write(struct series *s, uint64_t now_usec, bool coarse, uint8_t **ret, size_t *ret_size) {
        _cleanup_free_ uint8_t *bytes = malloc(SIZE_MOST);
        uint8_t *to = bytes;

        if (!bytes)
                return -ENOMEM;
        *to++ = VERSION;
        for (enum series_range r = coarse ? SERIES_COARSE : 0; r < _SERIES_RANGE_MAX; r++)
                for (enum series_kind k = 0; k < _SERIES_MAX; k++)
                        to = put_block(to, s, r, k, now_usec);
        *ret_size = to - bytes > 1 ? (size_t)(to - bytes) : 0;
        *ret = TAKE_PTR(bytes);
        return 0;
}

size_t kept_series_read(const uint8_t *data, size_t size, enum series_range range, enum series_kind k,
                        float ret_mean[static SERIES_POINTS], float ret_max[static SERIES_POINTS]) {
        const uint8_t *end = data + size;
        const char *name = series_name(k);

        if (size == 0 || *data++ != VERSION)
                return 0;
        while ((size_t)(end - data) >= HEAD) {
                size_t length = data[1], n = data[3], points = n * sizeof(uint32_t);
                bool apart = data[2] == 1, ours = data[0] == range && length == strlen(name);

                data += HEAD;
                if (n > SERIES_POINTS || (size_t)(end - data) < length + points * (apart ? 2 : 1))
                        return 0;
                if (ours && memcmp(data, name, length) == 0) {
                        data = get_points(data + length, ret_mean, n);
                        if (apart)
                                (void)get_points(data, ret_max, n);
                        else
                                memcpy(ret_max, ret_mean, n * sizeof(*ret_max));
                        return n;
                }
                data += length + points * (apart ? 2 : 1);
        }
        return 0;
}
