/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking bundles that users made. Invariant: nothing is made outside the directory, whatever the archive
 * says; the names are checked here and libarchive's own guards (no link followed, no "..", no absolute path)
 * stand behind them. */
#include "executor/files/stage.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#define BLOCK (64u << 10)
#define MARKER ".stage.done"
#define LOCK ".stage.lock"

const struct stage_limits stage_limits_default = { .entries = 1u << 20, .bytes = UINT64_C(64) << 30 };

static void read_free_p(struct archive **a) {
        if (*a)
                (void)archive_read_free(*a);
}

static void write_free_p(struct archive **a) {
        if (*a)
                (void)archive_write_free(*a);
}

_printf_(3, 4) static int refuse(int r, char **ret_error, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        if (vasprintf(ret_error, format, ap) < 0)
                *ret_error = NULL;
        va_end(ap);
        return r;
}

/* libarchive says "Write failed", and why apart from it. */
static int refuse_write(int r, char **ret_error, const char *path, struct archive *out) {
        const char *text = archive_error_string(out), *why = strerror(archive_errno(out));

        if (!text)
                text = "cannot be written";
        return archive_errno(out) > 0 && !strstr(text, why)
                       ? refuse(r, ret_error, "\"%s\": %s: %s", path, text, why)
                       : refuse(r, ret_error, "\"%s\": %s", path, text);
}

static bool has_dotdot(const char *path) {
        for (const char *p = path; *p;) {
                size_t n = strcspn(p, "/");

                if (n == 2 && p[0] == '.' && p[1] == '.')
                        return true;
                p += n;
                p += strspn(p, "/");
        }
        return false;
}

/* How many directories path lies below the top; path has no "..". */
static int depth(const char *path) {
        int d = -1;

        for (const char *p = path; *p;) {
                size_t n = strcspn(p, "/");

                if (n > 0 && !(n == 1 && p[0] == '.'))
                        d++;
                p += n;
                p += strspn(p, "/");
        }
        return d;
}

/* A symbolic link stays inside when its target begins with no more ".." than the link lies deep, and has none
 * behind a name: a name may be another link, and going up from where that leads could leave. */
static bool symlink_stays(const char *path, const char *target) {
        int d = depth(path);

        if (target[0] == '/' || target[0] == 0)
                return false;
        for (;;) {
                if (strncmp(target, "..", 2) == 0 && (target[2] == '/' || target[2] == 0)) {
                        if (--d < 0)
                                return false;
                        target += 2;
                } else if (target[0] == '.' && (target[1] == '/' || target[1] == 0))
                        target++;
                else
                        return !has_dotdot(target);
                target += strspn(target, "/");
        }
}

static int check_entry(struct archive_entry *e, char **ret_error) {
        const char *path = archive_entry_pathname(e), *hard = archive_entry_hardlink(e),
                   *link = archive_entry_symlink(e);

        if (!path || !*path)
                return refuse(-EBADMSG, ret_error, "an entry has no name");
        if (path[0] == '/' || has_dotdot(path))
                return refuse(-EBADMSG, ret_error, "\"%s\": paths must be relative, without \"..\"", path);
        if (hard) {
                if (hard[0] == '/' || hard[0] == 0 || has_dotdot(hard))
                        return refuse(-EBADMSG, ret_error, "\"%s\": a link to \"%s\", outside of the bundle",
                                      path, hard);
                return 0;
        }
        switch (archive_entry_filetype(e)) {
        case AE_IFREG:
        case AE_IFDIR:
                return 0;
        case AE_IFLNK:
                if (!link || !symlink_stays(path, link))
                        return refuse(-EBADMSG, ret_error, "\"%s\": a link to \"%s\", outside of the bundle",
                                      path, link ? link : "");
                return 0;
        default:
                return refuse(-EBADMSG, ret_error,
                              "\"%s\": only files, directories and links may be in a bundle, no devices, "
                              "FIFOs or sockets",
                              path);
        }
}

static int copy_data(struct archive *in, struct archive *out, const char *path, uint64_t *left,
                     char **ret_error) {
        uint64_t end = 0;

        for (;;) {
                const void *block;
                size_t size;
                la_int64_t offset;
                int r = archive_read_data_block(in, &block, &size, &offset);

                if (r == ARCHIVE_EOF)
                        break;
                if (r != ARCHIVE_OK)
                        return refuse(-EBADMSG, ret_error, "\"%s\": %s", path, archive_error_string(in));
                end = MAX(end, (uint64_t)offset + size);
                if (end > *left)
                        return refuse(-E2BIG, ret_error, "\"%s\": the bundle unpacks to more than is allowed",
                                      path);
                if (archive_write_data_block(out, block, size, offset) < ARCHIVE_OK)
                        return refuse_write(-EIO, ret_error, path, out);
        }
        *left -= end;
        return 0;
}

