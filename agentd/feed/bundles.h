/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of bundles on this host: DIRECTORY/UID/SHA256, each fetched once over the bulk connection however
 * many executors wait for it, checked against its name, and readable by its user alone (owner UID, 0400).
 * agentd never looks inside. The cache lasts as long as the boot: files are not synced to disk one by one, so
 * what an earlier boot left is removed when the cache is opened. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

struct bundles;
struct bundle_transfer;

struct bundle_limits {
        uint64_t bundle_bytes; /* of one bundle */
        uint64_t cache_bytes;  /* of all on the disk; of who has most, the least recently wanted go first */
        uint64_t age_usec;     /* those not wanted for so long go */
};
extern const struct bundle_limits bundle_limits_default; /* 16 GiB, 64 GiB, 7 days */

struct bundle_ops {
        /* Asks masterd for the bytes from offset on (GetBundle). Answered, later, by exactly one
         * bundles_chunk() with the same transfer. Negative errno: it cannot be asked now; the transfer fails
         * with that. */
        int (*get)(void *userdata, uint32_t uid, const char *sha256, uint64_t offset, uint32_t max,
                   struct bundle_transfer *transfer);
        /* Makes the file, complete, the user's and read-only: before anything is started that wants it. */
        int (*give)(void *userdata, int fd, uint32_t uid);
};

/* error 0: path is the bundle's file. Otherwise a negative errno, and text says why. Called from the event
 * loop, never from within bundles_want(). */
typedef void (*bundle_ready_handler)(void *userdata, int error, const char *text, const char *path);

/* Opens (makes) the cache directory, 0711. */
int bundles_new(sd_event *event, const char *directory, const struct bundle_limits *limits,
                const struct bundle_ops *ops, void *userdata, struct bundles **ret);

/* Waiting handlers are called with -ECANCELED. */
void bundles_free(struct bundles *b);

/* Sees to it that the bundle is there. sha256: 64 lower-case hex digits. 0, -EINVAL, -ENOMEM: the handler
 * will not be called. */
int bundles_want(struct bundles *b, uint32_t uid, const char *sha256, bundle_ready_handler handler,
                 void *userdata);

/* The answer to get(): the size of the whole bundle and n bytes from the offset asked for; or an error and
 * its text. */
void bundles_chunk(struct bundle_transfer *t, int error, const char *text, uint64_t size, const void *data,
                   size_t n);

/* Removes what is too old or too much, sparing the one named (NULL: none). Called by itself before each
 * transfer. */
void bundles_prune(struct bundles *b, const char *spare);
