/* SPDX-License-Identifier: Apache-2.0 */
/* zstd over another stream, by libzstd itself, for the same reasons as with gzip. Frames may follow one
 * another; their checksums are compared where they have any. A frame whose window is larger than 128 MiB
 * (--ultra --long=28 and more) is refused, which bounds the memory. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "executor/read/kind.h"
#include "lib/base/cleanup.h"

#define INPUT_SIZE (256u << 10)
#define WINDOW_LOG_MAX 27

struct zstd_stream {
        struct stream stream;
        struct stream *below;
        ZSTD_DStream *z;
        ZSTD_inBuffer in;
        uint64_t behind; /* compressed bytes before those in the buffer */
        bool within, any;
        uint8_t input[INPUT_SIZE];
};

static int zstd_error(const struct zstd_stream *z, int r, const char *why,
                      char error[static READ_ERROR_MAX]) {
        return read_error(error, r, z->stream.path, "%s, at byte %" PRIu64 " of the compressed file", why,
                          z->behind + z->in.pos);
}

static int zstd_input(struct zstd_stream *z, char error[static READ_ERROR_MAX]) {
        ssize_t n;

        if (z->in.pos < z->in.size)
                return 1;
        n = z->below->ops->read(z->below, z->input, INPUT_SIZE, error);
        if (n < 0)
                return (int)n;
        z->behind += z->in.size;
        z->in = (ZSTD_inBuffer){ .src = z->input, .size = (size_t)n };
        return n > 0;
}

static const char *zstd_why(const struct zstd_stream *z, size_t r) {
        switch (ZSTD_getErrorCode(r)) {
        case ZSTD_error_checksum_wrong:
                return "corrupt zstd: its checksum is wrong";
        case ZSTD_error_prefix_unknown:
                return z->any ? "corrupt zstd: something else follows the compressed data"
                              : "is not compressed by zstd";
        case ZSTD_error_frameParameter_windowTooLarge:
                return "its zstd window is larger than 128 MiB: compress it with --long=27 or less";
        case ZSTD_error_dictionary_wrong:
                return "is compressed by zstd with a dictionary, which cannot be given";
        default:
                return "corrupt zstd: the compressed data is invalid";
        }
}

static ssize_t zstd_read(struct stream *stream, uint8_t *buf, size_t size,
                         char error[static READ_ERROR_MAX]) {
        struct zstd_stream *z = (struct zstd_stream *)stream;
        ZSTD_outBuffer out = { .dst = buf, .size = size };

        while (out.pos < out.size) {
                size_t before = out.pos, at, k;
                int r;

                if (z->in.pos == z->in.size && out.pos > size / 2)
                        break;
                /* Within a frame there may be more to come out of what is already in. */
                r = zstd_input(z, error);
                if (r < 0)
                        return r;
                at = z->in.pos;
                if (r == 0 && !z->within) {
                        if (!z->any)
                                return zstd_error(z, -EBADMSG,
                                                  "truncated: the file ends within the compressed data",
                                                  error);
                        break;
                }
                k = ZSTD_decompressStream(z->z, &out, &z->in);
                if (ZSTD_isError(k))
                        return zstd_error(
                                z, ZSTD_getErrorCode(k) == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG,
                                zstd_why(z, k), error);
                z->within = k != 0;
                z->any = z->any || k == 0;
                if (r == 0 && z->within && out.pos == before && z->in.pos == at)
                        return zstd_error(z, -EBADMSG, "truncated: the file ends within the compressed data",
                                          error);
        }
        return (ssize_t)out.pos;
}

static int zstd_check(struct stream *stream, char error[static READ_ERROR_MAX]) {
        struct zstd_stream *z = (struct zstd_stream *)stream;

        return z->below->ops->check ? z->below->ops->check(z->below, error) : 0;
}

static void zstd_close(struct stream *stream) {
        struct zstd_stream *z = (struct zstd_stream *)stream;

        ZSTD_freeDStream(z->z);
        stream_close(z->below);
        free(z);
}

static const struct stream_ops zstd_ops = {
        .read = zstd_read,
        .check = zstd_check,
        .close = zstd_close,
};

int stream_open_zstd(struct stream *below, struct stream **ret, char error[static READ_ERROR_MAX]) {
        struct zstd_stream *z = calloc(1, sizeof *z);

        if (!z || !(z->z = ZSTD_createDStream()) ||
            ZSTD_isError(ZSTD_DCtx_setParameter(z->z, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
                int r = read_error(error, -ENOMEM, below->path, "%s", strerror(ENOMEM));

                if (z)
                        ZSTD_freeDStream(z->z);
                free(z);
                stream_close(below);
                return r;
        }
        z->stream = (struct stream){
                .ops = &zstd_ops,
                .path = below->path,
                .cancel = below->cancel,
                .size = TASK_UNKNOWN,
                .fd = -EBADF,
        };
        z->below = below;
        *ret = &z->stream;
        return 0;
}
