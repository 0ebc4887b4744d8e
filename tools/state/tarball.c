/* SPDX-License-Identifier: Apache-2.0 */
/* Backups as tar. Invariant: nothing is unpacked but regular files whose names entry.c knows, each once, into
 * a directory of ours; an archive without its manifest, behind which is its seal alone, is no backup. */
#include "tools/state/tarball.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "lib/base/file.h"
#include "lib/base/format.h"
#include "lib/base/utf8.h"
#include "tools/state/entry.h"
#include "tools/state/say.h"

#define PIECE (256u << 10)

/* ---- hashes ---- */

static void hash_text(gnutls_hash_hd_t hash, char ret[static 65]) {
        uint8_t digest[32];

        gnutls_hash_deinit(hash, digest);
        for (size_t i = 0; i < sizeof(digest); i++)
                snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

static int hash_new(gnutls_hash_hd_t *ret) {
        return gnutls_hash_init(ret, GNUTLS_DIG_SHA256) < 0 ? say(-ENOMEM, "out of memory") : 0;
}

bool archive_same_bytes(const struct manifest_file *f, const void *bytes, size_t size) {
        gnutls_hash_hd_t hash;
        char sha256[65];
        int r;

        if (size != f->size || gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0)
                return false;
        r = size > 0 ? gnutls_hash(hash, bytes, size) : 0;
        hash_text(hash, sha256);
        return r >= 0 && strcmp(sha256, f->sha256) == 0;
}

/* ---- writing ---- */

struct archive_out {
        struct archive *a;
        char piece[PIECE];
};

static int out_failed(struct archive_out *o) {
        int e = archive_errno(o->a);

        /* What the library says of an error of the system is "Write error". */
        return say(e > 0 ? -e : -EIO, "cannot write the backup: %s",
                   e > 0 ? strerror(e) : archive_error_string(o->a) ?: strerror(EIO));
}

int archive_out_new(int fd, bool compress, struct archive_out **ret) {
        struct archive_out *o = calloc(1, sizeof(*o));
        int r;

        if (o)
                o->a = archive_write_new();
        if (!o || !o->a) {
                free(o);
                return say(-ENOMEM, "out of memory");
        }
        r = archive_write_set_format_pax_restricted(o->a);
        if (r == ARCHIVE_OK && compress)
                r = archive_write_add_filter_zstd(o->a);
        if (r == ARCHIVE_OK)
                r = archive_write_set_bytes_in_last_block(o->a, 1);
        if (r == ARCHIVE_OK)
                r = archive_write_open_fd(o->a, fd);
        if (r != ARCHIVE_OK) {
                r = out_failed(o);
                archive_out_free(o);
                return r;
        }
        *ret = o;
        return 0;
}

void archive_out_free(struct archive_out *o) {
        if (!o)
                return;
        (void)archive_write_free(o->a);
        free(o);
}

static int out_header(struct archive_out *o, const char *name, uint64_t size, uint32_t mode, uint64_t mtime) {
        struct archive_entry *e = archive_entry_new();
        int r;

        if (!e)
                return say(-ENOMEM, "out of memory");
        archive_entry_set_pathname(e, name);
        archive_entry_set_filetype(e, AE_IFREG);
        archive_entry_set_size(e, (la_int64_t)size);
        archive_entry_set_perm(e, mode);
        archive_entry_set_mtime(e, (time_t)mtime, 0);
        r = archive_write_header(o->a, e);
        archive_entry_free(e);
        return r == ARCHIVE_OK ? 0 : out_failed(o);
}

/* As many bytes as the header said: a file that shrinks meanwhile is an error, one that grows is cut. */
static int out_bytes(struct archive_out *o, const char *name, int fd, uint64_t size, gnutls_hash_hd_t hash) {
        for (uint64_t at = 0; at < size;) {
                ssize_t n = pread(fd, o->piece, MIN(size - at, (uint64_t)PIECE), (off_t)at);

                if (n <= 0)
                        return n < 0 ? say(-errno, "cannot read %s: %s", name, strerror(errno))
                                     : say(-EIO, "%s became shorter while it was read", name);
                if (gnutls_hash(hash, o->piece, (size_t)n) < 0)
                        return say(-EIO, "cannot compute a checksum");
                if (archive_write_data(o->a, o->piece, (size_t)n) != n)
                        return out_failed(o);
                at += (uint64_t)n;
        }
        return 0;
}

int archive_out_file(struct archive_out *o, struct manifest *m, const char *name, int fd) {
        gnutls_hash_hd_t hash;
        char sha256[65];
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return say(-errno, "cannot read %s: %s", name, strerror(errno));
        if (!S_ISREG(st.st_mode))
                return say(-EINVAL, "%s is no regular file", name);
        r = out_header(o, name, (uint64_t)st.st_size, st.st_mode & 0777, (uint64_t)st.st_mtime);
        if (r >= 0)
                r = hash_new(&hash);
        if (r < 0)
                return r;
        r = out_bytes(o, name, fd, (uint64_t)st.st_size, hash);
        hash_text(hash, sha256);
        if (r >= 0)
                r = manifest_add(m, name, (uint64_t)st.st_size, st.st_mode & 0777, sha256);
        return r == -E2BIG ? say(r, "too many files for a backup") : r;
}

static int out_text(struct archive_out *o, const char *name, const char *text, uint64_t mtime) {
        int r = out_header(o, name, strlen(text), 0600, mtime);

        if (r < 0)
                return r;
        return archive_write_data(o->a, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : out_failed(o);
}

int archive_out_end(struct archive_out *o, const struct manifest *m, const struct seal_key *key) {
        uint64_t mtime = m->created_real / UINT64_C(1000000);
        _cleanup_free_ char *text = NULL;
        char seal[SEAL_TEXT_MAX];
        int r = manifest_format(m, &text);

        if (r < 0)
                return say(r, "out of memory");
        r = out_text(o, ENTRY_MANIFEST_NAME, text, mtime);
        if (r >= 0 && key->known) {
                r = seal_make(key, text, strlen(text), seal);
                if (r >= 0)
                        r = out_text(o, ENTRY_SEAL_NAME, seal, mtime);
        }
        if (r < 0)
                return r;
        return archive_write_close(o->a) == ARCHIVE_OK ? 0 : out_failed(o);
}

/* ---- reading ---- */

static int in_failed(struct archive *a) {
        int e = archive_errno(a);

        return say(e == ENOMEM ? -ENOMEM : -EBADMSG, "the archive cannot be read: %s",
                   archive_error_string(a) ?: "it is damaged");
}

/* Makes the directories that a name of ours has. */
static int make_parents(int directory_fd, const char *name) {
        char path[512];

        for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
                snprintf(path, sizeof(path), "%.*s", (int)(slash - name), name);
                if (mkdirat(directory_fd, path, 0700) < 0 && errno != EEXIST)
                        return say(-errno, "cannot make %s: %s", path, strerror(errno));
        }
        return 0;
}

static int unpack_bytes(struct archive *a, const char *name, int fd, struct manifest *found, uint32_t mode) {
        _cleanup_free_ char *piece = malloc(PIECE);
        gnutls_hash_hd_t hash;
        char sha256[65];
        uint64_t size = 0;
        ssize_t n = 0;
        int r = piece ? hash_new(&hash) : say(-ENOMEM, "out of memory");

        if (r < 0)
                return r;
        while (r >= 0 && (n = archive_read_data(a, piece, PIECE)) > 0) {
                size += (uint64_t)n;
                r = write_all(fd, piece, (size_t)n);
                if (r < 0)
                        say(r, "cannot write %s: %s", name, strerror(-r));
                else if (gnutls_hash(hash, piece, (size_t)n) < 0)
                        r = say(-EIO, "cannot compute a checksum");
        }
        hash_text(hash, sha256);
        if (r >= 0 && n < 0)
                r = in_failed(a);
        if (r >= 0 && fsync(fd) < 0)
                r = say(-errno, "cannot write %s: %s", name, strerror(errno));
        if (r >= 0 && manifest_add(found, name, size, mode, sha256) < 0)
                r = say(-ENOMEM, "out of memory, or too many files");
        return r;
}

static int unpack_file(struct archive *a, struct archive_entry *e, const char *name, int directory_fd,
                       struct manifest *found) {
        _cleanup_close_ int fd = -EBADF;
        int r = make_parents(directory_fd, name);

        if (r < 0)
                return r;
        fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return say(-errno,
                           errno == EEXIST ? "%s is in the archive twice (%s)" : "cannot write %s: %s", name,
                           strerror(errno));
        return unpack_bytes(a, name, fd, found, archive_entry_perm(e) & 0777);
}

/* What stands behind the members: the manifest and its seal, as text. */
struct tail {
        char *manifest;
        size_t manifest_size;
        char *seal; /* NULL: there is none */
};

static void tail_done(struct tail *t) {
        free(t->manifest);
        free(t->seal);
}

static int read_text(struct archive *a, struct archive_entry *e, size_t max, char **ret, size_t *ret_size) {
        la_int64_t size = archive_entry_size(e);
        _cleanup_free_ char *text = NULL;

        if (size < 0 || size > (la_int64_t)max)
                return say(-EBADMSG, "the archive's manifest is too large");
        text = malloc((size_t)size + 1);
        if (!text)
                return say(-ENOMEM, "out of memory");
        if (archive_read_data(a, text, (size_t)size) != size)
                return in_failed(a);
        text[size] = 0;
        *ret = TAKE_PTR(text);
        if (ret_size)
                *ret_size = (size_t)size;
        return 0;
}

static int parse_manifest(const struct tail *t, struct manifest *ret) {
        int r = manifest_parse(t->manifest, t->manifest_size, ret);

        return r == -EPROTONOSUPPORT
                       ? say(r, "the backup was written by a newer Primus; upgrade this one first")
               : r < 0 ? say(r, "the archive's manifest cannot be read")
                       : 0;
}

/* Behind the manifest is its seal, or the end. */
static int read_seal(struct archive *a, struct tail *t) {
        struct archive_entry *e;
        int r = archive_read_next_header(a, &e);

        if (r == ARCHIVE_EOF)
                return 0;
        if (r != ARCHIVE_OK)
                return in_failed(a);
        if (archive_entry_filetype(e) != AE_IFREG ||
            entry_kind_of(archive_entry_pathname(e) ?: "?") != ENTRY_SEAL)
                return say(-EBADMSG, "refused: there is something in the archive behind its manifest");
        r = read_text(a, e, SEAL_TEXT_MAX, &t->seal, NULL);
        if (r < 0)
                return r;
        return archive_read_next_header(a, &e) == ARCHIVE_EOF
                       ? 0
                       : say(-EBADMSG, "refused: there is something in the archive behind its end");
}

/* Before a byte of it is written: a small file may say that it unpacks to any size. */
static int check_size(struct archive_entry *e, enum entry_kind kind, const char *name, int directory_fd) {
        char needed[FORMAT_SIZE_MAX], left[FORMAT_SIZE_MAX];
        la_int64_t size = archive_entry_size(e);
        struct statvfs v;
        uint64_t room;

        if (!archive_entry_size_is_set(e) || size < 0)
                return say(-EBADMSG, "refused: the archive does not say how large %s is", name);
        if (kind == ENTRY_SETTING && size > (la_int64_t)ENTRY_SETTING_BYTES_MAX)
                return say(-EBADMSG, "refused: %s is larger than a setting can be", name);
        if (fstatvfs(directory_fd, &v) < 0)
                return say(-errno, "cannot tell how much room there is: %s", strerror(errno));
        room = (uint64_t)v.f_bavail * v.f_frsize;
        if ((uint64_t)size <= room)
                return 0;
        return say(-ENOSPC, "%s unpacks to %s, and there is room for %s: make room first", name,
                   format_size((uint64_t)size, needed, sizeof(needed)),
                   format_size(room, left, sizeof(left)));
}

/* For a terminal, whatever somebody has called it: no control character, of C1 neither. */
static const char *printable(const char *name, char *buf, size_t size) {
        (void)utf8_clean(name, strlen(name), buf, size);
        for (unsigned char *p = (unsigned char *)buf; *p; p++)
                if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
                        *p = '?';
                else if (*p >= 0x80 && *p < 0xa0 && p > (unsigned char *)buf && p[-1] == '?')
                        *p = '?'; /* what was behind 0xc2 */
        return buf;
}

/* Until the manifest is read. */
static int unpack_members(struct archive *a, int directory_fd, struct manifest *found, struct tail *ret) {
        struct archive_entry *e;
        int r;

        for (bool first = true;; first = false) {
                const char *name, *why = NULL;
                enum entry_kind kind;

                r = archive_read_next_header(a, &e);
                if (r == ARCHIVE_EOF)
                        return say(-EBADMSG,
                                   first ? "there is nothing in the archive"
                                         : "the archive ends before its manifest: it was cut short");
                if (r != ARCHIVE_OK)
                        return first ? say(-EBADMSG, "this is no backup of Primus: %s",
                                           archive_error_string(a) ?: "not a tar archive")
                                     : in_failed(a);
                name = archive_entry_pathname(e) ?: "?";
                kind = entry_kind_of(name);
                if (archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e) ||
                    archive_entry_symlink(e))
                        why = "is no regular file";
                else if (kind < 0)
                        why = "does not belong into a backup of Primus";
                else if (first != (kind == ENTRY_DATABASE) || kind == ENTRY_SEAL)
                        why = "is not where it belongs: the state comes first";
                if (why) {
                        char clean[128];
                        return say(-EBADMSG, "refused: the archive's member '%s' %s",
                                   printable(name, clean, sizeof(clean)), why);
                }
                if (kind == ENTRY_MANIFEST) {
                        r = read_text(a, e, MANIFEST_BYTES_MAX, &ret->manifest, &ret->manifest_size);
                        return r < 0 ? r : read_seal(a, ret);
                }
                r = check_size(e, kind, name, directory_fd);
                if (r >= 0)
                        r = unpack_file(a, e, name, directory_fd, found);
                if (r < 0)
                        return r;
        }
}

