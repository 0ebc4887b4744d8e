/* SPDX-License-Identifier: Apache-2.0 */
/* WebHDFS's addresses and answers. */
#include "executor/read/hdfs.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "executor/read/s3.h"
#include "lib/base/cleanup.h"
#include "lib/base/utf8.h"

/* ---- addresses ---- */

static const char *skip_commas(const char *s) {
        return s + strspn(s, ",");
}

unsigned hdfs_endpoints(const struct input_source *source) {
        const char *s = source->hdfs_endpoint ? skip_commas(source->hdfs_endpoint) : "";
        unsigned n = 0;

        for (; *s && n < INPUT_ENDPOINTS_MAX; s = skip_commas(s)) {
                s += strcspn(s, ",");
                n++;
        }
        return n > 0 ? n : 1;
}

/* Without a slash at its end. */
static char *endpoint_of(const struct input_source *source, unsigned n, const char *host, size_t host_size) {
        const char *s = source->hdfs_endpoint ? skip_commas(source->hdfs_endpoint) : "";
        char *endpoint;
        size_t size;

        if (!*s) {
                const char *port = memchr(host, ':', host_size);

                size = port ? (size_t)(port - host) : host_size;
                return asprintf(&endpoint, "http://%.*s:%u", (int)size, host, HDFS_PORT) < 0 ? NULL
                                                                                             : endpoint;
        }
        for (; n > 0; n--)
                s = skip_commas(s + strcspn(s, ","));
        for (size = strcspn(s, ","); size > 0 && s[size - 1] == '/';)
                size--;
        return strndup(s, size);
}

char *hdfs_user(const struct input_source *source) {
        const char *name = source->hdfs_user ?: getenv("HADOOP_USER_NAME");
        struct passwd pw, *found = NULL;
        char buf[4096], number[16];

        if (!name || !*name) {
                (void)getpwuid_r(getuid(), &pw, buf, sizeof(buf), &found);
                snprintf(number, sizeof(number), "%u", (unsigned)getuid());
                name = found ? found->pw_name : number;
        }
        return s3_encode(name, false);
}

int hdfs_url(const struct input_source *source, unsigned endpoint, const char *user, const char *path,
             const char *query, char **ret) {
        _cleanup_free_ char *encoded = NULL, *base = NULL;
        const char *host = path + strlen(HDFS_SCHEME);
        size_t n;

        if (strncmp(path, HDFS_SCHEME, strlen(HDFS_SCHEME)) != 0 || host[n = strcspn(host, "/")] != '/' ||
            (n == 0 && !source->hdfs_endpoint))
                return -EINVAL;
        encoded = s3_encode(host + n, true);
        base = endpoint_of(source, endpoint, host, n);
        if (!encoded || !base)
                return -ENOMEM;
        if (asprintf(ret, "%s/webhdfs/v1%s?%s&user.name=%s", base, encoded, query, user) < 0)
                return -ENOMEM;
        return 0;
}

/* ---- answers ---- */

static void json_free(json_t **j) {
        json_decref(*j);
}

static json_t *parse_json(const char *json, size_t size) {
        json_error_t e;

        return json_loadb(json, size, JSON_REJECT_DUPLICATES, &e);
}

/* A number from 0 on. */
static bool number_of(json_t *object, const char *key, uint64_t max, uint64_t *ret) {
        json_t *value = json_object_get(object, key);
        json_int_t n = json_integer_value(value);

        if (!json_is_integer(value) || n < 0 || (uint64_t)n > max)
                return false;
        *ret = (uint64_t)n;
        return true;
}

static bool name_valid(const char *name, size_t size) {
        return size == strlen(name) && size <= 4095 && !strchr(name, '/') && strcmp(name, ".") != 0 &&
               strcmp(name, "..") != 0;
}

static int status_of(json_t *object, struct hdfs_status *ret) {
        json_t *suffix = json_object_get(object, "pathSuffix"), *type = json_object_get(object, "type");
        const char *kind = json_string_value(type);
        struct hdfs_status s = { .name = json_string_value(suffix) };
        uint64_t msec;

        if (!s.name || !name_valid(s.name, json_string_length(suffix)) || !kind ||
            !number_of(object, "length", INT64_MAX, &s.size) ||
            !number_of(object, "modificationTime", UINT64_MAX / 1000000, &msec))
                return -EBADMSG;
        (void)number_of(object, "fileId", UINT64_MAX, &s.id);
        s.directory = strcmp(kind, "DIRECTORY") == 0;
        s.file = strcmp(kind, "FILE") == 0;
        s.mtime_nsec = msec * 1000000;
        *ret = s;
        return 0;
}

int hdfs_status_read(const char *json, size_t size, struct hdfs_status *ret) {
        _cleanup_(json_free) json_t *root = parse_json(json, size);
        int r = status_of(json_object_get(root, "FileStatus"), ret);

        ret->name = "";
        return r;
}

int hdfs_list_read(const char *json, size_t size, hdfs_on_status on_status, void *userdata, char **ret_last,
                   bool *ret_more) {
        _cleanup_(json_free) json_t *root = parse_json(json, size);
        json_t *listing = json_object_get(root, "DirectoryListing"),
               *list = json_object_get(
                       json_object_get(json_object_get(listing, "partialListing"), "FileStatuses"),
                       "FileStatus"),
               *item;
        const char *last = NULL;
        uint64_t rest;
        size_t i;

        *ret_last = NULL;
        if (!json_is_array(list) || !number_of(listing, "remainingEntries", INT64_MAX, &rest))
                return -EBADMSG;
        json_array_foreach (list, i, item) {
                struct hdfs_status s;
                int r = status_of(item, &s);

                if (r >= 0 && !*s.name) /* a file says so of itself */
                        return -EBADMSG;
                r = r < 0 ? r : on_status(userdata, &s);
                if (r < 0)
                        return r;
                last = s.name;
        }
        *ret_more = rest > 0;
        /* Else the same page would be asked for for ever. */
        if (rest > 0 && !last)
                return -EBADMSG;
        *ret_last = last ? strdup(last) : NULL;
        return last && !*ret_last ? -ENOMEM : 0;
}

void hdfs_error(const char *json, size_t size, char buf[static HDFS_ERROR_MAX]) {
        _cleanup_(json_free) json_t *root = parse_json(json, size);
        json_t *exception = json_object_get(root, "RemoteException");
        const char *name = json_string_value(json_object_get(exception, "exception")),
                   *message = json_string_value(json_object_get(exception, "message"));
        char text[HDFS_ERROR_MAX];

        snprintf(text, sizeof(text), "%.40s%s%.80s", name ?: "", name && message ? ": " : "", message ?: "");
        /* A stack trace may follow. */
        text[strcspn(text, "\r\n")] = 0;
        (void)utf8_clean(text, strlen(text), buf, HDFS_ERROR_MAX);
        for (char *c = buf; *c; c++)
                if (iscntrl((unsigned char)*c))
                        *c = '?';
}

bool hdfs_error_is_standby(const char *error) {
        return strncmp(error, "StandbyException", strlen("StandbyException")) == 0;
}
