/* SPDX-License-Identifier: Apache-2.0 */
/* Objects on servers, good and bad ones, against a real server (httpd.py); $PRIMUS_TEST_HTTPD names it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "executor/read/http.h"
#include "executor/read/stream.h"
#include "executor/scan/scan.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define LINE 14u /* "line 00000000\n" */

struct server {
        pid_t pid;
        int keep; /* closed: it ends */
        unsigned port;
};

static struct server plain, tls;
static char directory[64];

static int server_start(struct server *s, const char *certificate, const char *key) {
        const char *program = getenv("PRIMUS_TEST_HTTPD");
        const char *argv[] = { "python3", program, certificate ? "--tls" : NULL, certificate, key, NULL };
        int in[2], out[2];
        char line[16] = "";

        if (!program || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
                return -1;
        s->pid = fork();
        if (s->pid == 0) {
                dup2(in[0], 0);
                dup2(out[1], 1);
                execv("/usr/bin/python3", (char **)argv);
                _exit(127);
        }
        close(in[0]);
        close(out[1]);
        s->keep = in[1];
        if (read(out[0], line, sizeof(line) - 1) <= 0)
                return -1;
        close(out[0]);
        s->port = (unsigned)strtoul(line, NULL, 10);
        return s->port > 0 ? 0 : -1;
}

static void server_stop(struct server *s) {
        if (s->pid <= 0)
                return;
        close(s->keep);
        waitpid(s->pid, NULL, 0);
        s->pid = 0;
}

static int setup(void **state) {
        setenv("PRIMUS_HTTP_TIMEOUT", "1", 1);
        setenv("no_proxy", "*", 1);
        unsetenv("CURL_CA_BUNDLE");
        unsetenv("SSL_CERT_FILE");
        unsetenv("AWS_SESSION_TOKEN");
        return server_start(&plain, NULL, NULL);
}

static int teardown(void **state) {
        server_stop(&plain);
        server_stop(&tls);
        return 0;
}

/* ---- reading ---- */

struct one {
        struct input_source source;
        struct task_grant task;
        struct reader_request request;
        struct stream *stream;
        char path[256], error[READ_ERROR_MAX];
        atomic_bool cancel;
};

static void one_open(struct one *o, const char *mode, unsigned n_lines, uint64_t start, uint64_t end) {
        char *none[] = { NULL };

        *o = (struct one){ .source = {
                                   .name = (char *)"web", .kind = SOURCE_HTTP, .success_markers = none } };
        snprintf(o->path, sizeof(o->path), "http://127.0.0.1:%u/%s/lines-%u", plain.port, mode, n_lines);
        o->task = (struct task_grant){
                .task = 1, .start = start, .offset = start, .end = end, .size = TASK_UNKNOWN, .path = o->path
        };
        o->request = (struct reader_request){ .source = &o->source, .task = &o->task, .cancel = &o->cancel };
        assert_int_equal(stream_open_http(&o->request, &o->stream, o->error), 0);
}

static void one_close(struct one *o) {
        o->stream->ops->close(o->stream);
}

/* Reads n bytes, or to the end, from position on, and compares them with what they have to be. How many. */
static int64_t read_lines(struct one *o, uint64_t position, uint64_t n) {
        uint8_t buf[10000];
        uint64_t at = position;

        while (at - position < n) {
                ssize_t l = o->stream->ops->read(o->stream, buf,
                                                 (size_t)MIN(n - (at - position), sizeof(buf)), o->error);

                if (l < 0)
                        return l;
                if (l == 0)
                        break;
                for (ssize_t i = 0; i < l; i++, at++) {
                        char line[LINE + 1];

                        snprintf(line, sizeof(line), "line %08u\n", (unsigned)(at / LINE));
                        if (line[at % LINE] != (char)buf[i])
                                fail_msg("byte %llu of %s is wrong", (unsigned long long)at, o->path);
                }
        }
        return (int64_t)(at - position);
}

static void check_all(const char *mode, unsigned n_lines, uint64_t end) {
        struct one o;

        one_open(&o, mode, n_lines, 0, end);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), n_lines * LINE);
        assert_int_equal(o.stream->ops->check(o.stream, o.error), 0);
        one_close(&o);
}

