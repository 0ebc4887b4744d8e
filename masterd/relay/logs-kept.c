/* SPDX-License-Identifier: Apache-2.0 */
/* Kept logs on disk. Invariant: the header says no more than what was written before it; it is the last to be
 * written, and what does not fit together (another job's file, a short one) counts as nothing kept. */
#include "masterd/relay/logs-kept.h"

#include <endian.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "masterd/relay/logs.h"

#define DATA_AT 64

struct header {
        char magic[8];
        uint8_t uid[16];
        uint64_t first; /* little-endian: offset in the log of the first byte since the last gap */
        uint64_t end;   /* behind the last byte */
};

static const char magic[8] = { 'P', 'R', 'I', 'M', 'L', 'O', 'G', '1' };

static void kept_name(const struct executor_id *id, char name[static 96]) {
        snprintf(name, 96, "%u/%.32s-%u.%u", id->job, id->role, id->index, id->attempt);
}

/* 1: there is a usable header, *ret_first is the first byte that the ring still has. */
static int read_header(int fd, const struct executor_id *id, uint64_t *ret_first, uint64_t *ret_end) {
        struct header h;
        struct stat st;
        uint64_t first, end, top;
        ssize_t l = pread(fd, &h, sizeof(h), 0);

        if (l < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (l != (ssize_t)sizeof(h) || memcmp(h.magic, magic, sizeof(magic)) != 0 ||
            memcmp(h.uid, id->job_uid.bytes, sizeof(h.uid)) != 0)
                return 0;
        first = le64toh(h.first);
        end = le64toh(h.end);
        if (end < first)
                return 0;
        if (end - first > LOG_KEPT_MAX)
                first = end - LOG_KEPT_MAX;
        /* After a crash of the host the header may have reached the disk without the data. */
        if (first < end) {
                top = first / LOG_KEPT_MAX == (end - 1) / LOG_KEPT_MAX ? (end - 1) % LOG_KEPT_MAX + 1
                                                                       : LOG_KEPT_MAX;
                if ((uint64_t)st.st_size < DATA_AT + top)
                        return 0;
        }
        *ret_first = first;
        *ret_end = end;
        return 1;
}

static int write_at(int fd, const void *data, size_t size, uint64_t at) {
        const char *p = data;

        while (size > 0) {
                ssize_t l = pwrite(fd, p, size, (off_t)at);
                if (l < 0 && errno == EINTR)
                        continue;
                if (l < 0)
                        return -errno;
                p += l;
                at += (uint64_t)l;
                size -= (size_t)l;
        }
        return 0;
}

int kept_append(int dir_fd, const struct executor_id *id, uint64_t offset, const void *bytes, size_t size) {
        _cleanup_close_ int fd = -EBADF;
        struct header h;
        const char *p = bytes;
        uint64_t first, end;
        char name[96], job[16];
        int r;

        if (size > UINT64_MAX - offset)
                return -EOVERFLOW;
        kept_name(id, name);
        fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno == ENOENT) {
                snprintf(job, sizeof(job), "%u", id->job);
                if (mkdirat(dir_fd, job, 0700) < 0 && errno != EEXIST)
                        return -errno;
                fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        }
        if (fd < 0)
                return -errno;
        r = read_header(fd, id, &first, &end);
        if (r < 0)
                return r;
        if (r == 0 || offset > end) {
                if (ftruncate(fd, 0) < 0)
                        return -errno;
                first = end = offset;
        }
        if (offset + size <= end)
                return 0; /* told again after a reconnect */
        p += end - offset;
        size -= (size_t)(end - offset);
        if (size > LOG_KEPT_MAX) {
                first = end + size - LOG_KEPT_MAX;
                p += size - LOG_KEPT_MAX;
                end = first;
                size = LOG_KEPT_MAX;
        }
        while (size > 0) {
                size_t at = (size_t)(end % LOG_KEPT_MAX), n = MIN(size, (size_t)LOG_KEPT_MAX - at);
                r = write_at(fd, p, n, DATA_AT + at);
                if (r < 0)
                        return r;
                p += n;
                end += n;
                size -= n;
        }
        if (end - first > LOG_KEPT_MAX)
                first = end - LOG_KEPT_MAX;
        memcpy(h.magic, magic, sizeof(magic));
        memcpy(h.uid, id->job_uid.bytes, sizeof(h.uid));
        h.first = htole64(first);
        h.end = htole64(end);
        return write_at(fd, &h, sizeof(h), 0);
}

static int read_at(int fd, char *buf, size_t size, uint64_t at) {
        while (size > 0) {
                ssize_t l = pread(fd, buf, size, (off_t)at);
                if (l < 0 && errno == EINTR)
                        continue;
                if (l < 0)
                        return -errno;
                if (l == 0)
                        return -EIO;
                buf += l;
                at += (uint64_t)l;
                size -= (size_t)l;
        }
        return 0;
}

int kept_read(int dir_fd, const struct executor_id *id, uint64_t from, uint64_t tail, char **ret,
              size_t *ret_size, uint64_t *ret_start) {
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *buf = NULL;
        uint64_t first, end, start;
        size_t size, done = 0;
        char name[96];
        int r;

        kept_name(id, name);
        fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        r = read_header(fd, id, &first, &end);
        if (r < 0)
                return r;
        if (r == 0)
                return -ENOENT;
        start = MAX(from, first);
        start = MIN(start, end);
        if (tail > 0 && end - start > tail)
                start = end - tail;
        size = (size_t)(end - start);
        if (size == 0) {
                *ret = NULL;
                *ret_size = 0;
                *ret_start = start;
                return 0;
        }
        buf = malloc(size);
        if (!buf)
                return -ENOMEM;
        while (done < size) {
                size_t at = (size_t)((start + done) % LOG_KEPT_MAX),
                       n = MIN(size - done, (size_t)LOG_KEPT_MAX - at);
                r = read_at(fd, buf + done, n, DATA_AT + at);
                if (r < 0)
                        return r;
                done += n;
        }
        if (start != from) {
                const char *nl = memchr(buf, '\n', size);
                /* One endless line is better than nothing. */
                if (nl && nl + 1 < buf + size) {
                        size_t cut = (size_t)(nl + 1 - buf);
                        memmove(buf, nl + 1, size - cut);
                        size -= cut;
                        start += cut;
                }
        }
        *ret = TAKE_PTR(buf);
        *ret_size = size;
        *ret_start = start;
        return 0;
}

int kept_forget(int dir_fd, uint32_t job) {
        char path[64];

        /* remove_tree() takes a path; the descriptor's own name in /proc is one. */
        snprintf(path, sizeof(path), "/proc/self/fd/%d/%u", dir_fd, job);
        return remove_tree(path);
}