int archive_unpack(int fd, int directory_fd, const struct seal_key *key, struct manifest *ret,
                   enum seal *ret_seal, char ret_id[static 17]) {
        _cleanup_(manifest_done) struct manifest found = {}, m = {};
        _cleanup_(tail_done) struct tail tail = {};
        struct archive *a = archive_read_new();
        const char *why, *name;
        int r;

        if (!a)
                return say(-ENOMEM, "out of memory");
        if (archive_read_support_format_tar(a) != ARCHIVE_OK ||
            archive_read_support_filter_zstd(a) < ARCHIVE_WARN ||
            archive_read_open_fd(a, fd, PIECE) != ARCHIVE_OK)
                r = say(-EBADMSG, "this is no backup of Primus: %s",
                        archive_error_string(a) ?: "not a tar archive");
        else
                r = unpack_members(a, directory_fd, &found, &tail);
        (void)archive_read_free(a);
        if (r >= 0)
                r = parse_manifest(&tail, &m);
        if (r < 0)
                return r;
        if (!manifest_same_files(&found, &m, &why, &name))
                return say(-EBADMSG, "refused: %s %s", name, why);
        *ret_seal = seal_check(key, tail.manifest, tail.manifest_size, tail.seal, ret_id);
        *ret = m;
        m = (struct manifest){};
        return 0;
}