static void check_fails(const char *mode, int r, const char *why) {
        struct one o;
        int64_t got;

        one_open(&o, mode, 100000, 0, TASK_TO_END);
        got = read_lines(&o, 0, UINT64_MAX);
        if (got != r || !strstr(o.error, why) || strncmp(o.error, o.path, strlen(o.path)) != 0)
                fail_msg("%s: %lld, %s", mode, (long long)got, o.error);
        one_close(&o);
}

static void test_whole(void **state) {
        check_all("plain", 0, TASK_TO_END);
        check_all("plain", 100000, TASK_TO_END);
        check_all("plain", 100000, 100000 * LINE);
        check_all("plain", 100000, 50000);
        check_all("noranges", 100000, TASK_TO_END);
        check_all("noranges", 100000, 50000);
        check_all("nolength", 100000, TASK_TO_END);
        check_all("nohead", 1000, TASK_TO_END);
        check_all("redirect", 1000, TASK_TO_END);
        check_all("reset", 100000, TASK_TO_END);
        check_all("busy", 1000, TASK_TO_END);
}

static void test_faults(void **state) {
        uint64_t before = now_boot();

        check_fails("hang", -ETIMEDOUT, ": nothing came for 1 s");
        check_fails("mute", -ETIMEDOUT, ": nothing came for 1 s");
        check_fails("forbidden", -EIO, ": the server answers 403 Forbidden");
        assert_true(now_boot() - before < 60 * USEC_PER_SEC);
}

static void test_gone(void **state) {
        struct one o;

        one_open(&o, "plain", 1, 0, TASK_TO_END);
        snprintf(o.path, sizeof(o.path), "http://127.0.0.1:%u/nothing", plain.port);
        assert_int_equal(read_lines(&o, 0, 1), -ENOENT);
        assert_non_null(strstr(o.error, "404 Not Found"));
        one_close(&o);
        /* Nobody listens. */
        one_open(&o, "plain", 1, 0, TASK_TO_END);
        snprintf(o.path, sizeof(o.path), "http://127.0.0.1:1/x");
        assert_int_equal(read_lines(&o, 0, 1), -EIO);
        assert_non_null(strstr(o.error, "(tried 5 times)"));
        one_close(&o);
}

static void test_down(void **state) {
        check_fails("down", -EIO, ": the server answers 503 Service Unavailable (tried 5 times)");
        check_fails("cut", -EIO, "(tried 5 times)");
}

static void test_ranges(void **state) {
        const uint64_t total = 100000 * LINE;
        struct one o;
        uint8_t byte;

        one_open(&o, "plain", 100000, 700, 1400);
        assert_int_equal(o.stream->ops->seek(o.stream, 699, o.error), 0);
        assert_int_equal(read_lines(&o, 699, 1000), 1000); /* over the end */
        assert_int_equal(o.stream->ops->read_at(o.stream, &byte, 1, total - 1, o.error), 1);
        assert_int_equal(byte, '\n');
        assert_int_equal(o.stream->ops->read_at(o.stream, &byte, 1, total, o.error), 0);
        assert_int_equal(read_lines(&o, 1699, 200000), 200000);
        assert_int_equal(o.stream->ops->seek(o.stream, total - 5, o.error), 0);
        assert_int_equal(read_lines(&o, total - 5, 100), 5);
        assert_int_equal(o.stream->size, total);
        one_close(&o);
        /* A server that ignores them: forward from the start of the object is all that goes. */
        one_open(&o, "noranges", 100000, 0, TASK_TO_END);
        assert_int_equal(o.stream->ops->seek(o.stream, 123456, o.error), 0);
        assert_int_equal(read_lines(&o, 123456, 1000), 1000);
        one_close(&o);
        one_open(&o, "noranges", 100000, 700, TASK_TO_END);
        assert_int_equal(o.stream->ops->seek(o.stream, 700, o.error), 0);
        assert_int_equal(read_lines(&o, 700, 1000), -EOPNOTSUPP);
        assert_non_null(strstr(o.error, "does not serve ranges: set split to 0"));
        one_close(&o);
        one_open(&o, "wrong", 1000, 700, TASK_TO_END);
        assert_int_equal(o.stream->ops->seek(o.stream, 700, o.error), 0);
        assert_int_equal(read_lines(&o, 700, 1000), -EPROTO);
        one_close(&o);
}

