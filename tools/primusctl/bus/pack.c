/* SPDX-License-Identifier: Apache-2.0 */
/* Packs and uploads a job's files. Invariants: the archive depends on names, contents, modes and modification
 * times alone; it holds regular files, folders and links that stay inside, nothing else. */
#include "tools/primusctl/bus/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fts.h>
#include <gnutls/crypto.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/format.h"
#include "lib/base/library.h"
#include "tools/primusctl/bus/ignore.h"

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
        int error; /* of the temporary file */
        const char *directory;
        /* The first walk counts, the second one packs. */
        bool counting;
        size_t entries, files, left_out;
        uint64_t bytes, largest_size;
        char *largest;
};

void bundle_done(struct bundle *b) {
        b->fd = close_fd(b->fd);
}

static const struct library_symbol archive_symbols[] = {
#define X(name) { #name, offsetof(struct packer, name), false },
        ARCHIVE_FUNCTIONS(X)
#undef X
};
static const struct library_symbol gnutls_symbols[] = {
#define X(name) { #name, offsetof(struct packer, name), false },
        GNUTLS_FUNCTIONS(X)
#undef X
};
static const struct library libraries[] = {
        { .sonames = { "libarchive.so.13" },
          .purpose = "libarchive, which packs files that are sent",
          .remedy = "install libarchive13",
          .symbols = archive_symbols,
          .n_symbols = ELEMENTSOF(archive_symbols) },
        { .sonames = { "libgnutls.so.30" },
          .purpose = "GnuTLS, which sums files that are sent",
          .remedy = "install libgnutls30",
          .symbols = gnutls_symbols,
          .n_symbols = ELEMENTSOF(gnutls_symbols) },
};

static int load(struct packer *p) {
        char error[LIBRARY_ERROR_MAX];

        for (size_t i = 0; i < ELEMENTSOF(libraries); i++)
                if (library_load(libraries + i, p, p->libraries + i, error) < 0)
                        return cli_fail(p->cli, "%s", error);
        return 0;
}

static void packer_done(struct packer *p) {
        if (p->archive)
                p->archive_write_free(p->archive);
        if (p->hash)
                p->gnutls_hash_deinit(p->hash, NULL);
        for (size_t i = 0; i < ELEMENTSOF(p->libraries); i++)
                library_unload(p->libraries[i]);
        p->fd = close_fd(p->fd);
        free(p->largest);
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
        return cli_complain("%s: %s: %s", p->label, path,
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
                        return cli_complain("%s: %s: %s", p->label, path,
                                            l < 0 ? strerror(errno) : "became shorter while it was read");
                if (p->archive_write_data(p->archive, buf, (size_t)l) != l)
                        return archive_failed(p, path);
                size -= (uint64_t)l;
        }
        return 0;
}

static int count(struct packer *p, const char *name, const struct stat *st) {
        if (S_ISDIR(st->st_mode))
                return 0;
        p->files++;
        if (!S_ISREG(st->st_mode))
                return 0;
        p->bytes += (uint64_t)st->st_size;
        if ((uint64_t)st->st_size <= p->largest_size)
                return 0;
        p->largest_size = (uint64_t)st->st_size;
        free(p->largest);
        p->largest = strdup(name);
        return p->largest ? 0 : cli_oom(p->cli);
}

static int read_link(struct packer *p, const char *path, const char *name, char *target, size_t size) {
        ssize_t l = readlink(path, target, size - 1);

        target[MAX(l, 0)] = 0;
        if (l < 0)
                return cli_complain("%s: %s: %s", p->label, path, strerror(errno));
        if (link_leaves(name, target))
                return cli_complain(
                        "%s: %s: is a link that leaves what is sent, to %s; leave it out with a line in "
                        ".primusignore, or send the file in its place",
                        p->label, path, target);
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
                        "%s: more than %u files; leave some out with lines in .primusignore, or put "
                        "them on a shared file system",
                        p->label, BUNDLE_ENTRIES_MAX);
        if (lstat(path, &st) < 0)
                return cli_complain("%s: %s: %s", p->label, path, strerror(errno));
        if (S_ISREG(st.st_mode)) {
                fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
                if (fd < 0 || fstat(fd, &st) < 0)
                        return cli_complain("%s: %s: %s", p->label, path, strerror(errno));
        }
        if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
                return cli_complain("%s: %s: is neither a file nor a folder", p->label, path);
        if (S_ISLNK(st.st_mode))
                r = read_link(p, path, name, target, sizeof(target));
        if (r || p->counting)
                return r ? r : count(p, name, &st);
        entry = p->archive_entry_new();
        if (!entry)
                return cli_oom(p->cli);
        p->archive_entry_set_pathname(entry, name);
        p->archive_entry_set_mode(entry,
                                  S_ISLNK(st.st_mode) ? (S_IFLNK | 0777) : (st.st_mode & (S_IFMT | 0777)));
        p->archive_entry_set_mtime(entry, st.st_mtim.tv_sec, 0);
        p->archive_entry_set_size(entry, S_ISREG(st.st_mode) ? st.st_size : 0);
        if (S_ISLNK(st.st_mode))
                p->archive_entry_set_symlink(entry, target);
        if (p->archive_write_header(p->archive, entry) < ARCHIVE_WARN)
                r = archive_failed(p, path);
        if (!r && S_ISREG(st.st_mode))
                r = add_contents(p, path, fd, (uint64_t)st.st_size);
        p->archive_entry_free(entry);
        return r;
}

