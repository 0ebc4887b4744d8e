/* SPDX-License-Identifier: Apache-2.0 */
/* Who has to go where the private file system fills. Pure but for private_filling_read(). */
#include "agentd/unit/private-usage.h"

#include <limits.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "lib/base/cleanup.h"
#include "lib/unit/files.h"

int private_filling_read(const char *root, struct private_filling *ret) {
        _cleanup_free_ char *path = NULL;
        struct statvfs v;

        if (asprintf(&path, "%s" PRIVATE_DIR, root) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (statvfs(path, &v) < 0)
                return -errno;
        *ret = (struct private_filling){ .total = v.f_blocks * v.f_frsize,
                                         .used = (v.f_blocks - v.f_bfree) * v.f_frsize,
                                         .total_files = v.f_files,
                                         .used_files = v.f_files - v.f_ffree };
        return 0;
}

static bool beyond(const struct private_filling *f, unsigned quarters) {
        return f->used > f->total / 4 * quarters ||
               (f->total_files > 0 && f->used_files > f->total_files / 4 * quarters);
}

bool private_filling_high(const struct private_filling *f) {
        return beyond(f, 1);
}

/* One measure for both: of two users, files fill the table as bytes fill the memory. */
static double weight(const struct private_filling *f, const struct private_usage *u) {
        double bytes = (double)u->bytes / (double)(f->total ?: 1),
               files = f->total_files > 0 ? (double)u->files / (double)f->total_files : 0;

        return bytes > files ? bytes : files;
}

ssize_t private_usage_pick(const struct private_filling *f, const struct private_share *shares, size_t n) {
        const struct private_usage used = { .bytes = f->used,
                                            .files = f->used_files > UINT_MAX ? UINT_MAX
                                                                              : (unsigned)f->used_files };
        double most = 0, largest = -1, found_in_all = 0;
        ssize_t found = -ENOENT;
        uint32_t uid = 0;

        for (size_t i = 0; i < n; i++)
                if (shares[i].usage.bytes > PRIVATE_BYTES_MAX || shares[i].usage.files > PRIVATE_FILES_MAX)
                        return (ssize_t)i;
        if (!beyond(f, 3))
                return -ENOENT;
        for (size_t i = 0; i < n; i++)
                found_in_all += weight(f, &shares[i].usage);
        /* Most of it is in files without a name, or of nobody here: ending those who are seen would not help,
         * and is what somebody may want who does that. */
        if (found_in_all < weight(f, &used) / 2)
                return -ENODATA;
        for (size_t i = 0; i < n; i++) {
                double sum = 0;
                for (size_t k = 0; k < n; k++)
                        sum += shares[k].uid == shares[i].uid ? weight(f, &shares[k].usage) : 0;
                if (sum > most) {
                        most = sum;
                        uid = shares[i].uid;
                }
        }
        for (size_t i = 0; most > 0 && i < n; i++)
                if (shares[i].uid == uid && weight(f, &shares[i].usage) > largest) {
                        largest = weight(f, &shares[i].usage);
                        found = (ssize_t)i;
                }
        return found;
}
