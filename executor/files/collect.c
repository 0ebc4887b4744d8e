/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: nothing outside of the directory is opened (no link is followed, no name goes up), nothing that
 * is not an ordinary file is read, and one packet is all that is held: who does not read stops us. */
#include "executor/files/collect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/record/record.h"
#include "lib/wire/artifacts.h"
#include "lib/wire/session.h"

#define NSEC_PER_SEC UINT64_C(1000000000)
#define DATA_MAX (48u << 10)

struct collect {
        int control, top;
        uint64_t records;
        size_t used; /* of the packet, with its first byte */
        uint8_t packet[SESSION_PACKET_MAX];
        char path[ARTIFACT_PATH_MAX + 1]; /* of what is looked at, from the top */
        struct artifact_decoder decoder;
};

static int flush(struct collect *c) {
        ssize_t n;

        if (c->used <= 1)
                return 0;
        c->packet[0] = SESSION_OUTPUT;
        do
                n = send(c->control, c->packet, c->used, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        c->used = 1;
        return n < 0 ? -errno : 0;
}

static int put_bytes(struct collect *c, const void *data, size_t size) {
        const uint8_t *p = data;
        int r = 0;

        while (size > 0 && r >= 0) {
                size_t n = MIN(size, sizeof(c->packet) - c->used);

                memcpy(c->packet + c->used, p, n);
                c->used += n;
                p += n;
                size -= n;
                if (c->used == sizeof(c->packet))
                        r = flush(c);
        }
        return r;
}

static int say_artifact(struct collect *c, const struct artifact *a, const void *payload, size_t size) {
        struct artifact whole = *a;
        uint8_t head[ARTIFACT_HEAD_SIZE];
        int r;

        whole.payload_size = (uint16_t)size;
        artifact_write(&whole, head);
        c->records++;
        r = put_bytes(c, head, sizeof(head));
        return r < 0 ? r : put_bytes(c, payload, size);
}

static int say_left_out(struct collect *c, const char *path, enum artifact_why why) {
        const struct artifact a = { .type = ARTIFACT_LEFT_OUT, .why = (uint8_t)why };

        return say_artifact(c, &a, path, strlen(path));
}

static uint64_t mtime_of(const struct stat *st) {
        return (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st->st_mtim.tv_nsec;
}

/* ---- list ---- */

static int list_link(struct collect *c, int dir, const char *name) {
        const struct artifact a = { .type = ARTIFACT_LINK };
        char text[2 * ARTIFACT_PATH_MAX + 2];
        size_t l = strlen(c->path);
        ssize_t n;

        memcpy(text, c->path, l + 1);
        n = readlinkat(dir, name, text + l + 1, ARTIFACT_PATH_MAX + 1);
        if (n < 0)
                return say_left_out(c, c->path, errno == ENOENT ? ARTIFACT_GONE : ARTIFACT_UNREADABLE);
        if (n > (ssize_t)ARTIFACT_PATH_MAX)
                return say_left_out(c, c->path, ARTIFACT_DEEP);
        text[l + 1 + (size_t)n] = 0;
        if (!artifact_link_inside(c->path, text + l + 1))
                return say_left_out(c, c->path, ARTIFACT_OUTSIDE);
        return say_artifact(c, &a, text, l + 1 + (size_t)n);
}

static int list_directory(struct collect *c, int fd, size_t length, unsigned depth);

static int list_entry(struct collect *c, int dir, const char *name, size_t length, unsigned depth) {
        struct artifact a = {};
        struct stat st;
        int fd;

        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : say_left_out(c, c->path, ARTIFACT_UNREADABLE);
        a.mode = st.st_mode & 0777;
        a.mtime_nsec = mtime_of(&st);
        if (S_ISLNK(st.st_mode))
                return list_link(c, dir, name);
        if (S_ISREG(st.st_mode)) {
                a.type = ARTIFACT_FILE;
                a.size = (uint64_t)st.st_size;
                return say_artifact(c, &a, c->path, strlen(c->path));
        }
        if (!S_ISDIR(st.st_mode))
                return say_left_out(c, c->path, ARTIFACT_SPECIAL);
        if (depth >= ARTIFACT_DEPTH_MAX)
                return say_left_out(c, c->path, ARTIFACT_DEEP);
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return say_left_out(c, c->path, ARTIFACT_UNREADABLE);
        a.type = ARTIFACT_DIRECTORY;
        int r = say_artifact(c, &a, c->path, strlen(c->path));
        if (r < 0) {
                close_fd(fd);
                return r;
        }
        return list_directory(c, fd, length, depth + 1);
}

/* Takes fd. length: of its path, which stands in c->path. */
static int list_directory(struct collect *c, int fd, size_t length, unsigned depth) {
        _cleanup_closedir_ DIR *dir = fdopendir(fd);
        struct dirent *e;
        int r = 0;

        if (!dir) {
                close_fd(fd);
                return -errno;
        }
        while (r >= 0) {
                errno = 0;
                e = readdir(dir);
                if (!e)
                        break;
                size_t l = strlen(e->d_name), at = length > 0 ? length + 1 : 0;

                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                        continue;
                if (at + l > ARTIFACT_PATH_MAX) {
                        c->path[length] = 0;
                        r = say_left_out(c, c->path, ARTIFACT_DEEP);
                        continue;
                }
                if (length > 0)
                        c->path[length] = '/';
                memcpy(c->path + at, e->d_name, l + 1);
                r = list_entry(c, dirfd(dir), e->d_name, at + l, depth);
        }
        if (r < 0 || errno == 0)
                return r;
        if (length == 0) /* nothing has a name that this could be said of */
                return -errno;
        c->path[length] = 0;
        return say_left_out(c, c->path, ARTIFACT_UNREADABLE); /* what else is in it */
}

static int send_list(struct collect *c) {
        int fd = fcntl(c->top, F_DUPFD_CLOEXEC, 3);

        return fd < 0 ? -errno : list_directory(c, fd, 0, 0);
}

/* ---- fetch ---- */

/* One step after the other, none of them a link. */
static int open_below(int top, const char *path) {
        _cleanup_close_ int dir = fcntl(top, F_DUPFD_CLOEXEC, 3);
        char name[256];

        for (const char *slash; dir >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
                int next;

                snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
                next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (next < 0)
                        return -errno;
                close_fd(dir);
                dir = next;
        }
        if (dir < 0)
                return -errno;
        int fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int send_file(struct collect *c, int fd, const struct stat *before, uint64_t most, const char *path) {
        struct artifact a = { .type = ARTIFACT_FILE,
                              .mode = before->st_mode & 0777,
                              .size = MIN((uint64_t)before->st_size, most),
                              .mtime_nsec = mtime_of(before) };
        struct artifact eof = { .type = ARTIFACT_EOF };
        const struct artifact piece = { .type = ARTIFACT_DATA };
        static uint8_t data[DATA_MAX];
        struct stat after;
        int r = say_artifact(c, &a, path, strlen(path));

        while (r >= 0 && eof.size < a.size) {
                ssize_t n = read(fd, data, MIN((uint64_t)sizeof(data), a.size - eof.size));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        eof.why = ARTIFACT_UNREADABLE;
                if (n <= 0)
                        break; /* 0: shorter than it was, it has changed */
                eof.mode = crc32c(eof.mode, data, (size_t)n);
                eof.size += (uint64_t)n;
                r = say_artifact(c, &piece, data, (size_t)n);
        }
        if (r < 0)
                return r;
        if (eof.why == 0 && (eof.size < a.size || fstat(fd, &after) < 0 || after.st_size != before->st_size ||
                             mtime_of(&after) != a.mtime_nsec || (uint64_t)before->st_size > most))
                eof.why = ARTIFACT_CHANGED;
        return say_artifact(c, &eof, NULL, 0);
}

static int on_want(const struct artifact *a, const uint8_t *payload, void *userdata) {
        _cleanup_close_ int fd = -EBADF;
        const char *path = (const char *)payload;
        struct collect *c = userdata;
        struct stat st;

        if (a->type != ARTIFACT_WANT || !artifact_path_valid(path, a->payload_size))
                return -EBADMSG;
        fd = open_below(c->top, path);
        if (fd < 0)
                return say_left_out(c, path, fd == -ENOENT ? ARTIFACT_GONE : ARTIFACT_UNREADABLE);
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return say_left_out(c, path, ARTIFACT_SPECIAL);
        return send_file(c, fd, &st, a->size, path);
}

static int fetch(struct collect *c) {
        static uint8_t input[SESSION_PACKET_MAX];

        for (;;) {
                ssize_t n;
                int r = flush(c); /* before we wait */

                if (r < 0)
                        return r;
                do
                        n = recv(c->control, input, sizeof(input), 0);
                while (n < 0 && errno == EINTR);
                if (n <= 0)
                        return n < 0 ? -errno : -ECONNRESET;
                if (input[0] == SESSION_INPUT_END)
                        return c->decoder.have == 0 ? 0 : -EBADMSG;
                if (input[0] == SESSION_INPUT &&
                    (r = artifact_decode(&c->decoder, input + 1, (size_t)n - 1, on_want, c)) < 0)
                        return r;
        }
}

/* ---- the process ---- */

/* The first argument of the start packet, which is in the buffer; "" where there is none. */
static int receive_start(int control, char *buffer, size_t size, const char **ret) {
        struct session_start start;
        ssize_t n = recv(control, buffer, size - 1, 0);

        if (n <= 0)
                return n < 0 ? -errno : -ECONNRESET;
        buffer[n] = 0;
        if ((size_t)n < 1 + sizeof(start) || (uint8_t)buffer[0] != SESSION_START)
                return -EBADMSG;
        memcpy(&start, buffer + 1, sizeof(start));
        if (start.version != SESSION_VERSION)
                return -EPROTONOSUPPORT;
        *ret = start.n_arguments > 0 ? buffer + 1 + sizeof(start) : "";
        return 0;
}

static void tell_end(int control, int r) {
        const struct session_end end = { .status = r < 0 ? SESSION_STATUS_BROKEN : 0 };
        uint8_t packet[1 + sizeof(end) + 256] = { SESSION_END };
        int n = 0;

        memcpy(packet + 1, &end, sizeof(end));
        if (r < 0)
                n = snprintf((char *)packet + 1 + sizeof(end), 256, "the artifacts cannot be read: %s",
                             strerror(-r));
        (void)!send(control, packet, 1 + sizeof(end) + (size_t)n, MSG_NOSIGNAL);
}

int collect_run(int control, const char *directory) {
        static struct collect c;
        const char *mode = "";
        bool fetches;
        int r;

        /* We are the job's user, and outside of his job's limits: none of his processes becomes us. */
        (void)prctl(PR_SET_DUMPABLE, 0);
        r = receive_start(control, (char *)c.packet, sizeof(c.packet), &mode);
        fetches = strcmp(mode, "fetch") == 0;

        if (r == -ECONNRESET)
                return EXIT_SUCCESS;
        if (r >= 0 && !fetches && strcmp(mode, "list") != 0)
                r = -EINVAL;
        c.control = control;
        c.used = 1;
        c.top = r < 0 ? -EBADF : open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (r >= 0 && c.top < 0)
                r = -errno;
        if (r >= 0)
                r = fetches ? fetch(&c) : send_list(&c);
        if (r >= 0) {
                const struct artifact last = { .type = ARTIFACT_END, .size = c.records };
                r = say_artifact(&c, &last, NULL, 0);
        }
        if (r >= 0)
                r = flush(&c);
        tell_end(control, r);
        close_fd(c.top);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