static void test_changes(void **state) {
        struct one o;

        one_open(&o, "changes", 100000, 0, 1000);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), -ESTALE); /* the second request */
        assert_non_null(strstr(o.error, "changed while it was read"));
        one_close(&o);
        one_open(&o, "changes", 10, 0, TASK_TO_END);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), 10 * LINE);
        assert_int_equal(o.stream->ops->check(o.stream, o.error), -ESTALE);
        one_close(&o);
        one_open(&o, "plain", 10, 0, TASK_TO_END);
        o.stream->ops->close(o.stream);
        o.task.inode = 12345;
        assert_int_equal(stream_open_http(&o.request, &o.stream, o.error), 0);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), -ESTALE);
        assert_non_null(strstr(o.error, "changed since it was scanned"));
        one_close(&o);
}

static void *cancel_later(void *userdata) {
        usleep(300000);
        atomic_store((atomic_bool *)userdata, true);
        return NULL;
}

static void test_cancel(void **state) {
        uint64_t before;
        pthread_t thread;
        struct one o;

        setenv("PRIMUS_HTTP_TIMEOUT", "30", 1);
        one_open(&o, "mute", 10, 0, TASK_TO_END);
        setenv("PRIMUS_HTTP_TIMEOUT", "1", 1);
        before = now_boot();
        assert_int_equal(pthread_create(&thread, NULL, cancel_later, &o.cancel), 0);
        assert_int_equal(read_lines(&o, 0, 1), -ECANCELED);
        assert_true(now_boot() - before < 2 * USEC_PER_SEC);
        pthread_join(thread, NULL);
        one_close(&o);
}

static void test_tls(void **state) {
        char certificate[96], key[96], command[512];
        struct one o;

        strcpy(directory, "/tmp/primus-http-XXXXXX");
        assert_non_null(mkdtemp(directory));
        snprintf(certificate, sizeof(certificate), "%s/cert.pem", directory);
        snprintf(key, sizeof(key), "%s/key.pem", directory);
        snprintf(command, sizeof(command),
                 "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost "
                 "-addext "
                 "subjectAltName=DNS:localhost,IP:127.0.0.1 -days 2 -keyout %s -out %s 2>/dev/null",
                 key, certificate);
        if (system(command) != 0)
                skip();
        assert_int_equal(server_start(&tls, certificate, key), 0);
        one_open(&o, "plain", 1000, 0, TASK_TO_END);
        snprintf(o.path, sizeof(o.path), "https://127.0.0.1:%u/plain/lines-1000", tls.port);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), -EIO); /* signed by nobody that we know */
        assert_non_null(strstr(o.error, "certificate"));
        one_close(&o);
        setenv("SSL_CERT_FILE", certificate, 1);
        one_open(&o, "plain", 1000, 0, TASK_TO_END);
        snprintf(o.path, sizeof(o.path), "https://127.0.0.1:%u/plain/lines-1000", tls.port);
        if (read_lines(&o, 0, UINT64_MAX) != 1000 * LINE)
                fail_msg("%s", o.error);
        one_close(&o);
        unsetenv("SSL_CERT_FILE");
        unlink(certificate);
        unlink(key);
        rmdir(directory);
}

/* ---- listing ---- */

struct collected {
        struct scan_sink sink;
        char got[4096];
        unsigned n, n_waits;
        uint64_t bytes;
        char last[512];
};

static int on_entry(struct scan_sink *s, const struct scan_entry *e) {
        struct collected *c = (struct collected *)s;

        c->n++;
        snprintf(c->last, sizeof(c->last), "%s", e->path);
        if (e->size != TASK_UNKNOWN)
                c->bytes += e->size;
        if (c->n < 20)
                snprintf(c->got + strlen(c->got), sizeof(c->got) - strlen(c->got), "%s%s=%lld",
                         c->n > 1 ? " " : "", strrchr(e->path, '/') + 1,
                         e->size == TASK_UNKNOWN ? -1LL : (long long)e->size);
        assert_int_equal(e->last, e->size);
        return 0;
}

static int on_passed(struct scan_sink *s, uint64_t batch) {
        return 0;
}

static int on_wait(struct scan_sink *s, const char *waiting_for, uint64_t usec) {
        struct collected *c = (struct collected *)s;

        snprintf(c->last, sizeof(c->last), "%s", waiting_for);
        return ++c->n_waits > 5 ? -ECANCELED : 0;
}