static int by_name(const FTSENT **a, const FTSENT **b) {
        return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int ignore_failed(const struct packer *p, int r, const char *file) {
        if (r == -ENOMEM)
                return cli_oom(p->cli);
        return cli_complain("%s: %s: %s", p->label, file,
                            r == -ELOOP ? "is a link, which is not followed; make it a file"
                            : r == -E2BIG
                                    ? "has too many lines to leave files out (20,000 in all, 1 MiB a file)"
                                    : strerror(-r));
}

/* Is this left out? A folder that is not is entered. */
static int look(struct packer *p, struct ignore *ignore, FTS *fts, FTSENT *e, bool *ret_skip) {
        const bool directory = e->fts_info == FTS_D;
        _cleanup_free_ char *file = NULL;
        int r;

        *ret_skip = false;
        if (e->fts_level > 0 && ignore_match(ignore, e->fts_path, directory) != IGNORE_NOT) {
                p->left_out += p->counting;
                *ret_skip = true;
                return directory && fts_set(fts, e, FTS_SKIP) < 0 ? cli_oom(p->cli) : 0;
        }
        if (!directory)
                return 0;
        r = ignore_enter(ignore, e->fts_path, &file);
        e->fts_number = 1;
        return r < 0 ? ignore_failed(p, r, file ? file : e->fts_path) : 0;
}

static int walk(struct packer *p, struct ignore *ignore, FTS *fts, const char *path, const char *name) {
        size_t skip = strlen(path) - (strcmp(path, "/") == 0);
        FTSENT *e;
        int r = 0;

        while (!r && (e = fts_read(fts))) {
                _cleanup_free_ char *inside = NULL;
                bool left_out;

                if (e->fts_info == FTS_DP) {
                        if (e->fts_number)
                                ignore_leave(ignore);
                        continue;
                }
                if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS) {
                        r = cli_complain("%s: %s: %s", p->label, e->fts_path, strerror(e->fts_errno));
                        continue;
                }
                r = look(p, ignore, fts, e, &left_out);
                if (r || left_out)
                        continue;
                if (e->fts_level == 0 && strcmp(name, ".") == 0)
                        continue; /* the job's directory itself */
                if (asprintf(&inside, "%s%s", strcmp(name, ".") == 0 ? "" : name,
                             e->fts_path + skip + (strcmp(name, ".") == 0)) < 0)
                        r = cli_oom(p->cli);
                else
                        r = add(p, e->fts_path, inside);
        }
        return r;
}

