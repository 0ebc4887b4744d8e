/* SPDX-License-Identifier: Apache-2.0 */
/* gzip over another stream. By zlib itself: libarchive does not compare gzip's checksum and length, and
 * cannot say where in the file something is wrong. Members may follow one another, as gzip(1) has it;
 * anything else behind a member is an error, and so is an end within one. Memory is zlib's window and one
 * buffer, however much comes out. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "executor/read/kind.h"
#include "lib/base/cleanup.h"

#define INPUT_SIZE (256u << 10)

struct gzip_stream {
        struct stream stream;
        struct stream *below;
        z_stream z;
        uint64_t consumed; /* compressed bytes behind which z.next_in stands */
        bool within;       /* a member */
        bool any;
        uint8_t input[INPUT_SIZE];
};

static int gzip_error(const struct gzip_stream *g, int r, const char *why,
                      char error[static READ_ERROR_MAX]) {
        return read_error(error, r, g->stream.path, "%s, at byte %" PRIu64 " of the compressed file", why,
                          g->consumed);
}

/* 1; 0: nothing comes any more. */
static int gzip_input(struct gzip_stream *g, char error[static READ_ERROR_MAX]) {
        ssize_t n;

        if (g->z.avail_in > 0)
                return 1;
        n = g->below->ops->read(g->below, g->input, INPUT_SIZE, error);
        if (n < 0)
                return (int)n;
        g->z.next_in = g->input;
        g->z.avail_in = (uInt)n;
        return n > 0;
}

static const char *inflate_why(const struct gzip_stream *g) {
        const char *m = g->z.msg;

        if (m && strcmp(m, "incorrect data check") == 0)
                return "corrupt gzip: its checksum is wrong";
        if (m && strcmp(m, "incorrect length check") == 0)
                return "corrupt gzip: its length is wrong";
        if (m && strcmp(m, "incorrect header check") == 0)
                return g->any ? "corrupt gzip: something else follows the compressed data"
                              : "is not compressed by gzip";
        return "corrupt gzip: the compressed data is invalid";
}

static ssize_t gzip_read(struct stream *stream, uint8_t *buf, size_t size,
                         char error[static READ_ERROR_MAX]) {
        struct gzip_stream *g = (struct gzip_stream *)stream;

        g->z.next_out = buf;
        g->z.avail_out = (uInt)MIN(size, (size_t)1 << 30);
        size = g->z.avail_out;
        while (g->z.avail_out > 0) {
                size_t before;
                bool over;
                int r;

                /* What is there is handed out before more is waited for. */
                if (g->z.avail_in == 0 && g->z.avail_out < size / 2)
                        break;
                r = gzip_input(g, error);
                if (r < 0)
                        return r;
                if (r == 0 && !g->within) {
                        if (!g->any)
                                return gzip_error(g, -EBADMSG,
                                                  "truncated: the file ends within the compressed data",
                                                  error);
                        break;
                }
                if (!g->within) {
                        /* zlib takes two bytes for a header before it complains of them */
                        if (inflateReset(&g->z) != Z_OK)
                                return gzip_error(g, -EBADMSG, "corrupt gzip", error);
                        g->within = true;
                }
                before = g->z.avail_in;
                over = r == 0;
                r = inflate(&g->z, Z_NO_FLUSH);
                g->consumed += before - g->z.avail_in;
                /* Without input, something may still have come out; when nothing does, something is missing.
                 */
                if (r == Z_BUF_ERROR && over)
                        return gzip_error(g, -EBADMSG, "truncated: the file ends within the compressed data",
                                          error);
                if (r == Z_STREAM_END) {
                        g->within = false;
                        g->any = true;
                } else if (r == Z_MEM_ERROR)
                        return gzip_error(g, -ENOMEM, strerror(ENOMEM), error);
                else if (r != Z_OK && r != Z_BUF_ERROR)
                        return gzip_error(g, -EBADMSG, inflate_why(g), error);
        }
        return (ssize_t)(size - g->z.avail_out);
}

static int gzip_check(struct stream *stream, char error[static READ_ERROR_MAX]) {
        struct gzip_stream *g = (struct gzip_stream *)stream;

        return g->below->ops->check ? g->below->ops->check(g->below, error) : 0;
}

static void gzip_close(struct stream *stream) {
        struct gzip_stream *g = (struct gzip_stream *)stream;

        inflateEnd(&g->z);
        stream_close(g->below);
        free(g);
}

static const struct stream_ops gzip_ops = {
        .read = gzip_read,
        .check = gzip_check,
        .close = gzip_close,
};

int stream_open_gzip(struct stream *below, struct stream **ret, char error[static READ_ERROR_MAX]) {
        struct gzip_stream *g = calloc(1, sizeof *g);

        if (!g || inflateInit2(&g->z, 16 + MAX_WBITS) != Z_OK) {
                int r = read_error(error, -ENOMEM, below->path, "%s", strerror(ENOMEM));

                free(g);
                stream_close(below);
                return r;
        }
        g->stream = (struct stream){
                .ops = &gzip_ops,
                .path = below->path,
                .cancel = below->cancel,
                .size = TASK_UNKNOWN,
                .fd = -EBADF,
        };
        g->below = below;
        *ret = &g->stream;
        return 0;
}
