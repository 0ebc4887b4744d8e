/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP over libcurl's multi interface, one transfer at a time. The body is put straight into the caller's
 * buffer; what does not fit waits in the stash, and then the transfer is paused. Invariant: a body is handed
 * out only behind a status of 200 or 206; whatever a server sends is bounded. */
#include "executor/read/http.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "executor/read/curl-api.h"
#include "executor/read/hdfs.h"
#include "executor/read/s3.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/parse.h"

#define STASH (256l << 10) /* libcurl hands out at most so much at once */
#define COMPLAINT_MAX 4096u
#define STEP_MS 100
#define BACKOFF_MIN (200 * USEC_PER_MSEC)
#define RETRY_AFTER_MAX (30 * USEC_PER_SEC)
#define REDIRECTS_MAX 5l

struct http {
        const struct curl_api *curl;
        const struct input_source *source;
        const atomic_bool *cancel;
        const char *path; /* of the latest request */
        CURL *easy;
        CURLM *multi;
        struct curl_slist *headers;
        uint64_t silence_usec;
        unsigned endpoint; /* hdfs: the namenode that is asked, */
        char *user;        /* and as whom */
        char trouble[CURL_ERROR_SIZE];
        /* of the request that is under way */
        bool added, begun, paused, over;
        CURLcode result;
        struct http_answer answer;
        char complaint[COMPLAINT_MAX]; /* body of an answer that is no success */
        size_t complaint_size;
        uint8_t *stash, *buf;
        size_t stash_at, stash_size, room, got;
        uint64_t activity; /* when something came last */
};

static bool cancelled(const struct http *h) {
        return h->cancel && atomic_load_explicit(h->cancel, memory_order_relaxed);
}

static bool success(const struct http *h) {
        return h->answer.status == 200 || h->answer.status == 206;
}

/* ---- what comes ---- */

static size_t on_body(char *data, size_t one, size_t n, void *userdata) {
        struct http *h = userdata;
        size_t take;

        h->begun = true;
        h->activity = now_boot();
        if (!success(h)) {
                take = MIN(n, COMPLAINT_MAX - 1 - h->complaint_size);
                memcpy(h->complaint + h->complaint_size, data, take);
                h->complaint_size += take;
                /* Of an endless complaint no more than the start is wanted. */
                return take == n ? n : CURL_WRITEFUNC_ERROR;
        }
        if (h->stash_size > 0 || n > (size_t)STASH) {
                h->paused = true;
                return CURL_WRITEFUNC_PAUSE;
        }
        take = MIN(n, h->room - h->got);
        if (take > 0)
                memcpy(h->buf + h->got, data, take);
        h->got += take;
        memcpy(h->stash, data + take, n - take);
        h->stash_at = 0;
        h->stash_size = n - take;
        return n;
}

/* "bytes 5-9/100", "bytes * /100" (without the space). */
static void read_content_range(struct http_answer *a, const char *value) {
        const char *slash = strchr(value, '/'), *dash = strchr(value, '-');
        char first[24];

        if (strncasecmp(value, "bytes ", 6) != 0 || !slash)
                return;
        (void)parse_u64(slash + 1, 0, TASK_UNKNOWN - 1, &a->total);
        value += 6;
        if (dash && dash > value && (size_t)(dash - value) < sizeof(first)) {
                snprintf(first, sizeof(first), "%.*s", (int)(dash - value), value);
                (void)parse_u64(first, 0, TASK_UNKNOWN - 1, &a->first);
        }
}

static uint64_t hash_of(const char *text) {
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        for (; *text; text++)
                h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
        return h ? h : 1;
}

uint64_t http_entity(const char *tag) {
        return *tag ? hash_of(tag) : 0;
}

