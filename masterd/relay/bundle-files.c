/* SPDX-License-Identifier: Apache-2.0 */
/* Stored bundles. Invariants: a file under its final name is complete, durable and has the content its name
 * says; the bytes counted for a user are those of the files and of the full size of each upload, so that
 * uploads side by side cannot exceed the limit together. */
#include "masterd/relay/bundle-files.h"

#include <dirent.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <string.h>
#include <sys/stat.h>
#include <uthash.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "lib/base/parse.h"

#define SHA256_BYTES 32u
#define IDLE_USEC (600 * USEC_PER_SEC)     /* an upload that nobody goes on with is dropped */
#define IDLE_FULL_USEC (60 * USEC_PER_SEC) /* ... and so early when its place is needed */
#define YOUNG_USEC                                                                                           \
        (600 * USEC_PER_SEC) /* uploaded, but perhaps not submitted yet: never removed for room              \
                              */

struct upload {
        char sha256[65];
        uint64_t size, next, heard_real;
        int fd;
        gnutls_hash_hd_t hash;
        bool finishing;
        UT_hash_handle hh; /* by sha256, in its user */
};

struct user {
        uint32_t uid;
        int dir_fd;
        uint64_t bytes; /* files, and uploads in full */
        uint32_t n_files;
        struct upload *uploads;
        UT_hash_handle hh; /* by uid */
};

struct bundle_files {
        int dir_fd;
        struct bundle_limits limits;
        bundle_in_use in_use;
        void *userdata;
        struct user *users;
        unsigned n_uploads;
};

bool bundle_name_valid(const char *s) {
        size_t n = strspn(s, "0123456789abcdef");

        return n == 64 && s[n] == 0;
}

static void part_name(const char *sha256, char name[static 72]) {
        snprintf(name, 72, "%.64s.part", sha256);
}

/* ---- users ---- */

static void upload_free(struct bundle_files *f, struct user *u, struct upload *p) {
        HASH_DEL(u->uploads, p);
        f->n_uploads--;
        if (p->hash)
                gnutls_hash_deinit(p->hash, NULL);
        (void)close_fd(p->fd);
        free(p);
}

static void upload_drop(struct bundle_files *f, struct user *u, struct upload *p) {
        char name[72];

        part_name(p->sha256, name);
        (void)unlinkat(u->dir_fd, name, 0);
        u->bytes -= p->size;
        upload_free(f, u, p);
}

static void user_free(struct bundle_files *f, struct user *u) {
        struct upload *p, *next;

        HASH_ITER (hh, u->uploads, p, next)
                upload_free(f, u, p);
        HASH_DEL(f->users, u);
        (void)close_fd(u->dir_fd);
        free(u);
}

/* A directory stream of its own, from the start. */
static DIR *open_list(int dir_fd) {
        int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d;

        if (fd < 0)
                return NULL;
        d = fdopendir(fd);
        if (!d)
                (void)close(fd);
        return d;
}

