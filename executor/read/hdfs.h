/* SPDX-License-Identifier: Apache-2.0 */
/* What is WebHDFS's own (Hadoop's "WebHDFS REST API"): addresses, and the JSON of its answers. Users are
 * believed by their names ("simple" authentication), as Hadoop's own client would say them. Pure but for the
 * environment (HADOOP_USER_NAME, and the user's name). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/input.h"

#define HDFS_SCHEME "hdfs://"
#define HDFS_PORT 9870u /* of a namenode's HTTP; the port in an hdfs:// address is that of its RPC */
#define HDFS_ERROR_MAX 128u

/* Namenodes that the source names, at least 1: which of them is active is found by asking. */
unsigned hdfs_endpoints(const struct input_source *source);

/* As whom the source is read, encoded for an address: may ask the host's user database, so once. Allocated;
 * NULL: out of memory. */
char *hdfs_user(const struct input_source *source);

/* Of "hdfs://host/path" at the source's n-th endpoint. user: hdfs_user(). query: "op=…", encoded. -EINVAL: it
 * is no such path, or nothing says where the namenode is; -ENOMEM. */
int hdfs_url(const struct input_source *source, unsigned endpoint, const char *user, const char *path,
             const char *query, char **ret);

struct hdfs_status {
        const char *name;     /* within its directory; "" of what was asked for itself */
        bool directory, file; /* a link is neither */
        uint64_t size, mtime_nsec;
        uint64_t id; /* the inode's; 0: the server says none */
};
/* Reads the answer to op=GETFILESTATUS. -EBADMSG. name is "". */
int hdfs_status_read(const char *json, size_t size, struct hdfs_status *ret);

/* Reads a page of op=LISTSTATUS_BATCH, calling on_status for each; what that answers below 0 ends it.
 * *ret_last (allocated, NULL where the page is empty): the last name; *ret_more: what is behind it is still
 * to be asked for. -EBADMSG: it is none; or on_status's. */
typedef int (*hdfs_on_status)(void *userdata, const struct hdfs_status *s);
int hdfs_list_read(const char *json, size_t size, hdfs_on_status on_status, void *userdata, char **ret_last,
                   bool *ret_more);

/* "StandbyException: …" of an error's body, cleaned; "" when there is none. */
void hdfs_error(const char *json, size_t size, char buf[static HDFS_ERROR_MAX]);
/* Such a namenode answers for nothing: another one is the active one. */
bool hdfs_error_is_standby(const char *error);
