/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with as many tries as they take, and answers as a whole. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "executor/read/http.h"
#include "lib/base/cleanup.h"

#define PIECE ((size_t)256 << 10)

int http_ask_patiently(struct http *h, const struct http_request *q, struct http_answer *ret,
                       char error[static READ_ERROR_MAX]) {
        unsigned failures = 0;
        int r;

        do {
                r = http_ask(h, q, ret, error);
                if (r >= 0)
                        return 0;
                r = http_retry(h, r, &failures, error);
        } while (r >= 0);
        return r;
}

static int read_whole(struct http *h, const struct http_request *q, char **text, size_t *size,
                      char error[static READ_ERROR_MAX]) {
        size_t allocated = 0, n = 0;
        ssize_t l;

        do {
                if (n + PIECE + 1 > allocated) {
                        char *bigger;

                        allocated = allocated * 2 + PIECE + 1;
                        bigger = realloc(*text, allocated);
                        if (!bigger)
                                return -ENOMEM;
                        *text = bigger;
                }
                l = http_read(h, (uint8_t *)*text + n, PIECE, error);
                if (l < 0)
                        return (int)l;
                n += (size_t)l;
                if (n > HTTP_WHOLE_MAX) {
                        snprintf(error, READ_ERROR_MAX, "%.350s: the answer is longer than %u MiB", q->path,
                                 HTTP_WHOLE_MAX >> 20);
                        return -E2BIG;
                }
        } while (l > 0);
        (*text)[n] = 0;
        *size = n;
        return 0;
}

int http_whole(struct http *h, const struct http_request *q, struct http_answer *ret_answer, char **ret,
               size_t *ret_size, char error[static READ_ERROR_MAX]) {
        unsigned failures = 0;
        int r;

        do {
                _cleanup_free_ char *text = NULL;
                size_t size = 0;

                r = http_ask(h, q, ret_answer, error);
                if (r >= 0)
                        r = read_whole(h, q, &text, &size, error);
                if (r >= 0) {
                        *ret = TAKE_PTR(text);
                        *ret_size = size;
                        return 0;
                }
                r = http_retry(h, r, &failures, error);
        } while (r >= 0);
        return r;
}
