/* SPDX-License-Identifier: Apache-2.0 */
/* Packs and uploads a job's files. Invariants: the archive depends on names, contents, modes and modification
 * times alone; it holds regular files, folders and links that stay inside, nothing else. */
#include "tools/primusctl/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fts.h>
#include <gnutls/crypto.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/parse.h"

#define ARCHIVE_FUNCTIONS(X)                                                                                 \
        X(archive_write_new)                                                                                 \
        X(archive_write_free)                                                                                \
        X(archive_write_add_filter_zstd)                                                                     \
        X(archive_write_set_format_pax_restricted)                                                           \
        X(archive_write_set_bytes_in_last_block)                                                             \
        X(archive_write_open)                                                                                \
        X(archive_write_header)                                                                              \
        X(archive_write_data)                                                                                \
        X(archive_write_close)                                                                               \
        X(archive_error_string)                                                                              \
        X(archive_entry_new)                                                                                 \
        X(archive_entry_free)                                                                                \
        X(archive_entry_set_pathname)                                                                        \
        X(archive_entry_set_size)                                                                            \
        X(archive_entry_set_mode)                                                                            \
        X(archive_entry_set_mtime)                                                                           \
        X(archive_entry_set_symlink)

#define GNUTLS_FUNCTIONS(X)                                                                                  \
        X(gnutls_hash_init)                                                                                  \
        X(gnutls_hash)                                                                                       \
        X(gnutls_hash_deinit)

struct packer {
        const struct cli *cli;
        const char *label;
        void *libraries[2];
#define X(name) __typeof__(name) *name;
        ARCHIVE_FUNCTIONS(X)
        GNUTLS_FUNCTIONS(X)
#undef X
        struct archive *archive;
        gnutls_hash_hd_t hash;
        int fd;
        uint64_t size;
        size_t entries;
        int error; /* of the temporary file */
};

void bundle_done(struct bundle *b) {
        b->fd = close_fd(b->fd);
}

static int load(struct packer *p) {
        const struct {
                int library;
                const char *name;
                void **target;
        } functions[] = {
#define X(name) { 0, #name, (void **)&p->name },
                ARCHIVE_FUNCTIONS(X)
#undef X
#define X(name) { 1, #name, (void **)&p->name },
                        GNUTLS_FUNCTIONS(X)
#undef X
        };
        static const char *const names[] = { "libarchive.so.13", "libgnutls.so.30" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                p->libraries[i] = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
                if (!p->libraries[i])
                        return cli_fail(p->cli, "sending files[] needs %s: %s", names[i], dlerror());
        }
        for (size_t i = 0; i < ELEMENTSOF(functions); i++) {
                *functions[i].target = dlsym(p->libraries[functions[i].library], functions[i].name);
                if (!*functions[i].target)
                        return cli_fail(p->cli, "%s is too old: %s", names[functions[i].library], dlerror());
        }
        return 0;
}

static void packer_done(struct packer *p) {
        if (p->archive)
                p->archive_write_free(p->archive);
        if (p->hash)
                p->gnutls_hash_deinit(p->hash, NULL);
        for (size_t i = 0; i < ELEMENTSOF(p->libraries); i++)
                if (p->libraries[i])
                        dlclose(p->libraries[i]);
        p->fd = close_fd(p->fd);
}

static la_ssize_t write_packed(struct archive *a, void *userdata, const void *data, size_t size) {
        struct packer *p = userdata;
        int r = write_all(p->fd, data, size);

        (void)a;
        if (r < 0 || p->gnutls_hash(p->hash, data, size) < 0) {
                p->error = r < 0 ? r : -EIO;
                return -1;
        }
        p->size += size;
        return (la_ssize_t)size;
}

static int temporary_file(void) {
        const char *directory = getenv("TMPDIR");
        _cleanup_free_ char *path = NULL;
        int fd;

        directory = directory && directory[0] == '/' ? directory : "/var/tmp";
        fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
                return fd < 0 ? -errno : fd;
        if (asprintf(&path, "%s/primusctl-XXXXXX", directory) < 0)
                return -ENOMEM;
        fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        (void)unlink(path);
        return fd;
}

static int archive_failed(struct packer *p, const char *path) {
        return cli_complain("%s: files[]: %s: %s", p->label, path,
                            p->error ? strerror(-p->error) : p->archive_error_string(p->archive));
}

/* Does the target of a link at name (inside the archive) leave the archive? */
static bool link_leaves(const char *name, const char *target) {
        int depth = 0;

        if (target[0] == '/')
                return true;
        for (const char *s = name; *s; s++)
                depth += *s == '/';
        for (const char *s = target; *s;) {
                size_t n = strcspn(s, "/");
                if (n == 2 && strncmp(s, "..", 2) == 0)
                        depth--;
                else if (n > 0 && !(n == 1 && s[0] == '.'))
                        depth++;
                if (depth < 0)
                        return true;
                s += n + strspn(s + n, "/");
        }
        return false;
}

