/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles on disk: DIRECTORY/UID/SHA256, and UID/SHA256.part while one is being uploaded, strictly in order,
 * hashed as it comes. Knows no bus and no jobs; time is an argument. Everything here is short work in the
 * page cache, except bundle_finish(), which syncs and is made for a thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUNDLE_CHUNK_MAX (256u << 10)
#define BUNDLE_UPLOADS_MAX 64u
#define BUNDLE_UPLOADS_PER_USER_MAX 8u
#define BUNDLE_FILES_PER_USER_MAX 4096u

struct bundle_files;

struct bundle_limits {
        uint64_t bundle_max;   /* bytes of one */
        uint64_t per_user_max; /* bytes of all of a user, with those being uploaded */
};

/* Outcomes of bundle_files_put() that the caller tells the user. */
enum bundle_outcome {
        BUNDLE_OK,        /* *ret_next is wanted next; == size: it is there and verified */
        BUNDLE_RECEIVED,  /* the last byte is here and the hash is right: run bundle_finish(), then
                             bundle_files_finished() */
        BUNDLE_FINISHING, /* the same, already under way */
        BUNDLE_E_SIZE,    /* empty, or the chunk does not fit into it, or another size than before */
        BUNDLE_E_LARGE,   /* more than bundle_max */
        BUNDLE_E_QUOTA,   /* more than per_user_max together */
        BUNDLE_E_UPLOADS, /* too many at a time */
        BUNDLE_E_CONTENT, /* its SHA-256 is another one; dropped */
};

/* What a thread needs to make an upload durable under its name. */
struct bundle_finish {
        int fd, dir_fd;
        char from[72], to[65];
};

/* Whether a job that has not ended uses it. */
typedef bool (*bundle_in_use)(uint32_t uid, const char *sha256, void *userdata);

/* 64 lower-case hex digits. */
bool bundle_name_valid(const char *s);

/* Reads what is there; parts of uploads that an earlier process left are removed. */
int bundle_files_new(const char *directory, const struct bundle_limits *limits, bundle_in_use in_use,
                     void *userdata, struct bundle_files **ret);
void bundle_files_free(struct bundle_files *f);

/* Whether it is there, complete. Keeps it young. */
bool bundle_files_have(struct bundle_files *f, uint32_t uid, const char *sha256, uint64_t now_real);

/* Appends a chunk. An outcome, or a negative errno of the disk (the upload is dropped then). ret_finish is
 * filled for BUNDLE_RECEIVED and stays valid until bundle_files_finished(). */
int bundle_files_put(struct bundle_files *f, uint32_t uid, const char *sha256, uint64_t size, uint64_t offset,
                     const void *chunk, size_t n, uint64_t now_real, uint64_t *ret_next,
                     struct bundle_finish *ret_finish);
/* Syncs and renames. 0 or negative errno. Any thread. */
int bundle_finish(const struct bundle_finish *finish);
/* result of bundle_finish(): the upload has become a file, or is dropped. */
void bundle_files_finished(struct bundle_files *f, uint32_t uid, const char *sha256, int result);

/* Reads at most max bytes from offset; *ret_size: of the whole file. -ENOENT. */
int bundle_files_read(struct bundle_files *f, uint32_t uid, const char *sha256, uint64_t offset, void *buf,
                      size_t max, uint64_t *ret_size, size_t *ret_n);

/* Drops uploads that nobody goes on with and removes unused files that are older than age. */
void bundle_files_sweep(struct bundle_files *f, uint64_t now_real, uint64_t age_usec);

/* Bytes stored for the user, uploads included. */
uint64_t bundle_files_stored(struct bundle_files *f, uint32_t uid);
