/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP client: requests one after another over a connection that is kept. Blocking, for one thread; gives
 * up within 200 ms once cancel is set. Certificates are verified ($CURL_CA_BUNDLE or $SSL_CERT_FILE instead
 * of the host's), proxies taken from the usual variables, redirects followed five times and never from https
 * to http. For sources of kind s3, requests are signed with the keys of the environment and are not
 * redirected. For those of kind hdfs, it asks the next of the namenodes where one is not there or is not the
 * active one. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "executor/read/reader.h"

#define HTTP_TRIES 5u        /* in a row, without anything having come */
#define HTTP_SILENCE_SEC 30u /* $PRIMUS_HTTP_TIMEOUT: seconds without a byte that are an error, 1 to 3600 */
#define HTTP_WHOLE_MAX (8u << 20) /* bytes of http_whole() */

struct http;

/* An entity tag as it stands in inode: a hash, 0 for "". */
uint64_t http_entity(const char *tag);

struct http_answer {
        long status;
        uint64_t length;     /* of the body; TASK_UNKNOWN */
        uint64_t first;      /* 206: where the body begins */
        uint64_t total;      /* size of the whole object; TASK_UNKNOWN */
        uint64_t entity;     /* hash of the entity tag; 0: none */
        uint64_t mtime_nsec; /* Last-Modified; 0: none */
        uint64_t retry_usec; /* Retry-After; 0: none */
        bool ranges;         /* Accept-Ranges: bytes */
};

/* cancel may be NULL. 0, or negative errno with a line in error. */
int http_new(const struct input_source *source, const atomic_bool *cancel, struct http **ret,
             char error[static READ_ERROR_MAX]);
struct http *http_free(struct http *h);
static inline void http_free_p(struct http **h) {
        http_free(*h);
}

enum http_method {
        HTTP_GET,
        HTTP_HEAD
};
/* What is asked for. path names it in errors; query is only for s3, encoded and sorted, and for hdfs
 * ("op=…"; NULL: the file itself), or NULL. The range is
 * [first, last); 0 and TASK_TO_END: no range is asked for. */
struct http_request {
        enum http_method method;
        const char *path;
        const char *query;
        uint64_t first, last;
};
/* Drops what is under way and asks. 0: there is an answer, of whatever status but those below; -EAGAIN: no
 * answer, or one that says to come again (429, 500, 502, 503, 504), error says what; other negative: it is no
 * use, error says why. */
int http_ask(struct http *h, const struct http_request *q, struct http_answer *ret,
             char error[static READ_ERROR_MAX]);
/* More of the body. 0: its end; -EAGAIN: the connection broke off; other negative: as above. */
ssize_t http_read(struct http *h, uint8_t *buf, size_t size, char error[static READ_ERROR_MAX]);
/* Drops what is under way. */
void http_drop(struct http *h);
/* What to do after r < 0 of the above, the *failures-th in a row: sleeps and answers 0 to try again, or the
 * error that is final (with "tried 5 times" added to the line). */
int http_retry(struct http *h, int r, unsigned *failures, char error[static READ_ERROR_MAX]);

/* http_ask() with http_retry(). */
int http_ask_patiently(struct http *h, const struct http_request *q, struct http_answer *ret,
                       char error[static READ_ERROR_MAX]);
/* The whole body of a GET (patiently), at most HTTP_WHOLE_MAX; NUL behind it. Allocated. */
int http_whole(struct http *h, const struct http_request *q, struct http_answer *ret_answer, char **ret,
               size_t *ret_size, char error[static READ_ERROR_MAX]);
/* A status that is not wanted, as a line: "PATH: 403 Forbidden: AccessDenied". Returns -ENOENT for 404 and
 * 410, else -EIO. */
int http_unwanted(struct http *h, const struct http_request *q, char error[static READ_ERROR_MAX]);