static void on_field(struct http *h, const char *name, const char *value) {
        struct http_answer *a = &h->answer;
        uint64_t seconds;
        time_t t;

        if (strcasecmp(name, "content-length") == 0)
                (void)parse_u64(value, 0, TASK_UNKNOWN - 1, &a->length);
        else if (strcasecmp(name, "content-range") == 0)
                read_content_range(a, value);
        else if (strcasecmp(name, "accept-ranges") == 0)
                a->ranges = strcasecmp(value, "bytes") == 0;
        else if (strcasecmp(name, "etag") == 0)
                a->entity = http_entity(value);
        else if (strcasecmp(name, "last-modified") == 0) {
                t = h->curl->getdate(value, NULL);
                if (t > 0)
                        a->mtime_nsec = (uint64_t)t * UINT64_C(1000000000);
        } else if (strcasecmp(name, "retry-after") == 0) {
                /* Seconds; a date is as good as nothing. */
                if (parse_u64(value, 0, UINT32_MAX, &seconds) >= 0)
                        a->retry_usec = MIN(seconds * USEC_PER_SEC, RETRY_AFTER_MAX);
        }
}

static size_t on_header(char *data, size_t one, size_t n, void *userdata) {
        struct http *h = userdata;
        char line[1024], *value;
        size_t size = MIN(n, sizeof(line) - 1);

        h->activity = now_boot();
        memcpy(line, data, size);
        while (size > 0 && (line[size - 1] == '\r' || line[size - 1] == '\n' || line[size - 1] == ' '))
                size--;
        line[size] = 0;
        /* Each answer's head (100, a redirect, the answer) begins anew. */
        if (strncmp(line, "HTTP/", 5) == 0) {
                const char *status = strchr(line, ' ');
                uint32_t number = 0;
                char digits[4] = "";

                if (status)
                        snprintf(digits, sizeof(digits), "%.3s", status + 1);
                (void)parse_u32(digits, 100, 999, &number);
                h->answer = (struct http_answer){ .status = (long)number,
                                                  .length = TASK_UNKNOWN,
                                                  .total = TASK_UNKNOWN };
                return n;
        }
        value = strchr(line, ':');
        if (value) {
                *value++ = 0;
                value += strspn(value, " \t");
                on_field(h, line, value);
        }
        return n;
}

/* ---- the transfer ---- */

#define SET(option, value)                                                                                   \
        do {                                                                                                 \
                if (h->curl->easy_setopt(h->easy, option, value) != CURLE_OK)                                \
                        return -EIO;                                                                         \
        } while (0)

static int add_header(struct http *h, const char *line) {
        struct curl_slist *more = h->curl->slist_append(h->headers, line);

        if (!more)
                return -ENOMEM;
        h->headers = more;
        return 0;
}

static const char *variable(const char *name) {
        const char *v = getenv(name);

        return v && *v ? v : NULL;
}

static int set_signature(struct http *h) {
        const char *key = variable("AWS_ACCESS_KEY_ID"), *secret = variable("AWS_SECRET_ACCESS_KEY"),
                   *token = variable("AWS_SESSION_TOKEN");
        _cleanup_free_ char *line = NULL, *provider = NULL;
        int r;

        /* Where a signed request is redirected to, the signature is not valid. */
        SET(CURLOPT_FOLLOWLOCATION, 0l);
        SET(CURLOPT_PATH_AS_IS, 1l);
        if (!key || !secret)
                return 0; /* a public bucket */
        if (asprintf(&provider, "aws:amz:%s:s3", s3_region(h->source)) < 0) {
                provider = NULL;
                return -ENOMEM;
        }
        SET(CURLOPT_AWS_SIGV4, provider);
        SET(CURLOPT_USERNAME, key);
        SET(CURLOPT_PASSWORD, secret);
        /* Of an empty body. */
        r = add_header(
                h, "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        if (r >= 0 && token) {
                if (asprintf(&line, "x-amz-security-token: %s", token) < 0) {
                        line = NULL;
                        return -ENOMEM;
                }
                r = add_header(h, line);
        }
        return r;
}

