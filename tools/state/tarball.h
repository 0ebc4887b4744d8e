/* SPDX-License-Identifier: Apache-2.0 */
/* A backup as a tar archive, written and read in one go. Functions that fail say why on standard error and
 * return a negative errno. */
#pragma once

#include <stdbool.h>

#include "tools/state/manifest.h"
#include "tools/state/seal.h"

struct archive_out;

/* To an open descriptor (borrowed). */
int archive_out_new(int fd, bool compress, struct archive_out **ret);
/* A regular file from its beginning; counted in the manifest under this name. */
int archive_out_file(struct archive_out *o, struct manifest *m, const char *name, int fd);
/* The manifest, its seal where the key is known, and the end. */
int archive_out_end(struct archive_out *o, const struct manifest *m, const struct seal_key *key);
void archive_out_free(struct archive_out *o); /* accepts NULL */
DEFINE_CLEANUP(struct archive_out *, archive_out_free)

/* Unpacks what comes from fd into the directory, files 0600 and directories 0700, and returns its manifest
 * when all of it is there and is what its manifest says. Who vouches for that is what *ret_seal says; ret_id:
 * of the key that it was sealed with, or "". */
int archive_unpack(int fd, int directory_fd, const struct seal_key *key, struct manifest *ret,
                   enum seal *ret_seal, char ret_id[static 17]);

/* Whether these bytes are what the manifest says of the file. */
bool archive_same_bytes(const struct manifest_file *f, const void *bytes, size_t size);
