/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a job: packs them into a tar.zst, the same bytes for the same files, and hands it to the master
 * in pieces of at most 256 KiB. libarchive and GnuTLS (sha256) are loaded when there is something to pack. */
#pragma once

#include "tools/primusctl/cli/cli.h"

#define BUNDLE_ENTRIES_MAX 100000u
#define BUNDLE_CHUNK_MAX (256u << 10)
/* What is sent without being asked for by --send-max: code, not data that lay beside it. */
#define BUNDLE_SEND_MAX (UINT64_C(512) << 20)

struct bundle {
        int fd; /* an unlinked temporary file; -EBADF: none */
        uint64_t size;
        char sha256[65];
};
void bundle_done(struct bundle *b);

/* Packs files (NULL-ended, relative to directory; folders with what is in them, less what
 * tools/primusctl/bus/ignore.h leaves out), and says before how much that is. Names in the archive are as
 * written below directory; a file from elsewhere goes under its last component. label: what messages begin
 * with. max: the most bytes before packing, 0: BUNDLE_SEND_MAX. Returns 0 or CLI_FAILED. */
int bundle_pack(const struct cli *c, const char *label, const char *directory, const char *const *files,
                uint64_t max, struct bundle *ret);

/* What bundle_pack() would have against these files, said in the same words; nothing is packed. */
int bundle_check(const struct cli *c, const char *label, const char *directory, const char *const *files,
                 uint64_t max);

/* Uploads it, with a progress line on a terminal; the part that the master has already is not sent. */
int bundle_upload(struct cli *c, const struct bundle *b);
