/* SPDX-License-Identifier: Apache-2.0 */
/* The last member of a backup: what the others are. Pure: text in, text out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cleanup.h"

#define MANIFEST_FORMAT 1
#define MANIFEST_FILES_MAX 100000u
#define MANIFEST_BYTES_MAX (32u << 20)

struct manifest_file {
        char *name;
        uint64_t size;
        uint32_t mode;
        char sha256[65];
};

struct manifest {
        char *program;         /* version of Primus that wrote it */
        int64_t store_version; /* of the database */
        char cluster[33];
        char *host;
        uint64_t created_real;
        char *state_directory;
        bool bundles; /* are in it */
        struct manifest_file *files;
        size_t n_files, allocated;
        char **left_out; /* "NAME: why" */
        size_t n_left_out;
};

void manifest_done(struct manifest *m);

/* -E2BIG: too many. name is copied. */
int manifest_add(struct manifest *m, const char *name, uint64_t size, uint32_t mode,
                 const char sha256[static 65]);
int manifest_leave_out(struct manifest *m, const char *name, const char *why);

/* JSON, allocated. */
int manifest_format(const struct manifest *m, char **ret);

/* -EBADMSG: not a manifest; -EPROTONOSUPPORT: of a later format. */
int manifest_parse(const char *text, size_t size, struct manifest *ret);

/* Whether both name the same files with the same contents, in the same order; *ret_why (static text) and
 * *ret_name (borrowed from either) say where not. */
bool manifest_same_files(const struct manifest *a, const struct manifest *b, const char **ret_why,
                         const char **ret_name);
