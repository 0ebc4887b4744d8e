/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for texts that say where data is; the same invariant as in valid.c. */
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/wire/input.h"
#include "masterd/spec/spec.h"
#include "masterd/spec/valid.h"

static const char *const date_parts[] = { "{{YYYY}}", "{{MM}}", "{{DD}}", "{{HH}}" };

static bool rule(bool holds, const char *why, const char **ret_why) {
        if (!holds)
                *ret_why = why;
        return holds;
}

static bool begins_with(const char *s, const char *with) {
        return strncmp(s, with, strlen(with)) == 0;
}

bool valid_has_date(const char *s) {
        for (size_t i = 0; i < ELEMENTSOF(date_parts); i++)
                if (strstr(s, date_parts[i]))
                        return true;
        return false;
}

static bool dates_good(const char *s, const char **ret_why) {
        for (const char *p = strstr(s, "{{"); p; p = strstr(p + 2, "{{")) {
                bool good = false;
                for (size_t i = 0; i < ELEMENTSOF(date_parts); i++)
                        good |= begins_with(p, date_parts[i]);
                if (!rule(good, "must have only {{YYYY}}, {{MM}}, {{DD}} and {{HH}} in double braces",
                          ret_why))
                        return false;
        }
        return true;
}

static bool has_blank(const char *s) {
        for (; *s; s++)
                if ((unsigned char)*s <= ' ' || *s == 0x7f)
                        return true;
        return false;
}

bool valid_data_path(const char *s, const char **ret_why) {
        const char *scheme = strstr(s, "://"), *host = scheme ? scheme + strlen("://") : s;
        bool http = begins_with(s, "http://") || begins_with(s, "https://"),
             s3 = begins_with(s, "s3://") || begins_with(s, "gs://");

        if (begins_with(s, "file://"))
                return rule(s[7] == '/', "must be an absolute path behind file://, as in file:///data",
                            ret_why) &&
                       dates_good(s, ret_why);
        if (begins_with(s, "hdfs://"))
                return rule(strchr(host, '/') && !has_blank(s),
                            "must be hdfs://NAMENODE/PATH, without blanks", ret_why) &&
                       rule(!memchr(host, '@', strcspn(host, "/")), "must not have a user: say hdfs.user",
                            ret_why) &&
                       dates_good(s, ret_why);
        if (http || s3) {
                size_t n = strcspn(host, "/");
                return rule(n > 0 && !has_blank(s),
                            http ? "must be a URL of a host and a path, without blanks (write %20)"
                                 : "must be s3://BUCKET/KEY or gs://BUCKET/KEY, without blanks",
                            ret_why) &&
                       rule(!memchr(host, '@', n),
                            "must not have a user and password: they would be shown to everybody who sees "
                            "the job's status",
                            ret_why) &&
                       rule(http || host[n] == '/',
                            "must have a key behind the bucket, as in s3://BUCKET/KEY", ret_why) &&
                       dates_good(s, ret_why);
        }
        return rule(*s == '/' || !scheme,
                    "must be an absolute path, or begin with file://, http://, https://, s3://, gs:// or "
                    "hdfs://; for other storage use commandInput",
                    ret_why) &&
               rule(*s == '/', "must be an absolute path, which every host has, or a URL", ret_why) &&
               dates_good(s, ret_why);
}

bool valid_name_pattern(const char *s, const char **ret_why) {
        return rule(!strchr(s, '/'), "must be a pattern of file names, without '/'", ret_why) &&
               dates_good(s, ret_why);
}

bool valid_marker(const char *s, const char **ret_why) {
        return rule(*s && strlen(s) <= 4095, "must be a pattern of 1 to 4095 bytes", ret_why) &&
               dates_good(s, ret_why);
}

/* "package.module:Class" */
bool valid_reader_class(const char *s, const char **ret_why) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
        size_t n = strspn(s, allowed);

        return rule(s[n] == ':' || s[n] || !strchr(s, '.'),
                    "must be a Python class, as module:Class (python3 -m primus.reader -h): there is no JVM "
                    "for one of Java; or use commandInput",
                    ret_why) &&
               rule(n > 0 && s[n] == ':' && s[n + 1] && strspn(s + n + 1, allowed) == strlen(s + n + 1),
                    "must be module:Class, as in readers.parquet:Rows", ret_why);
}

bool valid_endpoint(const char *s, const char **ret_why) {
        return rule((begins_with(s, "http://") && s[7]) || (begins_with(s, "https://") && s[8]),
                    "must be the server's URL, such as https://s3.example.org", ret_why) &&
               rule(!has_blank(s) && !strchr(s, '@'), "must be a URL without user, password and blanks",
                    ret_why);
}

bool valid_endpoints(const char *s, const char **ret_why) {
        static const char why[] =
                "must be the URL of the namenode, such as http://nn1:9870, or several (at most 8) "
                "with commas between them, without blanks";
        char one[SPEC_PATH_MAX + 1];
        unsigned n = 0;

        do {
                size_t size = strcspn(s, ",");

                if (n++ == INPUT_ENDPOINTS_MAX || size >= sizeof(one))
                        return rule(false, why, ret_why);
                memcpy(one, s, size);
                one[size] = 0;
                if (!valid_endpoint(one, ret_why))
                        return rule(false, why, ret_why);
                s += size;
        } while (*s++);
        return true;
}

bool valid_topic(const char *s, const char **ret_why) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

        return rule(strspn(s, allowed) == strlen(s) && strcmp(s, ".") != 0 && strcmp(s, "..") != 0,
                    "must be a topic's name: letters, digits, '.', '_' and '-'", ret_why);
}

bool valid_property(const char *s, const char **ret_why) {
        return rule(*s && strlen(s) <= 255 && !has_blank(s) && !strchr(s, '='),
                    "must be a property of a Kafka client, such as bootstrap.servers", ret_why);
}