static int list(struct collected *c, struct input_source *source, const char *after, char **ret_error) {
        static char *none[] = { NULL };
        struct scan_request q = { .source = source, .after = after };

        *c = (struct collected){ .sink = { on_entry, on_passed, on_wait } };
        source->name = (char *)"web";
        if (!source->success_markers)
                source->success_markers = none;
        return scan_source(&q, &c->sink, ret_error);
}

static void check_http(const char *path, const char *expected) {
        struct input_source source = { .kind = SOURCE_HTTP };
        _cleanup_free_ char *error = NULL;
        struct collected c;
        char url[256];
        int r;

        snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s", plain.port, path);
        source.path_pattern = url;
        r = list(&c, &source, NULL, &error);
        if (r < 0)
                snprintf(c.got, sizeof(c.got), "%s", error ? error : "?");
        if (r < 0 ? !strstr(c.got, expected) : strcmp(c.got, expected) != 0)
                fail_msg("%s: %s", path, c.got);
}

static void test_list(void **state) {
        check_http("plain/lines-10", "lines-10=140");
        check_http("plain/lines-{08..11}", "lines-08=112 lines-09=126 lines-10=140 lines-11=154");
        check_http("plain/lines-0", "lines-0=0");
        check_http("nohead/lines-10", "lines-10=140");
        check_http("noranges/lines-10", "lines-10=-1");
        check_http("nolength/lines-10", "lines-10=-1");
        check_http("busy/lines-77", "lines-77=1078");
        check_http("plain/nothing", "plain/nothing: No such file or directory");
        check_http("forbidden/lines-1", "the server answers 403 Forbidden");
}

static void test_wait(void **state) {
        struct input_source source = { .kind = SOURCE_HTTP,
                                       .has_range = true,
                                       .from = { 2026, 11, 20, -1 },
                                       .to = { 2026, 11, 20, -1 } };
        _cleanup_free_ char *error = NULL;
        struct collected c;
        char url[256];

        snprintf(url, sizeof(url), "http://127.0.0.1:%u/later/lines-{{MM}}{{DD}}", plain.port);
        source.path_pattern = url;
        assert_int_equal(list(&c, &source, NULL, &error), 0);
        assert_string_equal(c.got, "lines-1120=15680");
        assert_int_equal(c.n_waits, 3);
}

/* ---- S3 ---- */

static struct input_source bucket(char *endpoint, size_t size, const char *pattern) {
        snprintf(endpoint, size, "http://127.0.0.1:%u/", plain.port);
        setenv("AWS_ACCESS_KEY_ID", "AKIDTEST", 1);
        setenv("AWS_SECRET_ACCESS_KEY", "s3/secret+key", 1);
        return (struct input_source){ .kind = SOURCE_S3,
                                      .s3_endpoint = endpoint,
                                      .s3_region = (char *)"eu-test-1",
                                      .path_pattern = (char *)pattern };
}

/* What the source lists, or a part of why it cannot. */
static void check_listing(struct input_source *source, const char *after, const char *expected) {
        _cleanup_free_ char *error = NULL;
        struct collected c;
        int r = list(&c, source, after, &error);

        if (r < 0)
                snprintf(c.got, sizeof(c.got), "%s", error ? error : "?");
        if (r < 0 ? !strstr(c.got, expected) : strcmp(c.got, expected) != 0)
                fail_msg("%s: %s", source->path_pattern, c.got);
}

/* Markers, and hours: the source has hour 5 with _SUCCESS, and is asked for one with _DONE and for hour 6. */
static void check_hours(struct input_source *source, const char *no_marker, const char *no_hour) {
        char *markers[] = { (char *)"_SUCCESS", NULL }, *absent[] = { (char *)"_DONE", NULL };
        _cleanup_free_ char *error = NULL;
        struct collected c;

        source->has_range = true;
        source->from = source->to = (struct time_point){ 2026, 11, 20, 5 };
        source->success_markers = markers;
        assert_int_equal(list(&c, source, NULL, &error), 0);
        assert_int_equal(c.n, 5);
        source->success_markers = absent;
        assert_int_equal(list(&c, source, NULL, &error), -ECANCELED);
        assert_string_equal(c.last, no_marker);
        source->from = source->to = (struct time_point){ 2026, 11, 20, 6 };
        assert_int_equal(list(&c, source, NULL, &error), -ECANCELED);
        assert_string_equal(c.last, no_hour);
}