static int set_options(struct http *h) {
        const char *ca = variable("CURL_CA_BUNDLE");
        int r = 0;

        SET(CURLOPT_NOSIGNAL, 1l);
        SET(CURLOPT_ERRORBUFFER, h->trouble);
        SET(CURLOPT_PROTOCOLS_STR, "http,https");
        SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        SET(CURLOPT_SSL_VERIFYPEER, 1l);
        SET(CURLOPT_SSL_VERIFYHOST, 2l);
        SET(CURLOPT_FOLLOWLOCATION, 1l);
        SET(CURLOPT_MAXREDIRS, REDIRECTS_MAX);
        SET(CURLOPT_BUFFERSIZE, STASH);
        SET(CURLOPT_USERAGENT, "primus/" PRIMUS_VERSION);
        SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(h->silence_usec / 1000));
        SET(CURLOPT_WRITEFUNCTION, on_body);
        SET(CURLOPT_WRITEDATA, h);
        SET(CURLOPT_HEADERFUNCTION, on_header);
        SET(CURLOPT_HEADERDATA, h);
        if (!ca)
                ca = variable("SSL_CERT_FILE");
        if (ca)
                SET(CURLOPT_CAINFO, ca);
        if (h->source->kind == SOURCE_S3)
                r = set_signature(h);
        if (r >= 0 && h->headers)
                SET(CURLOPT_HTTPHEADER, h->headers);
        return r;
}

int http_new(const struct input_source *source, const atomic_bool *cancel, struct http **ret,
             char error[static READ_ERROR_MAX]) {
        _cleanup_(http_free_p) struct http *h = calloc(1, sizeof(*h));
        const char *silence = variable("PRIMUS_HTTP_TIMEOUT");
        uint32_t seconds = HTTP_SILENCE_SEC;
        int r;

        snprintf(error, READ_ERROR_MAX, "%s: no memory", source->name);
        if (!h)
                return -ENOMEM;
        if (silence && parse_u32(silence, 1, 3600, &seconds) < 0) {
                snprintf(error, READ_ERROR_MAX, "PRIMUS_HTTP_TIMEOUT: must be seconds, 1 to 3600");
                return -EINVAL;
        }
        h->source = source;
        h->cancel = cancel;
        h->silence_usec = seconds * USEC_PER_SEC;
        r = curl_api_load(&h->curl, error);
        if (r < 0)
                return r;
        h->easy = h->curl->easy_init();
        h->multi = h->curl->multi_init();
        h->stash = malloc((size_t)STASH);
        if (source->kind == SOURCE_HDFS && !(h->user = hdfs_user(source)))
                return -ENOMEM;
        if (!h->easy || !h->multi || !h->stash)
                return -ENOMEM;
        r = set_options(h);
        if (r < 0) {
                if (r != -ENOMEM)
                        snprintf(error, READ_ERROR_MAX,
                                 "%s: this host's libcurl is too old or was built without "
                                 "what is needed",
                                 source->name);
                return r;
        }
        *ret = TAKE_PTR(h);
        return 0;
}

void http_drop(struct http *h) {
        if (h->added)
                (void)h->curl->multi_remove_handle(h->multi, h->easy);
        h->added = h->begun = h->paused = h->over = false;
        h->stash_at = h->stash_size = h->complaint_size = 0;
}

struct http *http_free(struct http *h) {
        if (!h)
                return NULL;
        if (h->easy)
                http_drop(h);
        if (h->multi)
                (void)h->curl->multi_cleanup(h->multi);
        if (h->easy)
                h->curl->easy_cleanup(h->easy);
        if (h->headers)
                h->curl->slist_free_all(h->headers);
        free(h->user);
        free(h->stash);
        free(h);
        return NULL;
}

/* Runs the transfer until something has come (a body has begun, bytes are there) or it is over. */
static int step_transfer(struct http *h, const char *path, bool (*enough)(const struct http *h),
                         char error[static READ_ERROR_MAX]) {
        h->activity = now_boot();
        while (!enough(h) && !h->over) {
                int running, left;
                CURLMsg *m;

                if (cancelled(h))
                        return -ECANCELED;
                if (h->curl->multi_perform(h->multi, &running) != CURLM_OK) {
                        snprintf(error, READ_ERROR_MAX, "%.350s: libcurl gave up", path);
                        return -EIO;
                }
                while ((m = h->curl->multi_info_read(h->multi, &left)))
                        if (m->msg == CURLMSG_DONE) {
                                h->over = true;
                                h->result = m->data.result;
                        }
                if (enough(h) || h->over)
                        break;
                if (now_boot() >= h->activity + h->silence_usec) {
                        snprintf(error, READ_ERROR_MAX, "%.350s: nothing came for %llu s", path,
                                 (unsigned long long)(h->silence_usec / USEC_PER_SEC));
                        return -ETIMEDOUT;
                }
                (void)h->curl->multi_poll(h->multi, NULL, 0, STEP_MS, NULL);
        }
        return 0;
}

