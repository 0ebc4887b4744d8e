/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest as JSON. Invariant: what manifest_parse() accepts names only what entry.c knows. */
#include "tools/state/manifest.h"

#include <jansson.h>
#include <string.h>

#include "tools/state/entry.h"

#define TEXT_MAX 8192u /* a path, and an error */

void manifest_done(struct manifest *m) {
        free(m->program);
        free(m->host);
        free(m->state_directory);
        for (size_t i = 0; i < m->n_files; i++)
                free(m->files[i].name);
        free(m->files);
        for (size_t i = 0; i < m->n_left_out; i++)
                free(m->left_out[i]);
        free(m->left_out);
        *m = (struct manifest){};
}

int manifest_add(struct manifest *m, const char *name, uint64_t size, uint32_t mode,
                 const char sha256[static 65]) {
        struct manifest_file *f;

        if (m->n_files >= MANIFEST_FILES_MAX)
                return -E2BIG;
        if (m->n_files == m->allocated) {
                size_t n = m->allocated + m->allocated / 2 + 16;
                f = reallocarray(m->files, n, sizeof(*f));
                if (!f)
                        return -ENOMEM;
                m->files = f;
                m->allocated = n;
        }
        f = m->files + m->n_files;
        *f = (struct manifest_file){ .name = strdup(name), .size = size, .mode = mode };
        if (!f->name)
                return -ENOMEM;
        memcpy(f->sha256, sha256, sizeof(f->sha256));
        m->n_files++;
        return 0;
}

static int add_left_out(struct manifest *m, char *text) {
        char **list;

        if (!text)
                return -ENOMEM;
        list = m->n_left_out < MANIFEST_FILES_MAX
                       ? reallocarray(m->left_out, m->n_left_out + 1, sizeof(*list))
                       : NULL;
        if (!list) {
                free(text);
                return -ENOMEM;
        }
        m->left_out = list;
        list[m->n_left_out++] = text;
        return 0;
}

/* Nothing that a terminal or JSON would take for something else: UTF-8 without control characters. */
static bool printable(const char *s) {
        json_t *text = json_string(s);
        bool good = text && strlen(s) <= TEXT_MAX;

        json_decref(text);
        for (; good && *s; s++)
                good = (unsigned char)*s >= ' ' && *s != 0x7f &&
                       !((unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0);
        return good;
}

int manifest_leave_out(struct manifest *m, const char *name, const char *why) {
        char *text;

        if (!printable(name))
                name = "a file whose name cannot be shown";
        return add_left_out(m, asprintf(&text, "%s: %s", name, why) < 0 ? NULL : text);
}

int manifest_format(const struct manifest *m, char **ret) {
        json_t *files = json_array(), *left_out = json_array(), *all;

        for (size_t i = 0; i < m->n_files; i++) {
                const struct manifest_file *f = m->files + i;
                (void)json_array_append_new(files, json_pack("{s:s, s:I, s:i, s:s}", "name", f->name, "size",
                                                             (json_int_t)f->size, "mode", (int)f->mode,
                                                             "sha256", f->sha256));
        }
        for (size_t i = 0; i < m->n_left_out; i++)
                (void)json_array_append_new(left_out, json_string(m->left_out[i]));
        if (json_array_size(files) != m->n_files || json_array_size(left_out) != m->n_left_out) {
                json_decref(files);
                json_decref(left_out);
                return -ENOMEM;
        }
        all = json_pack("{s:i, s:s, s:I, s:s, s:s, s:I, s:s, s:b, s:o, s:o}", "format", MANIFEST_FORMAT,
                        "primus", m->program, "storeVersion", (json_int_t)m->store_version, "cluster",
                        m->cluster, "host", m->host, "created", (json_int_t)m->created_real, "stateDirectory",
                        m->state_directory, "bundles", m->bundles, "files", files, "leftOut", left_out);
        *ret = all ? json_dumps(all, JSON_INDENT(2)) : NULL;
        json_decref(all);
        return *ret ? 0 : -ENOMEM;
}

static bool hex(const char *s, size_t n) {
        return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

static int parse_file(json_t *one, struct manifest *m) {
        const char *name, *sha256;
        char hash[65];
        json_int_t size;
        int mode;

        if (json_unpack(one, "{s:s, s:I, s:i, s:s}", "name", &name, "size", &size, "mode", &mode, "sha256",
                        &sha256) < 0 ||
            entry_kind_of(name) < 0 || size < 0 || mode < 0 || mode > 07777 || !hex(sha256, 64))
                return -EBADMSG;
        memcpy(hash, sha256, sizeof(hash));
        return manifest_add(m, name, (uint64_t)size, (uint32_t)mode, hash);
}

static int parse_body(json_t *all, struct manifest *m) {
        const char *program, *cluster, *host, *directory;
        json_int_t version, created;
        json_t *files, *left_out, *one;
        size_t i;
        int bundles, r = 0;

        if (json_unpack(all, "{s:s, s:I, s:s, s:s, s:I, s:s, s:b, s:o, s:o}", "primus", &program,
                        "storeVersion", &version, "cluster", &cluster, "host", &host, "created", &created,
                        "stateDirectory", &directory, "bundles", &bundles, "files", &files, "leftOut",
                        &left_out) < 0 ||
            !hex(cluster, 32) || created < 0 || version < 0 || *directory != '/' || !json_is_array(files) ||
            !json_is_array(left_out) || !printable(program) || !printable(host) || !printable(directory))
                return -EBADMSG;
        *m = (struct manifest){ .program = strdup(program),
                                .store_version = version,
                                .host = strdup(host),
                                .created_real = (uint64_t)created,
                                .state_directory = strdup(directory),
                                .bundles = bundles };
        memcpy(m->cluster, cluster, sizeof(m->cluster));
        if (!m->program || !m->host || !m->state_directory)
                r = -ENOMEM;
        json_array_foreach (files, i, one)
                if (r >= 0)
                        r = parse_file(one, m);
        json_array_foreach (left_out, i, one)
                if (r >= 0)
                        r = json_is_string(one) && printable(json_string_value(one))
                                    ? add_left_out(m, strdup(json_string_value(one)))
                                    : -EBADMSG;
        return r;
}

int manifest_parse(const char *text, size_t size, struct manifest *ret) {
        struct manifest m = {};
        int format, r;
        json_t *all = size > MANIFEST_BYTES_MAX ? NULL : json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);

        if (!all || json_unpack(all, "{s:i}", "format", &format) < 0)
                r = -EBADMSG;
        else if (format != MANIFEST_FORMAT)
                r = format > MANIFEST_FORMAT ? -EPROTONOSUPPORT : -EBADMSG;
        else
                r = parse_body(all, &m);
        json_decref(all);
        if (r < 0) {
                manifest_done(&m);
                return r;
        }
        *ret = m;
        return 0;
}

bool manifest_same_files(const struct manifest *a, const struct manifest *b, const char **ret_why,
                         const char **ret_name) {
        for (size_t i = 0; i < MAX(a->n_files, b->n_files); i++) {
                const struct manifest_file *x = a->files + i, *y = b->files + i;

                if (i >= a->n_files || i >= b->n_files || strcmp(x->name, y->name) != 0) {
                        *ret_why = "is in the archive or in its manifest, but not in both at the same place";
                        *ret_name = i < a->n_files ? x->name : y->name;
                        return false;
                }
                if (x->size != y->size || x->mode != y->mode || strcmp(x->sha256, y->sha256) != 0) {
                        *ret_why = "was changed after the backup was made";
                        *ret_name = x->name;
                        return false;
                }
        }
        return true;
}