static void check_s3(const char *pattern, const char *after, const char *expected) {
        char endpoint[64];
        struct input_source source = bucket(endpoint, sizeof(endpoint), pattern);

        check_listing(&source, after, expected);
}

static void test_s3_list(void **state) {
        _cleanup_free_ char *error = NULL;
        struct input_source source;
        struct collected c;
        char endpoint[64];

        check_s3("s3://bucket/single", NULL, "single=42");
        check_s3("s3://bucket/data/2026112005", NULL,
                 "part-0=1400 part-1=1400 part-2=1400 part-3=1400 part-4=1400");
        check_s3("s3://bucket/data/2026112005/", "s3://bucket/data/2026112005/part-2",
                 "part-3=1400 part-4=1400");
        check_s3("s3://bucket/data/*/part-[13]", NULL, "part-1=1400 part-3=1400");
        check_s3("s3://bucket/data/*", NULL,
                 "part-0=1400 part-1=1400 part-2=1400 part-3=1400 part-4=1400 x y+z&ä=98");
        check_s3("s3://bucket/{single,data/2026112005/part-{3..4}}", NULL,
                 "part-3=1400 part-4=1400 single=42");
        check_s3("s3://bucket/{single,data/2026112005/part-{3..4}}", "s3://bucket/data/2026112005/part-4",
                 "single=42");
        check_s3("s3://bucket/nothing", NULL, "nothing");
        check_s3("s3://bucket/sing", NULL, "No such file or directory");
        check_s3("s3://other/x", NULL, "the server answers 404");
        check_s3("s3://b*/x", NULL, "only KEY may be a pattern");
        /* Pages. */
        source = bucket(endpoint, sizeof(endpoint), "s3://bucket/many");
        assert_int_equal(list(&c, &source, NULL, &error), 0);
        assert_int_equal(c.n, 2500);
        assert_int_equal(c.bytes, 2500 * LINE);
        assert_string_equal(c.last, "s3://bucket/many/02499");
        source = bucket(endpoint, sizeof(endpoint), "s3://bucket/data/{{YYYY}}{{MM}}{{DD}}{{HH}}");
        check_hours(&source, "s3://bucket/data/2026112005/_DONE", "s3://bucket/data/2026112006/");
}

static void test_s3_keys(void **state) {
        _cleanup_free_ char *first = NULL, *second = NULL;
        char endpoint[64];
        struct input_source source = bucket(endpoint, sizeof(endpoint), "s3://bucket/single");
        struct collected c;

        setenv("AWS_SESSION_TOKEN", "token/1=", 1);
        check_s3("s3://bucket/single", NULL, "single=42");
        setenv("AWS_SESSION_TOKEN", "another", 1);
        check_s3("s3://bucket/single", NULL, "403 Forbidden: InvalidToken");
        unsetenv("AWS_SESSION_TOKEN");
        setenv("AWS_SECRET_ACCESS_KEY", "wrong", 1);
        assert_true(list(&c, &source, NULL, &first) < 0);
        assert_non_null(strstr(first, "403 Forbidden: SignatureDoesNotMatch"));
        assert_null(strstr(first, "wrong"));
        unsetenv("AWS_ACCESS_KEY_ID");
        assert_true(list(&c, &source, NULL, &second) < 0);
        assert_non_null(strstr(second, "AccessDenied"));
}

static void test_s3_read(void **state) {
        char endpoint[64];
        struct one o;

        one_open(&o, "plain", 1, 0, TASK_TO_END);
        one_close(&o);
        o.source = bucket(endpoint, sizeof(endpoint), "");
        strcpy(o.path, "s3://bucket/data/2026112005/part-3");
        o.task.size = 1400;
        o.task.inode = http_entity("\"s3-1400\"");
        assert_int_equal(stream_open_http(&o.request, &o.stream, o.error), 0);
        assert_int_equal(o.stream->ops->seek(o.stream, 700, o.error), 0);
        assert_int_equal(read_lines(&o, 700, UINT64_MAX), 700);
        assert_int_equal(o.stream->ops->check(o.stream, o.error), 0);
        one_close(&o);
        strcpy(o.path, "s3://bucket/data/other/x y+z&ä");
        o.task.size = 7 * LINE;
        o.task.inode = 0;
        assert_int_equal(stream_open_http(&o.request, &o.stream, o.error), 0);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), 7 * LINE);
        one_close(&o);
}