static int add_tree(struct packer *p, const char *path, const char *name) {
        _cleanup_free_ char *file = NULL, *top = realpath(p->directory, NULL);
        char *paths[] = { (char *)path, NULL };
        struct ignore *ignore = NULL;
        FTS *fts;
        int r = ignore_new(path, top, &ignore, &file);

        if (r < 0)
                return ignore_failed(p, r, file ? file : path);
        fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
        r = fts ? walk(p, ignore, fts, path, name)
                : cli_complain("%s: %s: %s", p->label, path, strerror(errno));
        if (fts)
                (void)fts_close(fts);
        ignore_free(ignore);
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
                return cli_complain("%s: %s: has no name of its own; name the folder", p->label, file);
        for (n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
                path[n - 1] = 0;
        /* What is listed by name is followed when it is a link itself; links inside a folder stay links. */
        resolved = realpath(path, NULL);
        if (!resolved)
                return cli_complain("%s: %s: %s", p->label, file, strerror(errno));
        return add_tree(p, resolved, name);
}

static int compare_strings(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add_all(struct packer *p, const char *const *sorted, size_t n) {
        int worst = 0;

        /* What is wrong is said of each of them, before anything is packed. */
        for (size_t i = 0; i < n && (!worst || p->counting); i++)
                if (i == 0 || strcmp(sorted[i], sorted[i - 1]) != 0) {
                        int r = add_listed(p, p->directory, sorted[i]);
                        worst = r ? r : worst;
                }
        return worst;
}

static const char **sort(const char *const *files, size_t *ret_n) {
        const char **sorted;
        size_t n = 0;

        while (files[n])
                n++;
        sorted = calloc(n + 1, sizeof(*sorted));
        if (!sorted)
                return NULL;
        memcpy(sorted, files, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), compare_strings);
        *ret_n = n;
        return sorted;
}

/* Says what will be sent, or why it is not. */
static int announce(const struct packer *p, uint64_t max, bool sent) {
        char all[FORMAT_SIZE_MAX], largest[FORMAT_SIZE_MAX], bound[FORMAT_SIZE_MAX], left[96] = "";

        if (p->left_out > 0)
                snprintf(left, sizeof(left),
                         "; %zu left out by .gitignore, .primusignore or as .git, __pycache__", p->left_out);
        format_size(p->bytes, all, sizeof(all));
        if (p->bytes > max)
                return cli_complain(
                        "%s: %zu file%s, %s, are more than %s, which is the most that is sent without "
                        "--send-max; the largest is %s (%s). Leave out what is no code with lines in "
                        ".primusignore, or put it where the hosts have it",
                        p->label, p->files, p->files == 1 ? "" : "s", all,
                        format_size(max, bound, sizeof(bound)), p->largest ? p->largest : "?",
                        format_size(p->largest_size, largest, sizeof(largest)));
        if (p->entries == 0)
                return cli_complain("%s: there is no file to send%s", p->label, left);
        if (!sent)
                return 0;
        cli_note("%s: %zu file%s, %s, go%s along%s", p->label, p->files, p->files == 1 ? "" : "s", all,
                 p->files == 1 ? "es" : "", left);
        return 0;
}

int bundle_check(const struct cli *c, const char *label, const char *directory, const char *const *files,
                 uint64_t max) {
        _cleanup_(packer_done) struct packer p = {
                .cli = c, .label = label, .fd = -EBADF, .directory = directory, .counting = true
        };
        size_t n;
        _cleanup_free_ const char **sorted = sort(files, &n);
        int r = sorted ? add_all(&p, sorted, n) : cli_oom(c);

        return r ? r : announce(&p, max ? max : BUNDLE_SEND_MAX, false);
}

int bundle_pack(const struct cli *c, const char *label, const char *directory, const char *const *files,
                uint64_t max, struct bundle *ret) {
        _cleanup_(packer_done) struct packer p = {
                .cli = c, .label = label, .fd = -EBADF, .directory = directory, .counting = true
        };
        size_t n;
        _cleanup_free_ const char **sorted = sort(files, &n);
        unsigned char digest[32];
        int r;

        if (!sorted)
                return cli_oom(c);
        r = add_all(&p, sorted, n);
        if (!r)
                r = announce(&p, max ? max : BUNDLE_SEND_MAX, true);
        if (!r)
                r = load(&p);
        if (r)
                return r;
        p.counting = false;
        p.entries = 0;
        p.fd = temporary_file();
        p.archive = p.archive_write_new();
        if (!p.archive || p.gnutls_hash_init(&p.hash, GNUTLS_DIG_SHA256) < 0)
                return cli_oom(c);
        if (p.fd < 0)
                return cli_fail(c, "cannot make a temporary file: %s (set TMPDIR)", strerror(-p.fd));
        if (p.archive_write_set_format_pax_restricted(p.archive) != ARCHIVE_OK ||
            p.archive_write_add_filter_zstd(p.archive) != ARCHIVE_OK ||
            p.archive_write_set_bytes_in_last_block(p.archive, 1) != ARCHIVE_OK ||
            p.archive_write_open(p.archive, &p, NULL, write_packed, NULL) != ARCHIVE_OK)
                return cli_fail(c, "libarchive: %s", p.archive_error_string(p.archive));
        r = add_all(&p, sorted, n);
        if (r)
                return r;
        if (p.archive_write_close(p.archive) != ARCHIVE_OK)
                return cli_fail(c, "%s: cannot pack: %s", label,
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
        bool show = isatty(STDERR_FILENO) && !c->json && b->size > (1 << 20);
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