static int user_count(struct user *u) {
        struct dirent *entry;
        struct stat st;
        DIR *d = open_list(u->dir_fd);

        if (!d)
                return -errno;
        while ((entry = readdir(d))) {
                if (entry->d_name[0] == '.')
                        continue;
                if (!bundle_name_valid(entry->d_name))
                        (void)unlinkat(u->dir_fd, entry->d_name,
                                       0); /* a part; the hash of what it has is lost */
                else if (fstatat(u->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                        u->bytes += (uint64_t)st.st_size;
                        u->n_files++;
                }
        }
        closedir(d);
        return 0;
}

static int user_add(struct bundle_files *f, uint32_t uid, struct user **ret) {
        struct user *u = calloc(1, sizeof(*u));
        char name[16];
        int r = 0;

        if (!u)
                return -ENOMEM;
        u->uid = uid;
        snprintf(name, sizeof(name), "%u", uid);
        if (mkdirat(f->dir_fd, name, 0700) < 0 && errno != EEXIST)
                r = -errno;
        u->dir_fd = r < 0 ? -EBADF : openat(f->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (r >= 0 && u->dir_fd < 0)
                r = -errno;
        if (r >= 0)
                r = user_count(u);
        if (r < 0) {
                (void)close_fd(u->dir_fd);
                free(u);
                return r;
        }
        HASH_ADD(hh, f->users, uid, sizeof(u->uid), u);
        *ret = u;
        return 0;
}

static struct user *user_find(struct bundle_files *f, uint32_t uid) {
        struct user *u;

        HASH_FIND(hh, f->users, &uid, sizeof(uid), u);
        return u;
}

static struct upload *upload_find(struct user *u, const char *sha256) {
        struct upload *p = NULL;

        if (u)
                HASH_FIND(hh, u->uploads, sha256, 64, p);
        return p;
}

/* ---- making room ---- */

static uint64_t mtime_of(const struct stat *st) {
        return (uint64_t)st->st_mtim.tv_sec * USEC_PER_SEC + (uint64_t)st->st_mtim.tv_nsec / 1000;
}

struct stored {
        char sha256[65];
        uint64_t mtime, bytes;
};

static int compare_age(const void *a, const void *b) {
        const struct stored *x = a, *y = b;

        return x->mtime < y->mtime ? -1 : x->mtime > y->mtime;
}

/* Removes unused files that are older than age, least recently used first, until what the user has is within
 * bytes and n_files. */
static int remove_unused(struct bundle_files *f, struct user *u, uint64_t now_real, uint64_t age_usec,
                         uint64_t bytes, uint32_t n_files) {
        _cleanup_free_ struct stored *list = NULL;
        size_t n = 0, allocated = 0;
        struct dirent *entry;
        DIR *d = open_list(u->dir_fd);

        if (!d)
                return -errno;
        while ((entry = readdir(d))) {
                struct stat st;

                if (!bundle_name_valid(entry->d_name) ||
                    fstatat(u->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    usec_sub(now_real, mtime_of(&st)) <= age_usec || upload_find(u, entry->d_name))
                        continue;
                if (n == allocated) {
                        struct stored *bigger =
                                reallocarray(list, allocated ? allocated * 2 : 64, sizeof(*list));
                        if (!bigger)
                                break; /* the rest another time */
                        list = bigger;
                        allocated = allocated ? allocated * 2 : 64;
                }
                memcpy(list[n].sha256, entry->d_name, sizeof(list[n].sha256));
                list[n].mtime = mtime_of(&st);
                list[n].bytes = (uint64_t)st.st_size;
                n++;
        }
        closedir(d);
        if (n > 0)
                qsort(list, n, sizeof(*list), compare_age);
        for (size_t i = 0; i < n && (u->bytes > bytes || u->n_files > n_files); i++) {
                if (f->in_use(u->uid, list[i].sha256, f->userdata) ||
                    unlinkat(u->dir_fd, list[i].sha256, 0) < 0)
                        continue;
                u->bytes -= MIN(list[i].bytes, u->bytes);
                u->n_files--;
        }
        return 0;
}

/* Drops the uploads of u (NULL: of everybody) that were not heard of for so long. */
static void drop_idle(struct bundle_files *f, struct user *only, uint64_t now_real, uint64_t idle_usec) {
        struct user *u, *u_next;
        struct upload *p, *next;

        HASH_ITER (hh, f->users, u, u_next) {
                if (only && u != only)
                        continue;
                HASH_ITER (hh, u->uploads, p, next)
                        if (!p->finishing && usec_sub(now_real, p->heard_real) > idle_usec)
                                upload_drop(f, u, p);
        }
}

static bool make_room(struct bundle_files *f, struct user *u, uint64_t size, uint64_t now_real) {
        if (size > f->limits.per_user_max)
                return false;
        if (u->bytes + size > f->limits.per_user_max)
                drop_idle(f, u, now_real, IDLE_FULL_USEC);
        if (u->bytes + size <= f->limits.per_user_max && u->n_files < BUNDLE_FILES_PER_USER_MAX)
                return true;
        (void)remove_unused(f, u, now_real, YOUNG_USEC, f->limits.per_user_max - size,
                            BUNDLE_FILES_PER_USER_MAX - 1);
        return u->bytes + size <= f->limits.per_user_max && u->n_files < BUNDLE_FILES_PER_USER_MAX;
}

/* ---- uploads ---- */

static int upload_new(struct bundle_files *f, struct user *u, const char *sha256, uint64_t size,
                      uint64_t now_real, struct upload **ret) {
        struct upload *p;
        char name[72];
        int r;

        if (HASH_COUNT(u->uploads) >= BUNDLE_UPLOADS_PER_USER_MAX)
                drop_idle(f, u, now_real, IDLE_FULL_USEC);
        if (f->n_uploads >= BUNDLE_UPLOADS_MAX)
                drop_idle(f, NULL, now_real, IDLE_FULL_USEC);
        if (f->n_uploads >= BUNDLE_UPLOADS_MAX || HASH_COUNT(u->uploads) >= BUNDLE_UPLOADS_PER_USER_MAX)
                return BUNDLE_E_UPLOADS;
        if (!make_room(f, u, size, now_real))
                return BUNDLE_E_QUOTA;
        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        part_name(sha256, name);
        memcpy(p->sha256, sha256, sizeof(p->sha256));
        p->size = size;
        p->fd = openat(u->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = p->fd < 0 ? -errno : 0;
        if (r >= 0 && gnutls_hash_init(&p->hash, GNUTLS_DIG_SHA256) < 0)
                r = -ENOMEM;
        if (r < 0) {
                (void)close_fd(p->fd);
                free(p);
                return r;
        }
        HASH_ADD(hh, u->uploads, sha256, 64, p);
        u->bytes += size;
        f->n_uploads++;
        *ret = p;
        return BUNDLE_OK;
}

static bool content_matches(struct upload *p) {
        uint8_t digest[SHA256_BYTES];
        char text[65];

        gnutls_hash_deinit(p->hash, digest);
        p->hash = NULL;
        return memcmp(format_hex(digest, sizeof(digest), text), p->sha256, 64) == 0;
}

static int append(struct bundle_files *f, struct user *u, struct upload *p, const void *chunk, size_t n,
                  uint64_t now_real, uint64_t *ret_next, struct bundle_finish *ret_finish) {
        int r;

        p->heard_real = now_real;
        r = write_all(p->fd, chunk, n);
        if (r >= 0 && n > 0 && gnutls_hash(p->hash, chunk, n) < 0)
                r = -EIO;
        if (r < 0) {
                upload_drop(f, u, p);
                return r;
        }
        p->next += n;
        if (p->next < p->size) {
                *ret_next = p->next;
                return BUNDLE_OK;
        }
        if (!content_matches(p)) {
                upload_drop(f, u, p);
                return BUNDLE_E_CONTENT;
        }
        p->finishing = true;
        *ret_finish = (struct bundle_finish){ .fd = p->fd, .dir_fd = u->dir_fd };
        part_name(p->sha256, ret_finish->from);
        memcpy(ret_finish->to, p->sha256, sizeof(ret_finish->to));
        return BUNDLE_RECEIVED;
}

int bundle_files_put(struct bundle_files *f, uint32_t uid, const char *sha256, uint64_t size, uint64_t offset,
                     const void *chunk, size_t n, uint64_t now_real, uint64_t *ret_next,
                     struct bundle_finish *ret_finish) {
        struct user *u = user_find(f, uid);
        struct upload *p;
        struct stat st;
        int r;

        if (!bundle_name_valid(sha256))
                return -EINVAL;
        if (size == 0 || n > BUNDLE_CHUNK_MAX || offset > size || n > size - offset)
                return BUNDLE_E_SIZE;
        if (size > f->limits.bundle_max)
                return BUNDLE_E_LARGE;
        if (!u) {
                r = user_add(f, uid, &u);
                if (r < 0)
                        return r;
        }
        p = upload_find(u, sha256);
        if (p && p->finishing) /* perhaps under its name already, but not durable yet */
                return BUNDLE_FINISHING;
        if (fstatat(u->dir_fd, sha256, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                if ((uint64_t)st.st_size != size)
                        return BUNDLE_E_SIZE;
                (void)bundle_files_have(f, uid, sha256, now_real);
                *ret_next = size;
                return BUNDLE_OK;
        }
        if (p && p->size != size)
                return BUNDLE_E_SIZE;
        /* Not where we are, or only a question: say what is wanted. */
        if (n == 0 || offset != (p ? p->next : 0)) {
                *ret_next = p ? p->next : 0;
                return BUNDLE_OK;
        }
        if (!p) {
                r = upload_new(f, u, sha256, size, now_real, &p);
                if (r != BUNDLE_OK)
                        return r;
        }
        return append(f, u, p, chunk, n, now_real, ret_next, ret_finish);
}

int bundle_finish(const struct bundle_finish *finish) {
        if (fsync(finish->fd) < 0 || renameat(finish->dir_fd, finish->from, finish->dir_fd, finish->to) < 0 ||
            fsync(finish->dir_fd) < 0)
                return -errno;
        return 0;
}

void bundle_files_finished(struct bundle_files *f, uint32_t uid, const char *sha256, int result) {
        struct user *u = user_find(f, uid);
        struct upload *p = upload_find(u, sha256);

        if (!p)
                return;
        if (result < 0) {
                /* The rename may have happened without its being durable. */
                (void)unlinkat(u->dir_fd, sha256, 0);
                upload_drop(f, u, p);
                return;
        }
        u->n_files++;
        upload_free(f, u, p); /* its bytes stay counted, as the file's */
}

/* ---- files ---- */

bool bundle_files_have(struct bundle_files *f, uint32_t uid, const char *sha256, uint64_t now_real) {
        struct user *u = user_find(f, uid);
        struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                     { .tv_sec = (time_t)(now_real / USEC_PER_SEC),
                                       .tv_nsec = (long)(now_real % USEC_PER_SEC) * 1000 } };

        if (!u || !bundle_name_valid(sha256))
                return false;
        if (upload_find(u, sha256)) /* perhaps renamed, but not durable yet */
                return false;
        return utimensat(u->dir_fd, sha256, times, AT_SYMLINK_NOFOLLOW) == 0;
}

int bundle_files_read(struct bundle_files *f, uint32_t uid, const char *sha256, uint64_t offset, void *buf,
                      size_t max, uint64_t *ret_size, size_t *ret_n) {
        struct user *u = user_find(f, uid);
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        size_t n = 0;

        if (!u || !bundle_name_valid(sha256))
                return -ENOENT;
        fd = openat(u->dir_fd, sha256, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (offset < (uint64_t)st.st_size)
                while (n < max) {
                        ssize_t l = pread(fd, (char *)buf + n, max - n, (off_t)(offset + n));
                        if (l < 0 && errno == EINTR)
                                continue;
                        if (l < 0)
                                return -errno;
                        if (l == 0)
                                break;
                        n += (size_t)l;
                }
        *ret_size = (uint64_t)st.st_size;
        *ret_n = n;
        return 0;
}

void bundle_files_sweep(struct bundle_files *f, uint64_t now_real, uint64_t age_usec) {
        struct user *u, *next;

        drop_idle(f, NULL, now_real, IDLE_USEC);
        HASH_ITER (hh, f->users, u, next)
                (void)remove_unused(f, u, now_real, age_usec, 0, 0);
}

uint64_t bundle_files_stored(struct bundle_files *f, uint32_t uid) {
        struct user *u = user_find(f, uid);

        return u ? u->bytes : 0;
}

int bundle_files_new(const char *directory, const struct bundle_limits *limits, bundle_in_use in_use,
                     void *userdata, struct bundle_files **ret) {
        struct bundle_files *f = calloc(1, sizeof(*f));
        struct dirent *entry;
        struct user *u;
        uint32_t uid;
        DIR *d = NULL;
        int r;

        if (!f)
                return -ENOMEM;
        f->limits = *limits;
        f->in_use = in_use;
        f->userdata = userdata;
        f->dir_fd = -EBADF;
        r = make_directories(directory, 0700);
        if (r >= 0) {
                f->dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                d = f->dir_fd < 0 ? NULL : open_list(f->dir_fd);
                r = d ? 0 : -errno;
        }
        while (r >= 0 && (entry = readdir(d)))
                if (parse_u32(entry->d_name, 0, UINT32_MAX - 1, &uid) >= 0 && !user_find(f, uid))
                        r = user_add(f, uid, &u);
        if (d)
                closedir(d);
        if (r < 0) {
                bundle_files_free(f);
                return r;
        }
        *ret = f;
        return 0;
}

void bundle_files_free(struct bundle_files *f) {
        struct user *u, *next;

        if (!f)
                return;
        HASH_ITER (hh, f->users, u, next)
                user_free(f, u);
        (void)close_fd(f->dir_fd);
        free(f);
}