static int add_contents(struct packer *p, const char *path, int fd, uint64_t size) {
        char buf[64 << 10];

        while (size > 0) {
                ssize_t l = read(fd, buf, MIN(size, (uint64_t)sizeof(buf)));
                if (l < 0 && errno == EINTR)
                        continue;
                if (l <= 0)
                        return cli_complain("%s: files[]: %s: %s", p->label, path,
                                            l < 0 ? strerror(errno) : "became shorter while it was read");
                if (p->archive_write_data(p->archive, buf, (size_t)l) != l)
                        return archive_failed(p, path);
                size -= (uint64_t)l;
        }
        return 0;
}

static int add(struct packer *p, const char *path, const char *name) {
        struct archive_entry *entry;
        _cleanup_close_ int fd = -EBADF;
        char target[4096];
        struct stat st;
        int r = 0;

        if (++p->entries > BUNDLE_ENTRIES_MAX)
                return cli_complain(
                        "%s: files[]: more than %u files; put them on a shared file system instead", p->label,
                        BUNDLE_ENTRIES_MAX);
        if (lstat(path, &st) < 0)
                return cli_complain("%s: files[]: %s: %s", p->label, path, strerror(errno));
        if (S_ISREG(st.st_mode)) {
                fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
                if (fd < 0 || fstat(fd, &st) < 0)
                        return cli_complain("%s: files[]: %s: %s", p->label, path, strerror(errno));
        }
        if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
                return cli_complain("%s: files[]: %s: is neither a file nor a folder", p->label, path);
        entry = p->archive_entry_new();
        if (!entry)
                return cli_oom(p->cli);
        p->archive_entry_set_pathname(entry, name);
        p->archive_entry_set_mode(entry,
                                  S_ISLNK(st.st_mode) ? (S_IFLNK | 0777) : (st.st_mode & (S_IFMT | 0777)));
        p->archive_entry_set_mtime(entry, st.st_mtim.tv_sec, 0);
        p->archive_entry_set_size(entry, S_ISREG(st.st_mode) ? st.st_size : 0);
        if (S_ISLNK(st.st_mode)) {
                ssize_t l = readlink(path, target, sizeof(target) - 1);

                target[MAX(l, 0)] = 0;
                if (l < 0)
                        r = cli_complain("%s: files[]: %s: %s", p->label, path, strerror(errno));
                else if (link_leaves(name, target))
                        r = cli_complain("%s: files[]: %s: a link that leaves the bundle (to %s)", p->label,
                                         path, target);
                else
                        p->archive_entry_set_symlink(entry, target);
        }
        if (!r && p->archive_write_header(p->archive, entry) < ARCHIVE_WARN)
                r = archive_failed(p, path);
        if (!r && S_ISREG(st.st_mode))
                r = add_contents(p, path, fd, (uint64_t)st.st_size);
        p->archive_entry_free(entry);
        return r;
}

static int by_name(const FTSENT **a, const FTSENT **b) {
        return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int add_tree(struct packer *p, const char *path, const char *name) {
        char *paths[] = { (char *)path, NULL };
        FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
        size_t skip = strlen(path);
        FTSENT *e;
        int r = 0;

        if (!fts)
                return cli_complain("%s: files[]: %s: %s", p->label, path, strerror(errno));
        while (!r && (e = fts_read(fts))) {
                _cleanup_free_ char *inside = NULL;

                if (e->fts_info == FTS_DP)
                        continue;
                if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS) {
                        r = cli_complain("%s: files[]: %s: %s", p->label, e->fts_path,
                                         strerror(e->fts_errno));
                        continue;
                }
                if (e->fts_level == 0 && strcmp(name, ".") == 0)
                        continue; /* the job's directory itself */
                if (asprintf(&inside, "%s%s", strcmp(name, ".") == 0 ? "" : name,
                             e->fts_path + skip + (strcmp(name, ".") == 0)) < 0)
                        r = cli_oom(p->cli);
                else
                        r = add(p, e->fts_path, inside);
        }
        (void)fts_close(fts);
        return r;
}

/* The name inside the archive: without "./", trailing and doubled slashes; the last component for a path from
 * elsewhere. */
static char *inside_name(const char *file) {
        _cleanup_free_ char *out = malloc(strlen(file) + 2);
        size_t n = 0;
        bool elsewhere = file[0] == '/';

        if (!out)
                return NULL;
        for (const char *s = file; *s;) {
                size_t l = strcspn(s, "/");

                if (l == 2 && strncmp(s, "..", 2) == 0)
                        elsewhere = true;
                else if (l > 0 && !(l == 1 && s[0] == '.')) {
                        if (n > 0)
                                out[n++] = '/';
                        memcpy(out + n, s, l);
                        n += l;
                }
                s += l + strspn(s + l, "/");
        }
        out[n] = 0;
        if (n == 0)
                return strdup(elsewhere ? "" : ".");
        if (elsewhere && strrchr(out, '/'))
                return strdup(strrchr(out, '/') + 1);
        return TAKE_PTR(out);
}