/* What the end of a transfer means. */
static int judge_answer(struct http *h, const char *path, char error[static READ_ERROR_MAX]) {
        if (!h->over || h->result == CURLE_OK || (!success(h) && h->result == CURLE_WRITE_ERROR))
                return 0;
        snprintf(error, READ_ERROR_MAX, "%.350s: %.150s", path,
                 h->trouble[0] ? h->trouble : h->curl->easy_strerror(h->result));
        switch (h->result) {
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_CONNECT:
        case CURLE_GOT_NOTHING:
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_PARTIAL_FILE:
        case CURLE_SSL_CONNECT_ERROR:
                return -EAGAIN;
        case CURLE_OPERATION_TIMEDOUT:
                return -ETIMEDOUT;
        default:
                return -EIO;
        }
}

static bool has_begun(const struct http *h) {
        return h->begun;
}

static bool has_bytes(const struct http *h) {
        return h->got > 0;
}

static const char *phrase(long status) {
        switch (status) {
        case 401:
                return " Unauthorized";
        case 403:
                return " Forbidden";
        case 404:
                return " Not Found";
        case 410:
                return " Gone";
        case 416:
                return " Range Not Satisfiable";
        case 429:
                return " Too Many Requests";
        case 500:
                return " Internal Server Error";
        case 502:
                return " Bad Gateway";
        case 503:
                return " Service Unavailable";
        case 504:
                return " Gateway Timeout";
        default:
                return "";
        }
}

int http_unwanted(struct http *h, const struct http_request *q, char error[static READ_ERROR_MAX]) {
        char code[HDFS_ERROR_MAX] = "";

        h->complaint[h->complaint_size] = 0;
        if (h->source->kind == SOURCE_S3)
                s3_error_code(h->complaint, code, sizeof(code));
        else if (h->source->kind == SOURCE_HDFS)
                hdfs_error(h->complaint, h->complaint_size, code);
        snprintf(error, READ_ERROR_MAX, "%.350s: the server answers %ld%s%s%s", q->path, h->answer.status,
                 phrase(h->answer.status), *code ? ": " : "", code);
        return h->answer.status == 404 || h->answer.status == 410 ? -ENOENT : -EIO;
}

/* The range is part of the address there. */
static int make_hdfs_url(const struct http *h, const struct http_request *q, char **ret) {
        char open[96];

        if (q->last == TASK_TO_END)
                snprintf(open, sizeof(open), "op=OPEN&offset=%llu", (unsigned long long)q->first);
        else
                snprintf(open, sizeof(open), "op=OPEN&offset=%llu&length=%llu", (unsigned long long)q->first,
                         (unsigned long long)(q->last - q->first));
        return hdfs_url(h->source, h->endpoint, h->user, q->path, q->query ? q->query : open, ret);
}

static int prepare_transfer(struct http *h, const struct http_request *q) {
        bool hdfs = h->source->kind == SOURCE_HDFS;
        _cleanup_free_ char *url = NULL;
        char range[48];
        int r = 0;

        if (h->source->kind == SOURCE_S3)
                r = s3_url(h->source, q->path, q->query, &url);
        else if (hdfs)
                r = make_hdfs_url(h, q, &url);
        if (r < 0)
                return r;
        SET(CURLOPT_URL, url ? url : q->path);
        SET(CURLOPT_REDIR_PROTOCOLS_STR,
            strncasecmp(url ? url : q->path, "https:", 6) == 0 ? "https" : "http,https");
        /* In this order: the one resets the other. */
        SET(CURLOPT_HTTPGET, 1l);
        SET(CURLOPT_NOBODY, q->method == HTTP_HEAD ? 1l : 0l);
        if (q->last == TASK_TO_END)
                snprintf(range, sizeof(range), "%llu-", (unsigned long long)q->first);
        else
                snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)q->first,
                         (unsigned long long)q->last - 1);
        SET(CURLOPT_RANGE, !hdfs && (q->first > 0 || q->last != TASK_TO_END) ? range : NULL);
        return 0;
}

