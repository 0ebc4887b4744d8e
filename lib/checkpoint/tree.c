/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/checkpoint/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/primus/text.h"

#define BLOCK_BYTES (1u << 20)
#define SUM_HEX (2 * SHA256_DIGEST_SIZE + 1)

static void fts_close_p(FTS **f) {
        if (*f)
                (void)fts_close(*f);
}

static FTS *walk_tree(const char *top) {
        char *paths[] = { (char *)(uintptr_t)top, NULL };

        return fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
}

int tree_flush(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int sum_of(int fd, char ret[static SUM_HEX]) {
        _cleanup_free_ uint8_t *block = malloc(BLOCK_BYTES);
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct sha256_ctx sum;
        ssize_t n;

        if (!block)
                return -ENOMEM;
        sha256_init(&sum);
        while ((n = read(fd, block, BLOCK_BYTES)) != 0) {
                if (n < 0 && errno != EINTR)
                        return -errno;
                sha256_update(&sum, n < 0 ? 0 : (size_t)n, block);
        }
        sha256_digest(&sum, sizeof(digest), digest);
        text_hex(digest, sizeof(digest), ret);
        return 0;
}

static int add_file(json_t *files, const char *path, const char *name) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        char sum[SUM_HEX];
        struct stat st;

        if (fd < 0)
                return -errno;
        TRY(sum_of(fd, sum));
        if (fsync(fd) < 0 || fstat(fd, &st) < 0)
                return -errno;
        /* A name that is not UTF-8 has no place in JSON. */
        return json_object_set_new(files, name,
                                   json_pack("{s:I,s:s}", "size", (json_int_t)st.st_size, "sha256", sum)) < 0
                       ? -EILSEQ
                       : 0;
}

static int add_entry(json_t *files, const FTSENT *e, const char *name, char why[static WHY_MAX]) {
        int r = 0;

        switch (e->fts_info) {
        case FTS_D:
                return 0;
        case FTS_DP:
                r = tree_flush(e->fts_path);
                break;
        case FTS_F:
                r = add_file(files, e->fts_path, name);
                break;
        case FTS_DNR:
        case FTS_ERR:
        case FTS_NS:
                r = -e->fts_errno;
                break;
        default:
                snprintf(why, WHY_MAX,
                         "%s is neither a file nor a directory, and cannot be part of a checkpoint",
                         e->fts_path);
                return -EINVAL;
        }
        if (r < 0)
                snprintf(why, WHY_MAX, "%s: %s", e->fts_path, strerror(-r));
        return r;
}

int tree_sum(const char *top, json_t **ret, char why[static WHY_MAX]) {
        _cleanup_(fts_close_p) FTS *walking = walk_tree(top);
        json_auto_t *files = json_object();
        size_t prefix = strlen(top) + 1;
        FTSENT *e;

        if (!walking || !files) {
                snprintf(why, WHY_MAX, "%s: %s", top, strerror(ENOMEM));
                return -ENOMEM;
        }
        while ((errno = 0, e = fts_read(walking)))
                TRY(add_entry(files, e, e->fts_level > 0 ? e->fts_path + prefix : "", why));
        if (errno != 0) {
                int r = -errno;

                snprintf(why, WHY_MAX, "%s: %s", top, strerror(-r));
                return r;
        }
        *ret = json_incref(files);
        return 0;
}

/* Of a manifest, which anybody may have written who can write there. */
static bool is_below(const char *name) {
        if (!*name || *name == '/')
                return false;
        for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
                if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2]))
                        return false;
        return true;
}

static int check_file(const char *top, const char *name, const json_t *is, bool verify,
                      char why[static WHY_MAX]) {
        _cleanup_free_ char *path = text_make("%s/%s", top, name);
        _cleanup_close_ int fd = -EBADF;
        char sum[SUM_HEX];
        struct stat st;

        if (!path)
                return -ENOMEM;
        /* Not to wait for the other end of what has become a FIFO. */
        fd = is_below(name) ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
                snprintf(why, WHY_MAX, "%s is not there", path);
                return -EBADMSG;
        }
        if (st.st_size != json_integer_value(json_object_get(is, "size"))) {
                snprintf(why, WHY_MAX, "%s has %lld bytes, and not %lld", path, (long long)st.st_size,
                         (long long)json_integer_value(json_object_get(is, "size")));
                return -EBADMSG;
        }
        if (!verify)
                return 0;
        TRY(sum_of(fd, sum));
        if (strcmp(sum, json_string_value(json_object_get(is, "sha256"))) != 0) {
                snprintf(why, WHY_MAX, "%s is not what was written", path);
                return -EBADMSG;
        }
        return 0;
}

int tree_check(const char *top, const json_t *files, bool verify, char why[static WHY_MAX]) {
        const char *name;
        json_t *is;

        json_object_foreach ((json_t *)(uintptr_t)files, name, is)
                TRY(check_file(top, name, is, verify, why));
        return 0;
}

void tree_remove(const char *path) {
        _cleanup_(fts_close_p) FTS *walking = walk_tree(path);
        FTSENT *e;

        while (walking && (e = fts_read(walking)))
                if (e->fts_info == FTS_DP)
                        (void)rmdir(e->fts_path);
                else if (e->fts_info != FTS_D)
                        (void)unlink(e->fts_path);
}
