/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of bundles. Invariant: a file under its final name is complete and has the content that its name
 * says. */
#include "agentd/feed/bundles.h"

#include <dirent.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "lib/wire/messages.h"

#define SHA256_SIZE 32u
#define SHA256_TEXT 64u

const struct bundle_limits bundle_limits_default = {
        .bundle_bytes = UINT64_C(16) << 30,
        .cache_bytes = UINT64_C(64) << 30,
        .age_usec = UINT64_C(7) * 24 * 3600 * USEC_PER_SEC,
};

struct waiter {
        struct waiter *next;
        bundle_ready_handler handler;
        void *userdata;
};

/* A bundle that somebody waits for: being fetched, or there and about to be announced. */
struct bundle_transfer {
        struct bundles *bundles;
        struct bundle_transfer *prev, *next;
        uint32_t uid;
        char sha256[SHA256_TEXT + 1];
        char *path, *temporary;
        int fd;
        gnutls_hash_hd_t hash;
        uint64_t offset;
        struct waiter *waiters;
        sd_event_source *defer; /* announces from the loop */
        bool asked;             /* an answer to get() is on its way */
        bool orphan;            /* the cache is gone, only that answer is waited for */
        int error;
        char *text;
};

struct bundles {
        sd_event *event;
        char *directory;
        struct bundle_limits limits;
        const struct bundle_ops *ops;
        void *userdata;
        struct bundle_transfer *transfers;
};

/* ---- what is on disk ---- */

struct cached {
        char *path;
        uint32_t user; /* which of those in the listing */
        uint64_t size, used_usec, made_usec;
};

struct listing {
        struct cached *files;
        size_t n, allocated;
        uint32_t n_users;
};

static void listing_done(struct listing *l) {
        for (size_t i = 0; i < l->n; i++)
                free(l->files[i].path);
        free(l->files);
}

static uint64_t timespec_usec(const struct timespec *t) {
        return (uint64_t)t->tv_sec * USEC_PER_SEC + (uint64_t)t->tv_nsec / 1000;
}

static int list_user(const char *directory, struct listing *l) {
        _cleanup_closedir_ DIR *d = opendir(directory);
        struct dirent *e;

        while (d && (e = readdir(d))) {
                struct stat st;

                if (e->d_name[0] == '.' && (e->d_name[1] == 0 || strcmp(e->d_name, "..") == 0))
                        continue;
                if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                        continue;
                if (l->n == l->allocated) {
                        struct cached *bigger = reallocarray(l->files, l->allocated + 64, sizeof(*bigger));

                        if (!bigger)
                                return -ENOMEM;
                        l->files = bigger;
                        l->allocated += 64;
                }
                /* What it takes up: its owner can make it as long as he likes. */
                l->files[l->n] = (struct cached){ .user = l->n_users,
                                                  .size = 512 * (uint64_t)st.st_blocks,
                                                  .used_usec = timespec_usec(&st.st_mtim),
                                                  .made_usec = timespec_usec(&st.st_ctim) };
                if (asprintf(&l->files[l->n].path, "%s/%s", directory, e->d_name) < 0)
                        return -ENOMEM;
                l->n++;
        }
        return 0;
}

static int list_cache(struct bundles *b, struct listing *ret) {
        _cleanup_closedir_ DIR *d = opendir(b->directory);
        struct dirent *e;

        if (!d)
                return -errno;
        while ((e = readdir(d))) {
                _cleanup_free_ char *user = NULL;
                int r;

                if (e->d_name[0] == '.')
                        continue;
                if (asprintf(&user, "%s/%s", b->directory, e->d_name) < 0)
                        return -ENOMEM;
                r = list_user(user, ret);
                if (r < 0)
                        return r;
                ret->n_users++;
        }
        return 0;
}

static int by_use(const void *a, const void *b) {
        const struct cached *x = a, *y = b;

        return x->used_usec < y->used_usec ? -1 : x->used_usec > y->used_usec;
}

static bool in_use(const struct bundles *b, const char *path) {
        for (struct bundle_transfer *t = b->transfers; t; t = t->next)
                if ((t->path && strcmp(t->path, path) == 0) ||
                    (t->temporary && strcmp(t->temporary, path) == 0))
                        return true;
        return false;
}

/* The next to go: of the user who has most, what he used last is what stays longest. NULL: none can. */
static struct cached *next_to_go(const struct listing *l, uint64_t *const users) {
        struct cached *found = NULL;

        for (size_t i = 0; i < l->n; i++) {
                struct cached *f = &l->files[i];
                if (f->path && (!found || users[f->user] > users[found->user]))
                        found = f;
        }
        return found;
}

