/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a job: packs files[] into a tar.zst, the same bytes for the same files, and hands it to the master
 * in pieces of at most 256 KiB. libarchive and GnuTLS (sha256) are loaded when there is something to pack. */
#pragma once

#include "tools/primusctl/cli.h"

#define BUNDLE_ENTRIES_MAX 100000u
#define BUNDLE_CHUNK_MAX (256u << 10)

struct bundle {
        int fd; /* an unlinked temporary file; -EBADF: none */
        uint64_t size;
        char sha256[65];
};
void bundle_done(struct bundle *b);

/* Packs files (NULL-ended, relative to directory; folders with what is in them). Names in the archive are as
 * written below directory; a file from elsewhere goes under its last component. label: the configuration's
 * name, for messages. Returns 0 or CLI_FAILED. */
int bundle_pack(const struct cli *c, const char *label, const char *directory, const char *const *files,
                struct bundle *ret);

/* Uploads it, with a progress line on a terminal; the part that the master has already is not sent. */
int bundle_upload(struct cli *c, const struct bundle *b);