/* A namenode that is not the active one says so with a status that is final elsewhere. */
static bool says_later(const struct http *h) {
        char what[HDFS_ERROR_MAX];

        if (h->source->kind == SOURCE_HDFS && h->complaint_size > 0) {
                hdfs_error(h->complaint, h->complaint_size, what);
                if (hdfs_error_is_standby(what))
                        return true;
        }
        return h->answer.status == 429 ||
               (h->answer.status >= 500 && h->answer.status <= 504 && h->answer.status != 501);
}

static void try_another_namenode(struct http *h) {
        if (h->source->kind == SOURCE_HDFS)
                h->endpoint = (h->endpoint + 1) % hdfs_endpoints(h->source);
}

int http_ask(struct http *h, const struct http_request *q, struct http_answer *ret,
             char error[static READ_ERROR_MAX]) {
        int r;

        http_drop(h);
        h->path = q->path;
        h->answer = (struct http_answer){ .length = TASK_UNKNOWN, .total = TASK_UNKNOWN };
        h->trouble[0] = 0;
        h->buf = NULL;
        h->room = h->got = 0;
        r = prepare_transfer(h, q);
        if (r < 0) {
                snprintf(error, READ_ERROR_MAX, "%.350s: cannot be asked for: %s", q->path, strerror(-r));
                return r;
        }
        if (h->curl->multi_add_handle(h->multi, h->easy) != CURLM_OK)
                return -ENOMEM;
        h->added = true;
        r = step_transfer(h, q->path, has_begun, error);
        if (r >= 0)
                r = judge_answer(h, q->path, error);
        if (r >= 0 && says_later(h)) {
                (void)http_unwanted(h, q, error);
                r = -EAGAIN;
        }
        if (r == -EAGAIN)
                try_another_namenode(h);
        if (r < 0)
                return r;
        if (h->source->kind == SOURCE_HDFS) /* the range was part of the address: 200 is the answer to it */
                h->answer.first = q->first;
        else if (h->answer.status == 200)
                h->answer.total = h->answer.length;
        *ret = h->answer;
        return 0;
}

ssize_t http_read(struct http *h, uint8_t *buf, size_t size, char error[static READ_ERROR_MAX]) {
        int r;

        if (h->stash_size > 0) {
                size_t n = MIN(size, h->stash_size);

                memcpy(buf, h->stash + h->stash_at, n);
                h->stash_at += n;
                h->stash_size -= n;
                return (ssize_t)n;
        }
        if (!h->added || !success(h))
                return 0;
        h->buf = buf;
        h->room = size;
        h->got = 0;
        if (h->paused && !h->over) {
                h->paused = false;
                (void)h->curl->easy_pause(h->easy, CURLPAUSE_CONT); /* may hand out bytes at once */
        }
        r = step_transfer(h, h->path, has_bytes, error);
        h->room = 0;
        if (h->got > 0)
                return (ssize_t)h->got;
        return r < 0 ? r : judge_answer(h, h->path, error);
}

static int sleep_for(struct http *h, uint64_t usec) {
        uint64_t until = now_boot() + usec, now;

        while ((now = now_boot()) < until) {
                if (cancelled(h))
                        return -ECANCELED;
                (void)usleep((useconds_t)MIN(until - now, (uint64_t)STEP_MS * USEC_PER_MSEC));
        }
        return 0;
}

int http_retry(struct http *h, int r, unsigned *failures, char error[static READ_ERROR_MAX]) {
        uint64_t wait = BACKOFF_MIN << *failures;
        size_t n = strlen(error);

        if (r != -EAGAIN)
                return r;
        wait = MAX(wait, h->answer.retry_usec);
        http_drop(h);
        if (++*failures >= HTTP_TRIES) {
                snprintf(error + n, READ_ERROR_MAX - n, " (tried %u times)", HTTP_TRIES);
                return -EIO;
        }
        return sleep_for(h, wait);
}