void bundles_prune(struct bundles *b, const char *spare) {
        _cleanup_(listing_done) struct listing l = { 0 };
        _cleanup_free_ uint64_t *users = NULL;
        uint64_t total = 0, now = now_real();
        struct cached *f;

        if (list_cache(b, &l) < 0 || !(users = calloc(l.n_users + 1, sizeof(*users))))
                return;
        if (l.n > 0)
                qsort(l.files, l.n, sizeof(*l.files), by_use);
        for (size_t i = 0; i < l.n; i++) {
                f = &l.files[i];
                bool old = usec_sub(now, f->used_usec) > b->limits.age_usec,
                     stays = (spare && strcmp(spare, f->path) == 0) || in_use(b, f->path);
                if (!old || stays || unlink(f->path) < 0) {
                        users[f->user] += f->size;
                        total += f->size;
                } else
                        stays = true;
                if (stays) {
                        free(f->path);
                        f->path = NULL;
                }
        }
        /* One user's files do not push out another's as long as he has more himself. */
        while (total > b->limits.cache_bytes && (f = next_to_go(&l, users))) {
                if (unlink(f->path) >= 0) {
                        users[f->user] -= f->size;
                        total -= f->size;
                }
                free(f->path);
                f->path = NULL;
        }
}

/* What a crash of the machine may have torn: everything from before this boot. And what was on its way. */
static void remove_stale(struct bundles *b) {
        _cleanup_(listing_done) struct listing l = { 0 };
        uint64_t booted = usec_sub(now_real(), now_boot());

        if (list_cache(b, &l) < 0)
                return;
        for (size_t i = 0; i < l.n; i++) {
                const char *name = strrchr(l.files[i].path, '/') + 1;

                if (strlen(name) != SHA256_TEXT || l.files[i].made_usec < booted)
                        (void)unlink(l.files[i].path);
        }
}

/* ---- transfers ---- */

static void transfer_free(struct bundle_transfer *t) {
        struct waiter *w, *next;

        if (t->bundles)
                DL_DELETE(t->bundles->transfers, t);
        if (t->hash)
                gnutls_hash_deinit(t->hash, NULL);
        (void)close_fd(t->fd);
        if (t->temporary)
                (void)unlink(t->temporary);
        sd_event_source_disable_unref(t->defer);
        LL_FOREACH_SAFE (t->waiters, w, next)
                free(w);
        free(t->path);
        free(t->temporary);
        free(t->text);
        free(t);
}

static int on_announce(sd_event_source *source, void *userdata) {
        struct bundle_transfer *t = userdata;
        struct waiter *w, *next, *waiters = TAKE_PTR(t->waiters);

        /* Off the list first: whoever wants it again from a handler starts anew. */
        DL_DELETE(t->bundles->transfers, t);
        t->bundles = NULL;
        LL_FOREACH_SAFE (waiters, w, next) {
                w->handler(w->userdata, t->error, t->text ? t->text : "", t->error < 0 ? NULL : t->path);
                free(w);
        }
        transfer_free(t);
        return 0;
}

static void transfer_end(struct bundle_transfer *t, int error, const char *text) {
        if (t->error == 0 && error < 0) {
                t->error = error;
                t->text = strdup(text ? text : "");
        }
        if (t->temporary)
                (void)unlink(t->temporary);
        t->fd = close_fd(t->fd);
        if (!t->defer && sd_event_add_defer(t->bundles->event, &t->defer, on_announce, t) < 0)
                (void)on_announce(NULL, t);
}

static void transfer_ask(struct bundle_transfer *t) {
        struct bundles *b = t->bundles;
        int r;

        t->asked = true;
        r = b->ops->get(b->userdata, t->uid, t->sha256, t->offset, LINK_CHUNK_MAX, t);
        if (r < 0) {
                t->asked = false;
                transfer_end(t, r, "the bulk connection to masterd is not there");
        }
}

static int transfer_finish(struct bundle_transfer *t) {
        uint8_t digest[SHA256_SIZE];
        char text[SHA256_TEXT + 1];

        gnutls_hash_deinit(TAKE_PTR(t->hash), digest);
        if (strcmp(format_hex(digest, SHA256_SIZE, text), t->sha256) != 0)
                return -EBADMSG;
        /* Before its name: who waits for that finds the user's file. */
        int r = t->bundles->ops->give(t->bundles->userdata, t->fd, t->uid);
        if (r < 0)
                return r;
        if (rename(t->temporary, t->path) < 0)
                return -errno;
        free(t->temporary);
        t->temporary = NULL;
        return 0;
}

static const char *write_problem(int r) {
        return r == -ENOSPC || r == -EDQUOT ? "the disk of this host's cache of files is full"
                                            : "it cannot be written to this host's cache of files";
}

static int transfer_store(struct bundle_transfer *t, uint64_t size, const void *data, size_t n,
                          const char **ret_text) {
        int r;

        if (size > t->bundles->limits.bundle_bytes) {
                *ret_text = "the bundle is larger than this host takes";
                return -EFBIG;
        }
        if (n > LINK_CHUNK_MAX || n > size - MIN(size, t->offset) || (n == 0 && t->offset < size)) {
                *ret_text = "masterd sent other bytes than it was asked for";
                return -EBADMSG;
        }
        r = write_all(t->fd, data, n);
        if (r >= 0 && n > 0 && gnutls_hash(t->hash, data, n) < 0)
                r = -EIO;
        if (r < 0) {
                *ret_text = write_problem(r);
                return r;
        }
        t->offset += n;
        if (t->offset < size)
                return 0;
        r = transfer_finish(t);
        if (r < 0) {
                *ret_text = r == -EBADMSG ? "its content does not have the SHA-256 that it is named by"
                                          : "it cannot be put into the cache";
                return r;
        }
        return 1;
}

