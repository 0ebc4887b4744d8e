/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/checkpoint/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/primus/environment.h"
#include "lib/primus/text.h"

#define VERSION 1
#define BYTES_MAX (64u << 20) /* a checkpoint's data is at most 4 MiB */

void manifest_clear(struct manifest *m) {
        json_decref(m->metrics);
        json_decref(m->metadata);
        json_decref(m->files);
        free(m->data);
        *m = (struct manifest){};
}

/* ---- reading ---- */

static json_t *parse_manifest(const char *path, char why[static WHY_MAX]) {
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        json_error_t error;
        struct stat st;
        json_t *root;

        if (!f || fstat(fileno(f), &st) < 0) {
                snprintf(why, WHY_MAX, "%s: %s", path, strerror(errno));
                return NULL;
        }
        if (!S_ISREG(st.st_mode) || st.st_size > BYTES_MAX) {
                snprintf(why, WHY_MAX, "%s is larger than any", path);
                return NULL;
        }
        root = json_loadf(f, 0, &error);
        if (!root)
                snprintf(why, WHY_MAX, "%s: %s", path, error.text);
        return root;
}

static bool is_files(json_t *files) {
        const char *name;
        json_t *is;

        if (!json_is_object(files))
                return false;
        json_object_foreach (files, name, is)
                if (!json_is_integer(json_object_get(is, "size")) ||
                    !json_is_string(json_object_get(is, "sha256")))
                        return false;
        return true;
}

static int take_data(const json_t *data, struct manifest *ret) {
        const char *text = json_string_value(data);
        struct base64_decode_ctx decoding;

        if (json_is_null(data))
                return 0;
        if (!text)
                return -EBADMSG;
        ret->data_size = BASE64_DECODE_LENGTH(strlen(text));
        ret->data = malloc(ret->data_size + 1);
        if (!ret->data)
                return -ENOMEM;
        base64_decode_init(&decoding);
        return base64_decode_update(&decoding, &ret->data_size, ret->data, strlen(text), text) &&
                               base64_decode_final(&decoding)
                       ? 0
                       : -EBADMSG;
}

static int take_members(json_t *root, struct manifest *ret) {
        json_t *metrics, *metadata, *files, *data;
        json_int_t version, step, rank, world;

        if (json_unpack(root, "{s:I,s:I,s:I,s:I,s:F,s:o,s:o,s:o,s:o}", "version", &version, "step", &step,
                        "rank", &rank, "world", &world, "time", &ret->time, "metrics", &metrics, "metadata",
                        &metadata, "files", &files, "data", &data) < 0)
                return -EBADMSG;
        if (version != VERSION || step < 0 || step > (json_int_t)STEP_MAX || rank < 0 || rank >= world ||
            world > WORLD_MAX || !json_is_object(metrics) || !is_files(files))
                return -EBADMSG;
        ret->step = (uint64_t)step;
        ret->rank = (uint32_t)rank;
        ret->world = (uint32_t)world;
        ret->metrics = json_incref(metrics);
        ret->metadata = json_incref(metadata);
        ret->files = json_incref(files);
        return take_data(data, ret);
}

char *manifest_path(const char *checkpoint, uint32_t rank) {
        return text_make("%s/manifest-%" PRIu32 ".json", checkpoint, rank);
}

int manifest_read(const char *checkpoint, uint32_t rank, struct manifest *ret, char why[static WHY_MAX]) {
        _cleanup_free_ char *path = manifest_path(checkpoint, rank);
        json_auto_t *root = path ? parse_manifest(path, why) : NULL;
        struct manifest m = {};
        int r = root ? take_members(root, &m) : -EBADMSG;

        if (r == -EBADMSG && root)
                snprintf(why, WHY_MAX, "%s is no manifest of this version", path);
        if (r < 0)
                manifest_clear(&m);
        else
                *ret = m;
        return r;
}

double manifest_metric(const json_t *metrics, const char *name) {
        const json_t *value = json_object_get(metrics, name);

        return json_is_number(value) ? json_number_value(value) : NAN;
}

/* ---- writing ---- */

static json_t *encode_data(const void *data, size_t size) {
        _cleanup_free_ char *text = data ? malloc(BASE64_ENCODE_RAW_LENGTH(size) + 1) : NULL;

        if (!data)
                return json_null();
        if (!text)
                return NULL;
        base64_encode_raw(text, size, data);
        return json_stringn(text, BASE64_ENCODE_RAW_LENGTH(size));
}

/* Which executor's it is, for people. */
static json_t *told_by(const char *variable) {
        const char *value = getenv(variable);
        json_t *text = value ? json_string(value) : NULL;

        return text ? text : json_null();
}

static json_t *compose_manifest(const struct manifest *m) {
        return json_pack("{s:i,s:I,s:f,s:I,s:I,s:O,s:O,s:O,s:o,s:o,s:o,s:o,s:o}", "version", VERSION, "step",
                         (json_int_t)m->step, "time", m->time, "rank", (json_int_t)m->rank, "world",
                         (json_int_t)m->world, "metrics", m->metrics, "metadata", m->metadata, "files",
                         m->files, "data", encode_data(m->data, m->data_size), "job",
                         told_by("PRIMUS_JOB_UID"), "role", told_by("PRIMUS_ROLE"), "index",
                         told_by("PRIMUS_INDEX"), "trial", told_by("PRIMUS_TRIAL"));
}

static int write_through(const char *path, const json_t *root) {
        _cleanup_fclose_ FILE *f = fopen(path, "we");

        if (!f)
                return -errno;
        errno = 0;
        if (json_dumpf(root, f, JSON_COMPACT) < 0 || fflush(f) != 0 || fsync(fileno(f)) < 0)
                return errno > 0 ? -errno : -EIO;
        return 0;
}

int manifest_write(const char *checkpoint, const struct manifest *m) {
        _cleanup_free_ char *path = manifest_path(checkpoint, m->rank);
        _cleanup_free_ char *temporary = text_make("%s/.manifest-%" PRIu32 ".json", checkpoint, m->rank);
        json_auto_t *root = compose_manifest(m);

        if (!root || !path || !temporary)
                return -ENOMEM;
        TRY(write_through(temporary, root));
        if (rename(temporary, path) < 0)
                return -errno;
        return tree_flush(checkpoint);
}