static int copy_entries(struct archive *in, struct archive *out, const struct stage_limits *limits,
                        char **ret_error) {
        uint64_t entries = 0, left = limits->bytes;
        struct archive_entry *e;
        int r;

        while ((r = archive_read_next_header(in, &e)) == ARCHIVE_OK) {
                if (++entries > limits->entries)
                        return refuse(-E2BIG, ret_error, "more than %llu entries",
                                      (unsigned long long)limits->entries);
                r = check_entry(e, ret_error);
                if (r < 0)
                        return r;
                if (archive_entry_size(e) > 0 && (uint64_t)archive_entry_size(e) > left)
                        return refuse(-E2BIG, ret_error, "\"%s\": the bundle unpacks to more than is allowed",
                                      archive_entry_pathname(e));
                archive_entry_set_perm(e, archive_entry_perm(e) & 0777);
                if (archive_write_header(out, e) < ARCHIVE_OK)
                        return refuse_write(-EBADMSG, ret_error, archive_entry_pathname(e), out);
                r = copy_data(in, out, archive_entry_pathname(e), &left, ret_error);
                if (r < 0)
                        return r;
                if (archive_write_finish_entry(out) < ARCHIVE_OK)
                        return refuse_write(-EIO, ret_error, archive_entry_pathname(e), out);
        }
        if (r != ARCHIVE_EOF)
                return refuse(-EBADMSG, ret_error, "%s", archive_error_string(in));
        return 0;
}

/* In the directory itself: relative names are what libarchive's guards want. */
static int unpack_here(int fd, const struct stage_limits *limits, char **ret_error) {
        _cleanup_(read_free_p) struct archive *in = archive_read_new();
        _cleanup_(write_free_p) struct archive *out = archive_write_disk_new();
        int r;

        if (!in || !out)
                return -ENOMEM;
        (void)archive_read_support_format_tar(in);
        (void)archive_read_support_filter_zstd(in);
        (void)archive_write_disk_set_options(
                out, ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_SECURE_SYMLINKS |
                             ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS);
        if (archive_read_open_fd(in, fd, BLOCK) != ARCHIVE_OK)
                return refuse(-EBADMSG, ret_error, "%s", archive_error_string(in));
        r = copy_entries(in, out, limits, ret_error);
        if (r >= 0 && archive_write_close(out) < ARCHIVE_OK)
                return refuse(-EIO, ret_error, "%s", archive_error_string(out));
        return r;
}

int stage_unpack(const char *bundle, const char *directory, const struct stage_limits *limits,
                 char **ret_error) {
        _cleanup_close_ int fd = open(bundle, O_RDONLY | O_CLOEXEC | O_NOCTTY), before = -EBADF;
        int r;

        *ret_error = NULL;
        if (fd < 0)
                return refuse(-errno, ret_error, "%s", strerror(errno));
        before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (chdir(directory) < 0)
                return refuse(-errno, ret_error, "%s: %s", directory, strerror(errno));
        r = unpack_here(fd, limits, ret_error);
        if (before >= 0 && fchdir(before) < 0 && r >= 0)
                r = -errno;
        return r;
}

static int stage_locked(int dir, const char *bundle, const char *directory, char **ret_error) {
        _cleanup_close_ int lock = openat(dir, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        _cleanup_free_ char *done = NULL, *marker = NULL;
        const char *name = strrchr(bundle, '/') ? strrchr(bundle, '/') + 1 : bundle;
        int r;

        if (lock < 0)
                return refuse(-errno, ret_error, "%s/" LOCK ": %s", directory, strerror(errno));
        while (flock(lock, LOCK_EX) < 0)
                if (errno != EINTR)
                        return refuse(-errno, ret_error, "%s/" LOCK ": %s", directory, strerror(errno));
        if (read_file_at(dir, MARKER, 256, &done, NULL) >= 0 && strcmp(done, name) == 0)
                return 0;
        r = stage_unpack(bundle, directory, &stage_limits_default, ret_error);
        if (r < 0)
                return r;
        if (asprintf(&marker, "%s/" MARKER, directory) < 0)
                return -ENOMEM;
        r = write_file_atomic(marker, name, strlen(name), 0600, false);
        return r < 0 ? refuse(r, ret_error, "%s: %s", marker, strerror(-r)) : 0;
}

int stage_run(const char *bundle, const char *directory) {
        _cleanup_close_ int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *error = NULL;
        int r;

        if (dir < 0) {
                fprintf(stderr, "primus-executor: cannot unpack the job's files: %s: %s\n", directory,
                        strerror(errno));
                return 1;
        }
        r = stage_locked(dir, bundle, directory, &error);
        if (r < 0)
                fprintf(stderr, "primus-executor: cannot unpack the job's files: %s\n",
                        error ? error : strerror(-r));
        return r < 0;
}
