/* SPDX-License-Identifier: Apache-2.0 */
/* WebHDFS's addresses, and its answers whatever is in them. */
#include "executor/read/hdfs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/json.h"

static void check_url(const struct input_source *s, unsigned endpoint, const char *path,
                      const char *expected) {
        _cleanup_free_ char *url = NULL, *user = hdfs_user(s);

        assert_non_null(user);
        assert_int_equal(hdfs_url(s, endpoint, user, path, "op=OPEN", &url), 0);
        assert_string_equal(url, expected);
}

static void test_url(void **state) {
        struct input_source s = { .hdfs_user = (char *)"a b&c" };
        char *url;

        /* The port of an hdfs:// address is another protocol's. */
        check_url(&s, 0, "hdfs://nn/a b/c?d",
                  "http://nn:9870/webhdfs/v1/a%20b/c%3Fd?op=OPEN&user.name=a%20b%26c");
        check_url(&s, 0, "hdfs://nn:8020/", "http://nn:9870/webhdfs/v1/?op=OPEN&user.name=a%20b%26c");
        assert_int_equal(hdfs_endpoints(&s), 1);
        s.hdfs_endpoint = (char *)"https://a:9871/,http://b:14000/gateway/";
        assert_int_equal(hdfs_endpoints(&s), 2);
        s.hdfs_user = NULL;
        setenv("HADOOP_USER_NAME", "eve", 1);
        check_url(&s, 0, "hdfs:///x", "https://a:9871/webhdfs/v1/x?op=OPEN&user.name=eve");
        check_url(&s, 1, "hdfs://cluster/x", "http://b:14000/gateway/webhdfs/v1/x?op=OPEN&user.name=eve");
        unsetenv("HADOOP_USER_NAME");
        if (getuid() == 0)
                check_url(&s, 0, "hdfs:///x", "https://a:9871/webhdfs/v1/x?op=OPEN&user.name=root");
        assert_int_equal(hdfs_url(&s, 0, "eve", "hdfs://nn", "op=OPEN", &url), -EINVAL);
        assert_int_equal(hdfs_url(&s, 0, "eve", "http://nn/x", "op=OPEN", &url), -EINVAL);
        s.hdfs_endpoint = NULL;
        assert_int_equal(hdfs_url(&s, 0, "eve", "hdfs:///x", "op=OPEN", &url), -EINVAL);
}

static char got[1024];

static int on_status(void *userdata, const struct hdfs_status *s) {
        size_t n = strlen(got);

        snprintf(got + n, sizeof(got) - n, "%s%s=%llu ", s->name,
                 s->directory ? "/"
                 : s->file    ? ""
                              : "@",
                 (unsigned long long)s->size);
        return strcmp(s->name, "stop") == 0 ? -ECANCELED : 0;
}

#define FILE_(name, type, size)                                                                              \
        "{'pathSuffix': '" name "', 'type': '" type "', 'length': " size                                     \
        ", 'modificationTime': 1795669200123}"
#define PAGE(list, rest)                                                                                     \
        "{'DirectoryListing': {'partialListing': {'FileStatuses': {'FileStatus': [" list "]}}, "             \
        "'remainingEntries': " rest "}}"

static int read_list(const char *quoted, char **ret_last, bool *ret_more) {
        const char *json = json_text(quoted);

        got[0] = 0;
        return hdfs_list_read(json, strlen(json), on_status, NULL, ret_last, ret_more);
}

static void test_list(void **state) {
        char *last;
        bool more;

        assert_int_equal(read_list(PAGE(FILE_("a", "FILE", "7") ", " FILE_("b", "DIRECTORY", "0") ", " FILE_(
                                                "c", "SYMLINK", "0"),
                                        "5"),
                                   &last, &more),
                         0);
        assert_string_equal(got, "a=7 b/=0 c@=0 ");
        assert_string_equal(last, "c");
        assert_true(more);
        free(last);
        assert_int_equal(read_list(PAGE("", "0"), &last, &more), 0);
        assert_null(last);
        assert_false(more);
        assert_int_equal(read_list(PAGE(FILE_("stop", "FILE", "7"), "0"), &last, &more), -ECANCELED);
        assert_null(last);
}

static void test_bad_list(void **state) {
        static const char *const table[] = {
                "",
                "[]",
                "{}",
                "{'DirectoryListing': {}}",
                PAGE("", "1"), /* it would be asked for for ever */
                PAGE("", "-1"),
                PAGE("7", "0"),
                PAGE(FILE_("", "FILE", "7"), "0"),
                PAGE(FILE_("..", "FILE", "7"), "0"),
                PAGE(FILE_("a/b", "FILE", "7"), "0"),
                PAGE(FILE_("a\\u0000b", "FILE", "7"), "0"),
                PAGE(FILE_("a", "FILE", "-7"), "0"),
                PAGE(FILE_("a", "FILE", "1.5"), "0"),
                PAGE("{'pathSuffix': 'a', 'length': 1, 'modificationTime': 1}", "0"),
                PAGE("{'pathSuffix': 'a', 'type': 'FILE', 'length': 1, 'modificationTime': "
                     "9223372036854775807}",
                     "0"),
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                char *last;
                bool more;

                if (read_list(table[i], &last, &more) != -EBADMSG || last)
                        fail_msg("%s", table[i]);
        }
}

static void test_status(void **state) {
        const char *json = json_text("{'FileStatus': {'pathSuffix': '', 'type': 'FILE', 'length': 7, "
                                     "'modificationTime': 1795669200123, 'fileId': 16386}}");
        struct hdfs_status s;

        assert_int_equal(hdfs_status_read(json, strlen(json), &s), 0);
        assert_true(s.file && !s.directory);
        assert_int_equal(s.size, 7);
        assert_int_equal(s.mtime_nsec, UINT64_C(1795669200123000000));
        assert_int_equal(s.id, 16386);
        assert_int_equal(hdfs_status_read("{}", 2, &s), -EBADMSG);
        assert_int_equal(hdfs_status_read("", 0, &s), -EBADMSG);
}

static void test_error(void **state) {
        char buf[HDFS_ERROR_MAX];
        const char *json = json_text("{'RemoteException': {'exception': 'StandbyException', 'message': "
                                     "'not here\\n\\tat org.apache'}}");

        hdfs_error(json, strlen(json), buf);
        assert_string_equal(buf, "StandbyException: not here");
        assert_true(hdfs_error_is_standby(buf));
        json = json_text("{'RemoteException': {'message': 'a\\u001bb'}}");
        hdfs_error(json, strlen(json), buf);
        assert_string_equal(buf, "a?b");
        hdfs_error("<html>", 6, buf);
        assert_string_equal(buf, "");
        hdfs_error("", 0, buf);
        assert_string_equal(buf, "");
        assert_false(hdfs_error_is_standby(buf));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_url), cmocka_unit_test(test_list),
                                            cmocka_unit_test(test_bad_list), cmocka_unit_test(test_status),
                                            cmocka_unit_test(test_error) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