static int add_listed(struct packer *p, const char *directory, const char *file) {
        _cleanup_free_ char *path = NULL, *name = inside_name(file), *resolved = NULL;
        size_t n;

        if (!name ||
            asprintf(&path, "%s%s%s", file[0] == '/' ? "" : directory, file[0] == '/' ? "" : "/", file) < 0)
                return cli_oom(p->cli);
        if (!*name)
                return cli_complain("%s: files[]: %s: has no name of its own; name the folder", p->label,
                                    file);
        for (n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
                path[n - 1] = 0;
        /* What is listed by name is followed when it is a link itself; links inside a folder stay links. */
        resolved = realpath(path, NULL);
        if (!resolved)
                return cli_complain("%s: files[]: %s: %s", p->label, file, strerror(errno));
        return add_tree(p, resolved, name);
}

static int compare_strings(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int bundle_pack(const struct cli *c, const char *label, const char *directory, const char *const *files,
                struct bundle *ret) {
        _cleanup_(packer_done) struct packer p = { .cli = c, .label = label, .fd = -EBADF };
        _cleanup_free_ const char **sorted = NULL;
        unsigned char digest[32];
        size_t n = 0;
        int r;

        r = load(&p);
        if (r)
                return r;
        while (files[n])
                n++;
        sorted = calloc(n + 1, sizeof(*sorted));
        p.fd = temporary_file();
        p.archive = p.archive_write_new();
        if (!sorted || !p.archive || p.gnutls_hash_init(&p.hash, GNUTLS_DIG_SHA256) < 0)
                return cli_oom(c);
        if (p.fd < 0)
                return cli_fail(c, "cannot make a temporary file: %s (set TMPDIR)", strerror(-p.fd));
        if (p.archive_write_set_format_pax_restricted(p.archive) != ARCHIVE_OK ||
            p.archive_write_add_filter_zstd(p.archive) != ARCHIVE_OK ||
            p.archive_write_set_bytes_in_last_block(p.archive, 1) != ARCHIVE_OK ||
            p.archive_write_open(p.archive, &p, NULL, write_packed, NULL) != ARCHIVE_OK)
                return cli_fail(c, "libarchive: %s", p.archive_error_string(p.archive));
        memcpy(sorted, files, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), compare_strings);
        for (size_t i = 0; i < n; i++)
                if (i == 0 || strcmp(sorted[i], sorted[i - 1]) != 0) {
                        r = add_listed(&p, directory, sorted[i]);
                        if (r)
                                return r;
                }
        if (p.archive_write_close(p.archive) != ARCHIVE_OK)
                return cli_fail(c, "cannot pack files[]: %s",
                                p.error ? strerror(-p.error) : p.archive_error_string(p.archive));
        p.gnutls_hash_deinit(p.hash, digest);
        p.hash = NULL;
        *ret = (struct bundle){ .size = p.size, .fd = TAKE_FD(p.fd) };
        for (size_t i = 0; i < sizeof(digest); i++)
                snprintf(ret->sha256 + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

static int put(struct cli *c, const struct bundle *b, uint64_t offset, const void *chunk, size_t n,
               uint64_t *ret_next) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = cli_manager_call(c, "PutBundle", &m);

        if (r)
                return r;
        r = sd_bus_message_append(m, "stt", b->sha256, b->size, offset);
        if (r >= 0)
                r = sd_bus_message_append_array(m, 'y', chunk, n);
        if (r < 0)
                return cli_fail(c, "cannot make a call: %s", strerror(-r));
        r = cli_call(c, m, NULL, &reply);
        if (r)
                return r;
        r = sd_bus_message_read(reply, "t", ret_next);
        if (r < 0 || *ret_next > b->size)
                return cli_bad_reply(c, r < 0 ? r : -EBADMSG);
        return 0;
}

int bundle_upload(struct cli *c, const struct bundle *b) {
        _cleanup_free_ char *chunk = malloc(BUNDLE_CHUNK_MAX);
        bool show = isatty(STDERR_FILENO) && b->size > (1 << 20);
        char done[FORMAT_SIZE_MAX], all[FORMAT_SIZE_MAX];
        uint64_t offset, next;
        unsigned stuck = 0;
        int r;

        if (!chunk)
                return cli_oom(c);
        /* An empty piece asks how much is there. */
        r = put(c, b, 0, chunk, 0, &offset);
        while (!r && offset < b->size) {
                ssize_t l =
                        pread(b->fd, chunk, MIN((uint64_t)BUNDLE_CHUNK_MAX, b->size - offset), (off_t)offset);

                if (l <= 0)
                        return cli_fail(c, "cannot read the packed files: %s", strerror(l < 0 ? errno : EIO));
                r = put(c, b, offset, chunk, (size_t)l, &next);
                if (r)
                        break;
                stuck = next <= offset ? stuck + 1 : 0;
                if (stuck > 3)
                        return cli_fail(c,
                                        "masterd does not take the files: it keeps asking for byte %" PRIu64,
                                        next);
                offset = next;
                if (show)
                        fprintf(stderr, "\rSending files: %s of %s\033[K",
                                format_size(offset, done, sizeof(done)),
                                format_size(b->size, all, sizeof(all)));
        }
        if (show)
                fputs("\r\033[K", stderr);
        return r;
}