void bundles_chunk(struct bundle_transfer *t, int error, const char *text, uint64_t size, const void *data,
                   size_t n) {
        const char *why = text;
        int r = error;

        t->asked = false;
        if (t->orphan) {
                transfer_free(t);
                return;
        }
        if (r >= 0)
                r = transfer_store(t, size, data, n, &why);
        if (r == 0)
                transfer_ask(t);
        else
                transfer_end(t, MIN(r, 0), why);
}

static int transfer_open(struct bundle_transfer *t) {
        struct bundles *b = t->bundles;
        _cleanup_free_ char *user = NULL;

        if (asprintf(&user, "%s/%" PRIu32, b->directory, t->uid) < 0)
                return -ENOMEM;
        if (mkdir(user, 0711) < 0 && errno != EEXIST)
                return -errno;
        if (asprintf(&t->temporary, "%s/.%s.XXXXXX", user, t->sha256) < 0) {
                t->temporary = NULL;
                return -ENOMEM;
        }
        t->fd = mkostemp(t->temporary, O_CLOEXEC);
        if (t->fd < 0) {
                int r = -errno;

                free(t->temporary);
                t->temporary = NULL;
                return r;
        }
        return gnutls_hash_init(&t->hash, GNUTLS_DIG_SHA256) < 0 ? -ENOMEM : 0;
}

/* ---- the cache ---- */

int bundles_new(sd_event *event, const char *directory, const struct bundle_limits *limits,
                const struct bundle_ops *ops, void *userdata, struct bundles **ret) {
        struct bundles *b;
        int r;

        r = make_directories(directory, 0711);
        if (r < 0)
                return r;
        b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        *b = (struct bundles){ .event = sd_event_ref(event),
                               .directory = strdup(directory),
                               .limits = limits ? *limits : bundle_limits_default,
                               .ops = ops,
                               .userdata = userdata };
        if (!b->directory) {
                bundles_free(b);
                return -ENOMEM;
        }
        remove_stale(b);
        *ret = b;
        return 0;
}

void bundles_free(struct bundles *b) {
        struct bundle_transfer *t, *next;

        if (!b)
                return;
        DL_FOREACH_SAFE (b->transfers, t, next) {
                struct waiter *w;

                LL_FOREACH (t->waiters, w)
                        w->handler(w->userdata, -ECANCELED, "this agent is going away", NULL);
                if (t->asked) {
                        DL_DELETE(b->transfers, t);
                        t->bundles = NULL;
                        t->orphan = true;
                } else
                        transfer_free(t);
        }
        sd_event_unref(b->event);
        free(b->directory);
        free(b);
}

static struct bundle_transfer *transfer_find(struct bundles *b, uint32_t uid, const char *sha256) {
        struct bundle_transfer *t;

        DL_FOREACH (b->transfers, t)
                if (t->uid == uid && strcmp(t->sha256, sha256) == 0)
                        return t;
        return NULL;
}

/* That it was wanted the starter marks, with the start: the file is its user's. */
static bool is_there(const char *path) {
        struct stat st;

        return lstat(path, &st) >= 0;
}

static int transfer_new(struct bundles *b, uint32_t uid, const char *sha256, struct bundle_transfer **ret) {
        struct bundle_transfer *t = calloc(1, sizeof(*t));
        int r;

        if (!t)
                return -ENOMEM;
        t->fd = -EBADF;
        t->uid = uid;
        memcpy(t->sha256, sha256, SHA256_TEXT);
        if (asprintf(&t->path, "%s/%" PRIu32 "/%s", b->directory, uid, sha256) < 0) {
                free(t);
                return -ENOMEM;
        }
        t->bundles = b;
        DL_APPEND(b->transfers, t);
        *ret = t;
        if (is_there(t->path)) {
                transfer_end(t, 0, NULL);
                return 0;
        }
        bundles_prune(b, NULL);
        r = transfer_open(t);
        if (r < 0)
                transfer_end(t, r, write_problem(r));
        else
                transfer_ask(t);
        return 0;
}

int bundles_want(struct bundles *b, uint32_t uid, const char *sha256, bundle_ready_handler handler,
                 void *userdata) {
        struct bundle_transfer *t = NULL;
        struct waiter *w;
        int r;

        if (strlen(sha256) != SHA256_TEXT || strspn(sha256, "0123456789abcdef") != SHA256_TEXT)
                return -EINVAL;
        w = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;
        *w = (struct waiter){ .handler = handler, .userdata = userdata };
        t = transfer_find(b, uid, sha256);
        if (!t) {
                r = transfer_new(b, uid, sha256, &t);
                if (r < 0) {
                        free(w);
                        return r;
                }
        }
        LL_APPEND(t->waiters, w);
        return 0;
}