/* ---- HDFS ---- */

static struct input_source hadoop(char *endpoint, size_t size, const char *pattern) {
        snprintf(endpoint, size, "http://127.0.0.1:%u/", plain.port);
        return (struct input_source){ .kind = SOURCE_HDFS,
                                      .hdfs_endpoint = endpoint,
                                      .hdfs_user = (char *)"ml ops",
                                      .path_pattern = (char *)pattern };
}

static void check_hdfs(const char *pattern, const char *after, const char *expected) {
        char endpoint[64];
        struct input_source source = hadoop(endpoint, sizeof(endpoint), pattern);

        check_listing(&source, after, expected);
}

static void test_hdfs_list(void **state) {
        static const struct {
                const char *pattern, *after, *expected;
        } table[] = {
                { "hdfs://nn/single", NULL, "single=42" },
                { "hdfs:///single", NULL, "single=42" },
                { "hdfs://nn/data/2026112005", NULL,
                  "part-0=1400 part-1=1400 part-2=1400 part-3=1400 part-4=1400" },
                { "hdfs://nn/data/2026112005/", "hdfs://nn/data/2026112005/part-2",
                  "part-3=1400 part-4=1400" },
                { "hdfs://nn/data/*/part-[13]", NULL, "part-1=1400 part-3=1400" },
                { "hdfs://nn/data/202611*/*", NULL,
                  "part-0=1400 part-1=1400 part-2=1400 part-3=1400 part-4=1400 x=2" },
                { "hdfs://nn/d*/o*r/", NULL, "x y+z&ä=98" },
                { "hdfs://nn/{single,data/2026112005/part-{3..4}}", NULL,
                  "single=42 part-3=1400 part-4=1400" },
                { "hdfs://nn/{single,data/2026112005/part-{3..4}}", "hdfs://nn/single",
                  "part-3=1400 part-4=1400" },
                { "hdfs://nn/data/hidden", NULL, "" },
                { "hdfs://nn/empty", NULL, "none=0" },
                { "hdfs://nn/nothing", NULL, "hdfs://nn/nothing: No such file or directory" },
                { "hdfs://nn/single/", NULL, "No such file or directory" },
                { "hdfs://nn/no*thing/x", NULL, "hdfs://nn/no*thing/x: nothing matches it" },
                { "hdfs://n*/x", NULL, "only PATH may be a pattern" },
                { "hdfs://nn/private/one", NULL,
                  "403 Forbidden: AccessControlException: Permission denied: user=ml ops, access=READ" },
        };
        _cleanup_free_ char *error = NULL;
        struct input_source source;
        struct collected c;
        char endpoint[64];

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                check_hdfs(table[i].pattern, table[i].after, table[i].expected);
        /* Pages. */
        source = hadoop(endpoint, sizeof(endpoint), "hdfs://nn/many");
        assert_int_equal(list(&c, &source, NULL, &error), 0);
        assert_int_equal(c.n, 2500);
        assert_int_equal(c.bytes, 2500 * LINE);
        assert_string_equal(c.last, "hdfs://nn/many/02499");
        assert_int_equal(list(&c, &source, "hdfs://nn/many/01499", &error), 0);
        assert_int_equal(c.n, 1000);
        source = hadoop(endpoint, sizeof(endpoint), "hdfs://nn/data/{{YYYY}}{{MM}}{{DD}}{{HH}}");
        check_hours(&source, "hdfs://nn/data/2026112005/_DONE", "hdfs://nn/data/2026112006");
}

/* Of several namenodes the active one is found, whichever that is. */
static void test_hdfs_namenodes(void **state) {
        _cleanup_free_ char *error = NULL;
        char endpoint[160];
        struct input_source source = hadoop(endpoint, sizeof(endpoint), "hdfs://cluster/single");
        struct collected c;

        snprintf(endpoint, sizeof(endpoint),
                 "http://127.0.0.1:%u/standby,http://127.0.0.1:1,http://127.0.0.1:%u", plain.port,
                 plain.port);
        assert_int_equal(list(&c, &source, NULL, &error), 0);
        assert_string_equal(c.got, "single=42");
        snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u/standby", plain.port);
        assert_true(list(&c, &source, NULL, &error) < 0);
        assert_non_null(strstr(error, "403 Forbidden: StandbyException: Operation category READ is not "
                                      "supported in state standby (tried 5 times)"));
}

