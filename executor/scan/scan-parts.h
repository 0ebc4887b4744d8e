/* SPDX-License-Identifier: Apache-2.0 */
/* What scan-source.c and the listers of each kind of source are to each other. */
#pragma once

#include "executor/scan/scan.h"
#include "lib/base/cleanup.h"

struct scan {
        const struct scan_request *request;
        const struct input_source *source;
        struct scan_sink *sink;
        /* of what is being listed, with the time filled in: */
        uint64_t batch;
        const char *name_pattern; /* NULL: all */
        char *const *markers;     /* NULL-ended */
        char *error;              /* set by scan_fail() */
};

/* Says why the source cannot be listed; returns r, or -ENOMEM. */
_printf_(3, 4) int scan_fail(struct scan *s, int r, const char *format, ...);
/* Hands out an entry, with the batch. */
int scan_emit(struct scan *s, struct scan_entry *e);

/* A lister looks at one place: a pattern in which the time is filled in. Entries behind after (NULL: all) are
 * handed out. 1: done; 0: something is not there, *ret_missing (allocated) says what; negative errno. */
typedef int (*scan_lister)(struct scan *s, const char *pattern, const char *after, char **ret_missing);

int scan_files(struct scan *s, const char *pattern, const char *after, char **ret_missing);
int scan_http(struct scan *s, const char *pattern, const char *after, char **ret_missing);
int scan_hdfs(struct scan *s, const char *pattern, const char *after, char **ret_missing);
int scan_s3(struct scan *s, const char *pattern, const char *after, char **ret_missing);

/* Partitions of a topic, for ever: never 0. */
int scan_kafka(struct scan *s);

/* A path's name is not data: '.' or '_' in front, or not of namePattern. */
bool scan_wants_name(const struct scan *s, const char *name);