static void hdfs_open(struct one *o, char *endpoint, size_t endpoint_size, const char *path, uint64_t size) {
        one_open(o, "plain", 1, 0, TASK_TO_END);
        one_close(o);
        o->source = hadoop(endpoint, endpoint_size, "");
        strcpy(o->path, path);
        o->task.size = size;
        assert_int_equal(stream_open_http(&o->request, &o->stream, o->error), 0);
}

static void test_hdfs_read(void **state) {
        char endpoint[64];
        uint8_t buf[100];
        struct one o;

        hdfs_open(&o, endpoint, sizeof(endpoint), "hdfs://nn/data/2026112005/part-3", 1400);
        assert_int_equal(o.stream->ops->seek(o.stream, 700, o.error), 0);
        assert_int_equal(read_lines(&o, 700, UINT64_MAX), 700);
        assert_int_equal(o.stream->ops->read_at(o.stream, buf, 5, 14, o.error), 5);
        assert_memory_equal(buf, "line ", 5);
        assert_int_equal(o.stream->ops->check(o.stream, o.error), 0);
        one_close(&o);
        hdfs_open(&o, endpoint, sizeof(endpoint), "hdfs://nn/data/other/x y+z&ä", 7 * LINE);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), 7 * LINE);
        one_close(&o);
        hdfs_open(&o, endpoint, sizeof(endpoint), "hdfs://nn/empty/none", 0);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), 0);
        one_close(&o);
        /* A part of it, of which half breaks off again and again. */
        hdfs_open(&o, endpoint, sizeof(endpoint), "hdfs://nn/cut", 20000 * LINE);
        o.task.start = o.task.offset = 1000 * LINE;
        o.task.end = 9000 * LINE;
        one_close(&o);
        assert_int_equal(stream_open_http(&o.request, &o.stream, o.error), 0);
        assert_int_equal(o.stream->ops->seek(o.stream, 1000 * LINE, o.error), 0);
        assert_int_equal(read_lines(&o, 1000 * LINE, UINT64_MAX), 19000 * LINE);
        one_close(&o);
}

static void test_hdfs_changes(void **state) {
        char endpoint[64];
        struct one o;

        hdfs_open(&o, endpoint, sizeof(endpoint), "hdfs://nn/changes", 9 * LINE);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), -ESTALE);
        assert_non_null(strstr(o.error, "changed since it was scanned"));
        one_close(&o);
        hdfs_open(&o, endpoint, sizeof(endpoint), "hdfs://nn/changes", 10 * LINE);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), 10 * LINE);
        assert_int_equal(o.stream->ops->check(o.stream, o.error), -ESTALE);
        assert_non_null(strstr(o.error, "changed while it was read"));
        one_close(&o);
        hdfs_open(&o, endpoint, sizeof(endpoint), "hdfs://nn/gone", 10 * LINE);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), -ENOENT);
        assert_non_null(strstr(o.error, "404 Not Found: FileNotFoundException: File does not exist: /gone"));
        one_close(&o);
        hdfs_open(&o, endpoint, sizeof(endpoint), "hdfs://nn/data", 10 * LINE);
        assert_int_equal(read_lines(&o, 0, UINT64_MAX), -EPROTO);
        one_close(&o);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whole),          cmocka_unit_test(test_faults),
                cmocka_unit_test(test_gone),           cmocka_unit_test(test_down),
                cmocka_unit_test(test_ranges),         cmocka_unit_test(test_changes),
                cmocka_unit_test(test_cancel),         cmocka_unit_test(test_tls),
                cmocka_unit_test(test_list),           cmocka_unit_test(test_wait),
                cmocka_unit_test(test_s3_list),        cmocka_unit_test(test_s3_keys),
                cmocka_unit_test(test_s3_read),        cmocka_unit_test(test_hdfs_list),
                cmocka_unit_test(test_hdfs_namenodes), cmocka_unit_test(test_hdfs_read),
                cmocka_unit_test(test_hdfs_changes),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
